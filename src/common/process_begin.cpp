// SPDX-License-Identifier: Apache-2.0
#include "common/process_begin.hpp"

#include <fstream>
#include <sstream>

namespace strata {

std::string process_begin(const std::string& pid) {
  std::string line;
  std::ifstream file("/proc/" + pid + "/stat");
  std::getline(file, line);
  const auto name_end = line.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, field;
  fields >> state;
  if (state == "Z" || state == "X") return {};
  for (int number = 4; number <= 22; ++number) fields >> field;  // proc(5): starttime is field 22
  return field;
}

}  // namespace strata
