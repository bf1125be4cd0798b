// SPDX-License-Identifier: Apache-2.0
// A comparison, a sweep, a training or a suite from its request to its end, for whoever only wants to know what came of
// it: nothing is shown, no page is written.
#pragma once

#include <filesystem>
#include <string>

#include "engine/run_request.hpp"
#include "engine/suite_run.hpp"

namespace strata::engine {

struct MeasuredRun {
  std::string run_id;
  bool has_case = false;          // to show; else nothing of it is stored
  std::optional<Error> failed{};  // what kept it from its end
  int exit_code = 0;              // what the verb would end with, unless it was cancelled or failed
};

// `store`: as it was named; empty: the default one. `chosen`: of a sweep or a training, the shard that is this one's;
// one that is done is not measured again. Errors: those before it begins; what makes no run.
Result<MeasuredRun> measure_request(const requests::Request& request, RunContext context, const std::string& store,
                                    const ShardChoice& chosen, EventSink& events);

// Its entries one after the other, each a run of its own. Errors: those of its file and of its plan; the store's.
Result<MeasuredRun> measure_suite(const requests::SuiteRequest& request, const std::string& store, EventSink& events);

// The result of a run, as `show --format json` prints it; the list of runs gets its verdicts.
Result<nlohmann::json> kept_result(const std::filesystem::path& store, const std::string& run_id);

}  // namespace strata::engine
