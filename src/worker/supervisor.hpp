// SPDX-License-Identifier: Apache-2.0
// A tiny child of the driver that outlives it by a moment: when the driver dies, however it dies, the supervisor kills
// the process groups of all workers. PDEATHSIG reaches only a worker itself; the supervisor reaches its children as
// well, stopped ones included, and those that left the groups (marked.hpp). It is told of groups through a socket,
// whose closing is the news of the driver's death.
#pragma once

#include <sys/types.h>

namespace strata::worker::supervisor {

// Starts the supervisor unless this process has one. Call before the fork of a worker; without one (no processes left)
// PDEATHSIG remains.
void ensure();

// Async-signal-safe. `guard` is called by the worker itself between fork and exec, `release` by the driver before it
// reaps.
void guard(pid_t group);
void release(pid_t group);

}  // namespace strata::worker::supervisor
