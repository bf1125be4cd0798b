// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/format.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

// "onnxruntime: equal work (9 observed, 3 reported, 1 assumed)".
std::string proof_summary(const analysis::RowResult& row) {
  if (!row.proof)
    return fmt::format("{}: no certificate ({}{})", row.name(), spaced(to_string(row.state)),
                       row.reason.empty() ? "" : ": " + row.reason);
  const auto& proof = *row.proof;
  const auto* words = proof.verdict == "equal"          ? "equal work"
                      : proof.verdict == "equal_looser" ? "equal work with looser numerics"
                      : proof.verdict == "unequal"      ? "unequal work: no number"
                      : proof.verdict == "mistrusted"   ? "mistrusted: no number"
                                                        : "no proof";
  return fmt::format("{}: {}{} ({} observed, {} reported, {} assumed)", row.name(), words, proof.weak ? ", weak" : "",
                     count(proof.observed), count(proof.reported), count(proof.assumed));
}

document::Word result_word(const std::string& result) {
  const auto tone = result == "pass"   ? document::Tone::good
                    : result == "fail" ? document::Tone::bad
                                       : document::Tone::faint;
  return {spaced(result), tone};
}

document::Table proof_lines(const std::string& level, const std::vector<analysis::ProofLine>& lines) {
  document::Table table{.id = "certificate", .title = "Certificate of " + level};
  table.columns = {left_column("check", "check"), left_column("how", "how"),     left_column("result", "result"),
                   left_column("value", "value"), left_column("bound", "bound"), left_column("detail", "detail")};
  for (const auto& line : lines)
    table.rows.push_back({line.check, line.how, result_word(line.result), line.value, line.bound, line.detail});
  return table;
}

document::Details certificate_of(const analysis::RowResult& row) {
  document::Details details{proof_summary(row), {}};
  if (!row.proof) return details;
  if (const auto& first = row.proof->first_difference; !first.empty())
    details.items.push_back(document::Text{"first difference at " + first});
  if (row.proof->lines.empty())
    details.items.push_back(document::Text{"No line was checked."});
  else
    details.items.push_back(proof_lines(row.name(), row.proof->lines));
  return details;
}

}  // namespace

document::Section certificate_section(const analysis::CaseResult& one_case) {
  document::Section section{.id = "proof", .title = "Certificate of equal work", .is_detail = true};
  section.items.push_back(document::Text{"Each line is observed by the harness, reported by the level, or assumed."});
  for (const auto* row : one_case.sorted_rows())
    if (row->proof) section.items.push_back(certificate_of(*row));
  if (section.items.size() == 1) section.items = {document::Text{"No level got as far as its proof."}};
  return section;
}

document::Section certificates_of(const analysis::CaseResult& one_case, const std::optional<std::string>& level) {
  document::Section section{.id = "proof", .title = "Certificate of " + one_case.id};
  for (const auto* row : one_case.sorted_rows()) {
    if (level && row->name() != *level && row->level != *level) continue;
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
