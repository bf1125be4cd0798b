// SPDX-License-Identifier: Apache-2.0
#include "cluster/join.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cluster/shard.hpp"
#include "common/lookup.hpp"
#include "store/run_state.hpp"

namespace strata::cluster {
using Json = nlohmann::json;
namespace {

constexpr std::size_t kNamed = 3;  // points that a note names

Shard shard_of(const store::Run& run) {
  return read_shard(run.settings.shard.shard).value_or(Shard{});
}

// "a, b, c and 4 more".
std::string some_of(const std::vector<std::string>& names) {
  const auto shown = std::vector<std::string>(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamed)));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kNamed ? fmt::format(" and {} more", names.size() - kNamed) : "");
}

// Cases of several runs, each once.
class JoinedCases {
 public:
  void add(const store::Run& run, store::Case run_case);
  std::vector<store::Case> take() {
    std::vector<store::Case> all;
    for (auto& place : places_) all.push_back(std::move(place.run_case));
    return all;
  }
  std::map<std::string, std::string> nodes() const {
    std::map<std::string, std::string> all;
    for (const auto& place : places_) all[place.run_case.id] = place.node;
    return all;
  }
  std::vector<std::string> notes() const;

 private:
  struct Place {
    store::Case run_case;
    std::string node, run, started;
  };
  static std::tuple<bool, std::string> rank(const Place& place) { return {place.run_case.finished, place.started}; }

  std::vector<Place> places_;
  std::map<std::string, std::size_t> by_key_;
  std::vector<std::string> twice_, other_network_;
};

void JoinedCases::add(const store::Run& run, store::Case run_case) {
  Place place{
      .run_case = std::move(run_case), .node = run.settings.shard.node, .run = run.run_id, .started = run.started};
  const auto [known, is_new] = by_key_.emplace(place.run_case.key, places_.size());
  if (is_new) {
    places_.push_back(std::move(place));
    return;
  }
  auto& before = places_[known->second];
  (before.run_case.network == place.run_case.network ? twice_ : other_network_).push_back(place.run_case.id);
  if (rank(before) < rank(place)) before = std::move(place);
}

std::vector<std::string> JoinedCases::notes() const {
  std::vector<std::string> all;
  if (!twice_.empty())
    all.push_back(fmt::format("{} point{} measured more than once; the newer whole one is shown: {}", twice_.size(),
                              twice_.size() == 1 ? " was" : "s were", some_of(twice_)));
  if (!other_network_.empty())
    all.push_back(
        fmt::format("the network was another one when {} point{} measured again; the newer whole one is "
                    "shown: {}",
                    other_network_.size(), other_network_.size() == 1 ? " was" : "s were", some_of(other_network_)));
  return all;
}

// Of a whole and of a part of it, and of two alike the newer.
bool is_better(const store::Run& one, const store::Run& other) {
  const auto whole = [](const store::Run& run) { return store::state_of(run) == store::RunState::finished; };
  return std::tuple(whole(one), one.started) > std::tuple(whole(other), other.started);
}

// A training's shard counts once: its repeats in two runs would be twice as many.
std::vector<store::Run> one_run_a_shard(std::vector<store::Run> runs, std::vector<std::string>& notes) {
  std::map<int, store::Run> best;
  for (auto& run : runs) {
    const auto shard = shard_of(run);
    const auto known = best.find(shard.number);
    if (known == best.end()) {
      best.emplace(shard.number, std::move(run));
      continue;
    }
    const bool newer = is_better(run, known->second);
    notes.push_back(fmt::format("shard {} was trained more than once; {} is shown, and {} is not", shard.text(),
                                newer ? run.run_id : known->second.run_id, newer ? known->second.run_id : run.run_id));
    if (newer) known->second = std::move(run);
  }
  std::vector<store::Run> all;
  for (auto& [number, run] : best) all.push_back(std::move(run));
  return all;
}

// The row of a level in another shard, added to that in the first. One that has no number there has none in the whole,
// as a training that is in one piece drops a level for good.
void add_row(store::Case& run_case, store::Row row, const Shard& shard) {
  const auto own = std::find_if(run_case.rows.begin(), run_case.rows.end(),
                                [&](const auto& other) { return other.name() == row.name(); });
  if (own == run_case.rows.end()) {
    run_case.rows.push_back(std::move(row));
    return;
  }
  own->info.rows_of_shards.push_back(row.row_id);
  if (own->proof && own->proof->in_the_middle && row.proof && row.proof->in_the_middle) {
    auto& sum = *own->proof->in_the_middle;
    const auto& other = *row.proof->in_the_middle;
    sum.steps_and_scores += other.steps_and_scores;
    sum.steps += other.steps;
    sum.steps_in_windows += other.steps_in_windows;
    sum.windows_too_rough += other.windows_too_rough;
  }
  if (row.judged && row.state != State::measured && (!own->judged || own->state == State::measured)) {
    own->state = row.state;
    own->reason = fmt::format("shard {}: {}", shard.text(), row.reason);
    own->hint = row.hint;
    own->judged = true;
  } else if (!row.judged && own->state == State::measured) {
    own->judged = false;  // of a shard that was cut off
  }
}

