// SPDX-License-Identifier: Apache-2.0
#include "analysis/difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "analysis/blocks.hpp"
#include "analysis/case_statistics.hpp"
#include "analysis/estimate.hpp"
#include "analysis/judge_stored.hpp"
#include "common/lookup.hpp"
#include "common/member_codec.hpp"
#include "plan/environment.hpp"

namespace strata::analysis {
namespace fs = std::filesystem;
using Json = nlohmann::json;
using lookup::list;
using lookup::number;
using lookup::text;
using members::NullIfEmpty;

void each_member(auto& member, ComparedRun& run) {
  member("run", run.run), member("started", run.started), member("torch", run.torch), member("cpu", run.cpu),
      member("strata", run.strata);
}

void each_member(auto& member, LeftOutCase& left_out) {
  member("case", left_out.case_id), member("reason", left_out.reason);
}

void each_member(auto& member, LevelDifference& level) {
  member("case", level.case_id), member("key", level.key), member("level", level.level),
      member("variant", level.variant), member("environment", NullIfEmpty{level.environment}),
      member("before_ms", level.before_ms), member("after_ms", level.after_ms), member("ratio", level.ratio),
      member("speedup_change", level.speedup_change), member("verdict", level.verdict), member("gate", level.gate),
      member("reason", level.reason);
}

void each_member(auto& member, DifferenceResult& difference) {
  member("before", difference.before), member("after", difference.after), member("notes", difference.notes),
      member("threshold", difference.threshold), member("cases", difference.cases),
      member("without", difference.without), member("levels", difference.levels), member("slower", difference.slower),
      member("faster", difference.faster), member("lost", difference.lost), member("beyond", difference.beyond),
      member("open", difference.open), member("not_compared", difference.not_compared);
}

namespace {

ComparedRun about(const store::Run& run) {
  return {.run = run.run_id,
          .started = run.started,
          .torch = plan::torch_versions(run.environments),
          .cpu = text(run.machine, "cpu"),
          .strata = run.version};
}

std::string without_weights(core::Case question) {
  question.weights.clear();
  question.seed = 0;
  return core::key_of(question);
}

// The same question, of the same network if there is one: else of one that was changed, which is what is asked about,
// or of other weights.
const store::Case* same_case(const store::Run& run, const store::Case& run_case) {
  const store::Case* best = nullptr;
  int best_rank = 0;
  for (const auto& other : run.cases) {
    const int rank = other.key == run_case.key && other.network == run_case.network          ? 3
                     : other.key == run_case.key                                             ? 2
                     : without_weights(other.question) == without_weights(run_case.question) ? 1
                                                                                             : 0;
    if (rank > best_rank) {
      best = &other;
      best_rank = rank;
    }
  }
  return best;
}

bool is_source(const std::string& path) {
  return path.ends_with(".py") && path.find("-packages/") == std::string::npos;
}

// Source files that one of two captures read as the other did not, by name; packages are PyTorch's and others' own.
std::vector<std::string> changed_sources(const Json& before, const Json& after) {
  const auto read_by = [](const Json& bundle) {
    std::map<std::string, std::string> files;
    for (const auto& file : list(bundle, "read"))
      if (is_source(text(file, "path"))) files[fs::path(text(file, "path")).filename()] += text(file, "sha256");
    return files;
  };
  const auto was = read_by(before), is = read_by(after);
  std::set<std::string> names;
  for (const auto* files : {&was, &is})
    for (const auto& [name, hash] : *files)
      if (!was.contains(name) || !is.contains(name) || was.at(name) != is.at(name)) names.insert(name);
  return {names.begin(), names.end()};
}

// What of a network is another, in words; empty: nothing.
std::vector<std::string> changes_of(const store::Case& before, const store::Case& after) {
  std::vector<std::string> all;
  const auto compare = [&](const char* name, const char* path) {
    const auto was = text(before.bundle, path), is = text(after.bundle, path);
    if (was != is) all.push_back(was.empty() || is.empty() ? name : fmt::format("{} ({}, then {})", name, was, is));
    return was != is;
  };
  if (!compare("weights", "case.weights_label") &&
      text(before.bundle, "network.sha256") != text(after.bundle, "network.sha256"))
    all.push_back("weights");
  compare("inputs", "case.inputs_label");
  if (const auto sources = changed_sources(before.bundle, after.bundle); !sources.empty())
    all.push_back(fmt::format("code ({})", fmt::join(sources, ", ")));
  if (number(before.bundle, "flops") != number(after.bundle, "flops")) all.emplace_back("operations");
  if (all.empty() && before.network != after.network) all.push_back("captured graph");
  return all;
}

const store::Row* row_named(const store::Case& run_case, const std::string& name) {
  const auto it =
      std::find_if(run_case.rows.begin(), run_case.rows.end(), [&](const auto& row) { return row.name() == name; });
  return it == run_case.rows.end() ? nullptr : &*it;
}

// A case of both runs.
class CaseDifference {
 public:
  CaseDifference(const store::Run& before, const store::Case& earlier, const store::Run& after,
                 const store::Case& later, double threshold)
      : before_(earlier),
        after_(later),
        stats_before_(before, earlier),
        stats_after_(after, later),
        threshold_(threshold) {}

