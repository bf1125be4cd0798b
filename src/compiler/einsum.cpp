// SPDX-License-Identifier: Apache-2.0
#include "graph/einsum.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "compiler/lower.hpp"
#include "compiler/step_builder.hpp"

namespace strata::compiler {
namespace {

using graph::Shape;

class Expansion {
 public:
  Expansion(Program& program, const Step& einsum) : program_(program), einsum_(einsum) {}

  // In place of the step; empty: it stays.
  std::vector<Step> steps() {
    const auto labels = graph::matrix_einsum(einsum_.node.text("equation"));
    const auto& tensors = einsum_.node.tensors("tensors");
    if (!labels || tensors.size() != 2 || !fits(tensors[0], labels->left) || !fits(tensors[1], labels->right))
      return {};
    const auto& [left, right, result, batch, rows, columns, summed] = *labels;
    const int x = matrices(tensors[0], left, batch, rows, summed),
              y = matrices(tensors[1], right, batch, summed, columns);
    Shape of_product = extents(batch), lying = extents(batch + rows + columns);
    of_product.insert(of_product.end(), {elements(rows), elements(columns)});
    const int product =
        add("product", "aten.matmul.default", {tensor_argument("self", x), tensor_argument("other", y)}, of_product);
    steps_.back().graph_nodes = einsum_.graph_nodes;
    permute(view(product, lying), graph::places_of(result, batch + rows + columns), einsum_.node.outputs.front());
    return std::move(steps_);
  }

 private:
  // Extents by label; false where both tensors have the label and one of them broadcasts.
  bool fits(int tensor, const std::string& labels) {
    const auto shape = program_.value(tensor).shape;
    if (shape.size() != labels.size()) return false;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (const auto [at, fresh] = extents_.emplace(labels[i], shape[i]); !fresh && at->second != shape[i])
        return false;
    return true;
  }
  Shape extents(const std::string& labels) const {
    Shape shape;
    for (const char label : labels) shape.push_back(extents_.at(label));
    return shape;
  }
  std::int64_t elements(const std::string& labels) const {
    const auto shape = extents(labels);
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }

  // The tensor as matrices [batch..., first, second].
  int matrices(int tensor, const std::string& labels, const std::string& batch, const std::string& first,
               const std::string& second) {
    Shape shape = extents(batch);
    shape.insert(shape.end(), {elements(first), elements(second)});
    return view(permute(tensor, graph::places_of(batch + first + second, labels)), shape);
  }

  int permute(int tensor, const std::vector<std::size_t>& order, int into = -1) {
    const Shape from = program_.value(tensor).shape;
    Shape shape;
    for (const auto place : order) shape.push_back(from[place]);
    if (std::is_sorted(order.begin(), order.end())) return into < 0 ? tensor : view(tensor, shape, into);
    return add("permuted", "aten.permute.default", {tensor_argument("self", tensor), plain_argument("dims", order)},
               shape, into);
  }

  int view(int tensor, const Shape& shape, int into = -1) {
    if (into < 0 && program_.value(tensor).shape == shape) return tensor;
    const int result = add("viewed", "aten.view.default",
                           {tensor_argument("self", tensor), plain_argument("size", shape)}, shape, into);
    steps_.back().view = true;
    return result;
  }

  // A step with a result of this shape, which is the value `into` or a new one.
  int add(const std::string& name, const std::string& op, std::vector<graph::Argument> args, const Shape& shape,
          int into = -1) {
    if (into < 0) {
      into = add_value(program_, einsum_.node.name + "." + name, program_.value(einsum_.node.outputs.front()));
      program_.graph.values.back().shape = shape;
    }
    Step step = make_step(program_, op, std::move(args), {into});
    set_place(step, einsum_);
    steps_.push_back(std::move(step));
    return into;
  }

  Program& program_;
  const Step& einsum_;
  std::map<char, std::int64_t> extents_;
  std::vector<Step> steps_;
};

}  // namespace

void expand_einsums(Program& program) {
  std::vector<Step> all;
  for (auto& step : program.steps) {
    auto expanded = step.node.operation() == "einsum" ? Expansion(program, step).steps() : std::vector<Step>();
    if (expanded.empty()) expanded.push_back(std::move(step));
    std::move(expanded.begin(), expanded.end(), std::back_inserter(all));
  }
  program.steps = std::move(all);
}

}  // namespace strata::compiler
