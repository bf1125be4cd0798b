// SPDX-License-Identifier: Apache-2.0
#include "report/sections/cells.hpp"

#include "report/format.hpp"

namespace strata::report {

document::Cell value_cell(analysis::OptionalNumber value, document::NumberFormat format, double factor) {
  return document::number_cell(value ? std::optional(factor * *value) : std::nullopt, format);
}

document::Cell time_cell(analysis::OptionalNumber milliseconds) {
  return value_cell(milliseconds, document::NumberFormat::seconds, kSecondsPerMs);
}

document::Cell estimate_cell(const analysis::Estimate& estimate, document::NumberFormat format, double factor) {
  auto cell = value_cell(estimate.value, format, factor);
  if (auto* number = std::get_if<document::Number>(&cell); number && estimate.low && estimate.high)
    number->low = factor * *estimate.low, number->high = factor * *estimate.high;
  return cell;
}

document::Cell verdict_cell(std::optional<analysis::RatioVerdict> verdict,
                            analysis::OptionalNumber same_within_percent) {
  using analysis::RatioVerdict;
  if (!verdict || *verdict == RatioVerdict::reference) return document::Absent{};
  if (*verdict == RatioVerdict::same && same_within_percent)
    return document::Word{"same within " + percent(*same_within_percent), document::Tone::faint};
  const auto tone = *verdict == RatioVerdict::faster   ? document::Tone::good
                    : *verdict == RatioVerdict::slower ? document::Tone::bad
                                                       : document::Tone::faint;
  return document::Word{to_string(*verdict), tone};
}

document::Absent absent_for(const std::string& state, const std::string& reason) {
  return {spaced(state) + (reason.empty() ? "" : ": " + first_sentence(reason))};
}

document::Column left_column(std::string id, std::string title) {
  return {.id = std::move(id), .title = std::move(title), .align = document::Align::left};
}

std::vector<const analysis::RowResult*> drawn_rows(const analysis::CaseResult& one_case) {
  auto rows = one_case.sorted_rows();
  std::erase_if(rows, [](const auto* row) { return !row->is_measured() || row->harness; });
  return rows;
}

std::vector<std::string> names_of(const std::vector<const analysis::RowResult*>& rows) {
  std::vector<std::string> names;
  for (const auto* row : rows) names.push_back(row->name());
  return names;
}

}  // namespace strata::report
