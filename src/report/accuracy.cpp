// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/blocks.hpp"
#include "analysis/case_statistics.hpp"
#include "analysis/estimate.hpp"
#include "common/outside.hpp"
#include "report/access.hpp"
#include "report/environments.hpp"
#include "stats/compare.hpp"
#include "stats/sample.hpp"

namespace strata::report {
using Json = nlohmann::json;
using analysis::CaseStatistics;
using analysis::interval;
using analysis::process_sigma;
using analysis::restart_log_times;
namespace {

// Cases that are equal but for their precision.
struct Group {
  std::vector<std::size_t> cases;  // indices, in the run's order
  std::optional<std::size_t> strict;
};

class GroupView {
 public:
  GroupView(const store::Run& run, const Json& cases, Group group)
      : run_(run), cases_(cases), group_(std::move(group)) {
    if (!group_.strict) return;
    const auto& strict_case = run_.cases[*group_.strict];
    for (const auto& row : strict_case.rows)
      if (row.name() == strict_case.reference_level && row.state == State::measured) reference_ = &row;
  }

  Json build() const {
    Json points = Json::array();
    for (const auto index : group_.cases)
      for (std::size_t i = 0; i < run_.cases[index].rows.size(); ++i) {
        const auto& row = run_.cases[index].rows[i];
        if (row.state == State::measured && !row.info.harness)
          points.push_back(point(index, row, cases_[index]["rows"][i]));
      }
    const auto& first = run_.cases[group_.cases.front()];
    const auto reference =
        reference_ ? Json{{"case", run_.cases[*group_.strict].id}, {"level", reference_->name()}, {"precision", "fp32"}}
                   : Json();
    const auto apart = group_.cases.size() > 1;
    return {{"id", without_precision(first)},
            {"reference", reference},
            {"score", run_.settings.eval.empty() ? Json() : Json(run_.settings.eval)},
            {"measured_apart", apart},
            {"points", points}};
  }

 private:
  // The id with * for the mode.
  static std::string without_precision(const store::Case& run_case) {
    const auto precision = fmt::format("/{}/", name_of(run_case.question.precision));
    auto id = run_case.id;
    if (const auto at = id.find(precision); at != std::string::npos) id.replace(at, precision.size(), "/*/");
    return id;
  }

  Json point(std::size_t index, const store::Row& row, const Json& view) const {
    const auto& strict_case = run_.cases[index];
    const auto& accuracy = row.info.accuracy;
    return {{"case", strict_case.id},
            {"level", row.level},
            {"variant", row.variant},
            {"environment", environment_json(row)},
            {"precision", name_of(strict_case.question.precision)},
            {"reference", &row == reference_},
            {"time_ms", time_of(view)},
            {"reliable", is_reliable(index)},
            {"ratio", ratio(index, row, view)},
            {"error", accuracy && accuracy->error ? Json(*accuracy->error) : Json()},
            {"answers", accuracy ? Json(accuracy->answers) : Json()},
            {"differ", accuracy ? Json(accuracy->differ) : Json()},
            {"eval", eval(row)}};
  }

  static Json time_of(const Json& view) {
    return view["end_to_end_ms"].is_object() ? view["end_to_end_ms"].value("estimate", Json()) : Json();
  }

  // Others did not have the cores while the case was measured.
  bool is_reliable(std::size_t index) const { return at(cases_[index], "trust.reliable") != false; }

  // Within the reference's own case levels took turns; another case ran before or after it.
  Json ratio(std::size_t index, const store::Row& row, const Json& view) const {
    if (!reference_ || !is_reliable(index) || !is_reliable(*group_.strict)) return {};
    if (index == *group_.strict) {
      if (!view["ratio"].is_object()) return {};
      return {{"value", view["ratio"]["value"]},
              {"low", view["ratio"]["low"]},
              {"high", view["ratio"]["high"]},
              {"together", true}};
    }
    const auto& strict = run_.cases[*group_.strict];
    const double sigma = process_sigma(strict.trust, strict.question.threads);
    const auto room = analysis::room_of(strict.question, run_.machine);
    auto apart = stats::compare_unpaired(restart_log_times(*reference_, room), restart_log_times(row, room), sigma);
    // The same two levels side by side cancel the machine's drift; two cases after each other cannot know them better.
    for (const auto with : {*group_.strict, index}) {
      const CaseStatistics paired(run_, run_.cases[with]);
      const auto reference = paired.index_of(reference_->name()), level = paired.index_of(row.name());
      if (reference && level && reference != level)
        apart = stats::no_narrower_than(apart, paired.compare(*reference, *level).half_width);
    }
    auto out = interval(apart.ratio());
    out["together"] = false;
    return out;
  }

