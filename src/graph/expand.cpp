// SPDX-License-Identifier: Apache-2.0
#include "graph/expand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/expand/expansion.hpp"
#include "graph/load.hpp"
#include "graph/write.hpp"

namespace strata::graph {
namespace {

double factor_of(const Node& node, const char* name) {
  return node.find(name) == nullptr ? 1 : node.number(name);
}

// beta self + alpha mat1 mat2, both 1. A second matrix that is a weight is turned round when it is loaded.
void addmm(Expansion& e) {
  const auto& node = e.node();
  if (factor_of(node, "beta") != 1 || factor_of(node, "alpha") != 1) return;
  const int sum = node.tensor("self"), left = node.tensor("mat1"), right = node.tensor("mat2");
  if (e.infers() && e.is_weight(right) && e.shape(sum) == Shape{e.shape(e.result()).back()}) {
    const int turned = e.call("t.default", {tensor_argument("self", right)}, "turned");
    return e.end("linear.default",
                 {tensor_argument("input", left), tensor_argument("weight", turned), tensor_argument("bias", sum)});
  }
  const int product = e.call("mm.default", {tensor_argument("self", left), tensor_argument("mat2", right)}, "product");
  e.end("add.Tensor", {tensor_argument("self", product), tensor_argument("other", sum), plain_argument("alpha", 1)});
}

// self + value tensor1 tensor2
void addcmul(Expansion& e) {
  const auto& node = e.node();
  const int product = e.call(
      "mul.Tensor", {tensor_argument("self", node.tensor("tensor1")), tensor_argument("other", node.tensor("tensor2"))},
      "product");
  e.end("add.Tensor", {tensor_argument("self", node.tensor("self")), tensor_argument("other", product),
                       plain_argument("alpha", factor_of(node, "value"))});
}

// 0 where the mask is true, else minus infinity: what is added to the scores.
int added_mask(Expansion& e, int mask) {
  return e.call("where.Scalar",
                {tensor_argument("condition", mask), plain_argument("self", 0.0), plain_argument("other", "-inf")},
                "mask");
}

// Each head of keys or values serves as many queries as there are more heads of these.
int repeated_heads(Expansion& e, const std::string& name, int value, std::int64_t heads) {
  Shape shape = e.shape(value);
  if (shape.size() < 3 || shape[shape.size() - 3] == heads) return value;
  const auto axis = static_cast<std::ptrdiff_t>(shape.size()) - 3;
  auto& own = shape[static_cast<std::size_t>(axis)];
  const auto times = heads / std::max<std::int64_t>(own, 1);
  shape.insert(shape.begin() + axis + 1, 1);
  const int apart = e.viewed(value, shape, name + "_apart");
  shape[static_cast<std::size_t>(axis) + 1] = times;
  const int repeated =
      e.call("expand.default", {tensor_argument("self", apart), plain_argument("size", shape)}, name + "_repeated");
  shape.erase(shape.begin() + axis + 1);
  shape[static_cast<std::size_t>(axis)] = heads;
  return e.viewed(repeated, shape, name + "_joined");
}

// 0 up to the diagonal of each matrix of scores, else minus infinity: from running sums of ones, since a graph makes no
// tensors of its own.
int causal_mask(Expansion& e, int scores) {
  int part = scores;
  while (e.shape(part).size() > 2)
    part = e.call("select.int", {tensor_argument("self", part), plain_argument("dim", 0), plain_argument("index", 0)},
                  fmt::format("causal_part{}", e.shape(part).size()));
  const int zeros =
      e.call("zeros_like.default", {tensor_argument("self", part), plain_argument("dtype", nullptr)}, "causal_zeros");
  const int ones =
      e.call("add.Scalar", {tensor_argument("self", zeros), plain_argument("other", 1), plain_argument("alpha", 1)},
             "causal_ones");
  const auto sums = [&](int dim, const char* name) {
    return e.call("cumsum.default",
                  {tensor_argument("self", ones), plain_argument("dim", dim), plain_argument("dtype", nullptr)}, name);
  };
  const int rows = sums(0, "causal_rows"), columns = sums(1, "causal_columns");
  return added_mask(e,
                    e.call("ge.Tensor", {tensor_argument("self", rows), tensor_argument("other", columns)}, "causal"));
}

// As the products, softmax and dropout of which it consists.
void attention_in_parts(Expansion& e, int key, int value, int mask) {
  const auto& node = e.node();
  const int query = node.tensor("query");
  const double scale = node.find("scale") != nullptr && !node.is_null("scale")
                           ? node.number("scale")
                           : 1 / std::sqrt(static_cast<double>(e.shape(query).back()));
  const int queries = e.call("mul.Scalar", {tensor_argument("self", query), plain_argument("other", scale)}, "scaled");
  const int keys = e.call(
      "transpose.int", {tensor_argument("self", key), plain_argument("dim0", -2), plain_argument("dim1", -1)}, "keys");
  int scores = e.call("matmul.default", {tensor_argument("self", queries), tensor_argument("other", keys)}, "scores");
  if (node.flag("is_causal")) mask = causal_mask(e, scores);
  if (mask >= 0)
    scores =
        e.call("add.Tensor",
               {tensor_argument("self", scores), tensor_argument("other", mask), plain_argument("alpha", 1)}, "masked");
  int shares = e.call(
      "_softmax.default",
      {tensor_argument("self", scores), plain_argument("dim", -1), plain_argument("half_to_float", false)}, "shares");
  if (const double p = node.number("dropout_p"); p > 0)
    shares =
        e.call("dropout.default",
               {tensor_argument("input", shares), plain_argument("p", p), plain_argument("train", true)}, "dropped");
  e.end("matmul.default", {tensor_argument("self", shares), tensor_argument("other", value)});
}

void attention(Expansion& e) {
  const auto& node = e.node();
  const bool grouped = node.find("enable_gqa") != nullptr && node.flag("enable_gqa");
  int mask = e.value_or_none("attn_mask");
  const bool of_truths = mask >= 0 && e.type(mask) == Type::boolean,
             in_parts = !e.infers() && (node.number("dropout_p") > 0 || node.flag("is_causal"));
  if (!grouped && !of_truths && !in_parts) return;
  if (of_truths) mask = added_mask(e, mask);
  int key = node.tensor("key"), value = node.tensor("value");
  if (grouped) {
    const auto query = e.shape(node.tensor("query"));
    const auto heads = query.size() < 3 ? 1 : query[query.size() - 3];
    key = repeated_heads(e, "key", key, heads);
    value = repeated_heads(e, "value", value, heads);
  }
  if (in_parts) return attention_in_parts(e, key, value, mask);
  auto arguments = node.args;
  for (auto& argument : arguments) {
    if (argument.name == "key") argument = tensor_argument("key", key);
    if (argument.name == "value") argument = tensor_argument("value", value);
    if (argument.name == "attn_mask" && mask >= 0) argument = tensor_argument("attn_mask", mask);
    if (argument.name == "enable_gqa") argument = plain_argument("enable_gqa", false);
  }
  e.end_with(std::move(arguments));
}

// Programs keep the weights of layers as their library likes them: one that is computed in every step of a training is
// a factor like any other.
void linear(Expansion& e) {
  const auto& node = e.node();
  const int weight = node.tensor("weight"), bias = e.value_or_none("bias");
  if (e.infers() || !e.is_computed(weight)) return;
  const int turned = e.call("t.default", {tensor_argument("self", weight)}, "turned");
  std::vector<Argument> factors{tensor_argument("self", node.tensor("input")), tensor_argument("other", turned)};
  if (bias < 0) return e.end("matmul.default", std::move(factors));
  const int product = e.call("matmul.default", std::move(factors), "product");
  e.end("add.Tensor", {tensor_argument("self", product), tensor_argument("other", bias), plain_argument("alpha", 1)});
}

void broadcast_tensors(Expansion& e) {
  const auto tensors = e.node().tensors("tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i)
    e.call("expand.default", {tensor_argument("self", tensors[i]), plain_argument("size", e.shape(e.result(i)))},
           fmt::format("of{}", i), e.result(i));
}

// Of whole numbers: the bounds one by one.
void clamp(Expansion& e) {
  const auto& node = e.node();
  if (is_floating(e.type(e.result())) || node.is_tensor("min") || node.is_tensor("max")) return;
  const bool low = node.find("min") != nullptr && !node.is_null("min"),
             high = node.find("max") != nullptr && !node.is_null("max");
  const auto bounded = [&](const char* name, int value) -> std::vector<Argument> {
    return {tensor_argument("self", value), plain_argument(name, node.find(name)->plain)};
  };
  const int self = node.tensor("self");
  if (low && high)
    return e.end("clamp_max.default", bounded("max", e.call("clamp_min.default", bounded("min", self), "low")));
  if (low || high) e.end(low ? "clamp_min.default" : "clamp_max.default", bounded(low ? "min" : "max", self));
}

void shaped_as(Expansion& e) {
  e.end("view.default",
        {tensor_argument("self", e.node().tensor("self")), plain_argument("size", e.shape(e.result()))});
}

using Expand = void (*)(Expansion&);

const std::map<std::string_view, Expand>& expansions() {
  static const auto all = [] {
    std::map<std::string_view, Expand> table{{"addcmul", addcmul},
                                             {"addmm", addmm},
                                             {"broadcast_tensors", broadcast_tensors},
                                             {"clamp", clamp},
                                             {"linear", linear},
                                             {"reshape_as", shaped_as},
                                             {"scaled_dot_product_attention", attention},
                                             {"view_as", shaped_as}};
    for (const auto family :
         {activation_expansions(), extreme_expansions(), function_expansions(), image_expansions(), loss_expansions(),
          move_expansions(), norm_expansions(), pad_expansions(), place_expansions(), pooling_expansions(),
          recurrent_expansions(), statistics_expansions()})
      for (const auto& rule : family) table.emplace(rule.name, rule.expand);
    return table;
  }();
  return all;
}

// Whether a value is given or read: neither is what only a node gave that is gone, or updates in training.
std::vector<bool> values_in_use(const Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  const auto use = [&](int value) {
    if (value >= 0) used[static_cast<std::size_t>(value)] = true;
  };
  for (const auto& node : graph.nodes) {
    for (const auto& argument : node.args) std::for_each(argument.values.begin(), argument.values.end(), use);
    std::for_each(node.outputs.begin(), node.outputs.end(), use);
  }
  for (const auto* list :
       {&graph.inputs, &graph.parameters, &graph.buffers, &graph.constants, &graph.outputs, &graph.updates})
    for (const auto& named : *list) use(named.value);
  return used;
}

// Those alone; they move up.
void remove_other_values(Graph& graph) {
  const auto used = values_in_use(graph);
  if (std::find(used.begin(), used.end(), false) == used.end()) return;
  std::vector<int> now(graph.values.size(), 0);
  std::vector<Value> left;
  for (std::size_t v = 0; v < now.size(); ++v) {
    if (!used[v]) continue;
    now[v] = static_cast<int>(left.size());
    left.push_back(std::move(graph.values[v]));
  }
  graph.values = std::move(left);
  const auto renumber = [&](int& value) {
    if (value >= 0) value = now[static_cast<std::size_t>(value)];
  };
  for (auto& node : graph.nodes) {
    for (auto& argument : node.args) std::for_each(argument.values.begin(), argument.values.end(), renumber);
    std::for_each(node.outputs.begin(), node.outputs.end(), renumber);
  }
  for (auto* list :
       {&graph.inputs, &graph.parameters, &graph.buffers, &graph.constants, &graph.outputs, &graph.updates})
    for (auto& named : *list) renumber(named.value);
}

}  // namespace

Result<Graph> expanded(Graph graph) {
  bool changed = false;
  std::vector<Node> nodes;
  for (const auto& node : graph.nodes) {
    Expansion expansion(graph, node);
    try {
      if (const auto it = expansions().find(node.operation()); it != expansions().end()) it->second(expansion);
    } catch (const std::runtime_error& error) {  // ShapeError, ArgumentError
      return fail(fmt::format("{}: {}", node.where(), error.what()), "remove the bundle's folder; it is made again");
    }
    auto& in_place = expansion.nodes();
    changed |= !in_place.empty();
    if (in_place.empty()) in_place.push_back(node);
    std::move(in_place.begin(), in_place.end(), std::back_inserter(nodes));
  }
  if (!changed) return graph;
  graph.nodes = std::move(nodes);
  remove_other_values(graph);
  // read back like any other graph: producers and consumers set
  return parse(to_text(graph), "the expanded graph");
}

}  // namespace strata::graph
