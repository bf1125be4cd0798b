// SPDX-License-Identifier: Apache-2.0
// The ledger drawn as an outline: a line to each level from the one above it, its time as a bar from zero, and what
// the step changes. Colours and dashes are classes of report.css; the table beside it says the same in text.
#include <fmt/format.h>

#include <algorithm>

#include "report/first_screen.hpp"
#include "report/html_parts.hpp"
#include "report/ledger_tree.hpp"

namespace strata::report {
namespace {

constexpr int kWidth = 430, kIndent = 18, kLeft = 8, kName = 16, kBar = 7;

struct Placed {
  int top = 0, x = 0;
  std::vector<std::string> words;  // what changes, broken to fit
};

std::string effect_of(const Json& edge) {
  const auto kind = text(edge, "kind");
  if (kind == "differs") return "";
  std::string out = kind == "peer" ? "" : edge_difference(edge);
  if (at(edge, "ratio").is_object()) out += (out.empty() ? "" : " · ") + ratio_with_interval(at(edge, "ratio"), glyphs(true));
  const auto verdict = verdict_words(text(edge, "verdict"));
  return verdict.empty() ? out : out + " " + verdict;
}

std::string effect_class(const Json& edge) {
  const auto verdict = text(edge, "verdict");
  return verdict == "faster" || verdict == "slower" ? verdict : "open";
}

std::string clipped(const std::string& name, std::size_t most) {
  if (width_of(name) <= most) return name;
  std::string out;
  std::size_t columns = 0;
  for (const char c : name) {
    columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (columns >= most) break;
    out += c;
  }
  return out + "…";
}

std::string text_at(int x, int y, const std::string& css, const std::string& words, bool at_end = false) {
  return fmt::format(R"(<text x="{}" y="{}" class="{}"{}>{}</text>)", x, y, css, at_end ? R"( text-anchor="end")" : "", escape_html(words));
}

std::string node_markup(const LedgerNode& node, const Placed& place, double longest) {
  const bool measured = node.row && is_measured(*node.row);
  const double ms = measured ? number(*node.row, "end_to_end_ms.estimate").value_or(-1) : -1;
  int y = place.top + 13;
  std::string out = text_at(place.x, y, "name", clipped(node.name, 32));
  out += text_at(kWidth - 2, y, "time", ms >= 0 ? duration(ms) : node.row ? text(*node.row, "state") : "–", true);
  y += 5;
  if (ms >= 0 && longest > 0)
    out += fmt::format(R"(<rect x="{}" y="{}" width="{:.1f}" height="{}" class="bar"/>)", kLeft + 2 * kIndent, y,
                       (kWidth - kLeft - 2 * kIndent - 2) * ms / longest, kBar);
  y += kBar + 13;
  for (const auto& line : place.words) {
    out += text_at(place.x, y, "words", line);
    y += kName;
  }
  if (node.edge)
    if (const auto effect = effect_of(*node.edge); !effect.empty()) out += text_at(place.x, y, "effect " + effect_class(*node.edge), effect);
  return out;
}

std::string edge_markup(const LedgerNode& node, const Placed& from, const Placed& to) {
  const auto kind = text(*node.edge, "kind");
  const char* css = kind == "differs" ? "edge differs" : kind == "peer" ? "edge peer" : "edge";
  const int x = from.x + 5, y = to.top + 9;
  return fmt::format(R"(<path class="{}" d="M{} {}V{}H{}"/>)", css, x, from.top + 18, y, to.x - 4);
}

// A dotted line through all bars at the time that the machine's limit would take.
std::string limit_markup(const Json& one_case, double longest, int height) {
  const auto limit = number(one_case, "limits.limit_ms");
  if (!limit || longest <= 0 || *limit > longest) return "";
  const double x = kLeft + 2 * kIndent + (kWidth - kLeft - 2 * kIndent - 2) * *limit / longest;
  return fmt::format(R"(<path class="limit" d="M{0:.1f} 14V{1}"/>)", x, height - 20) +
         text_at(static_cast<int>(x), height - 6, "words limit-label", "machine's limit " + duration(*limit), x > kWidth / 2.0);
}

}  // namespace

std::string ledger_svg(const Json& one_case, const std::string& where) {
  std::vector<const Json*> others;
  const auto nodes = ledger_nodes(one_case, others);
  if (nodes.empty()) return "";
  std::vector<Placed> places;
  int top = 4;
  double longest = 0;
  for (const auto& node : nodes) {
    Placed place{top, kLeft + kIndent * node.depth, {}};
    top += 26 + kBar;
    if (node.edge) {
      place.words = wrap(edge_words(*node.edge), static_cast<std::size_t>((kWidth - place.x) / 6.4));
      top += kName * static_cast<int>(place.words.size() + !effect_of(*node.edge).empty());
    }
    places.push_back(place);
    if (node.row && is_measured(*node.row)) longest = std::max(longest, number(*node.row, "end_to_end_ms.estimate").value_or(0));
  }
  const bool has_limit = number(one_case, "limits.limit_ms").value_or(1e300) <= longest;
  const int height = top + (has_limit ? 20 : 0);
  std::string out = fmt::format(R"(<svg class="graph" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-labelledby="{2}-svg-title {2}-svg-desc"><title id="{2}-svg-title">Ledger of {3}</title><desc id="{2}-svg-desc">Levels below the one they come from, with a bar of time from zero. The table beside it has the same steps.</desc>)",
                                kWidth, height, where, escape_html(text(one_case, "id")));
  // Edges first, so that no line crosses a word; a level is at most a few steps below its reference.
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].edge && nodes[i].parent >= 0) out += edge_markup(nodes[i], places[static_cast<std::size_t>(nodes[i].parent)], places[i]);
  out += limit_markup(one_case, longest, height);
  for (std::size_t i = 0; i < nodes.size(); ++i) out += node_markup(nodes[i], places[i], longest);
  return out + "</svg>\n";
}

}  // namespace strata::report
