// SPDX-License-Identifier: Apache-2.0
// A comparison's run in the store, from its first case to its end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "common/interrupt.hpp"
#include "level/level.hpp"
#include "measure/warnings.hpp"
#include "report/access.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::cli {

// The run as the store has it, from the first case on that can be measured: what cannot begin leaves no trace.
class StoredRun {
 public:
  // `resumed`: the run is in the store already, and goes on.
  StoredRun(store::Run run, store::Store& store, const std::vector<level::BrokenLevel>& problems, bool resumed)
      : run_(std::move(run)), store_(store), problems_(problems), resumed_(resumed) {
    run_.process = store::this_process();
    if (resumed) before_s_ = report::number(run_.settings, "wall_s").value_or(0);
  }

  Result<void> begin() {
    if (begun_) return {};
    STRATA_TRY(resumed_ ? store_.continue_run(run_) : store_.begin_run(run_));
    begun_ = true;
    for (const auto& problem : problems_)
      STRATA_TRY(store_.add_warning(run_.run_id, measure::warnings::broken_level(problem.error.what)));
    return {};
  }

  // Of the run's settings: stored with its first case, and anew when it ends.
  void set(const std::string& name, const nlohmann::json& value) { run_.settings[name] = value; }

  // A case that was being measured did not come to its end.
  void cut_short() { is_cut_ = true; }

  // Whether there is a case to show. `failed` is kept where nothing worse was seen before.
  bool end(double wall_s, std::optional<Error>& failed) {
    if (!begun_) return false;
    if (interrupted()) (void)store_.add_warning(run_.run_id, measure::warnings::interrupted_run());
    run_.finished = utc_now();
    run_.interrupted = interrupted() || is_cut_;
    run_.settings["wall_s"] = before_s_ + wall_s;
    auto ended = store_.finish_run(run_);
    if (ended) ended = store_.drop_empty_run(run_.run_id);
    if (!ended && !failed) failed = ended.error();
    const auto cases = store_.run_cases(run_.run_id);
    return cases && !cases->empty();
  }

 private:
  store::Run run_;
  store::Store& store_;
  const std::vector<level::BrokenLevel>& problems_;
  bool resumed_, begun_ = false, is_cut_ = false;
  double before_s_ = 0;  // that it took until it was cut off
};

// What a list of runs says of every case of a run, which have one verdict.
inline void keep_verdict(store::Store& store, const store::Run& run, const std::string& verdict) {
  std::map<std::string, std::string> verdicts;
  for (const auto& run_case : run.cases) verdicts[run_case.key] = verdict;
  (void)store.set_verdicts(run.run_id, verdicts);  // a list without them is no reason to end in an error
}

}  // namespace strata::cli