  // Levels that had a number before, in that run's order.
  std::vector<LevelDifference> levels() const {
    std::vector<LevelDifference> all;
    for (const auto* row : stats_before_.measured())
      if (!row->info.harness) all.push_back(level(*row));
    return all;
  }

 private:
  bool reliable() const { return stats_before_.reliable() && stats_after_.reliable(); }

  LevelDifference level(const store::Row& row) const {
    LevelDifference out{.case_id = before_.id,
                        .key = before_.key,
                        .level = row.level,
                        .variant = row.variant,
                        .environment = row.environment};
    const auto was = stats_before_.index_of(row.name()), is = stats_after_.index_of(row.name());
    out.before_ms = finite(stats_before_.estimate_ms(*was));
    if (!is) {
      const auto* now = row_named(after_, row.name());
      out.verdict = now ? to_string(now->state) : "absent";
      out.reason = now ? now->reason : "the later run did not have it";
      return out;
    }
    out.after_ms = finite(stats_after_.estimate_ms(*is));
    if (!reliable()) {
      out.verdict = "not_reliable";
      out.reason = "other programs had the cores in one of the runs";
      return out;
    }
    const auto comparison =
        stats::compare_unpaired(restart_log_times(row, stats_before_.room()),
                                restart_log_times(*stats_after_.measured()[*is], stats_after_.room()),
                                std::max(stats_before_.sigma(), stats_after_.sigma()));
    out.ratio = Estimate(comparison.ratio());
    out.gate = gate_of(comparison.ratio(), threshold_);
    out.verdict = to_string(verdict_of(stats::judge(comparison, kMinimumEffect).direction));
    out.speedup_change = speedup_change(*was, *is);
    return out;
  }

  // exp of how the log of "times as fast as the reference" changed; each side was measured in turns. The variances of
  // two runs add up. Nothing for the reference, and where the runs have others.
  std::optional<Estimate> speedup_change(std::size_t was, std::size_t is) const {
    const auto before = stats_before_.reference(), after = stats_after_.reference();
    if (!before || !after || *before == was || *after == is || !stats_before_.together() || !stats_after_.together() ||
        stats_before_.measured()[*before]->name() != stats_after_.measured()[*after]->name())
      return std::nullopt;
    const auto first = stats_before_.compare(*before, was), second = stats_after_.compare(*after, is);
    const double change = second.log_ratio.value - first.log_ratio.value, one = first.half_width.width,
                 other = second.half_width.width,
                 half = std::sqrt(one * one + other * other);  // not std::hypot: common/older_glibc.cpp
    return Estimate(stats::Interval{std::exp(change), std::exp(change - half), std::exp(change + half)});
  }

  const store::Case &before_, &after_;
  const CaseStatistics stats_before_, stats_after_;
  const double threshold_;
};

// What else is another between the runs, a sentence each.
std::vector<std::string> notes_on(const ComparedRun& before, const ComparedRun& after) {
  std::vector<std::string> notes;
  for (const auto& [member, name] : {std::pair{&ComparedRun::torch, "PyTorch"},
                                     {&ComparedRun::cpu, "the processor"},
                                     {&ComparedRun::strata, "strata"}})
    if (before.*member != after.*member)
      notes.push_back(fmt::format("{} is another: {}, then {}", name, before.*member, after.*member));
  return notes;
}

void count_levels(DifferenceResult& difference) {
  for (const auto& level : difference.levels) {
    difference.slower += level.verdict == "slower";
    difference.faster += level.verdict == "faster";
    difference.lost += !level.after_ms;
    difference.beyond += level.gate == Gate::slower;
    difference.open += level.gate == Gate::open;
    difference.not_compared += level.gate == Gate::not_compared;
  }
}

}  // namespace

DifferenceResult difference_of(const store::Run& first, const store::Run& second, double threshold) {
  store::Run before = first, after = second;
  judge_stored(before);
  judge_stored(after);
  DifferenceResult difference{.before = about(before), .after = about(after), .threshold = threshold};
  difference.notes = notes_on(difference.before, difference.after);
  for (const auto& run_case : before.cases) {
    const auto* later = same_case(after, run_case);
    if (!later) {
      difference.without.push_back({run_case.id, "not in the later run"});
      continue;
    }
    ++difference.cases;
    if (const auto changes = changes_of(run_case, *later); !changes.empty())
      difference.notes.push_back(fmt::format("changed in {}: {}", run_case.id, fmt::join(changes, "; ")));
    for (auto& level : CaseDifference(before, run_case, after, *later, threshold).levels())
      difference.levels.push_back(std::move(level));
  }
  count_levels(difference);
  return difference;
}

Json to_json(const DifferenceResult& difference) {
  auto json = members::Writer<members::Fill::everything>().json_of(difference);
  json["schema"] = "strata.diff/1";
  return json;
}

}  // namespace strata::analysis
