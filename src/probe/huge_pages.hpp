// SPDX-License-Identifier: Apache-2.0
// Transparent huge pages: whether the kernel gives them, and whether glibc's malloc can be told to ask for them
// (GLIBC_TUNABLES=glibc.malloc.hugetlb=1). How many a process has is in probe/memory.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace strata::probe {

struct HugePages {
  std::string mode;   // of the kernel: "always", "madvise" (only where a program asks), "never"; empty: it has none
  std::string glibc;  // its version, as "2.36"; empty: another C library
};

// Of this machine, and of the C library that the driver runs with.
HugePages huge_pages();

// "always [madvise] never" -> "madvise"; empty: nothing is chosen.
std::string chosen_mode(std::string_view text);

// Why a process cannot be given huge pages through its malloc, and what to do. nullopt: it can.
std::optional<Error> why_no_huge_pages(const HugePages& pages);

}  // namespace strata::probe
