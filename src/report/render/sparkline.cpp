// SPDX-License-Identifier: Apache-2.0
#include "report/render/sparkline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/render/points.hpp"

namespace strata::document {
namespace {

constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 8> kAscii{"_", ".", "-", "~", "=", "+", "*", "#"};

bool is_on(double value, const Axis& axis) {
  return std::isfinite(value) && (!axis.logarithmic || value > 0);
}

void widen(std::optional<Range>& range, double value, const Axis& axis) {
  if (!is_on(value, axis)) return;
  range = range ? Range{std::min(range->low, value), std::max(range->high, value)} : Range{value, value};
}

// 0 at the range's low end, 1 at its high end; the middle where it has no width.
double share(double value, const Range& range, const Axis& axis) {
  const auto scaled = [&](double number) { return axis.logarithmic ? std::log(number) : number; };
  const double low = scaled(range.low), width = scaled(range.high) - low;
  const double part = (scaled(value) - low) / width;
  return width > 0 && std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0.5;
}

// The means of the points that fall into each character; a gap (NaN) where they are gaps, nothing where there is none.
std::vector<std::optional<double>> means(const Line& line, const Panel& panel, const Range& x, std::size_t width) {
  std::vector<double> sums(width), counts(width);
  std::vector<bool> any(width);
  for (const auto& point : points_of(line)) {
    if (!is_on(point.x, panel.x)) continue;
    const double part = x.low == x.high ? 0.0 : share(point.x, x, panel.x);
    const auto place = static_cast<std::size_t>(std::llround(part * static_cast<double>(width - 1)));
    any[place] = true;
    if (!is_on(point.y, panel.y)) continue;
    sums[place] += panel.y.logarithmic ? std::log(point.y) : point.y;
    counts[place] += 1;
  }
  std::vector<std::optional<double>> out(width);
  for (std::size_t i = 0; i < width; ++i)
    if (any[i]) out[i] = panel.y.logarithmic ? std::exp(sums[i] / counts[i]) : sums[i] / counts[i];
  return out;
}

// Characters between two points of a line that is drawn as one take what lies between.
void join(std::vector<std::optional<double>>& values) {
  std::size_t before = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    for (std::size_t k = before + 1; before < i && k < i; ++k) {
      const double part = static_cast<double>(k - before) / static_cast<double>(i - before);
      values[k] = *values[before] + part * (*values[i] - *values[before]);
    }
    before = i;
  }
}

}  // namespace

std::optional<Range> range_of_x(const Panel& panel) {
  std::optional<Range> range;
  for (const auto& line : panel.lines)
    for (const auto& point : points_of(line)) widen(range, point.x, panel.x);
  return range;
}

std::optional<Range> range_of_y(const Panel& panel) {
  std::optional<Range> range;
  for (const auto& line : panel.lines)
    for (const auto& point : points_of(line)) widen(range, point.y, panel.y);
  return range;
}

std::string sparkline(const Line& line, const Panel& panel, std::size_t width, bool unicode) {
  const auto x = range_of_x(panel), y = range_of_y(panel);
  if (!x || !y || width == 0) return std::string(width, ' ');
  auto values = means(line, panel, *x, width);
  if (!line.marks_only) join(values);
  const auto& marks = unicode ? kBlocks : kAscii;
  std::string out;
  for (const auto& value : values) {
    if (!value || !std::isfinite(*value)) {
      out += ' ';
      continue;
    }
    const auto step = std::lround(share(*value, *y, panel.y) * static_cast<double>(marks.size() - 1));
    out += marks[static_cast<std::size_t>(step)];
  }
  return out;
}

}  // namespace strata::document
