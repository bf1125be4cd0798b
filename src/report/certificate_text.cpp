// SPDX-License-Identifier: Apache-2.0
// The certificate of equal work as plain text (terminal.hpp).
#include <fmt/format.h>

#include "report/format.hpp"
#include "report/table.hpp"
#include "report/terminal.hpp"

namespace strata::report {
namespace {

std::string verdict_line(const Json& row) {
  const auto verdict = text(row, "proof.verdict");
  std::string out = verdict == "equal"          ? "equal work"
                    : verdict == "equal_looser" ? "equal work with looser numerics"
                    : verdict == "unequal"      ? "unequal work: no number"
                    : verdict == "mistrusted"   ? "mistrusted: no number"
                                                : "no proof";
  if (flag(row, "proof.weak")) out += ", weak";
  const auto part = [&](const char* key) {
    return static_cast<long long>(number(row, std::string("proof.") + key).value_or(0));
  };
  out += fmt::format(" ({} observed, {} reported, {} assumed)", part("observed"), part("reported"), part("assumed"));
  const auto first = text(row, "proof.first_difference");
  return first.empty() ? out : out + "\n  first difference at " + printable(first);
}

std::string row_certificate(const Json& row) {
  std::string out = printable(level_name(row)) + ": ";
  if (!at(row, "proof").is_object()) {
    const auto reason = text(row, "reason");
    return out + "no certificate (" + text(row, "state") + (reason.empty() ? "" : ": " + printable(reason)) + ")\n";
  }
  out += verdict_line(row) + "\n";
  std::vector<Cells> cells;
  for (const auto& line : list(row, "proof.lines")) {
    auto result = text(line, "result");
    if (result == "not_checked") result = "not checked";
    cells.push_back({"  " + result, text(line, "how"), text(line, "check"), text(line, "value"), text(line, "bound"),
                     text(line, "detail")});
  }
  return cells.empty() ? out
                       : out + table({"  result", "how", "check", "value", "bound", "detail"}, cells, Format::text);
}

}  // namespace

std::string certificate_text(const Json& run, const std::optional<std::string>& level) {
  std::string out;
  for (const auto& one_case : list(run, "cases")) {
    std::string rows;
    for (const Json* row : sorted_rows(one_case))
      if (!level || level_name(*row) == *level || text(*row, "level") == *level) rows += "\n" + row_certificate(*row);
    if (!rows.empty())
      out += (out.empty() ? "" : "\n") + ("Certificate of " + printable(text(one_case, "id"))) + "\n" + rows;
  }
  if (!out.empty()) return out;
  return level ? "This run has no level named " + printable(*level) + ".\n"
               : "This run has no case: there is no certificate.\n";
}

}  // namespace strata::report
