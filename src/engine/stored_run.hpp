// SPDX-License-Identifier: Apache-2.0
// A run in the store, from its first case to its end.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "engine/prepare.hpp"
#include "store/store.hpp"

namespace strata::engine {

// The run as the store has it, from the first case on that can be measured: what cannot begin leaves no trace.
class StoredRun {
 public:
  // `resumed`: the run is in the store already, and goes on.
  StoredRun(store::Run run, store::Store& store, const std::vector<level::BrokenLevel>& problems, bool resumed);

  Result<void> begin();

  // Stored with its first case, and anew when it ends.
  store::Settings& settings() { return run_.settings; }

  // A case that was being measured did not come to its end.
  void cut_short() { is_cut_ = true; }

  // Points are left for which there is no time any more.
  void spend_budget() { is_cut_ = run_.settings.budget_spent = true; }

  // Whether there is a case to show. `failed` is kept where nothing worse was seen before.
  bool end(double wall_s, std::optional<Error>& failed);

 private:
  store::Run run_;
  store::Store& store_;
  const std::vector<level::BrokenLevel>& problems_;
  bool resumed_, begun_ = false, is_cut_ = false;
  double before_s_ = 0;  // that it took until it was cut off
};

// How a run ended. What was measured before an error is stored all the same.
struct EndedRun {
  measure::Outcome outcome{};
  std::optional<Error> failed{};
  bool has_case = false;  // to show

  // 0, 1 where a row failed, 3 where one lacks what it needs.
  int exit_code() const;
};

// `run` as it begins, `measure` for its cases, its end, how long it took.
EndedRun carry_out(store::Run run, bool resumed, const Prepared& ready, store::Store& store,
                   const std::function<Result<measure::Outcome>(StoredRun&)>& measure);

// What a list of runs says of each case, by its key: of a comparison its own, of other runs what all of it comes to.
using Verdicts = std::map<std::string, std::string>;
Verdicts verdicts_of(const analysis::RunResult& result);
Verdicts verdicts_of(const store::Run& run, const std::string& verdict);
void keep_verdicts(store::Store& store, const std::string& run_id, const Verdicts& verdicts);

}  // namespace strata::engine
