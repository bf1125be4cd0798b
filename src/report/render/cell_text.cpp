// SPDX-License-Identifier: Apache-2.0
#include "report/render/cell_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace strata::document {
namespace {

bool is_whole(double value) {
  return value == std::round(value);
}

// What is written alike: numbers up to `largest`, to two digits of a difference of `width` (none: 0).
struct Digits {
  double largest, width;
  bool whole;
};

int decimals_of(const Digits& digits) {
  const auto above = [](double value, int number) {
    return number - 1 - static_cast<int>(std::floor(std::log10(value)));
  };
  if (digits.whole || digits.largest == 0) return 0;
  const int four = above(digits.largest, 4);
  return std::max(0, digits.width > 0 ? std::min(four, above(digits.width, 2)) : four);
}

// Four significant digits of the largest; none behind the point where all values are whole.
std::string written(double value, const Digits& digits) {
  if (digits.largest != 0 && (digits.largest < 1e-4 || digits.largest >= 1e15)) return fmt::format("{:.3e}", value);
  if (digits.largest >= 1e3) return std::abs(value) < 1e6 ? report::count(value) : fmt::format("{:.4g}", value);
  return fmt::format("{:.{}f}", value, decimals_of(digits));
}

// "36.9 ms" into "36.9" and " ms"; "5%" into "5" and "%".
std::pair<std::string, std::string> without_unit(const std::string& number) {
  const auto space = number.find(' ');
  if (space != std::string::npos) return {number.substr(0, space), number.substr(space)};
  if (number.ends_with('%')) return {number.substr(0, number.size() - 1), "%"};
  return {number, ""};
}

std::string interval(std::string low, std::string high, const std::string& unit, const report::Glyphs& glyphs) {
  const auto [low_digits, low_unit] = without_unit(low);
  const auto [high_digits, high_unit] = without_unit(high);
  if (low_unit == unit && high_unit == unit) low = low_digits, high = high_digits;
  const bool signs = low.starts_with('-') || high.starts_with('-') || glyphs.range == "-";
  return fmt::format(" ({}{}{})", low, signs ? " to " : glyphs.range, high);
}

std::string unit_and_scale(const Axis& axis) {
  const auto unit = unit_behind(axis.unit, axis.format);
  if (!axis.logarithmic) return unit;
  return unit.empty() ? "logarithmic" : unit + ", logarithmic";
}

}  // namespace

std::string unit_behind(const std::string& unit, NumberFormat format) {
  const bool says_its_own =
      format == NumberFormat::seconds || format == NumberFormat::bytes || format == NumberFormat::percent;
  return says_its_own ? "" : unit;
}

const char* name_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::count:
      return "count";
    case NumberFormat::percent:
      return "percent";
    case NumberFormat::seconds:
      return "seconds";
    case NumberFormat::bytes:
      return "bytes";
    case NumberFormat::ratio:
      return "ratio";
    case NumberFormat::digits:
      break;
  }
  return "digits";
}

std::string number_text(double value, NumberFormat format) {
  if (!std::isfinite(value)) return "";
  switch (format) {
    case NumberFormat::count:
      return report::count(value);
    case NumberFormat::percent:
      return report::percent(100 * value);
    case NumberFormat::seconds:
      return value == 0 ? "0 s" : report::duration(1e3 * value);
    case NumberFormat::bytes:
      return report::size(value);
    case NumberFormat::ratio:
      return report::ratio(value);
    case NumberFormat::digits:
      break;
  }
  return written(value, {.largest = std::abs(value), .width = 0, .whole = is_whole(value)});
}

namespace {

std::string number_and_interval(const Number& number, const report::Glyphs& glyphs) {
  const bool both = number.low && number.high && std::isfinite(*number.low) && std::isfinite(*number.high);
  if (!both) return number_text(number.value, number.format);
  if (number.format == NumberFormat::digits) {
    const Digits digits{.largest = std::max({std::abs(number.value), std::abs(*number.low), std::abs(*number.high)}),
                        .width = std::abs(*number.high - *number.low),
                        .whole = is_whole(number.value) && is_whole(*number.low) && is_whole(*number.high)};
    return written(number.value, digits) +
           interval(written(*number.low, digits), written(*number.high, digits), "", glyphs);
  }
  const auto value = number_text(number.value, number.format);
  return value + interval(number_text(*number.low, number.format), number_text(*number.high, number.format),
                          without_unit(value).second, glyphs);
}

}  // namespace

