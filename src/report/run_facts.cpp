// SPDX-License-Identifier: Apache-2.0
#include "report/run_facts.hpp"

#include <fmt/format.h>

#include "report/access.hpp"
#include "store/run_state.hpp"

namespace strata::report {

std::vector<document::Fact> run_facts(const store::Run& run) {
  std::vector<document::Fact> facts{
      {"machine", fmt::format("{}, {} cores", text(run.machine, "cpu"), text(run.machine, "cores"))}};
  if (!run.environments.empty()) facts.push_back({"PyTorch", text(run.environments.front(), "torch")});
  if (const auto& suite = run.settings.suite)
    facts.push_back({"suite", fmt::format("{}, entry {}; ./strata show {} has the others", suite->title, suite->entry,
                                          suite->run)});
  const auto& shard = run.settings.shard.shard;
  if (run.joined && !run.joined->shards.empty()) {
    facts.push_back(
        {"runs", fmt::format("{} of one whole; the table of shards names them", run.joined->shards.size())});
    facts.push_back({"command of shard " + shard, run.command});
    return facts;
  }
  facts.push_back({"run", run.run_id});
  if (!shard.empty())
    facts.push_back({"shard", fmt::format("{}; ./strata show {} has all that its store has", shard, run.run_id)});
  facts.push_back({"command", run.command});
  return facts;
}

std::vector<document::Fact> run_marks(const store::Run& run) {
  return {{"run", run.run_id},
          {"run_state", store::to_string(store::state_of(run))},
          {"run_resumed", fmt::format("{}", run.settings.resumed.value_or(0))}};
}

}  // namespace strata::report
