// SPDX-License-Identifier: Apache-2.0
#include "common/process_begin.hpp"

#include <fstream>

namespace strata {

std::istringstream stat_fields(const std::string& pid) {
  std::string line;
  std::ifstream file("/proc/" + pid + "/stat");
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return std::istringstream(name_end == std::string::npos ? std::string() : line.substr(name_end + 1));
}

std::string process_begin(const std::string& pid) {
  auto fields = stat_fields(pid);
  std::string state, field;
  fields >> state;
  if (state == "Z" || state == "X") return {};
  for (int number = 4; number <= 22; ++number) fields >> field;  // proc(5): starttime is field 22
  return field;
}

}  // namespace strata