std::string number_text(const Number& number, const report::Glyphs& glyphs) {
  if (!std::isfinite(number.value)) return "";
  return number_and_interval(number, glyphs) + (number.mark.empty() ? "" : " " + number.mark);
}

std::string cell_text(const Cell& cell, const report::Glyphs& glyphs) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<Number>(&cell)) return number_text(*number, glyphs);
  if (const auto* word = std::get_if<Word>(&cell)) return word->text;
  return "";
}

std::string reason_of(const Cell& cell) {
  const auto* absent = std::get_if<Absent>(&cell);
  return absent ? absent->reason : "";
}

const Cell& cell_of(const std::vector<Cell>& row, std::size_t column) {
  static const Cell nothing = Absent{};
  return column < row.size() ? row[column] : nothing;
}

std::string shown_title(const Column& column) {
  return column.unit.empty() ? column.title : fmt::format("{} ({})", column.title, column.unit);
}

std::string shown_title(const Axis& axis) {
  const auto detail = unit_and_scale(axis);
  if (detail.empty() || axis.title.empty()) return axis.title.empty() ? detail : axis.title;
  return fmt::format("{} ({})", axis.title, detail);
}

std::string shown_title(const Surface& surface) {
  const auto unit = unit_behind(surface.scale.unit, surface.scale.format);
  return unit.empty() ? surface.title : fmt::format("{} ({})", surface.title, unit);
}

std::string shown_place(double value, const Axis& axis) {
  if (axis.categories.empty()) return number_text(value, axis.format);
  const bool inside = value >= 0 && value < static_cast<double>(axis.categories.size()) && is_whole(value);
  return inside ? axis.categories[static_cast<std::size_t>(value)] : number_text(value, axis.format);
}

std::string shown_field(const SurfaceField& field) {
  if (!std::isfinite(field.number.value)) return "";
  return field.label.empty() ? number_text(field.number.value, field.number.format) : field.label;
}

std::vector<std::string> lines_of(const Text& text) {
  std::vector<std::string> lines;
  std::istringstream in(text.paragraph);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

const std::vector<Choice>& choices_of(const Item& item) {
  static const std::vector<Choice> none;
  if (const auto* figure = std::get_if<Figure>(&item)) return figure->choices;
  if (const auto* map = std::get_if<HeatMap>(&item)) return map->choices;
  if (const auto* surface = std::get_if<Surface>(&item)) return surface->choices;
  return none;
}

bool is_detail(const Item& item) {
  const auto* surface = std::get_if<Surface>(&item);
  return (surface && surface->is_detail) || std::holds_alternative<Details>(item);
}

std::vector<std::string> outline_of(const Table& table, const report::Glyphs& glyphs) {
  const auto& depths = table.depths;
  if (depths.empty() || depths.size() != table.rows.size()) return {};
  const std::string space(report::width_of(glyphs.pipe), ' ');
  // Whether a row as deep follows, before one that is less deep.
  const auto goes_on = [&](std::size_t row, int depth) {
    for (auto next = row + 1; next < depths.size() && depths[next] >= depth; ++next)
      if (depths[next] == depth) return true;
    return false;
  };
  std::vector<std::string> out;
  for (std::size_t row = 0; row < depths.size(); ++row) {
    std::string start;
    for (int depth = 1; depth < depths[row]; ++depth) start += goes_on(row, depth) ? glyphs.pipe : space;
    if (depths[row] > 0) start += goes_on(row, depths[row]) ? glyphs.branch : glyphs.last;
    out.push_back(std::move(start));
  }
  return out;
}

}  // namespace strata::document
