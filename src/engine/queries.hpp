// SPDX-License-Identifier: Apache-2.0
// Questions to the store: what a run says, which runs there are, what changed between two.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/difference.hpp"
#include "engine/events.hpp"
#include "engine/stored_run.hpp"
#include "report/document.hpp"
#include "requests/request.hpp"
#include "store/store.hpp"

namespace strata::engine {

// Trainings, sweeps and suites have pages of their own; a shard's is that of the whole, as far as the store has it.
// nullopt: the run is none of them.
std::optional<Result<document::Document>> document_of(const store::Run& run, const store::Store& store);

struct ShownRun {
  nlohmann::json result;  // as `show --format json` prints it
  Verdicts verdicts;
};
Result<ShownRun> shown_run(const store::Run& run, const store::Store& store);

struct ListedRun {
  std::string run, name, started, state;
  std::vector<std::string> verdicts, cases;
  std::string command;
};

// The newest first; none where there is no store. Error: it cannot be read.
Result<std::vector<ListedRun>> list_runs(const requests::RunsRequest& request, const std::filesystem::path& store);

// Error: the same run twice, a training, no case in common, the store's.
Result<analysis::DifferenceResult> difference_of(const requests::DiffRequest& request,
                                                 const std::filesystem::path& store);

// 0, 4 where a level is slower beyond the threshold, 1 where one has no number any more, 5 where that is open.
int exit_code_of(const analysis::DifferenceResult& difference);

struct Answer {
  nlohmann::json result;
  int exit_code = 0;
};
// Whichever it is, a question about data sets (data_sets.hpp) or a comparison of commands (timed_commands.hpp), too.
Result<Answer> answer_query(const requests::Query& query, const std::filesystem::path& store, EventSink& events);

}  // namespace strata::engine
