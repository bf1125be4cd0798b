// SPDX-License-Identifier: Apache-2.0
// Sums of products of two tensors by their labels ("bhid, bhjd -> bhij"): permuted views and one matrix product.
#include <algorithm>
#include <string>

#include "operations.hpp"

namespace strata::onednn {
namespace {

struct Labels {
  std::string left, right, result;
};

Labels labels_of(std::string equation) {
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const auto comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      equation.find('.') != std::string::npos || equation.find(',', comma + 1) != std::string::npos)
    throw Unsupported("einsum '" + equation + "': two tensors and a result, without dots, are needed");
  return {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1), equation.substr(arrow + 2)};
}

bool has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

// The labels of `from` that are (not) in each of the others.
std::string chosen(const std::string& from, const std::string& one, bool in_one, const std::string& other,
                   bool in_other) {
  std::string found;
  for (const char label : from)
    if (has(one, label) == in_one && has(other, label) == in_other) found += label;
  return found;
}

std::vector<std::size_t> order_of(const std::string& labels, const std::string& wanted) {
  std::vector<std::size_t> order;
  for (const char label : wanted) order.push_back(labels.find(label));
  return order;
}

Dims extents(const Tensor& tensor, const std::string& labels, const std::string& wanted) {
  Dims dims;
  for (const auto i : order_of(labels, wanted)) dims.push_back(tensor.dims()[i]);
  return dims;
}

Dims joined(Dims dims, const Dims& more) {
  dims.insert(dims.end(), more.begin(), more.end());
  return dims;
}

void einsum(Builder& b) {
  const auto tensors = b.tensors("tensors");
  const Labels labels = labels_of(b.text("equation"));
  if (tensors.size() != 2 || tensors[0].dims().size() != labels.left.size() ||
      tensors[1].dims().size() != labels.right.size())
    throw Unsupported("einsum whose tensors do not fit its labels");
  const auto& [left, right, result] = labels;
  const auto batch = chosen(result, left, true, right, true), summed = chosen(left, right, true, result, false);
  const auto rows = chosen(left, right, false, result, true), columns = chosen(right, left, false, result, true);
  if (batch.size() + summed.size() + rows.size() != left.size() ||
      batch.size() + summed.size() + columns.size() != right.size() ||
      batch.size() + rows.size() + columns.size() != result.size())
    throw Unsupported("einsum '" + b.text("equation") + "', which sums within a tensor or repeats a label");
  const Dims of_batch = extents(tensors[0], left, batch), of_rows = extents(tensors[0], left, rows),
             of_columns = extents(tensors[1], right, columns);
  const auto inner = product(extents(tensors[0], left, summed));
  const Tensor x = b.reshaped(permuted(tensors[0], order_of(left, batch + rows + summed)),
                              joined(of_batch, {product(of_rows), inner}));
  const Tensor y = b.reshaped(permuted(tensors[1], order_of(right, batch + summed + columns)),
                              joined(of_batch, {inner, product(of_columns)}));
  const Tensor found = b.reshaped(multiply(b, x, y, false), joined(joined(of_batch, of_rows), of_columns));
  b.is(permuted(found, order_of(batch + rows + columns, result)));
}

}  // namespace

void add_einsum(Operations& table) {
  table["einsum"] = einsum;
}

}  // namespace strata::onednn
