// SPDX-License-Identifier: Apache-2.0
// Confines a process to be started, and all that it starts: it may write below named folders only, reach no network,
// and signal or trace nothing outside (Linux's Landlock, which needs no rights). Reading is as it was. For what runs a
// model file, since not all that such a file may do can be seen before it is loaded.
#pragma once

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

// A descriptor (closed on exec) of the rules for `writable` folders and the devices that programs write to, to be given
// to enter_confinement() in the child. -1 where the kernel cannot confine. Error: the kernel refuses the rules.
Result<int> make_confinement(const std::vector<std::string>& writable);

// Between fork and exec: calls the kernel only. False with errno: do not go on.
bool enter_confinement(int rules);

}  // namespace strata