  Json eval(const store::Row& row) const {
    const Json& own = row.info.eval;
    if (!own.is_object()) return {};
    Json out{{"state", outside::text_or(own, "state", "failed")},
             {"reason", text(own, "reason")},
             {"hint", text(own, "hint")},
             {"count", at(own, "count")},
             {"score", at(own, "score")},
             {"difference", nullptr},
             {"differ", nullptr}};
    const auto theirs = reference_ ? reference_->info.eval : Json();
    if (text(own, "state") != "scored" || text(theirs, "state") != "scored") return out;
    const auto of = [](const Json& from, const char* name) {
      std::vector<double> values;
      for (const auto& value : list(from, name))
        if (value.is_number()) values.push_back(value.get<double>());
      return values;
    };
    const auto scores = of(own, "per_example"), reference_scores = of(theirs, "per_example");
    if (!scores.empty() && scores.size() == reference_scores.size())
      out["difference"] = paired_difference(scores, reference_scores);
    else
      out["difference"] = {{"value", number(own, "score").value_or(0) - number(theirs, "score").value_or(0)},
                           {"low", nullptr},
                           {"high", nullptr}};
    const auto answers = of(own, "answers"), reference_answers = of(theirs, "answers");
    if (!answers.empty() && answers.size() == reference_answers.size()) {
      std::int64_t differ = 0;
      for (std::size_t i = 0; i < answers.size(); ++i) differ += answers[i] != reference_answers[i];
      out["differ"] = differ;
    }
    return out;
  }

  const store::Run& run_;
  const Json& cases_;
  Group group_;
  const store::Row* reference_ = nullptr;
};

}  // namespace

Json paired_difference(const std::vector<double>& level, const std::vector<double>& reference) {
  const std::size_t count = std::min(level.size(), reference.size());
  if (count == 0) return {{"value", nullptr}, {"low", nullptr}, {"high", nullptr}};
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < count; ++i) sum += level[i] - reference[i];
  const double n = static_cast<double>(count), mean = sum / n;
  if (count < 2) return {{"value", mean}, {"low", nullptr}, {"high", nullptr}};
  for (std::size_t i = 0; i < count; ++i) squares += std::pow(level[i] - reference[i] - mean, 2);
  const double half = stats::student_t_quantile(0.995, n - 1) * std::sqrt(squares / (n - 1) / n);
  return {{"value", mean}, {"low", mean - half}, {"high", mean + half}};
}

Json accuracy(const store::Run& run, const Json& cases) {
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    auto same = run.cases[i].question;
    if (same.mode != core::Mode::infer) continue;
    const bool strict = same.precision == core::Precision::fp32;
    same.precision = core::Precision::fp32;
    const auto key = same.canonical() + run.cases[i].network;
    if (!groups.contains(key)) order.push_back(key);
    auto& group = groups[key];
    group.cases.push_back(i);
    if (strict) group.strict = i;
  }
  Json out = Json::array();
  for (const auto& key : order) {
    const auto& group = groups[key];
    const bool scored = std::any_of(group.cases.begin(), group.cases.end(), [&](std::size_t i) {
      return std::any_of(run.cases[i].rows.begin(), run.cases[i].rows.end(),
                         [](const auto& row) { return !row.info.eval.is_null(); });
    });
    if (group.cases.size() > 1 || scored) out.push_back(GroupView(run, cases, group).build());
  }
  return out;
}

}  // namespace strata::report
