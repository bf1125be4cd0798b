// SPDX-License-Identifier: Apache-2.0
// Confines a process to be started, and all that it starts (Linux's Landlock, which needs no rights). Either: it may
// write below named folders only, reach no network, and signal nothing outside, for what runs a model file, since not
// all that such a file may do can be seen before it is loaded. Or: it cannot read the files of one folder, for workers,
// whose answers are judged by what lies there. A confined process reads no other process's memory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata {

// The version of the kernel's interface; 0: it has none, or it is switched off, and `why_not` says so.
struct Landlock {
  int version = 0;
  std::string why_not;
};
Landlock landlock();

struct Confinement {
  std::optional<std::vector<std::string>> writable = {};  // where it may write, devices aside; nullopt: where it could
  // A folder (there is one) whose files it may not read; empty: none. Neither does it read what is made later, while it
  // runs, in a folder above that one: what lies there already may be read, and what is made further below.
  std::filesystem::path hidden = {};
};

// A descriptor (closed on exec) of the rules, to be given to enter_confinement() in the child. -1 where the kernel
// cannot confine to `writable`. Error: the kernel refuses the rules, or nothing can be hidden (why_not_hidden).
Result<int> make_confinement(const Confinement& confinement);

// Why files of a folder cannot be kept from a process; empty: they can.
std::string why_not_hidden(const std::filesystem::path& folder);

// Between fork and exec: calls the kernel only. False with errno: do not go on.
bool enter_confinement(int rules);

}  // namespace strata
