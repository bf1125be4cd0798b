// SPDX-License-Identifier: Apache-2.0
// Batch, layer and group normalisation.
#include <algorithm>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

void need_shape(const Call& call, const char* arg, const Shape& expected) {
  if (const auto* argument = call.maybe_in(arg))
    need(argument->shape == expected, "{} is {}, expected {}", arg, to_string(argument->shape), to_string(expected));
}

// In training with running statistics, these follow as second and third output.
std::vector<Described> batch_norm(const Call& call) {
  const auto& input = call.in("input");
  need(input.shape.size() >= 2, "the input is {}, expected [N, C, ...]", to_string(input.shape));
  for (const char* arg : {"weight", "bias", "running_mean", "running_var"}) need_shape(call, arg, {input.shape[1]});
  std::vector<Described> outputs{{input.type, input.shape}};
  const bool training = call.node().flag("training");
  const auto* mean = call.maybe_in("running_mean");
  const auto* variance = call.maybe_in("running_var");
  need((mean == nullptr) == (variance == nullptr), "one of the running statistics is given without the other");
  need(training || mean != nullptr, "not training, and no running statistics are given");
  if (training && mean != nullptr) {
    outputs.push_back({mean->type, mean->shape});
    outputs.push_back({variance->type, variance->shape});
  }
  return outputs;
}

// The result, the batch's mean and 1 / deviation, and with running statistics these after the step.
std::vector<Described> batch_norm_for_backward(const Call& call) {
  const auto& input = call.in("input");
  need(input.shape.size() >= 2, "the input is {}, expected [N, C, ...]", to_string(input.shape));
  const Described channels{input.type, {input.shape[1]}};
  for (const char* arg : {"weight", "bias", "running_mean", "running_var"})
    if (call.node().find(arg) != nullptr) need_shape(call, arg, channels.shape);
  std::vector<Described> outputs{{input.type, input.shape}, channels, channels};
  if (call.maybe_in("running_mean") != nullptr) outputs.insert(outputs.end(), 2, channels);
  return outputs;
}

// Of input, weight and bias those that output_mask wants.
std::vector<Described> batch_norm_backward(const Call& call) {
  const auto &input = call.in("input"), &gradient = call.in("grad_out");
  need(gradient.shape == input.shape && input.shape.size() >= 2, "the gradient is {}, the input {}",
       to_string(gradient.shape), to_string(input.shape));
  const Described channels{input.type, {input.shape[1]}};
  for (const char* arg : {"weight", "running_mean", "running_var", "save_mean", "save_invstd"})
    need_shape(call, arg, channels.shape);
  return masked(call, {{input.type, input.shape}, channels, channels});
}

std::vector<Described> layer_norm(const Call& call) {
  const auto& input = call.in("input");
  const auto last = call.node().ints("normalized_shape");
  need(!last.empty() && last.size() <= input.shape.size() &&
           std::equal(last.rbegin(), last.rend(), input.shape.rbegin()),
       "the input is {}, normalised over {}", to_string(input.shape), to_string(last));
  for (const char* arg : {"weight", "bias"}) need_shape(call, arg, last);
  return {{input.type, input.shape}};
}

// The mean and 1 / deviation of each row over the last axes, which have extent 1 in them.
Described statistics(const Call& call) {
  const auto& input = call.in("input");
  Shape rows = input.shape;
  std::fill(rows.end() - static_cast<std::ptrdiff_t>(call.node().ints("normalized_shape").size()), rows.end(), 1);
  return {input.type, rows};
}

std::vector<Described> layer_norm_for_backward(const Call& call) {
  auto outputs = layer_norm(call);
  outputs.insert(outputs.end(), 2, statistics(call));
  return outputs;
}

// Of input, weight and bias those that output_mask wants.
std::vector<Described> layer_norm_backward(const Call& call) {
  const auto input = layer_norm(call).front();
  const auto& gradient = call.in("grad_out");
  need(gradient.shape == input.shape, "the gradient is {}, the input {}", to_string(gradient.shape),
       to_string(input.shape));
  for (const char* arg : {"mean", "rstd"}) need_shape(call, arg, statistics(call).shape);
  const Described of_weight{input.type, call.node().ints("normalized_shape")};
  return masked(call, {input, of_weight, of_weight});
}

std::vector<Described> group_norm(const Call& call) {
  const auto& input = call.in("input");
  const auto groups = call.node().integer("num_groups");
  need(input.shape.size() >= 2 && groups > 0 && input.shape[1] % groups == 0, "the input is {} in {} groups",
       to_string(input.shape), groups);
  for (const char* arg : {"weight", "bias"}) need_shape(call, arg, {input.shape[1]});
  return {{input.type, input.shape}};
}

}  // namespace

std::span<const Operation> normalisation_operations() {
  static constexpr Operation all[] = {{"_native_batch_norm_legit", batch_norm_for_backward},
                                      {"_native_batch_norm_legit_functional", batch_norm_for_backward},
                                      {"batch_norm", batch_norm},
                                      {"group_norm", group_norm},
                                      {"layer_norm", layer_norm},
                                      {"native_batch_norm_backward", batch_norm_backward},
                                      {"native_layer_norm", layer_norm_for_backward},
                                      {"native_layer_norm_backward", layer_norm_backward}};
  return all;
}

}  // namespace strata::graph
