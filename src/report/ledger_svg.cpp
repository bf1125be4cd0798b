// SPDX-License-Identifier: Apache-2.0
// The ledger drawn as an outline: a line to each level from the one above it, its time as a bar from zero, and what
// the step changes. Twice, for wide and for narrow pages; report.css shows the one that fits and owns all colours.
#include <fmt/format.h>

#include <algorithm>

#include "report/first_screen.hpp"
#include "report/html_parts.hpp"
#include "report/ledger_tree.hpp"

namespace strata::report {
namespace {

constexpr int kIndent = 26, kLeft = 2, kLine = 17, kBarHeight = 8;
constexpr double kCharacter = 7.4;  // pixels of an average one in the size that report.css gives

// Wide: name, time, bar and words side by side. Narrow: below each other.
struct Geometry {
  bool wide;
  int width, time_at, bar_at, bar_width, words_at;
};

Geometry geometry_of(bool wide, int deepest) {
  if (wide) return {true, 1120, 300, 318, 300, 640};
  const int bar = kLeft + kIndent * (deepest + 1);
  return {false, 350, 350, bar, 350 - bar - 2, 0};
}

struct Placed {
  int top = 0, x = 0, words_x = 0;
  std::vector<std::string> words, effects;  // what changes, broken to fit; what it costs or saves
};

std::vector<std::string> effects_of(const Json& edge, bool one_line) {
  const auto kind = text(edge, "kind");
  if (kind == "differs") return {};
  std::vector<std::string> parts;
  if (const auto difference = kind == "peer" ? "" : edge_difference(edge); !difference.empty())
    parts.push_back(difference);
  auto ratios = at(edge, "ratio").is_object() ? ratio_with_interval(at(edge, "ratio"), glyphs(true)) : "";
  if (const auto verdict = verdict_words(text(edge, "verdict")); !verdict.empty())
    ratios += (ratios.empty() ? "" : " ") + verdict;
  if (!ratios.empty()) parts.push_back(ratios);
  if (one_line && parts.size() == 2) parts = {parts[0] + " · " + parts[1]};
  return parts;
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
  return fmt::format(R"(<text x="{}" y="{}" class="{}"{}>{}</text>)", x, y, css, at_end ? R"( text-anchor="end")" : "",
                     escape_html(words));
}

double time_of(const LedgerNode& node) {
  return node.row && is_measured(*node.row) ? number(*node.row, "end_to_end_ms.estimate").value_or(-1) : -1;
}

// The bar and, across it, a tick where the machine's limit lies.
std::string bar_markup(const Geometry& shape, int y, double ms, double longest, double limit) {
  if (ms < 0 || longest <= 0) return "";
  auto out = fmt::format(R"(<rect x="{}" y="{}" width="{:.1f}" height="{}" class="time-bar"/>)", shape.bar_at, y,
                         shape.bar_width * ms / longest, kBarHeight);
  if (limit > 0 && limit <= longest)
    out += fmt::format(R"(<path class="limit" d="M{:.1f} {}v{}"/>)", shape.bar_at + shape.bar_width * limit / longest,
                       y - 3, kBarHeight + 6);
  return out;
}

std::string node_markup(const Geometry& shape, const LedgerNode& node, const Placed& place, double longest,
                        double limit) {
  const double ms = time_of(node);
  const int y = place.top + 13;
  auto out = text_at(place.x, y, "name", clipped(node.name, shape.wide ? 24 : 22));
  out += text_at(shape.time_at, y, "time", ms >= 0 ? duration(ms) : node.row ? text(*node.row, "state") : "–", true);
  out += bar_markup(shape, shape.wide ? place.top + 5 : place.top + 20, ms, longest, limit);
  int line = shape.wide ? y : y + kBarHeight + 6 + kLine;
  for (const auto& words : place.words) {
    out += text_at(place.words_x, line, "words", words);
    line += kLine;
  }
  for (const auto& effect : place.effects) {
    out += text_at(place.words_x, line, "effect " + effect_class(*node.edge), effect);
    line += kLine;
  }
  return out;
}

std::string edge_markup(const Json& edge, const Placed& from, const Placed& to) {
  const auto kind = text(edge, "kind");
  const char* css = kind == "differs" ? "edge differs" : kind == "peer" ? "edge peer" : "edge";
  // The trunk is shared by edges of all kinds, so only the branch shows this edge's kind.
  return fmt::format(R"(<path class="trunk" d="M{0} {1}V{2}"/><path class="{3}" d="M{0} {2}H{4}"/>)", from.x + 6,
                     from.top + 18, to.top + 9, css, to.x - 4);
}

int height_of(const Geometry& shape, const Placed& place) {
  const int lines = static_cast<int>(place.words.size() + place.effects.size());
  return shape.wide ? std::max(1, lines) * kLine + 8 : 13 + kBarHeight + 6 + lines * kLine + 12;
}

std::string drawing(const Json& one_case, const std::string& where, bool wide) {
  std::vector<const Json*> others;
  const auto nodes = ledger_nodes(one_case, others);
  int deepest = 0, top = 2;
  double longest = 0;
  for (const auto& node : nodes) {
    deepest = std::max(deepest, node.depth);
    longest = std::max(longest, time_of(node));
  }
  const auto shape = geometry_of(wide, deepest);
  std::vector<Placed> places;
  for (const auto& node : nodes) {
    Placed place{top, kLeft + kIndent * node.depth, 0, {}, {}};
    place.words_x = wide ? shape.words_at : place.x + kIndent;
    if (node.edge) {
      place.words = wrap(edge_words(*node.edge), static_cast<std::size_t>((shape.width - place.words_x) / kCharacter));
      place.effects = effects_of(*node.edge, wide);
    }
    top += height_of(shape, place);
    places.push_back(place);
  }
  const double limit = number(one_case, "limits.limit_ms").value_or(-1);
  const bool has_limit = limit > 0 && limit <= longest;
  const int height = top + (has_limit ? 18 : 0);
  const auto id = where + (wide ? "-wide" : "-narrow");
  auto out = fmt::format(
      R"(<svg class="graph {4}" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-labelledby="{2}-title {2}-desc"><title id="{2}-title">Ledger of {3}</title><desc id="{2}-desc">Each level below the one it comes from, with a bar of its time from zero and what the step changes. The table below says the same.</desc>)",
      shape.width, height, id, escape_html(text(one_case, "id")), wide ? "wide" : "narrow");
  for (std::size_t i = 0; i < nodes.size(); ++i)  // edges first, so that words lie above lines
    if (nodes[i].edge && nodes[i].parent >= 0)
      out += edge_markup(*nodes[i].edge, places[static_cast<std::size_t>(nodes[i].parent)], places[i]);
  for (std::size_t i = 0; i < nodes.size(); ++i) out += node_markup(shape, nodes[i], places[i], longest, limit);
  if (has_limit) {
    const int x = shape.bar_at + static_cast<int>(shape.bar_width * limit / longest);
    out += fmt::format(R"(<path class="limit" d="M{} {}v12"/>)", x, top + 2) +
           text_at(x - 6, top + 12, "words", limit_title(one_case) + " " + duration(limit), true);
  }
  return out + "</svg>\n";
}

}  // namespace

std::string ledger_svg(const Json& one_case, const std::string& where) {
  return list(one_case, "ledger.edges").empty() ? "" : drawing(one_case, where, true) + drawing(one_case, where, false);
}

}  // namespace strata::report
