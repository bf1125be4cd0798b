// SPDX-License-Identifier: Apache-2.0
// Einsum in all forms that PyTorch takes: with dots, without an arrow, and with an order of contraction.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

struct Equation {
  std::vector<std::string> operands;  // one label an axis
  std::string output;
  std::map<char, std::int64_t> extents;
};

constexpr std::string_view dots = "...";

// The axes that dots stand for have labels of their own, counted from the last one, since they broadcast.
std::string dotted_axes(std::size_t count) {
  need(count < 'A', "{} axes in the place of dots", count);
  std::string labels;
  for (std::size_t i = count; i > 0; --i) labels += static_cast<char>(i);
  return labels;
}

std::string without_dots(std::string labels, std::size_t count) {
  const auto at = labels.find(dots);
  if (at != std::string::npos) labels.replace(at, dots.size(), dotted_axes(count));
  return labels;
}

// Without an arrow: what dots stand for, then every letter that occurs once, in order.
std::string implied_output(const std::string& operands) {
  std::map<char, int> times;
  for (const char label : operands)
    if (label != ',' && label != '.') ++times[label];
  std::string output = operands.find(dots) == std::string::npos ? "" : std::string(dots);
  for (const auto& [label, count] : times)
    if (count == 1) output += label;
  return output;
}

std::vector<std::string> split_operands(std::string text) {
  text += ',';
  std::vector<std::string> operands;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find(',', begin);
    operands.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return operands;
}

// Puts labels in the place of dots, and learns the extents of an operand's axes.
std::size_t take_operand(Equation& equation, std::size_t number, const Value& tensor, const std::string& text) {
  auto& labels = equation.operands[number];
  const bool dotted = labels.find(dots) != std::string::npos;
  const auto letters = labels.size() - (dotted ? dots.size() : 0);
  need(dotted ? tensor.shape.size() >= letters : tensor.shape.size() == letters, "operand {} of '{}' has another rank",
       number, text);
  const auto open = tensor.shape.size() - letters;
  labels = without_dots(labels, open);
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const auto extent = tensor.shape[axis];
    auto& known = equation.extents.emplace(labels[axis], extent).first->second;
    need(known == extent || known == 1 || extent == 1, "an axis of '{}' is {} and {}", text, known, extent);
    known = std::max(known, extent);
  }
  return dotted ? open : 0;
}

Equation equation_of(const Call& call) {
  auto text = call.node().text("equation");
  std::erase(text, ' ');
  const auto arrow = text.find("->");
  const auto left = text.substr(0, arrow);
  Equation result;
  result.operands = split_operands(left);
  const auto tensors = call.all("tensors");
  need(tensors.size() == result.operands.size(), "the equation '{}' has {} operands, {} are given", text,
       result.operands.size(), tensors.size());
  std::size_t open = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    need(tensors[i] != nullptr, "operand {} of '{}' is left out", i, text);
    open = std::max(open, take_operand(result, i, *tensors[i], text));
  }
  result.output = without_dots(arrow == std::string::npos ? implied_output(left) : text.substr(arrow + 2), open);
  for (const char axis : result.output)
    need(result.extents.contains(axis), "axis {} of the output of '{}' is in no operand", axis, text);
  return result;
}

std::vector<Described> einsum(const Call& call) {
  const auto equation = equation_of(call);
  Shape shape;
  for (const char axis : equation.output) shape.push_back(equation.extents.at(axis));
  return {{call.all("tensors").front()->type, shape}};
}

bool holds_label(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

// Each label once, of those that something else still needs: the others are summed before the product.
std::string needed_labels(const std::string& labels, const std::string& elsewhere) {
  std::string labels_left;
  for (const char label : labels)
    if (!holds_label(labels_left, label) && holds_label(elsewhere, label)) labels_left += label;
  return labels_left;
}

std::string joined_labels(std::string labels, const std::string& more) {
  for (const char label : more)
    if (!holds_label(labels, label)) labels += label;
  return labels;
}

// Which two operands come next: as `path` says, else the first two. The larger one first, so that both can be erased.
std::array<std::size_t, 2> next_pair(const std::vector<std::int64_t>& path, std::size_t step, std::size_t held) {
  if (path.size() < 2 * step + 2) return {1, 0};
  const auto a = path[2 * step], b = path[2 * step + 1];
  const auto most = static_cast<std::int64_t>(held);
  need(a >= 0 && b >= 0 && a < most && b < most && a != b, "the path contracts operands {} and {} of {}", a, b, held);
  return {static_cast<std::size_t>(std::max(a, b)), static_cast<std::size_t>(std::min(a, b))};
}

// Two operands at a time; an axis is summed as soon as nothing later needs it.
std::int64_t einsum_flops(const Call& call) {
  const auto equation = equation_of(call);
  const auto path = call.node().find("path") == nullptr ? std::nullopt : call.node().maybe_ints("path");
  auto held = equation.operands;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t total = 0;
  for (std::size_t step = 0; held.size() > 1; ++step) {
    const auto pair = next_pair(path.value_or(std::vector<std::int64_t>{}), step, held.size());
    const auto right = held[pair[0]], left = held[pair[1]];
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(pair[0]));
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(pair[1]));
    std::string later = equation.output;
    for (const auto& other : held) later += other;
    const auto axes = joined_labels(needed_labels(left, right + later), needed_labels(right, left + later));
    std::int64_t work = 2;
    for (const char label : axes) work = product({work, equation.extents.at(label)});
    total = total > most - work ? most : total + work;
    const auto result = needed_labels(axes, later);
    if (path)
      held.push_back(result);
    else
      held.insert(held.begin(), result);
  }
  return total;
}

}  // namespace

std::span<const Operation> einsum_operations() {
  static constexpr Operation all[] = {{"einsum", einsum, einsum_flops}};
  return all;
}

}  // namespace strata::graph
