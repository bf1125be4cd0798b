// SPDX-License-Identifier: Apache-2.0
// The ledger as an outline for terminals (terminal.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "report/first_screen.hpp"
#include "report/ledger_tree.hpp"
#include "report/terminal.hpp"

namespace strata::report {
namespace {

struct Entry {
  std::string outline, time, change, ratio, words;
};

std::string outline_of(const std::vector<LedgerNode>& nodes, std::size_t here, const Glyphs& marks) {
  const auto& node = nodes[here];
  if (node.parent < 0) return node.name;
  std::string out = node.last ? marks.last : marks.branch;
  for (int up = node.parent; nodes[static_cast<std::size_t>(up)].parent >= 0;
       up = nodes[static_cast<std::size_t>(up)].parent)
    out = (nodes[static_cast<std::size_t>(up)].last ? std::string(width_of(marks.pipe), ' ') : marks.pipe) + out;
  return out + node.name;
}

Entry entry_of(const std::vector<LedgerNode>& nodes, std::size_t here, const Glyphs& marks) {
  const auto& node = nodes[here];
  Entry entry{printable(outline_of(nodes, here, marks)), marks.missing, "", "", ""};
  if (node.row && is_measured(*node.row)) {
    if (const auto ms = number(*node.row, "end_to_end_ms.estimate")) entry.time = duration(*ms);
  } else if (node.row) {
    entry.time = text(*node.row, "state");
  }
  if (!node.edge) return entry;
  entry.words = printable(edge_words(*node.edge));
  if (text(*node.edge, "kind") != "differs") {
    entry.change = text(*node.edge, "kind") == "peer" ? "" : edge_difference(*node.edge);
    const auto verdict = verdict_words(text(*node.edge, "verdict"));
    if (at(*node.edge, "ratio").is_object()) entry.ratio = ratio_with_interval(at(*node.edge, "ratio"), marks);
    if (!verdict.empty()) entry.ratio += (entry.ratio.empty() ? "" : " ") + verdict;
  }
  return entry;
}

std::string case_ledger(const Json& one_case, const TerminalStyle& style) {
  const auto& marks = glyphs(style.unicode);
  std::vector<const Json*> others;
  const auto nodes = ledger_nodes(one_case, others);
  std::string out = "Ledger of " + printable(text(one_case, "id")) + "\n";
  if (nodes.empty()) return out + "  no level was measured that another one leads to\n";
  std::vector<Entry> entries;
  std::size_t outline = 0, time = 0, change = 0, ratios = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    entries.push_back(entry_of(nodes, i, marks));
    outline = std::max(outline, width_of(entries.back().outline));
    time = std::max(time, width_of(entries.back().time));
    change = std::max(change, width_of(entries.back().change));
    ratios = std::max(ratios, width_of(entries.back().ratio));
  }
  const auto pad = [](const std::string& s, std::size_t width) { return s + std::string(width - width_of(s), ' '); };
  for (const auto& entry : entries) {
    std::string line =
        fmt::format("{}  {}{}  {}  {}  ", pad(entry.outline, outline), std::string(time - width_of(entry.time), ' '),
                    entry.time, pad(entry.change, change), pad(entry.ratio, ratios));
    const auto indent = width_of(line);
    const auto room = static_cast<std::size_t>(std::max(style.width, 40));
    if (indent + 16 > room || entry.words.empty()) {
      line += entry.words;
    } else {
      const auto words = wrap(entry.words, room - indent);
      for (std::size_t i = 0; i < words.size(); ++i) line += (i ? "\n" + std::string(indent, ' ') : "") + words[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  for (const Json* edge : others)
    out += fmt::format("also {} {} {}: {}  {}\n", text(*edge, "from"), marks.arrow, text(*edge, "to"),
                       edge_words(*edge), edge_difference(*edge));
  if (const auto limit = number(one_case, "limits.limit_ms"))
    out += limit_title(one_case) + ": " + duration(*limit) + "\n";
  return out;
}

}  // namespace

std::string terminal_ledger(const Json& run, const TerminalStyle& style) {
  std::string out;
  for (const auto& one_case : list(run, "cases")) out += (out.empty() ? "" : "\n") + case_ledger(one_case, style);
  return out.empty() ? "This run has no case: there is no ledger.\n" : out;
}

}  // namespace strata::report
