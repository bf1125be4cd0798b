// SPDX-License-Identifier: Apache-2.0
// Every worker carries a mark in its environment, which its children inherit: a process that left the worker's group
// and session, and lost its parents, is found and ended all the same. One that empties its environment is
// left_behind.hpp's.
#pragma once

#include <string>

namespace strata::worker {

// The mark that all workers of this process share, and that of one more worker.
const std::string& common_mark();  // "STRATA_WORKER=<16 digits>."
std::string next_mark();           // "STRATA_WORKER=<16 digits>.<n>."

// SIGKILL to every process that we may look at and whose environment has an entry that begins so, until there is none
// or 20 looks were taken. Async-signal-safe. An empty mark is nobody's.
void kill_marked(const char* mark);

}  // namespace strata::worker
