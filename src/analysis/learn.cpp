// SPDX-License-Identifier: Apache-2.0
#include "analysis/learn.hpp"

#include <algorithm>
#include <map>

#include "analysis/blocks.hpp"
#include "common/outside.hpp"
#include "store/fingerprint.hpp"

namespace strata::analysis {
namespace {

constexpr std::size_t kMostRuns = 10;  // that teach, the newest

// In which environment a row of this name for it ran; the first one where it needs none.
std::string environment_hash(const store::Run& run, const std::string& name) {
  for (const auto& description : run.environments)
    if (name.empty() || outside::text_or(description, "name") == name) return store::environment_of(description).hash();
  return {};
}

// What the runs that were added showed, by the names of two rows.
class EarlierRuns {
 public:
  EarlierRuns(const store::Run& now, const std::set<std::string>& levels) : now_(now), levels_(levels) {}

  // False: it teaches nothing.
  bool add(const store::Run& run) {
    if (run.cases.empty() || run.version != now_.version) return false;
    const auto& run_case = run.cases.front();
    if (!run_case.trust.together.value_or(true) || run_case.trust.load.busy()) return false;
    const auto room = core_budget_of(run_case.question, run.machine);
    std::vector<const store::Row*> rows;
    for (const auto& row : run_case.rows)
      if (row.state == State::measured && !row.blocks.empty() && levels_.contains(row.level) &&
          environment_hash(run, row.environment) == environment_hash(now_, row.environment))
        rows.push_back(&row);
    const auto blocks = medians(rows, room, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t k = i + 1; k < rows.size(); ++k)
        note(rows[i]->name(), rows[k]->name(), stats::log_differences(blocks, i, k));
      if (run.settings.aa) note(rows[i]->name(), rows[i]->name(), stats::log_differences(twins(*rows[i], room), 0, 1));
    }
    return !rows.empty();
  }

  std::vector<store::LearnedPair> pairs() const {
    std::vector<store::LearnedPair> all;
    for (const auto& [names, runs] : shown_) all.push_back({{names.first, names.second}, stats::pool(runs)});
    return all;
  }

 private:
  void note(const std::string& name, const std::string& other, const std::vector<std::vector<double>>& differences) {
    const auto learned = stats::learned_from(stats::compare(differences, 0));
    if (learned.known()) shown_[std::minmax(name, other)].push_back(learned);
  }

  const store::Run& now_;
  const std::set<std::string>& levels_;
  std::map<std::pair<std::string, std::string>, std::vector<stats::LearnedSpread>> shown_;
};

}  // namespace

Result<std::vector<store::LearnedPair>> learn(const store::Store& store, const std::string& run_id,
                                              const store::Case& run_case, const std::set<std::string>& levels) {
  const auto now = STRATA_TRY(store.load_case(run_id, run_case.key));
  const auto ids = STRATA_TRY(store.runs_of_case(run_case.key, run_case.network, now.machine));
  EarlierRuns earlier(now, levels);
  std::size_t taught = 0;
  for (const auto& id : ids) {
    if (id == run_id) continue;
    if (const auto run = store.load_case(id, run_case.key); run && earlier.add(*run)) ++taught;
    if (taught == kMostRuns) break;
  }
  return earlier.pairs();
}

stats::LearnedSpread learned_of(const store::Trust& trust, const std::string& level, const std::string& other) {
  const auto [first, second] = std::minmax(level, other);
  const auto pair = std::ranges::find(trust.learned, std::vector{first, second}, &store::LearnedPair::levels);
  return pair == trust.learned.end() ? stats::LearnedSpread{} : pair->learned;
}

}  // namespace strata::analysis
