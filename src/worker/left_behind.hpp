// SPDX-License-Identifier: Apache-2.0
// Processes that workers left behind: this process is the subreaper (prctl(2)) of all that it starts, so that whatever
// loses its parents becomes its child, also in a session of its own and with an empty environment, by which marked.hpp
// finds nothing. They are ended when no worker runs any more: which worker they come from, nothing says.
#pragma once

#include <sys/types.h>

#include <mutex>

namespace strata::worker::left_behind {

// To be held while a child with a process group of its own is forked and told of.
std::mutex& mutex();

// The mutex is held. The first call makes this process the subreaper; children that it has by then stay what they are.
void prepare();
void add_worker(pid_t pid);
void add_helper(pid_t pid);  // ends by itself, not before this process

// `pid` was reaped. SIGKILL to all that was left behind and to what they leave in turn, if it was the last worker.
// `starts_others`: what is there by now stays, whichever worker it comes from.
void remove_worker(pid_t pid, bool starts_others);

}  // namespace strata::worker::left_behind