std::vector<store::Case> join_trainings(std::vector<store::Run>& runs, std::vector<std::string>& notes) {
  std::vector<store::Case> all;
  for (auto& run : runs)
    for (auto& run_case : run.cases) {
      const auto known =
          std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.key == run_case.key; });
      if (known == all.end()) {
        all.push_back(std::move(run_case));
      } else if (known->network != run_case.network) {
        notes.push_back(fmt::format("shard {} trained another network and is left out", shard_of(run).text()));
      } else {
        known->finished = known->finished && run_case.finished;
        for (auto& row : run_case.rows) add_row(*known, std::move(row), shard_of(run));
      }
    }
  return all;
}

// Warnings of all, each once; of whole runs with the shard that they are about.
std::vector<store::Warning> join_warnings(const std::vector<store::Run>& runs) {
  std::vector<store::Warning> all;
  for (const auto& run : runs)
    for (auto warning : run.warnings) {
      if (warning.case_key.empty() && warning.id != point_without_result)
        warning.what = fmt::format("shard {}: {}", shard_of(run).text(), warning.what);
      const bool known = std::any_of(all.begin(), all.end(), [&](const store::Warning& other) {
        return other.id == warning.id && other.what == warning.what && other.case_key == warning.case_key;
      });
      if (!known) all.push_back(std::move(warning));
    }
  return all;
}

std::vector<store::JoinedShard> about_shards(const std::vector<store::Run>& runs, bool trains) {
  std::vector<store::JoinedShard> all;
  for (const auto& run : runs) {
    const auto finished =
        std::count_if(run.cases.begin(), run.cases.end(), [](const auto& run_case) { return run_case.finished; });
    all.push_back({.shard = run.settings.shard.shard,
                   .run = run.run_id,
                   .node = run.settings.shard.node,
                   .cpu = lookup::text(run.machine, "cpu"),
                   .state = store::to_string(store::state_of(run))});
    if (!trains) all.back().points = finished;
  }
  return all;
}

}  // namespace

store::Run join_shards(std::vector<store::Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const store::Run& run, const store::Run& other) {
    return std::tuple(shard_of(run).number, run.started) < std::tuple(shard_of(other).number, other.started);
  });
  const bool trains = runs.front().settings.verb == "train";
  std::vector<std::string> notes;
  if (trains) runs = one_run_a_shard(std::move(runs), notes);
  auto shards = about_shards(runs, trains);
  auto warnings = join_warnings(runs);
  std::map<std::string, std::string> nodes;
  std::vector<store::Case> all;
  if (trains) {
    all = join_trainings(runs, notes);
  } else {
    JoinedCases cases;
    for (auto& run : runs)
      for (auto& run_case : run.cases) cases.add(run, std::move(run_case));
    notes = cases.notes();
    nodes = cases.nodes();
    all = cases.take();
  }
  store::Run joined = runs.front();  // what is said of a run is the same in all
  joined.cases = std::move(all);
  joined.warnings = std::move(warnings);
  for (const auto& run : runs) {
    joined.interrupted = joined.interrupted || run.interrupted;
    joined.finished = run.finished.empty() || joined.finished.empty() ? "" : std::max(joined.finished, run.finished);
  }
  if (!trains) joined.settings.cases = joined.settings.shard.parts.value_or(0);
  joined.joined = {std::move(shards), std::move(nodes), std::move(notes)};
  return joined;
}

bool is_shard(const store::Run& run) {
  return !run.settings.shard.whole.empty();
}

Result<store::Run> with_other_shards(store::Run run, const store::Store& store) {
  const auto whole = run.settings.shard.whole;
  const auto listed = STRATA_TRY(store.list_runs(0));
  std::vector<store::Run> runs;
  for (const auto& other : listed) {
    if (other.run_id == run.run_id || other.settings.shard.whole != whole) continue;
    auto loaded = STRATA_TRY(store.load_id(other.run_id));
    runs.push_back(std::move(loaded));
  }
  runs.push_back(std::move(run));
  return join_shards(std::move(runs));
}

}  // namespace strata::cluster
