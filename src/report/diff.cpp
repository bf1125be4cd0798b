// SPDX-License-Identifier: Apache-2.0
#include "report/diff.hpp"

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
#include "analysis/gate.hpp"
#include "analysis/judge_stored.hpp"
#include "report/access.hpp"
#include "report/environments.hpp"
#include "report/format.hpp"
#include "report/sections/cells.hpp"

namespace strata::report {
namespace fs = std::filesystem;
using Json = nlohmann::json;
using analysis::CaseStatistics;
using analysis::finite;
using analysis::interval;
using analysis::restart_log_times;
namespace {

// What of a run may make its times others', beside the levels.
Json about(const store::Run& run) {
  return {{"run", run.run_id},
          {"started", run.started},
          {"torch", torch_versions(run.environments)},
          {"cpu", text(run.machine, "cpu")},
          {"strata", run.version}};
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
  CaseDifference(const store::Run& before, const store::Case& one, const store::Run& after, const store::Case& other,
                 double threshold)
      : before_(one), after_(other), stats_before_(before, one), stats_after_(after, other), threshold_(threshold) {}

  // Levels that had a number before, in that run's order.
  Json levels() const {
    Json all = Json::array();
    for (const auto* row : stats_before_.measured())
      if (!row->info.harness) all.push_back(level(*row));
    return all;
  }

 private:
  bool reliable() const { return stats_before_.reliable() && stats_after_.reliable(); }

  Json level(const store::Row& row) const {
    Json out{{"case", before_.id},
             {"key", before_.key},
             {"level", row.level},
             {"variant", row.variant},
             {"environment", environment_json(row)},
             {"before_ms", nullptr},
             {"after_ms", nullptr},
             {"ratio", nullptr},
             {"speedup_change", nullptr},
             {"verdict", ""},
             {"gate", "not_compared"},
             {"reason", ""}};
    const auto was = stats_before_.index_of(row.name()), is = stats_after_.index_of(row.name());
    out["before_ms"] = finite(stats_before_.estimate_ms(*was));
    if (!is) {
      const auto* now = row_named(after_, row.name());
      out["verdict"] = now ? to_string(now->state) : "absent";
      out["reason"] = now ? now->reason : "the later run did not have it";
      return out;
    }
    out["after_ms"] = finite(stats_after_.estimate_ms(*is));
    if (!reliable()) {
      out["verdict"] = "not_reliable";
      out["reason"] = "other programs had the cores in one of the runs";
      return out;
    }
    const auto comparison =
        stats::compare_unpaired(restart_log_times(row, stats_before_.room()),
                                restart_log_times(*stats_after_.measured()[*is], stats_after_.room()),
                                std::max(stats_before_.sigma(), stats_after_.sigma()));
    out["ratio"] = interval(comparison.ratio());
    out["gate"] = std::string(to_string(analysis::gate_of(comparison.ratio(), threshold_)));
    out["verdict"] = std::string(to_string(stats::judge(comparison, analysis::kMinimumEffect).direction));
    out["speedup_change"] = speedup_change(*was, *is);
    return out;
  }

  // exp of how the log of "times as fast as the reference" changed; each side was measured in turns. The variances of
  // two runs add up. Null for the reference, and where the runs have others.
  Json speedup_change(std::size_t was, std::size_t is) const {
    const auto before = stats_before_.reference(), after = stats_after_.reference();
    if (!before || !after || *before == was || *after == is || !stats_before_.together() || !stats_after_.together() ||
        stats_before_.measured()[*before]->name() != stats_after_.measured()[*after]->name())
      return {};
    const auto first = stats_before_.compare(*before, was), second = stats_after_.compare(*after, is);
    const double change = second.log_ratio.value - first.log_ratio.value,
                 half = std::hypot(first.half_width.width, second.half_width.width);
    return interval({std::exp(change), std::exp(change - half), std::exp(change + half)});
  }

  const store::Case &before_, &after_;
  const CaseStatistics stats_before_, stats_after_;
  const double threshold_;
};

// What else is another between the runs, a sentence each.
Json notes(const Json& before, const Json& after) {
  Json all = Json::array();
  for (const auto& [field, name] : {std::pair{"torch", "PyTorch"}, {"cpu", "the processor"}, {"strata", "strata"}})
    if (text(before, field) != text(after, field))
      all.push_back(fmt::format("{} is another: {}, then {}", name, text(before, field), text(after, field)));
  return all;
}

// "changed: weights, code (net.py)" of each case, and what else is another.
void note_changes(Json& notes, const store::Case& run_case, const std::vector<std::string>& changes) {
  if (!changes.empty()) notes.push_back(fmt::format("changed in {}: {}", run_case.id, fmt::join(changes, "; ")));
}

document::Cell verdict_of(const Json& level) {
  auto known = verdict_cell(level);
  return std::holds_alternative<document::Absent>(known) ? document::Cell{spaced(text(level, "verdict"))} : known;
}

document::Table difference_table(const Json& difference) {
  document::Table table{.id = "levels", .title = "Levels of the earlier run"};
  table.columns = {left_column("level", "level"),
                   left_column("case", "case"),
                   {.id = "before", .title = "before"},
                   {.id = "after", .title = "after"},
                   {.id = "speedup", .title = "speedup (99% CI)"},
                   left_column("verdict", "verdict"),
                   {.id = "speedup_change", .title = "change of its speedup"}};
  for (const auto& level : list(difference, "levels")) {
    const auto& ratio = at(level, "ratio");
    table.rows.push_back(
        {level_name(level), text(level, "case"), time_cell(level, "before_ms"), time_cell(level, "after_ms"),
         ratio.is_object() ? estimate_cell(ratio, document::Format::ratio) : document::Absent{text(level, "reason")},
         verdict_of(level), estimate_cell(at(level, "speedup_change"), document::Format::ratio)});
  }
  table.note =
      "Unpaired: the runs were not interleaved, so that a change of the machine counts as one of a level; the "
      "change of a speedup over the reference of its own run does not have it.";
  return table;
}

}  // namespace

Json difference(const store::Run& first, const store::Run& second, double threshold) {
  store::Run before = first, after = second;
  analysis::judge_stored(before);
  analysis::judge_stored(after);
  const Json was = about(before), is = about(after);
  Json levels = Json::array(), without = Json::array(), all_notes = notes(was, is);
  int compared = 0;
  for (const auto& run_case : before.cases) {
    const auto* other = same_case(after, run_case);
    if (!other) {
      without.push_back({{"case", run_case.id}, {"reason", "not in the later run"}});
      continue;
    }
    ++compared;
    note_changes(all_notes, run_case, changes_of(run_case, *other));
    for (auto& level : CaseDifference(before, run_case, after, *other, threshold).levels())
      levels.push_back(std::move(level));
  }
  const auto count = [&](auto holds) { return std::count_if(levels.begin(), levels.end(), holds); };
  const auto gated = [&](const char* gate) {
    return count([&](const Json& level) { return text(level, "gate") == gate; });
  };
  return {{"schema", "strata.diff/1"},
          {"before", was},
          {"after", is},
          {"notes", all_notes},
          {"threshold", threshold},
          {"cases", compared},
          {"without", without},
          {"levels", levels},
          {"slower", count([](const Json& level) { return text(level, "verdict") == "slower"; })},
          {"faster", count([](const Json& level) { return text(level, "verdict") == "faster"; })},
          {"lost", count([](const Json& level) { return level["after_ms"].is_null(); })},
          {"beyond", gated("slower")},
          {"open", gated("open")},
          {"not_compared", gated("not_compared")}};
}

namespace {

// "0 of 3 levels slower, 0 faster; 3 of 3 could not be compared: not reliable."
std::string summary_of(const Json& difference) {
  const auto of = [&](const char* field) { return number(difference, field).value_or(0); };
  const auto& levels = list(difference, "levels");
  const auto threshold = percent(100 * of("threshold"));
  auto words = fmt::format("{:.0f} of {} levels slower", of("slower"), levels.size());
  if (of("beyond") > 0) words += fmt::format(" ({:.0f} by more than {})", of("beyond"), threshold);
  words += fmt::format(", {:.0f} faster", of("faster"));
  if (of("open") > 0) words += fmt::format("; {:.0f} may be slower by more than {}", of("open"), threshold);
  if (levels.empty()) words += "; the earlier run has no number to compare with";
  std::vector<std::string> reasons;  // each once
  for (const auto& level : levels)
    if (const auto why = spaced(text(level, "verdict"));
        text(level, "gate") == "not_compared" && std::find(reasons.begin(), reasons.end(), why) == reasons.end())
      reasons.push_back(why);
  if (!reasons.empty())
    words += fmt::format("; {:.0f} of {} could not be compared: {}", of("not_compared"), levels.size(),
                         fmt::join(reasons, ", "));
  return words + ".";
}

}  // namespace

document::Document difference_document(const Json& difference) {
  document::Document out{
      .title = fmt::format("strata diff: {}, then {}", text(difference, "before.run"), text(difference, "after.run")),
      .summary = summary_of(difference)};
  document::Section section{.id = "levels"};
  for (const auto& note : list(difference, "notes")) section.items.push_back(document::Text{note.get<std::string>()});
  for (const auto& left_out : list(difference, "without"))
    section.items.push_back(
        document::Text{fmt::format("left out: {}: {}", text(left_out, "case"), text(left_out, "reason"))});
  section.items.push_back(difference_table(difference));
  out.sections.push_back(std::move(section));
  return out;
}

}  // namespace strata::report
