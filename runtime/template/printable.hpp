// SPDX-License-Identifier: Apache-2.0
// How programs print what they did not write.
#pragma once

#include <cstddef>
#include <string>

// Text of a file, as a tensor's name, for a terminal: what would act on one becomes a question mark.
inline std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool second = byte >= 0x80 && byte < 0xa0 && i > 0 && static_cast<unsigned char>(text[i - 1]) == 0xc2;
    if (second) text[i - 1] = '?';
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f || second) text[i] = '?';
  }
  return text;
}
