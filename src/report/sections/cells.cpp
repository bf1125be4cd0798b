// SPDX-License-Identifier: Apache-2.0
#include "report/sections/cells.hpp"

#include <limits>

#include "report/format.hpp"

namespace strata::report {

document::Cell value_cell(const Json& node, std::string_view path, document::Format format, double factor) {
  const auto value = number(node, path);
  return document::number_cell(value ? std::optional(factor * *value) : std::nullopt, format);
}

document::Cell time_cell(const Json& node, std::string_view path) {
  return value_cell(node, path, document::Format::seconds, kSecondsPerMs);
}

document::Cell estimate_cell(const Json& estimate, document::Format format, double factor) {
  const auto value = number(estimate, "value"), low = number(estimate, "low"), high = number(estimate, "high");
  if (!value) return document::Absent{};
  document::Number cell{.value = factor * *value, .format = format};
  if (low && high) cell.low = factor * *low, cell.high = factor * *high;
  return cell;
}

document::Cell verdict_cell(const Json& ratio) {
  const auto verdict = text(ratio, "verdict");
  if (verdict == "faster") return document::Word{verdict, document::Tone::good};
  if (verdict == "slower") return document::Word{verdict, document::Tone::bad};
  if (verdict == "inconclusive") return document::Word{"inconclusive", document::Tone::faint};
  if (verdict != "same") return document::Absent{};
  const auto within = number(ratio, "same_within_percent");
  return document::Word{within ? "same within " + percent(*within) : verdict, document::Tone::faint};
}

document::Absent absent_for(const std::string& state, const std::string& reason) {
  return {spaced(state) + (reason.empty() ? "" : ": " + first_sentence(reason))};
}

document::Column left_column(std::string id, std::string title) {
  return {.id = std::move(id), .title = std::move(title), .align = document::Align::left};
}

std::vector<const Json*> drawn_rows(const Json& one_case) {
  std::vector<const Json*> rows;
  for (const Json* row : sorted_rows(one_case))
    if (is_measured(*row) && !flag(*row, "harness")) rows.push_back(row);
  return rows;
}

std::vector<double> values_of(const std::vector<const Json*>& rows, std::string_view path, double factor) {
  std::vector<double> values;
  for (const Json* row : rows)
    values.push_back(factor * number(*row, path).value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}

std::vector<std::string> names_of(const std::vector<const Json*>& rows) {
  std::vector<std::string> names;
  for (const Json* row : rows) names.push_back(level_name(*row));
  return names;
}

}  // namespace strata::report
