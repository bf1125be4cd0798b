// SPDX-License-Identifier: Apache-2.0
// Norms of groups, of instances, of weights.
#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// A layer norm of each group of channels, scale and shift by channel.
void normalise_groups(Expansion& e, std::int64_t groups) {
  const auto& node = e.node();
  const int input = node.tensor("input"), weight = e.value_or_none("weight"), bias = e.value_or_none("bias");
  const Shape shape = e.shape(input);
  const auto all = elements(shape);
  if (shape.size() < 2 || groups <= 0 || all == 0) return;
  const Shape rows{shape[0] * groups, all / (shape[0] * groups)};
  const int normalised = e.call(
      "layer_norm.default",
      {tensor_argument("input", e.viewed(input, rows, "rows")), plain_argument("normalized_shape", Shape{rows[1]}),
       plain_argument("weight", nullptr), plain_argument("bias", nullptr), plain_argument("eps", node.number("eps")),
       plain_argument("cudnn_enable", false)},
      "normalised");
  Shape by_channel(shape.size(), 1);
  by_channel[1] = shape[1];
  if (weight < 0 && bias < 0)
    return e.end("view.default", {tensor_argument("self", normalised), plain_argument("size", shape)});
  int result = e.viewed(normalised, shape, "channels");
  const auto joined = [&](const char* op, int value, const char* name, bool last) {
    std::vector<Argument> arguments{tensor_argument("self", result),
                                    tensor_argument("other", e.viewed(value, by_channel, name))};
    if (std::string_view(op) == "add.Tensor") arguments.push_back(plain_argument("alpha", 1));
    if (last) return e.end(op, std::move(arguments));
    result = e.call(op, std::move(arguments), "scaled");
  };
  if (weight >= 0) joined("mul.Tensor", weight, "weight", bias < 0);
  if (bias >= 0) joined("add.Tensor", bias, "bias", true);
}

void group_norm(Expansion& e) {
  normalise_groups(e, e.node().integer("num_groups"));
}

// Each channel of each image by its own statistics, or by the running ones, as a batch norm that is evaluated.
void instance_norm(Expansion& e) {
  const auto& node = e.node();
  const Shape shape = e.shape(node.tensor("input"));
  if (shape.size() < 3) return;
  if (node.flag("use_input_stats")) {
    // what changes running statistics stays: a graph does not say that it does
    if (node.outputs.size() == 1 && !e.has("running_mean")) normalise_groups(e, shape[1]);
    return;
  }
  e.end("batch_norm.default", {tensor_argument("input", node.tensor("input")), *node.find("weight"), *node.find("bias"),
                               *node.find("running_mean"), *node.find("running_var"), plain_argument("training", false),
                               plain_argument("momentum", node.number("momentum")),
                               plain_argument("eps", node.number("eps")), plain_argument("cudnn_enabled", false)});
}

// v g / |v|, of which the length is over all axes but `dim`; over all for -1.
void weight_norm(Expansion& e) {
  const auto& node = e.node();
  if (node.outputs.size() > 1 && e.is_read(1)) return;  // the length too
  const int v = node.tensor("v");
  const auto rank = e.shape(v).size();
  const bool whole = node.integer("dim") == -1;
  Shape over;
  for (std::size_t d = 0; d < rank; ++d)
    if (whole || d != e.axis("dim", rank)) over.push_back(static_cast<std::int64_t>(d));
  const int length = e.call("linalg_vector_norm.default",
                            {tensor_argument("self", v), plain_argument("ord", 2), plain_argument("dim", over),
                             plain_argument("keepdim", !whole), plain_argument("dtype", nullptr)},
                            "length");
  const int scale =
      e.call("div.Tensor", {tensor_argument("self", node.tensor("g")), tensor_argument("other", length)}, "scale");
  e.end("mul.Tensor", {tensor_argument("self", v), tensor_argument("other", scale)});
}

}  // namespace

std::span<const ExpansionRule> norm_expansions() {
  static constexpr ExpansionRule all[] = {{"_weight_norm", weight_norm},
                                          {"_weight_norm_interface", weight_norm},
                                          {"group_norm", group_norm},
                                          {"instance_norm", instance_norm}};
  return all;
}

}  // namespace strata::graph
