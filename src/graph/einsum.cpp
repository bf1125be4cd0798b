// SPDX-License-Identifier: Apache-2.0
#include "graph/einsum.hpp"

#include <algorithm>

namespace strata::graph {
namespace {

bool has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

// The labels of `from` that are (not) in each of the others.
std::string chosen(const std::string& from, const std::string& name, bool in_one, const std::string& other,
                   bool in_other) {
  std::string result;
  for (const char label : from)
    if (has(name, label) == in_one && has(other, label) == in_other) result += label;
  return result;
}

bool repeats(std::string labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) != labels.end();
}

}  // namespace

std::optional<MatrixEinsum> matrix_einsum(std::string equation) {
  std::erase(equation, ' ');
  const auto comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow || has(equation, '.') ||
      equation.find(',', comma + 1) != std::string::npos)
    return std::nullopt;
  MatrixEinsum parts{.left = equation.substr(0, comma),
                     .right = equation.substr(comma + 1, arrow - comma - 1),
                     .result = equation.substr(arrow + 2)};
  const auto& [left, right, result, batch, rows, columns, summed] = parts;
  parts.batch = chosen(result, left, true, right, true);
  parts.rows = chosen(left, right, false, result, true);
  parts.columns = chosen(right, left, false, result, true);
  parts.summed = chosen(left, right, true, result, false);
  const bool whole = batch.size() + rows.size() + summed.size() == left.size() &&
                     batch.size() + columns.size() + summed.size() == right.size() &&
                     batch.size() + rows.size() + columns.size() == result.size();
  if (!whole || repeats(left) || repeats(right) || repeats(result)) return std::nullopt;
  return parts;
}

std::vector<std::size_t> places_of(const std::string& axes, const std::string& labels) {
  std::vector<std::size_t> places;
  for (const char label : axes) places.push_back(labels.find(label));
  return places;
}

}  // namespace strata::graph
