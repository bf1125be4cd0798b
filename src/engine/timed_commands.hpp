// SPDX-License-Identifier: Apache-2.0
// Runs programs side by side, in turns: `compare --command`, and functions of Python (python/stratabench/timing.py),
// whose commands are servers: they print a line when they are ready, and then, for each line with a number, run their
// code as often and print how many ns that took.
#pragma once

#include "analysis/timed_commands.hpp"
#include "engine/events.hpp"
#include "requests/request.hpp"

namespace strata::engine {

// Rounds of one run each, in an order that is drawn anew, until the budget is used up; at least this many.
inline constexpr int kFewestRuns = 5;
// Processes of each server, one after the other.
inline constexpr int kServerRestarts = 6;

// One that fails, is killed or takes too long is left out from then on. Ctrl-C ends it with what was measured. Errors
// (usage): fewer than two commands, another number of names, a command that is not made of words.
Result<analysis::TimedCommands> time_commands(const requests::CommandsRequest& request, EventSink& events);

// 0; 1 where a command has no number.
int exit_code_of(const analysis::TimedCommands& timed);

}  // namespace strata::engine
