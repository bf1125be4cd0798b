// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/find_batch.hpp"
#include "analysis/reliability.hpp"
#include "report/sweep_sections.hpp"

namespace strata::report {
namespace {

using analysis::BatchAnswer;
using RuleKind = analysis::BatchRule::Kind;

std::string looked_for(const analysis::BatchRule& rule) {
  switch (rule.kind) {
    case RuleKind::memory:
      return "the largest batch that memory holds, to an eighth of it";
    case RuleKind::utilisation:
      return "the smallest batch within 2% of the highest utilisation of the processors";
    case RuleKind::p99:
      return fmt::format("the smallest batch within 2% of the best throughput of those whose p99 is at most {:.3g} ms",
                         rule.limit_ms);
    case RuleKind::throughput:
      break;
  }
  return "the smallest batch within 2% of the best throughput";
}

std::string name_of(const BatchAnswer& answer) {
  return answer.at.empty() ? answer.level : fmt::format("{} ({})", answer.level, answer.at);
}

// "not reliable at batch 8, 16"; empty: every batch is.
std::string in_vain(const BatchAnswer& answer) {
  if (answer.unreliable.empty()) return {};
  return fmt::format("{} at batch {}", analysis::kNotReliable, fmt::join(answer.unreliable, ", "));
}

document::Table answers_table(const std::vector<BatchAnswer>& answers) {
  document::Table table{.id = "best_batch", .title = "Best batch"};
  table.columns = {{.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "batch", .title = "batch"},
                   {.id = "throughput", .title = "throughput", .unit = "samples/s"},
                   {.id = "p99", .title = "p99 of an iteration"},
                   {.id = "utilisation", .title = "processors used"},
                   {.id = "fastest", .title = "most samples a second at"},
                   {.id = "alike", .title = "cannot be told from within 2% of that", .align = document::Align::left}};
  for (const auto& answer : answers) {
    std::vector<document::Cell> row{name_of(answer)};
    if (!answer.batch) {
      row.emplace_back(
          document::Absent{answer.unreliable.empty() ? "no batch is allowed by the rule" : in_vain(answer)});
    } else {
      const auto& seen = answer.curve.at(*answer.batch);
      row.emplace_back(
          document::Number{.value = static_cast<double>(*answer.batch), .format = document::NumberFormat::count});
      row.emplace_back(document::Number{.value = seen.samples_per_s, .format = document::NumberFormat::digits});
      row.emplace_back(document::Number{.value = seen.p99_ms * 1e-3, .format = document::NumberFormat::seconds});
      row.emplace_back(document::Number{.value = seen.utilisation, .format = document::NumberFormat::percent});
      row.emplace_back(
          document::Number{.value = static_cast<double>(answer.fastest), .format = document::NumberFormat::count});
      row.emplace_back(fmt::format("{}", fmt::join(answer.alike, ", ")));
    }
    table.rows.push_back(std::move(row));
  }
  table.note =
      "Batches that cannot be told from it: the 99% interval of their throughput over that of the fastest batch, from "
      "the medians of restarts, does not exclude that they lie within 2%.";
  return table;
}

document::Figure curves(const std::vector<BatchAnswer>& answers) {
  document::Figure figure{.id = "batch_curve", .title = "Throughput against the batch", .note = ""};
  document::Panel panel;
  panel.x = {.title = "batch", .logarithmic = true, .format = document::NumberFormat::count};
  panel.y = {.title = "throughput", .unit = "samples/s", .logarithmic = true};
  for (const auto& answer : answers) {
    document::Line line;
    line.name = name_of(answer);
    line.group = answer.level;
    for (const auto& [batch, seen] : answer.curve) {
      if (!seen.runs) continue;
      line.x.push_back(static_cast<double>(batch));
      line.y.push_back(seen.samples_per_s);
    }
    panel.lines.push_back(std::move(line));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

std::string words_of_answers(const std::vector<BatchAnswer>& answers, const analysis::BatchRule& rule) {
  std::vector<std::string> words;
  for (const auto& answer : answers) {
    if (!answer.batch) {
      words.push_back(fmt::format("{}: {}", name_of(answer), answer.unreliable.empty() ? "none" : in_vain(answer)));
      continue;
    }
    const auto& seen = answer.curve.at(*answer.batch);
    words.push_back(fmt::format("{}: {} ({:.4g} samples/s{}{})", name_of(answer), *answer.batch, seen.samples_per_s,
                                answer.unreliable.empty() ? "" : "; ", in_vain(answer)));
  }
  return fmt::format("Best batch, {}: {}.", looked_for(rule), fmt::join(words, ", "));
}

}  // namespace

std::optional<BestBatch> best_batch(const store::Run& run, const analysis::Grid& grid) {
  const auto rule = analysis::parse_batch_rule(run.settings.find_batch);
  if (!rule) return std::nullopt;
  const auto answers = analysis::find_batches(run, grid, *rule);
  return BestBatch{
      words_of_answers(answers, *rule),
      {.id = "batch",
       .title = "Best batch",
       .items = {document::Text{"Looked for: " + looked_for(*rule) + "."}, answers_table(answers), curves(answers)}}};
}

}  // namespace strata::report
