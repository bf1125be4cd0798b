// SPDX-License-Identifier: Apache-2.0
#include "report/markdown.hpp"

#include <fmt/format.h>

#include "report/accuracy_table.hpp"
#include "report/bill.hpp"
#include "report/clients.hpp"
#include "report/dynamic.hpp"
#include "report/first_screen.hpp"
#include "report/ledger_tree.hpp"
#include "report/phases.hpp"
#include "report/slo.hpp"
#include "report/table.hpp"
#include "report/tuning_table.hpp"

namespace strata::report {
namespace {

std::string levels_table(const FirstScreen& screen) {
  std::vector<Cells> rows;
  Cells header{"level", "time", "times as fast (99% interval)", "verdict"};
  if (screen.has_tuned) header.push_back("tuned against tuned");
  header.insert(header.end(), {"p99", "memory"});
  if (screen.has_device_memory) header.push_back("GPU memory");
  header.insert(header.end(), {"start again", "proof"});
  for (const auto& level : screen.levels) {
    Cells row{level.name + (level.recommended ? " (recommended)" : ""), level.time, level.ratio, level.verdict};
    if (screen.has_tuned) row.push_back(level.tuned);
    row.insert(row.end(), {level.p99, level.memory});
    if (screen.has_device_memory) row.push_back(level.device_memory);
    row.insert(row.end(), {level.start_again, level.proof});
    rows.push_back(row);
  }
  return table(header, rows, Format::md);
}

std::string ledger_table(const Json& one_case, const Glyphs& marks) {
  std::vector<const Json*> others;
  std::vector<Cells> rows;
  const auto add = [&](const Json& edge) {
    const auto kind = text(edge, "kind");
    const bool attributed = kind == "step";
    rows.push_back({text(edge, "from") + " " + marks.arrow + " " + text(edge, "to"), edge_words(edge),
                    attributed ? edge_difference(edge) : "",
                    kind == "differs" ? "" : ratio_with_interval(at(edge, "ratio"), marks),
                    verdict_words(text(edge, "verdict"))});
  };
  for (const auto& node : ledger_nodes(one_case, others))
    if (node.edge) add(*node.edge);
  for (const Json* edge : others) add(*edge);
  if (rows.empty()) return "";
  return "\n**Ledger**\n\n" +
         table({"step", "what changes", "difference", "times as fast", "verdict"}, rows, Format::md);
}

std::string tuning_section(const Json& one_case, const Glyphs& marks) {
  const auto tuning = tuning_table(one_case, marks, false);
  if (tuning.rows.empty() && tuning.untried.empty()) return "";
  std::string out = "\n**What was tried**\n\n";
  if (!tuning.rows.empty()) out += table(tuning.header, tuning.rows, Format::md) + "\n";
  for (const auto& levels : tuning.untried) out += "- " + markdown_text(levels) + "\n";
  if (!tuning.note.empty()) out += (tuning.untried.empty() ? "" : "\n") + markdown_text(tuning.note) + "\n";
  return out;
}

std::string case_section(const Json& run, const Json& one_case) {
  const auto& marks = glyphs(true);
  const auto screen = first_screen(run, one_case, marks);
  std::string out = fmt::format("## {}\n\n**{}**\n\n{}\n", markdown_code(screen.id), markdown_text(screen.sentence),
                                markdown_text(screen.what));
  if (!screen.levels.empty()) out += "\n" + levels_table(screen);
  if (const auto phases = phase_table(one_case, marks); !phases.rows.empty())
    out += "\n**Phases of a training step**\n\n" + table(phases.header, phases.rows, Format::md);
  if (const auto clients = client_table(one_case, marks, false); !clients.rows.empty())
    out += "\n**Several clients at once**\n\n" + table(clients.header, clients.rows, Format::md);
  if (const auto limit = slo_title(one_case); !limit.empty()) {
    out += "\n**What each level needs for " + markdown_text(limit) + "**\n\n";
    for (const auto& line : slo_lines(one_case)) out += "- " + markdown_text(line) + "\n";
  }
  if (!screen.without.empty()) {
    out += "\nWithout a number:\n\n";
    for (const auto& empty : screen.without)
      out += fmt::format("- {}: {}{}\n", markdown_text(empty.names), markdown_text(empty.state),
                         empty.reason.empty() ? "" : ", " + markdown_text(empty.reason));
  }
  out += "\n";
  if (!screen.limit.empty()) out += fmt::format("- {}: {}\n", screen.limit_title, markdown_text(screen.limit));
  out += fmt::format("- Trust: {}\n", markdown_text(screen.trust));
  if (!screen.next.empty()) out += "- Next: " + markdown_code(screen.next) + "\n";
  out += tuning_section(one_case, marks);
  out += ledger_table(one_case, marks);
  if (const auto bill = bill_table(one_case, marks); !bill.rows.empty())
    out += "\n**The bill**\n\n" + table(bill.header, bill.rows, Format::md);
  if (const auto levels = dynamic_levels(one_case, marks); !levels.rows.empty()) {
    out += "\n**One artefact over several batch sizes**\n\n" + table(levels.header, levels.rows, Format::md);
    if (const auto sizes = dynamic_sizes(one_case, marks); !sizes.rows.empty())
      out += "\n" + table(sizes.header, sizes.rows, Format::md);
  }
  return out;
}

}  // namespace

std::string markdown(const Json& run) {
  std::string out = fmt::format("# strata: run {}\n\n", markdown_text(text(run, "run.id")));
  out += fmt::format("{}, started {}, strata {}\n", markdown_code(text(run, "run.command")),
                     markdown_text(text(run, "run.started")), markdown_text(text(run, "run.version")));
  for (const auto& one_case : list(run, "cases")) out += "\n" + case_section(run, one_case);
  if (list(run, "cases").empty()) out += "\nThis run has no case: nothing was measured.\n";
  out += accuracy_markdown(run);
  if (!list(run, "warnings").empty()) {
    out += "\n## Warnings\n\n";
    for (const auto& warning : list(run, "warnings"))
      out += fmt::format("- {}: {}; {}\n", markdown_text(text(warning, "id")), markdown_text(text(warning, "what")),
                         markdown_text(text(warning, "advice")));
  }
  return out;
}

}  // namespace strata::report
