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
  std::string outline, below, time, change, ratio, words;  // below: what stands under the outline in a further line
};

// Where there is less room than this beside a row, its cause stands below it.
constexpr std::size_t kLeastRoom = 36;

// The lines of the outline that lead to a level, or pass it.
std::string lines_to(const std::vector<LedgerNode>& nodes, std::size_t here, const Glyphs& marks) {
  std::string out;
  for (int up = nodes[here].parent; up >= 0 && nodes[static_cast<std::size_t>(up)].parent >= 0;
       up = nodes[static_cast<std::size_t>(up)].parent)
    out = (nodes[static_cast<std::size_t>(up)].last ? std::string(width_of(marks.pipe), ' ') : marks.pipe) + out;
  return out;
}

std::string outline_of(const std::vector<LedgerNode>& nodes, std::size_t here, const Glyphs& marks) {
  const auto& node = nodes[here];
  if (node.parent < 0) return node.name;
  return lines_to(nodes, here, marks) + (node.last ? marks.last : marks.branch) + node.name;
}

std::string below_of(const std::vector<LedgerNode>& nodes, std::size_t here, const Glyphs& marks) {
  const std::string space(width_of(marks.pipe), ' ');
  const bool leads_on = here + 1 < nodes.size() && nodes[here + 1].parent == static_cast<int>(here);
  return lines_to(nodes, here, marks) + (nodes[here].last ? space : marks.pipe) + (leads_on ? marks.pipe : space);
}

Entry entry_of(const std::vector<LedgerNode>& nodes, std::size_t here, const Glyphs& marks) {
  const auto& node = nodes[here];
  Entry entry{printable(outline_of(nodes, here, marks)), below_of(nodes, here, marks), marks.missing, "", "", ""};
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

// The widest cell of each column.
struct Widths {
  std::size_t outline = 0, time = 0, change = 0, ratio = 0, words = 0;
};

Widths column_widths(const std::vector<Entry>& entries) {
  Widths widths;
  const auto widen = [](std::size_t& width, const std::string& cell) { width = std::max(width, width_of(cell)); };
  for (const auto& entry : entries) {
    widen(widths.outline, entry.outline);
    widen(widths.time, entry.time);
    widen(widths.change, entry.change);
    widen(widths.ratio, entry.ratio);
    widen(widths.words, entry.words);
  }
  return widths;
}

std::string padded_to(const std::string& cell, std::size_t width) {
  return cell + std::string(width - width_of(cell), ' ');
}

std::string level_and_time(const Entry& entry, const Widths& widths) {
  return padded_to(entry.outline, widths.outline) + "  " + std::string(widths.time - width_of(entry.time), ' ') +
         entry.time + "  ";
}

std::string ended(std::string line) {
  return line.erase(line.find_last_not_of(' ') + 1) + "\n";
}

// What changes beside the row, in as many lines as it takes.
std::string cause_beside(const Entry& entry, const Widths& widths, std::size_t room) {
  const auto line = level_and_time(entry, widths) + padded_to(entry.change, widths.change) + "  " +
                    padded_to(entry.ratio, widths.ratio) + "  ";
  const auto indent = width_of(line);
  std::string out;
  for (const auto& words : wrap(entry.words, room - indent))
    out += ended((out.empty() ? line : std::string(indent, ' ')) + words);
  return out;
}

// What changes and by how much, below the row.
std::string cause_below(const Entry& entry, const Widths& widths, std::size_t room) {
  std::string out = ended(level_and_time(entry, widths) + entry.ratio);
  const auto cause = entry.change + (entry.change.empty() || entry.words.empty() ? "" : ": ") + entry.words;
  const auto indent = width_of(entry.below);
  if (!cause.empty())
    for (const auto& words : wrap(cause, room > indent + 20 ? room - indent : 20)) out += ended(entry.below + words);
  return out;
}

std::string case_ledger(const Json& one_case, const TerminalStyle& style) {
  const auto& marks = glyphs(style.unicode);
  const auto room = static_cast<std::size_t>(std::max(style.width, 40));
  std::vector<const Json*> others;
  const auto nodes = ledger_nodes(one_case, others);
  std::string out = "Ledger of " + printable(text(one_case, "id")) + "\n";
  if (nodes.empty()) return out + "  no level was measured that another one leads to\n";
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < nodes.size(); ++i) entries.push_back(entry_of(nodes, i, marks));
  const auto widths = column_widths(entries);
  const auto indent = widths.outline + widths.time + widths.change + widths.ratio + 4 * 2;
  const bool beside = indent + std::min(widths.words, kLeastRoom) <= room;
  for (const auto& entry : entries)
    out += beside ? cause_beside(entry, widths, room) : cause_below(entry, widths, room);
  for (const Json* edge : others)
    for (const auto& line : wrap(printable(fmt::format("also {} {} {}: {}  {}", text(*edge, "from"), marks.arrow,
                                                       text(*edge, "to"), edge_words(*edge), edge_difference(*edge))),
                                 room, 2))
      out += line + "\n";
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
