// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <regex>

#include "report/compare.hpp"
#include "report/first_screen.hpp"
#include "report/render/render.hpp"
#include "report/sections/sections.hpp"
#include "report/table.hpp"

namespace strata::report {
using analysis::CaseResult;
using analysis::RunResult;
namespace {

using Lines = std::vector<std::string>;
constexpr std::size_t kLines = 24, kLabel = 9;

class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}
  std::string operator()(const char* code, const std::string& words) const {
    return on_ && !words.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, words) : words;
  }
  const char* of(const std::string& verdict) const {
    return verdict == "faster" ? "32" : verdict == "slower" ? "31" : "2";
  }

 private:
  bool on_;
};

std::string padded(const std::string& words, std::size_t width, bool right) {
  const auto used = width_of(words);
  const std::string space(width > used ? width - used : 0, ' ');
  return right ? space + words : words + space;
}

// "Trust    2 restarts ...", later lines under the first.
Lines labelled(const std::string& label, const std::string& words, std::size_t width, const Paint& paint) {
  auto lines = wrap(printable(words), width - kLabel);
  for (std::size_t i = 0; i < lines.size(); ++i)
    lines[i] = (i ? std::string(kLabel, ' ') : paint("2", padded(label, kLabel, false))) + lines[i];
  return lines;
}

enum class Fit { roomy, short_proof, narrow, tight };  // verdict in words until short_proof, then as a sign

struct Column {
  std::string title;
  bool right;
  std::string (*cell)(const LevelLine&);
};

std::vector<Column> columns(Fit fit, const FirstScreen& screen) {
  std::vector<Column> all{{"level", false, [](const LevelLine& l) { return (l.recommended ? "> " : "  ") + l.name; }},
                          {"time", true, [](const LevelLine& l) { return l.time; }}};
  if (fit >= Fit::narrow) {
    all.push_back(
        {"speedup", true, [](const LevelLine& l) {
           const bool known = l.row->ratio && l.row->ratio->value;
           return (!known ? "" : l.verdict == "inconclusive" ? "~" : l.verdict == "same" ? "=" : "") + l.ratio;
         }});
  } else {
    all.push_back({"speedup", true, [](const LevelLine& l) { return l.ratio; }});
    all.push_back({"", false, [](const LevelLine& l) { return l.verdict; }});
  }
  if (screen.has_tuned && fit == Fit::roomy)
    all.push_back({"tuned against tuned", true, [](const LevelLine& l) { return l.tuned; }});
  if (screen.has_tuned && fit != Fit::roomy)
    all.push_back({"tuned", true, [](const LevelLine& l) { return l.tuned_short; }});
  all.push_back({"p99", true, [](const LevelLine& l) { return l.p99; }});
  all.push_back({"memory", true, [](const LevelLine& l) { return l.memory; }});
  if (screen.has_device_memory) all.push_back({"GPU mem", true, [](const LevelLine& l) { return l.device_memory; }});
  all.push_back({fit == Fit::roomy ? "warm start" : "warm", true, [](const LevelLine& l) { return l.warm_start; }});
  if (fit == Fit::roomy)
    all.push_back({"proof", false, [](const LevelLine& l) { return l.proof; }});
  else if (fit != Fit::tight)
    all.push_back({"proof", false, [](const LevelLine& l) { return l.proof_short; }});
  else
    all.push_back({"obs + rep", false, [](const LevelLine& l) {
                     return std::regex_replace(l.proof_short, std::regex(" obs, ([0-9]+) rep"), " + $1");
                   }});
  return all;
}

std::vector<std::size_t> widths_of(const std::vector<Column>& all, const std::vector<LevelLine>& levels) {
  std::vector<std::size_t> widths;
  for (const auto& column : all) {
    widths.push_back(width_of(column.title));
    for (const auto& level : levels) widths.back() = std::max(widths.back(), width_of(printable(column.cell(level))));
  }
  return widths;
}

std::size_t total(const std::vector<std::size_t>& widths, std::size_t gap) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + gap * (widths.size() - 1);
}

