// SPDX-License-Identifier: Apache-2.0
#include "requests/members.hpp"

namespace strata::requests {
namespace {

constexpr int kMostRuns = 10'000;

}  // namespace

std::vector<Member> members_of(CommandsRequest& request) {
  auto commands = described(repeated(request.commands), "commands", "--command",
                            "programs side by side in place of a network's levels, two or more, as 'build/a' "
                            "'build/b --fast'; nothing is proven of what they do",
                            "COMMAND");
  commands.required = true;
  return {commands,
          described(repeated(request.names), "names", "", "what they are called (default: the commands)"),
          described(text(request.setup), "setup", "--setup", "with --command: a command before each run, not timed",
                    "COMMAND"),
          described(whole(request.warmup, 0, kMostRuns), "warmup", "--warmup",
                    "with --command: runs of each that are not timed, first"),
          described(whole(request.runs, 0, kMostRuns), "runs", "--runs",
                    "with --command: timed runs of each (0: as many as the budget allows)"),
          described(flag(request.served), "served", "", "each is a server of its own code"),
          described(seconds(request.budget_s), "budget_s", "--budget", "measured time of all of them together"),
          described(seconds(request.timeout_s), "timeout_s", "--timeout", "longest time of one run")};
}

}  // namespace strata::requests
