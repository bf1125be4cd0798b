// SPDX-License-Identifier: Apache-2.0
#include "graph/flops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "graph/load.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

constexpr auto largest_count = std::numeric_limits<std::int64_t>::max();

std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  return a > largest_count - b ? largest_count : a + b;
}

// Vectors of a tensor: the product of all axes but the last.
std::int64_t rows_in(const Value& value) {
  need(!value.shape.empty(), "a scalar is no row of features");
  return elements(Shape(value.shape.begin(), value.shape.end() - 1));
}

std::int64_t elements_of_matrices(const std::vector<const Value*>& weights) {
  std::int64_t total = 0;
  for (const auto* weight : weights)
    if (weight != nullptr && weight->shape.size() == 2) total = saturated_sum(total, weight->elements());
  return total;
}

// LSTM, GRU and RNN: at every step every sample goes through every matrix once, in all layers, both directions and the
// projection; biases are vectors. Of a packed sequence `data` has one row a step and sample.
std::int64_t recurrent_flops(const Call& call) {
  const auto& steps = call.in(call.node().find("data") != nullptr ? "data" : "input");
  return product({2, rows_in(steps), elements_of_matrices(call.all("params"))});
}

std::int64_t recurrent_cell_flops(const Call& call) {
  return product({2, rows_in(call.in("input")), elements_of_matrices({&call.in("w_ih"), &call.in("w_hh")})});
}

// Self-attention of a whole layer; with the keys' number of rows, attention to another sequence.
std::int64_t attention_layer_flops(const Call& call, const Value& query, const Value& key) {
  const auto queries = rows_in(query), keys = rows_in(key), width = query.shape.back();
  const auto third = call.in("qkv_weight").elements() / 3;
  const auto projections =
      saturated_sum(times(queries, saturated_sum(third, call.in("proj_weight").elements())), product({2, keys, third}));
  const auto samples = key.shape.size() < 3 ? 1 : std::max<std::int64_t>(1, key.shape.front());
  const auto products = product({2, queries, keys / samples, width});
  return times(2, saturated_sum(projections, products));
}

std::int64_t multi_head_flops(const Call& call) {
  return attention_layer_flops(call, call.in("query"), call.in("key"));
}

std::int64_t encoder_layer_flops(const Call& call) {
  const auto& source = call.in("src");
  const auto feed_forward = elements_of_matrices({&call.in("ffn_weight_1"), &call.in("ffn_weight_2")});
  return saturated_sum(attention_layer_flops(call, source, source), product({2, rows_in(source), feed_forward}));
}

std::int64_t batches_added_flops(const Call& call) {
  return product({2, call.in("batch1").elements(), call.in("batch2").shape.back()});
}

std::int64_t vector_flops(const Call& call) {
  return times(2, call.self().elements());
}

std::int64_t matrix_with_vector_flops(const Call& call) {
  return times(2, call.in("mat").elements());
}

std::int64_t tensor_product_flops(const Call& call) {
  const auto& shape = call.self().shape;
  std::int64_t summed = 1;
  for (const auto axis : call.node().ints("dims_self")) summed = times(summed, shape.at(axis_of(axis, shape.size())));
  return product({2, call.out().elements(), summed});
}