Lines level_table(const FirstScreen& screen, std::size_t width, const Paint& paint, Fit& fit) {
  std::vector<Column> all;
  std::vector<std::size_t> widths;
  std::size_t gap = 2;
  for (const Fit tried : {Fit::roomy, Fit::short_proof, Fit::narrow, Fit::tight}) {
    fit = tried;
    all = columns(fit, screen);
    widths = widths_of(all, screen.levels);
    gap = total(widths, 2) <= width || fit < Fit::narrow ? 2 : 1;
    if (total(widths, gap) <= width) break;
  }
  const std::string between(gap, ' ');
  Lines lines(1);
  for (std::size_t c = 0; c < all.size(); ++c) {
    const bool end = c + 1 == all.size();
    lines[0] += (c ? between : "") + (end ? all[c].title : padded(all[c].title, widths[c], all[c].right));
  }
  lines[0] = paint("2", lines[0]);
  for (const auto& level : screen.levels) {
    std::string line;
    for (std::size_t c = 0; c < all.size(); ++c) {
      auto cell = printable(all[c].cell(level));
      if (c == 0) cell = "  " + cell.substr(2);  // the mark is put in below, in the terminal's own characters
      const bool end = c + 1 == all.size();
      auto shown = end ? cell : padded(cell, widths[c], all[c].right);
      const bool coloured = !level.verdict.empty() && all[c].title == "speedup";
      line += (c ? between : "") + (coloured ? paint(paint.of(level.verdict), shown) : shown);
    }
    if (level.recommended) line[0] = '>';
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(level.harness ? paint("2", line) : level.recommended ? paint("1", line) : line);
  }
  return lines;
}

// "Not run  onednn, static - unsupported: no operation lstm (lstm, rnn.py:10)": a paragraph for each reason, with a
// heading on the first of those that failed and of those that were not run.
Lines without_number(const FirstScreen& screen, std::size_t width, const Paint& paint) {
  Lines lines;
  std::string heading;
  for (const auto& empty : screen.without) {
    const auto words = empty.names + " - " + empty.state + (empty.reason.empty() ? "" : ": " + empty.reason);
    const std::string own = empty.not_run ? "Not run" : "Without";
    const auto more = labelled(own == heading ? "" : own, words, width, paint);
    lines.insert(lines.end(), more.begin(), more.end());
    heading = own;
  }
  return lines;
}

std::string legend(const FirstScreen& screen, Fit fit) {
  if (fit < Fit::narrow) return "";
  std::string out;
  const auto has = [&](const char* verdict) {
    return std::any_of(screen.levels.begin(), screen.levels.end(),
                       [&](const LevelLine& l) { return l.verdict == verdict; });
  };
  if (has("inconclusive")) out += "; ~ inconclusive";
  if (has("same")) out += "; = the same";
  return out;
}

std::size_t height(const std::vector<Lines>& groups, std::size_t width) {
  std::size_t used = 0;
  for (const auto& group : groups)
    for (const auto& line : group)
      used += 1 + (line.find('\x1b') == std::string::npos ? (width_of(line) - !line.empty()) / width : 0);
  return used;
}

// What the levels are, and the words of their proof.
Lines about_levels(const FirstScreen& screen, std::size_t width, const Paint& paint) {
  std::string words;
  for (const auto& [level, title] : screen.about) words += fmt::format("{}: {}; ", level, title);
  return words.empty() ? Lines{} : labelled("Levels", words + screen.proof_note, width, paint);
}

// Joins groups with empty lines between them, as many of these as 24 lines leave room for.
std::string stack(const std::vector<Lines>& groups, std::size_t width) {
  std::size_t used = height(groups, width);
  const bool fits = used <= kLines;  // what does not fit anyway is easier to read with them
  std::string out;
  bool first = true;
  for (const auto& group : groups) {
    if (group.empty()) continue;
    if (!first && (!fits || used < kLines)) {
      out += "\n";
      ++used;
    }
    first = false;
    for (const auto& line : group) out += line + "\n";
  }
  return out;
}

