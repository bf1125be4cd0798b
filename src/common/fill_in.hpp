// SPDX-License-Identifier: Apache-2.0
// Templates of text: every @name@ of a template (or {name}) becomes the value of that name, and what a value holds is
// never looked at again. Values are written in the template's language (escape.hpp).
#pragma once

#include <map>
#include <string>

namespace strata {

inline std::string fill_in(const std::string& text, const std::map<std::string, std::string>& values, char begin = '@',
                           char end = '@') {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto close = text[at] == begin ? text.find(end, at + 1) : std::string::npos;
    const auto it = close == std::string::npos ? values.end() : values.find(text.substr(at + 1, close - at - 1));
    out += it == values.end() ? std::string(1, text[at]) : it->second;
    at = it == values.end() ? at + 1 : close + 1;
  }
  return out;
}

}  // namespace strata
