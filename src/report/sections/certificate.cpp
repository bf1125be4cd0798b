// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

// "onnxruntime: equal work (9 observed, 3 reported, 1 assumed)".
std::string proof_summary(const Json& row) {
  if (!at(row, "proof").is_object()) {
    const auto reason = text(row, "reason");
    return fmt::format("{}: no certificate ({}{})", level_name(row), spaced(text(row, "state")),
                       reason.empty() ? "" : ": " + reason);
  }
  const auto verdict = text(row, "proof.verdict");
  const auto* words = verdict == "equal"          ? "equal work"
                      : verdict == "equal_looser" ? "equal work with looser numerics"
                      : verdict == "unequal"      ? "unequal work: no number"
                      : verdict == "mistrusted"   ? "mistrusted: no number"
                                                  : "no proof";
  const auto part = [&](const char* key) { return count(number(row, std::string("proof.") + key).value_or(0)); };
  return fmt::format("{}: {}{} ({} observed, {} reported, {} assumed)", level_name(row), words,
                     flag(row, "proof.weak") ? ", weak" : "", part("observed"), part("reported"), part("assumed"));
}

document::Word result_word(const std::string& result) {
  const auto tone = result == "pass"   ? document::Tone::good
                    : result == "fail" ? document::Tone::bad
                                       : document::Tone::faint;
  return {spaced(result), tone};
}

document::Table proof_lines(const Json& row) {
  document::Table table{.id = "certificate", .title = "Certificate of " + level_name(row)};
  table.columns = {left_column("check", "check"), left_column("how", "how"),     left_column("result", "result"),
                   left_column("value", "value"), left_column("bound", "bound"), left_column("detail", "detail")};
  for (const auto& line : list(row, "proof.lines"))
    table.rows.push_back({text(line, "check"), text(line, "how"), result_word(text(line, "result")),
                          text(line, "value"), text(line, "bound"), text(line, "detail")});
  return table;
}

document::Details certificate_of(const Json& row) {
  document::Details details{proof_summary(row), {}};
  if (!at(row, "proof").is_object()) return details;
  if (const auto first = text(row, "proof.first_difference"); !first.empty())
    details.items.push_back(document::Text{"first difference at " + first});
  if (auto lines = proof_lines(row); lines.rows.empty())
    details.items.push_back(document::Text{"No line was checked."});
  else
    details.items.push_back(std::move(lines));
  return details;
}

}  // namespace

document::Section certificate_section(const Json& one_case) {
  document::Section section{.id = "proof", .title = "Certificate of equal work", .is_detail = true};
  section.items.push_back(document::Text{"Each line is observed by the harness, reported by the level, or assumed."});
  for (const Json* row : sorted_rows(one_case))
    if (at(*row, "proof").is_object()) section.items.push_back(certificate_of(*row));
  if (section.items.size() == 1) section.items = {document::Text{"No level got as far as its proof."}};
  return section;
}

document::Section certificates_of(const Json& one_case, const std::optional<std::string>& level) {
  document::Section section{.id = "proof", .title = "Certificate of " + text(one_case, "id")};
  for (const Json* row : sorted_rows(one_case)) {
    if (level && level_name(*row) != *level && text(*row, "level") != *level) continue;
    auto details = certificate_of(*row);
    section.items.push_back(document::Text{std::move(details.title)});
    for (auto& item : details.items) {
      if (auto* table = std::get_if<document::Table>(&item)) table->title.clear();  // it has just been said
      section.items.push_back(std::move(item));
    }
  }
  return section;
}

}  // namespace strata::report