// Operations whose outputs the table has no rule for, since no level of strata's own calls them.
const std::map<std::string_view, Count>& counts() {
  static const std::map<std::string_view, Count> all = {
      {"_addmm_activation", addmm_flops},
      {"_convolution", convolution_flops},
      {"_int_mm", matmul_flops},
      {"_native_multi_head_attention", multi_head_flops},
      {"_scaled_dot_product_attention_math", attention_flops},
      {"_scaled_dot_product_cudnn_attention", attention_flops},
      {"_scaled_dot_product_efficient_attention", attention_flops},
      {"_scaled_dot_product_flash_attention", attention_flops},
      {"_scaled_dot_product_flash_attention_for_cpu", attention_flops},
      {"_scaled_mm", matmul_flops},
      {"_transformer_encoder_layer_fwd", encoder_layer_flops},
      {"addbmm", batches_added_flops},
      {"addmv", matrix_with_vector_flops},
      {"baddbmm", batches_added_flops},
      {"conv_transpose1d", transposed_convolution_flops},
      {"conv_transpose2d", transposed_convolution_flops},
      {"conv_transpose3d", transposed_convolution_flops},
      {"convolution", convolution_flops},
      {"dot", vector_flops},
      {"gru", recurrent_flops},
      {"gru_cell", recurrent_cell_flops},
      {"inner", matmul_flops},
      {"linalg_matmul", matmul_flops},
      {"lstm", recurrent_flops},
      {"lstm_cell", recurrent_cell_flops},
      {"mv", vector_flops},
      {"rnn_relu", recurrent_flops},
      {"rnn_relu_cell", recurrent_cell_flops},
      {"rnn_tanh", recurrent_flops},
      {"rnn_tanh_cell", recurrent_cell_flops},
      {"tensordot", tensor_product_flops},
      {"vdot", vector_flops},
  };
  return all;
}

std::optional<std::int64_t> flops_by_rule(const Call& call) {
  auto name = call.node().operation();
  for (const bool in_place : {false, true}) {
    if (in_place && (!name.ends_with('_') || name.ends_with("__"))) return std::nullopt;
    if (in_place) name.pop_back();
    if (const auto* known = find_operation(name)) return known->flops == nullptr ? 0 : known->flops(call);
    if (const auto it = counts().find(name); it != counts().end()) return it->second(call);
    if (multiplies_no_matrices(name)) return 0;
  }
  return std::nullopt;
}

// How often each node of calls.json is called.
Result<std::vector<std::int64_t>> times_in(const std::string& text, std::size_t nodes, const std::string& where) {
  const auto all = nlohmann::json::parse(text, nullptr, false);
  const auto by_class = all.is_object() && all.contains("times") ? all["times"] : nlohmann::json();
  std::vector<std::int64_t> times;
  for (const auto& element : by_class)
    if (element.is_number_integer()) times.push_back(element.get<std::int64_t>());
  if (!by_class.is_array() || times.size() != nodes ||
      std::any_of(times.begin(), times.end(), [](auto n) { return n < 1; }))
    return fail(fmt::format("{}: 'times' is not one positive number for each of {} nodes", where, nodes),
                "remove the bundle's folder; it is made again");
  return times;
}

}  // namespace

std::optional<std::int64_t> flops_of(const Call& call) {
  try {
    return flops_by_rule(call);
  } catch (const std::exception&) {  // of a shape or an argument that the rule does not know
    return std::nullopt;
  }
}

Flops flops_of(const Graph& graph, const std::vector<std::int64_t>& times_called) {
  Flops result;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto calls = times_called.empty() ? 1 : times_called.at(n);
    if (const auto flops = flops_of(Call(graph, graph.nodes[n])))
      result.total = saturated_sum(result.total, times(calls, *flops));
    else
      result.uncounted[graph.nodes[n].operation()] += calls;
  }
  return result;
}

Result<std::optional<Flops>> flops_in(const std::filesystem::path& bundle) {
  std::error_code ec;
  if (std::filesystem::exists(bundle / "graph.json", ec)) {
    const auto graph = STRATA_TRY(load(bundle));
    return flops_of(graph);
  }
  const auto path = bundle / "calls.json";
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  const auto calls = STRATA_TRY(parse(text.str(), path.string()));
  const auto often = STRATA_TRY(times_in(text.str(), calls.nodes.size(), path.string()));
  auto flops = flops_of(calls, often);
  if (flops.total == 0 && flops.uncounted.empty()) return std::nullopt;  // another library may have done the work
  return flops;
}

std::vector<std::string> names_of(const std::map<std::string, std::int64_t>& uncounted) {
  std::vector<std::string> names;
  for (const auto& [name, calls] : uncounted)
    names.push_back(calls == 1 ? name : fmt::format("{} ({} calls)", name, calls));
  return names;
}

}  // namespace strata::graph
