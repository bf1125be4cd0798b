// SPDX-License-Identifier: Apache-2.0
// Where the program's files lie, wherever it was moved or copied to: beside it, as `cmake --install` puts them, or in
// the folder above, as a build folder has them. And how it prints what it did not write.
#pragma once

#include <filesystem>
#include <string>

inline std::string program_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return ".";
  for (const auto& operand : {own, own.parent_path()})
    if (fs::exists(operand / "weights.safetensors", error)) return operand.string();
  return own.string();
}

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
