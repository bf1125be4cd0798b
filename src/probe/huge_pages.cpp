// SPDX-License-Identifier: Apache-2.0
#include "probe/huge_pages.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

namespace strata::probe {
namespace {

constexpr const char* kThpMode = "/sys/kernel/mm/transparent_hugepage/enabled";

// Malloc has the tunable from 2.35 on.
bool has_tunable(const std::string& version) {
  int major = 0, minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && (major > 2 || (major == 2 && minor >= 35));
}

}  // namespace

std::string chosen_mode(std::string_view text) {
  const auto open = text.find('['), close = text.find(']', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

HugePages huge_pages() {
  HugePages result;
  std::ifstream file(kThpMode);
  std::string line;
  std::getline(file, line);
  result.mode = chosen_mode(line);
#ifdef __GLIBC__
  result.glibc = ::gnu_get_libc_version();
#endif
  return result;
}

std::optional<Error> why_no_huge_pages(const HugePages& pages) {
  const auto none = [](std::string what, std::string hint) {
    Error error;
    error.what = std::move(what);
    error.hint = std::move(hint);
    error.exit = Exit::environment;
    return error;
  };
  if (pages.mode.empty())
    return none("this kernel has no transparent huge pages", fmt::format("{} is missing", kThpMode));
  if (pages.mode == "never")
    return none("this kernel gives no huge pages (transparent_hugepage is never)",
                fmt::format("as root: echo madvise > {}", kThpMode));
  if (!has_tunable(pages.glibc))
    return none(pages.glibc.empty()
                    ? "this C library is not glibc, whose malloc can ask for huge pages"
                    : fmt::format("glibc {} cannot ask for huge pages; 2.35 and newer can", pages.glibc),
                "a newer distribution");
  return std::nullopt;
}

}  // namespace strata::probe
