// SPDX-License-Identifier: Apache-2.0
// Operations with weights: convolutions, linear layers, norms; matrix products and attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generate/operations.hpp"
#include "generate/operations/window.hpp"

namespace strata::generate {
namespace {

std::string maybe_weight(const Emitter& e, std::string_view argument) {
  return e.has(argument) ? e.weight(e.node().tensor(argument)) : std::string();
}

void convolution(Emitter& e) {
  const int source = e.node().tensor("input"), weight = e.node().tensor("weight");
  const auto& kernel = e.shape(weight);
  if (e.shape(source).size() != kernel.size()) throw Unsupported("a convolution of an input without a batch");
  const auto chosen = e.step().kernel;
  const char* function = chosen == compiler::Kernel::winograd ? "winograd_convolution"
                         : chosen == compiler::Kernel::direct ? "direct_convolution"
                                                              : "convolution";
  Fields fields{{"source", e.tensor(source)},
                {"weight", e.weight(weight)},
                {"bias", maybe_weight(e, "bias")},
                {"result", e.result()}};
  for (auto& field : convolution_window(e, kernel)) fields.push_back(std::move(field));
  fields.emplace_back("then", e.posts());
  e.call(function, fields);
}

// The padding behind is what is left of the result.
void transposed_convolution(Emitter& e) {
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
  const int source = e.node().tensor("input"), weight = e.node().tensor("weight");
  const auto &from = e.shape(source), &kernel = e.shape(weight), &to = e.shape(e.output());
  if (from.size() != kernel.size()) throw Unsupported("a transposed convolution of an input without a batch");
  const auto rank = kernel.size() - 2;
  const auto stride = e.integers("stride", rank), before = e.integers("padding", rank),
             dilation = e.integers("dilation", rank);
  std::vector<std::int64_t> after;
  for (std::size_t d = 0; d < rank; ++d)
    after.push_back((from[d + 2] - 1) * stride[d] + dilation[d] * (kernel[d + 2] - 1) + 1 - before[d] - to[d + 2]);
  e.call("transposed_convolution", {{"source", e.tensor(source)},
                                    {"weight", e.weight(weight)},
                                    {"bias", maybe_weight(e, "bias")},
                                    {"result", e.result()},
                                    {"stride", braces(stride)},
                                    {"dilation", braces(dilation)},
                                    {"before", braces(before)},
                                    {"after", braces(after)},
                                    {"groups", std::to_string(e.node().integer("groups"))}});
}

void need_plain(const Emitter& e, int value) {
  if (e.layout(value) != compiler::Layout::plain) throw Unsupported("a layout that is not row-major");
}

void linear(Emitter& e) {
  const int source = e.node().tensor("input"), weight = e.node().tensor("weight");
  if (e.shape(weight).size() != 2) throw Unsupported("a linear layer whose weight is no matrix");
  const bool of_image = e.step().kernel == compiler::Kernel::direct;
  if (!of_image) need_plain(e, source);
  e.call(of_image ? "direct_linear" : "linear", {{"source", e.tensor(source)},
                                                 {"weight", e.weight(weight)},
                                                 {"bias", maybe_weight(e, "bias")},
                                                 {"result", e.result()},
                                                 {"then", e.posts()}});
}

void matmul(Emitter& e) {
  const int left = e.self(), right = e.node().tensor(e.has("mat2") ? "mat2" : "other");
  need_plain(e, left);
  need_plain(e, right);
  e.call("matrix_product",
         {{"left", e.tensor(left)}, {"right", e.tensor(right)}, {"result", e.result()}, {"then", e.posts()}});
}

// The compiler makes products of all others.
void einsum(Emitter& e) {
  throw Unsupported("the equation '" + e.node().text("equation") + "', which is no product of two tensors' matrices");
}

// A batch norm that no pass has turned into anything else; without running statistics it takes the batch's own.
void batch_norm(Emitter& e) {
  if (!e.has("running_mean"))
    return e.call("batch_norm", {{"source", e.tensor(e.self())},
                                 {"scale", maybe_weight(e, "weight")},
                                 {"shift", maybe_weight(e, "bias")},
                                 {"result", e.result()},
                                 {"epsilon", double_literal(e.node().number("eps"))}});
  if (e.has("training") && e.node().flag("training")) throw Unsupported("batch_norm that changes its statistics");
  const auto scale = maybe_weight(e, "weight"), shift = maybe_weight(e, "bias"), mean = maybe_weight(e, "running_mean"),
             variance = maybe_weight(e, "running_var");
  const auto epsilon = double_literal(e.node().number("eps"));
  const auto listed = [](const Fields& fields) {
    std::string text;
    for (const auto& [name, value] : fields)
      if (!value.empty()) text += fmt::format("{}.{} = {}", text.empty() ? "" : ", ", name, value);
    return text;
  };
  e.call(
      "scale_shift",
      {{"source", e.tensor(e.self())},
       {"scale", fmt::format("scale_weight(p, {{{}}})",
                             listed({{"scale", scale}, {"variance", variance}, {"epsilon", epsilon}}))},
       {"shift",
        fmt::format(
            "shift_bias(p, {{{}}})",
            listed(
                {{"mean", mean}, {"scale", scale}, {"variance", variance}, {"shift", shift}, {"epsilon", epsilon}}))},
       {"result", e.result()},
       {"then", e.posts()}});
}

void scale_shift(Emitter& e) {
  e.call("scale_shift", {{"source", e.tensor(e.self())},
                         {"scale", maybe_weight(e, "scale")},
                         {"shift", maybe_weight(e, "shift")},
                         {"result", e.result()},
                         {"then", e.posts()}});
}

void scale_weight(Emitter& e) {
  e.weight_call("scale_weight", {{"weight", maybe_weight(e, "weight")},
                                 {"scale", maybe_weight(e, "gamma")},
                                 {"variance", maybe_weight(e, "var")},
                                 {"epsilon", double_literal(e.node().number("eps"))}});
}

void shift_bias(Emitter& e) {
  e.weight_call("shift_bias", {{"bias", maybe_weight(e, "bias")},
                               {"mean", maybe_weight(e, "mean")},
                               {"scale", maybe_weight(e, "gamma")},
                               {"variance", maybe_weight(e, "var")},
                               {"shift", maybe_weight(e, "beta")},
                               {"epsilon", double_literal(e.node().number("eps"))}});
}

std::string normalised_elements(const Emitter& e) {
  std::int64_t over = 1;
  for (const auto extent : e.node().ints("normalized_shape")) over *= extent;
  return std::to_string(over);
}

// The second and third output are statistics that a gradient will read.
void layer_norm(Emitter& e) {
  need_plain(e, e.self());
  const auto optional_result = [&](std::size_t i) { return e.node().outputs.size() > i ? e.result(i) : std::string(); };
  e.call("layer_norm", {{"source", e.tensor(e.self())},
                        {"scale", maybe_weight(e, "weight")},
                        {"shift", maybe_weight(e, "bias")},
                        {"result", e.result()},
                        {"mean", optional_result(1)},
                        {"deviation", optional_result(2)},
                        {"over", normalised_elements(e)},
                        {"epsilon", float_literal(e.node().number("eps"))}});
}

void layer_norm_backward(Emitter& e) {
  const auto& mask = e.node().find("output_mask")->plain;
  const int gradient = e.node().tensor("grad_out");
  need_plain(e, gradient);
  need_plain(e, e.node().tensor("input"));
  std::size_t output = 0;
  const auto result_if_asked = [&](std::size_t i) {
    return mask.at(i).get<bool>() ? e.result(output++) : std::string();
  };
  const auto result = result_if_asked(0), of_scale = result_if_asked(1), of_shift = result_if_asked(2);
  e.call("layer_norm_backward", {{"gradient", e.tensor(gradient)},
                                 {"source", e.tensor(e.node().tensor("input"))},
                                 {"mean", e.tensor(e.node().tensor("mean"))},
                                 {"deviation", e.tensor(e.node().tensor("rstd"))},
                                 {"scale", maybe_weight(e, "weight")},
                                 {"over", normalised_elements(e)},
                                 {"result", result},
                                 {"of_scale", of_scale},
                                 {"of_shift", of_shift}});
}

void attention(Emitter& e) {
  const auto& node = e.node();
  if (node.number("dropout_p") != 0) throw Unsupported("attention with dropout");
  if (e.has("enable_gqa") && node.flag("enable_gqa")) throw Unsupported("attention with grouped queries");
  const int query = node.tensor("query");
  for (const char* name : {"query", "key", "value"}) need_plain(e, node.tensor(name));
  const double scale =
      e.has("scale") ? node.number("scale") : 1 / std::sqrt(static_cast<double>(e.shape(query).back()));
  e.call("attention", {{"query", e.tensor(query)},
                       {"key", e.tensor(node.tensor("key"))},
                       {"value", e.tensor(node.tensor("value"))},
                       {"mask", e.has("attn_mask") ? e.tensor(node.tensor("attn_mask")) : ""},
                       {"result", e.result()},
                       {"scale", float_literal(scale)},
                       {"causal", node.flag("is_causal") ? "true" : ""}});
}

}  // namespace

void add_layers(Operations& table) {
  for (const char* name : {"conv1d", "conv2d", "conv3d"}) table[name] = convolution;
  for (const char* name : {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    table[name] = transposed_convolution;
  for (const char* name : {"matmul", "mm", "bmm"}) table[name] = matmul;
  table["einsum"] = einsum;
  table["linear"] = linear;
  table["batch_norm"] = table["_native_batch_norm_legit_no_training"] = batch_norm;
  table["layer_norm"] = table["native_layer_norm"] = layer_norm;
  table["native_layer_norm_backward"] = layer_norm_backward;
  table["scaled_dot_product_attention"] = attention;
  table["strata.scale_shift"] = scale_shift;
  table["strata.scale_weight"] = scale_weight;
  table["strata.shift_bias"] = shift_bias;
}

}  // namespace strata::generate
