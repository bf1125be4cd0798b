// SPDX-License-Identifier: Apache-2.0
#include "report/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <sstream>
#include <utility>

namespace strata::report {
namespace {

struct Unit {
  double scale;  // how many of the base unit
  double below;  // used for values that round to less than this
  const char* name;
};

constexpr std::array<Unit, 6> kTimes{
    {{1e-6, 1000, "ns"}, {1e-3, 1000, "us"}, {1, 1000, "ms"}, {1e3, 300, "s"}, {6e4, 180, "min"}, {3.6e6, 1e9, "h"}}};

// So that three digits are seen.
int decimals_of(double value) {
  const double magnitude = std::abs(value);
  return magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
}

const Unit& unit_of(double value, std::span<const Unit> units) {
  for (const auto& unit : units)
    if (std::abs(value) / unit.scale < unit.below - 0.5) return unit;
  return units.back();
}

std::string with_unit(double value, std::span<const Unit> units) {
  const auto& unit = unit_of(value, units);
  return fmt::format("{:.{}f} {}", value / unit.scale, decimals_of(value / unit.scale), unit.name);
}

}  // namespace

const Glyphs& glyphs(bool unicode) {
  static const Glyphs rich{.missing = "–",
                           .range = "–",
                           .dot = " · ",
                           .ellipsis = "…",
                           .branch = "├─ ",
                           .last = "└─ ",
                           .pipe = "│  ",
                           .rule = "─"};
  static const Glyphs plain{.missing = "-",
                            .range = "-",
                            .dot = "; ",
                            .ellipsis = "...",
                            .branch = "|- ",
                            .last = "`- ",
                            .pipe = "|  ",
                            .rule = "-"};
  return unicode ? rich : plain;
}

std::string duration(double ms) {
  return ms == 0 ? "0 ms" : with_unit(ms, kTimes);
}

std::string duration_change(double ms, std::optional<double> low, std::optional<double> high) {
  const double largest = std::max({std::abs(ms), std::abs(low.value_or(0)), std::abs(high.value_or(0))});
  const auto& unit = unit_of(largest, kTimes);
  const int decimals = decimals_of(largest / unit.scale);
  const auto write = [&](double value) { return fmt::format("{:+.{}f}", value / unit.scale, decimals); };
  return write(ms) + " " + unit.name + (low && high ? " (" + write(*low) + " to " + write(*high) + ")" : "");
}

std::string size(double bytes) {
  static constexpr std::array<Unit, 5> kUnits{
      {{1, 1000, "B"}, {1e3, 1000, "kB"}, {1e6, 1000, "MB"}, {1e9, 1000, "GB"}, {1e12, 1e9, "TB"}}};
  if (std::abs(bytes) < 1000) return fmt::format("{:.0f} B", bytes);
  return with_unit(bytes, kUnits);
}

std::string ratio(double value) {
  if (value > 0 && value < 0.005) return "<0.01";
  return std::abs(value) < 99.995 ? fmt::format("{:.2f}", value) : count(value);
}

std::string about(double seconds) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  if (seconds < 2 * minute) return fmt::format("about {:.0f} s", std::max(1.0, seconds));
  if (seconds < 2 * hour) return fmt::format("about {:.0f} min", seconds / minute);
  if (seconds < 2 * day) return fmt::format("about {:.0f} h", seconds / hour);
  return fmt::format("about {:.0f} days", seconds / day);
}

std::string percent(double value) {
  auto digits = fmt::format("{:.2f}", value);
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits + "%";
}

std::string count(double value) {
  if (std::abs(value) >= 999'999.5) {
    static constexpr std::array<Unit, 3> kUnits{
        {{1e6, 1000, "million"}, {1e9, 1000, "billion"}, {1e12, 1e9, "trillion"}}};
    return with_unit(value, kUnits);
  }
  auto digits = fmt::format("{:.0f}", std::abs(value));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return (value <= -0.5 ? "-" : "") + digits;
}

std::string scaled(double value) {
  static constexpr std::array<Unit, 5> kUnits{
      {{1, 1000, ""}, {1e3, 1000, "k"}, {1e6, 1000, "M"}, {1e9, 1000, "G"}, {1e12, 1e9, "T"}}};
  return with_unit(value, kUnits);
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::size_t width_of(std::string_view utf8) {
  std::size_t columns = 0;
  for (const char c : utf8) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

std::string printable(std::string_view utf8) {
  std::string out;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c == '\t' || c == '\n' || c == '\r') {
      out += ' ';
    } else if (c < 0x20 || c == 0x7F) {
      out += '?';
    } else if (c == 0xC2 && i + 1 < utf8.size() && static_cast<unsigned char>(utf8[i + 1]) < 0xA0) {
      out += '?';  // C1 controls: 0x9B starts an escape sequence on some terminals
      ++i;
    } else {
      out += utf8[i];
    }
  }
  return out;
}

namespace {

// Whether the word is a unit that follows a number, as "ms" or "MB".
bool is_unit(std::string_view word) {
  static constexpr std::array<std::string_view, 16> kNames{
      "ns", "us", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "million", "billion", "GFLOP", "GFLOP/s", "GB/s"};
  while (!word.empty() && std::string_view(",;:.)").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  return std::find(kNames.begin(), kNames.end(), word) != kNames.end();
}

// Words, with a number and its unit as one.
std::vector<std::string> unbreakable(std::string_view words) {
  std::vector<std::string> out;
  std::istringstream in{std::string(words)};
  for (std::string word; in >> word;) {
    const bool after_number = !out.empty() && out.back().back() >= '0' && out.back().back() <= '9';
    if (after_number && is_unit(word))
      out.back() += " " + word;
    else
      out.push_back(word);
  }
  return out;
}

}  // namespace

std::vector<std::string> wrap(std::string_view words, std::size_t width, std::size_t indent) {
  std::vector<std::string> lines{""};
  bool fresh = true;
  for (const auto& word : unbreakable(words)) {
    if (!fresh && width_of(lines.back()) + 1 + width_of(word) > width) {
      lines.emplace_back(indent, ' ');
      fresh = true;
    }
    lines.back() += (fresh ? "" : " ") + word;
    fresh = false;
  }
  return lines;
}

std::string first_sentence(std::string_view reason) {
  constexpr std::size_t most = 320;                                                    // four lines of a terminal
  reason.remove_prefix(std::min(reason.find_first_not_of(" \t\n\r"), reason.size()));  // as some libraries begin
  const auto line = reason.substr(0, reason.find_first_of("\n\r"));
  auto end = line.size();
  for (std::size_t i = 0; i + 2 < line.size(); ++i)
    if (line[i] == '.' && line[i + 1] == ' ' && line[i + 2] >= 'A' && line[i + 2] <= 'Z') {
      end = i;
      break;
    }
  const auto sentence = line.substr(0, end);
  if (sentence.size() <= most) return std::string(sentence);
  const auto start = sentence.substr(0, most);
  if (const auto clause = start.rfind("; "); clause != std::string_view::npos)
    return std::string(start.substr(0, clause));
  return std::string(start.substr(0, start.rfind(' '))) + " ...";
}

}  // namespace strata::report
