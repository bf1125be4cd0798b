// SPDX-License-Identifier: Apache-2.0
// What needs all levels' blocks at once: joint estimates, the machine's process effect.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "stats/compare.hpp"

namespace strata::stats {

namespace {

using Table = std::vector<std::vector<double>>;  // [row][column], NaN: missing

double trimmed(std::span<const double> values) {
  return trimmed_mean(values).value;
}

struct Additive {
  std::vector<double> column, row;  // value = column + row; NaN where a column has no value at all
};

std::size_t columns_of(const Table& table) {
  std::size_t columns = 0;
  for (const auto& row : table) columns = std::max(columns, row.size());
  return columns;
}

// Values of one column, less the rows' effects.
std::vector<double> column_values(const Table& table, std::size_t column, const std::vector<double>& row_effects) {
  std::vector<double> out;
  for (std::size_t r = 0; r < table.size(); ++r)
    if (column < table[r].size() && !std::isnan(table[r][column])) out.push_back(table[r][column] - row_effects[r]);
  return out;
}

// Fits value = column + row by turns, each with its own centre, until nothing moves. The rows' centre is then moved
// into the columns, so that a column is a typical value of its level.
Additive fit_additive(const Table& table, const std::function<double(std::span<const double>)>& column_centre,
                      const std::function<double(std::span<const double>)>& row_centre) {
  const std::size_t columns = columns_of(table);
  Additive fit{std::vector<double>(columns, nan), std::vector<double>(table.size(), 0.0)};
  for (std::size_t c = 0; c < columns; ++c) fit.column[c] = median(column_values(table, c, fit.row));
  double moved = 1;
  for (int pass = 0; pass < 200 && moved > 1e-13; ++pass) {
    moved = 0;
    for (std::size_t r = 0; r < table.size(); ++r) {
      std::vector<double> left;
      for (std::size_t c = 0; c < table[r].size(); ++c)
        if (!std::isnan(table[r][c])) left.push_back(table[r][c] - fit.column[c]);
      if (!left.empty()) fit.row[r] = row_centre(left);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const std::vector<double> values = column_values(table, c, fit.row);
      if (values.empty()) continue;
      const double centre = column_centre(values);
      moved = std::max(moved, std::abs(centre - fit.column[c]));
      fit.column[c] = centre;
    }
  }
  std::vector<double> used;
  for (std::size_t r = 0; r < table.size(); ++r)
    if (std::any_of(table[r].begin(), table[r].end(), [](double v) { return !std::isnan(v); }))
      used.push_back(fit.row[r]);
  const double centre = used.empty() ? 0 : column_centre(used);
  for (double& column : fit.column) column += centre;
  for (double& row : fit.row) row -= centre;
  return fit;
}

Table logarithms(const Table& times) {
  Table out = times;
  for (auto& row : out)
    for (double& value : row) value = value > 0 && std::isfinite(value) ? std::log(value) : nan;
  return out;
}

// True if every column with values can be reached from every other by rows that hold both.
bool is_connected(const Table& table) {
  const std::size_t columns = columns_of(table);
  std::vector<std::size_t> group(columns);
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::vector<bool> present(columns, false);
  for (const auto& row : table) {
    std::size_t first = columns;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (std::isnan(row[c])) continue;
      present[c] = true;
      if (first == columns) first = c;
      const std::size_t from = group[c], to = group[first];
      std::replace(group.begin(), group.end(), from, to);
    }
  }
  std::size_t seen = columns;
  for (std::size_t c = 0; c < columns; ++c) {
    if (!present[c]) continue;
    if (seen == columns) seen = group[c];
    if (group[c] != seen) return false;
  }
  return true;
}

}  // namespace

JointEstimates joint_estimates(const Blocks& blocks) {
  Table per_restart;
  std::size_t levels = 0;
  for (const Table& rounds : blocks) {
    per_restart.push_back(fit_additive(logarithms(rounds), trimmed, [](auto v) { return median(v); }).column);
    levels = std::max(levels, per_restart.back().size());
  }
  JointEstimates out;
  out.connected = is_connected(per_restart);
  std::vector<double> level(levels, nan);
  if (out.connected) {
    level = fit_additive(per_restart, mean, mean).column;
  } else {  // a restart's own effect cannot be told from a level's: leave it in
    for (std::size_t c = 0; c < levels; ++c)
      level[c] = mean(column_values(per_restart, c, std::vector<double>(per_restart.size())));
  }
  for (double log_ns : level) out.milliseconds.push_back(std::exp(log_ns) * 1e-6);
  out.milliseconds.resize(levels, nan);
  return out;
}

ShownTime shown_time(double joint_ms, std::span<const double> samples_ms, double disturbed_share) {
  if (samples_ms.empty()) return {joint_ms, false};
  const auto [least, most] = std::minmax_element(samples_ms.begin(), samples_ms.end());
  constexpr double rounding = 1e-9;  // a logarithm and back
  const bool inside = joint_ms >= *least * (1 - rounding) && joint_ms <= *most * (1 + rounding);  // false for NaN
  if (inside && !(disturbed_share > 0.5)) return {std::clamp(joint_ms, *least, *most), false};
  return {median(samples_ms), true};
}

ProcessEffect estimate_process_effect(const Blocks& sessions) {
  ProcessEffect out;
  double variance_sum = 0, error_sum = 0, df = 0;
  for (const Table& rounds : sessions) {
    const Table table = logarithms(rounds);
    const Additive fit = fit_additive(table, trimmed, [](auto v) { return median(v); });
    std::vector<double> effects, squared_errors;
    for (std::size_t c = 0; c < fit.column.size(); ++c) {
      const TrimmedMean instance = trimmed_mean(column_values(table, c, fit.row));
      if (instance.count < 5) continue;
      effects.push_back(instance.value);
      squared_errors.push_back(instance.standard_error * instance.standard_error);
    }
    const auto n = static_cast<double>(effects.size());
    if (effects.size() < 2) continue;
    const double centre = mean(effects);
    for (double effect : effects) variance_sum += (effect - centre) * (effect - centre);
    // Taking out the rounds' effects shrinks the spread of what is left by (n-1)/n.
    error_sum += mean(squared_errors) * n / (n - 1) * (n - 1);
    df += n - 1;
    out.instances += static_cast<int>(effects.size());
    ++out.sessions;
  }
  if (df == 0) return out;
  const double variance = variance_sum / df, error = error_sum / df;
  const auto without_error = [&](double v) { return std::sqrt(std::max(v - error, 0.0)); };
  out.sigma = without_error(variance);
  out.low = without_error(variance * df / chi_square_quantile(0.975, df));
  out.high = without_error(variance * df / chi_square_quantile(0.025, df));
  return out;
}

}  // namespace strata::stats
