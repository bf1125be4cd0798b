// SPDX-License-Identifier: Apache-2.0
#include "engine/stored_run.hpp"

#include <chrono>

#include "analysis/warnings.hpp"
#include "common/interrupt.hpp"
#include "report/sentence.hpp"
#include "store/run_state.hpp"

namespace strata::engine {

StoredRun::StoredRun(store::Run run, store::Store& store, const std::vector<level::BrokenLevel>& problems, bool resumed)
    : run_(std::move(run)), store_(store), problems_(problems), resumed_(resumed) {
  run_.process = store::this_process();
  run_.settings.budget_spent = false;
  if (resumed) before_s_ = run_.settings.wall_s.value_or(0);
}

Result<void> StoredRun::begin() {
  if (begun_) return {};
  STRATA_TRY(resumed_ ? store_.continue_run(run_) : store_.begin_run(run_));
  begun_ = true;
  for (const auto& problem : problems_)
    STRATA_TRY(store_.add_warning(run_.run_id, analysis::warnings::broken_level(problem.error.what)));
  return {};
}

bool StoredRun::end(double wall_s, std::optional<Error>& failed) {
  if (!begun_) return false;
  if (interrupted()) (void)store_.add_warning(run_.run_id, analysis::warnings::interrupted_run());
  run_.finished = utc_now();
  run_.interrupted = interrupted() || is_cut_;
  run_.settings.wall_s = before_s_ + wall_s;
  auto ended = store_.finish_run(run_);
  if (ended) ended = store_.drop_empty_run(run_.run_id);
  if (!ended && !failed) failed = ended.error();
  const auto cases = store_.run_cases(run_.run_id);
  return cases && !cases->empty();
}

int EndedRun::exit_code() const {
  return static_cast<int>(outcome.failed ? Exit::failed : outcome.missing ? Exit::environment : Exit::ok);
}

EndedRun carry_out(store::Run run, bool resumed, const Prepared& ready, store::Store& store,
                   const std::function<Result<measure::Outcome>(StoredRun&)>& measure) {
  StoredRun stored(std::move(run), store, ready.problems, resumed);
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = measure(stored);
  EndedRun ended;
  if (outcome)
    ended.outcome = *outcome;
  else
    ended.failed = outcome.error();
  ended.has_case =
      stored.end(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), ended.failed);
  return ended;
}

Verdicts verdicts_of(const analysis::RunResult& result) {
  Verdicts verdicts;
  for (const auto& one_case : result.cases) verdicts[one_case.key] = report::brief_verdict(one_case);
  return verdicts;
}

Verdicts verdicts_of(const store::Run& run, const std::string& verdict) {
  Verdicts verdicts;
  for (const auto& run_case : run.cases) verdicts[run_case.key] = verdict;
  return verdicts;
}

void keep_verdicts(store::Store& store, const std::string& run_id, const Verdicts& verdicts) {
  (void)store.set_verdicts(run_id, verdicts);  // a list without them is no reason to end in an error
}

}  // namespace strata::engine