std::string one_screen(const RunResult& run, const CaseResult& one_case, const TerminalStyle& style) {
  const Paint paint(style.colour);
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  const auto screen = first_screen(run, one_case, glyphs(style.unicode));
  auto sentence = wrap(printable(screen.sentence), width);
  for (auto& line : sentence) line = paint("1", line);
  Fit fit = Fit::roomy;
  const auto levels = screen.levels.empty() ? Lines{} : level_table(screen, width, paint, fit);
  Lines foot;
  const auto add = [&](const Lines& lines) { foot.insert(foot.end(), lines.begin(), lines.end()); };
  if (!screen.doubt.empty()) add(labelled("Doubt", screen.doubt, width, paint));
  if (!screen.limit.empty()) add(labelled(screen.limit_title, screen.limit, width, paint));
  add(labelled("Trust", screen.trust + legend(screen, fit), width, paint));
  // A command is never broken: it is there to be copied.
  if (!screen.next.empty()) foot.push_back(paint("2", padded("Next", kLabel, false)) + printable(screen.next));
  std::vector<Lines> groups{sentence,
                            labelled("Ran", screen.id + glyphs(style.unicode).dot + screen.what, width, paint), levels,
                            without_number(screen, width, paint), foot};
  const auto about = about_levels(screen, width, paint);
  if (height(groups, width) + about.size() <= kLines) groups.insert(groups.begin() + 3, about);
  auto out = stack(groups, width);
  if (const auto added = document::render_terminal(added_sections(one_case), style); !added.empty())
    out += "\n" + added;
  return out;
}

std::string summary(const RunResult& run, const TerminalStyle& style) {
  const auto& marks = glyphs(style.unicode);
  std::vector<Cells> rows;
  for (const auto& one_case : run.cases) {
    const auto screen = first_screen(run, one_case, marks);
    const auto* reference = one_case.reference_row();
    const auto time = reference ? reference->estimate_ms() : std::nullopt;
    Cells cells{screen.id,     screen.verdict, marks.missing,
                marks.missing, marks.missing,  time ? duration(*time) : marks.missing};
    for (const auto& level : screen.levels)
      if (level.recommended) std::tie(cells[2], cells[3], cells[4]) = std::tie(level.name, level.ratio, level.time);
    rows.push_back(cells);
  }
  return table({"case", "verdict", "level", numbers("speedup"), numbers("time"), numbers("reference")}, rows,
               Format::text);
}

}  // namespace

std::string terminal(const RunResult& run, const TerminalStyle& style) {
  const auto& cases = run.cases;
  if (cases.empty()) return "This run has no case: nothing was measured.\n";
  std::string out;
  if (cases.size() == 1) {
    out = one_screen(run, cases[0], style);
  } else {
    std::string rule;
    for (int i = 0; i < std::max(style.width, 40); ++i) rule += glyphs(style.unicode).rule;
    out = summary(run, style);
    for (const auto& one_case : cases)
      out += "\n" + Paint(style.colour)("2", rule) + "\n" + one_screen(run, one_case, style);
  }
  for (auto& part : accuracy_parts(run)) {
    part.sections.front().title = part.title;
    out += "\n" + document::render_terminal(part.sections, style);
  }
  return out;
}

std::string terminal_ledger(const RunResult& run, const TerminalStyle& style) {
  std::vector<document::Section> sections;
  for (const auto& one_case : run.cases) {
    sections.push_back(ledger_section(one_case));
    auto& section = sections.back();
    section.title = "Ledger of " + one_case.id;
    if (section.items.empty()) section.items = {document::Text{"no level was measured that another one leads to"}};
  }
  return sections.empty() ? "This run has no case: there is no ledger.\n" : document::render_terminal(sections, style);
}

std::string terminal_certificate(const RunResult& run, const TerminalStyle& style,
                                 const std::optional<std::string>& level) {
  std::vector<document::Section> sections;
  for (const auto& one_case : run.cases)
    if (auto section = certificates_of(one_case, level); !section.items.empty()) sections.push_back(std::move(section));
  if (!sections.empty()) return document::render_terminal(sections, style);
  return level ? "This run has no level named " + printable(*level) + ".\n"
               : "This run has no case: there is no certificate.\n";
}

}  // namespace strata::report
