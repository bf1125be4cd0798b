// SPDX-License-Identifier: Apache-2.0
// Batch norm. In training the forward node also gives the batch's mean and 1 / deviation, from which
// native_batch_norm_backward computes (Ioffe and Szegedy 2015, section 3): with x' = (x - mean) / deviation and sums
// over all but the channels, d bias = sum g, d weight = sum g x', dx = weight / deviation (g - (d bias + x' d weight) /
// n). Layer norm (Ba, Kiros and Hinton 2016) over the last axes likewise, with h = g weight: dx = (h - mean h - x'
// mean(h x')) / deviation; sums of d bias and d weight go over the rows.
#include <algorithm>
#include <array>

#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

// y, [mean, var] -> y, batch's mean, 1 / deviation, [mean, var]
void keep_statistics(Tape& tape, Node& node) {
  if (node.operation() != "batch_norm" || !node.flag("training")) return;
  const auto input = node.tensor("input");
  const Described channels{tape.type(input), {tape.shape(input).at(1)}};
  node.outputs.insert(node.outputs.begin() + 1, {tape.add_value(node.name + "_save_mean", channels),
                                                 tape.add_value(node.name + "_save_invstd", channels)});
  const bool tracked = !node.is_null("running_mean");
  node.op = tracked ? "aten._native_batch_norm_legit_functional.default" : "aten._native_batch_norm_legit.no_stats";
  std::erase_if(node.args, [&](const Argument& argument) {
    return argument.name == "cudnn_enabled" || (!tracked && argument.name.starts_with("running_"));
  });
}

// The gradients of input, weight and bias by one call, which gives those that its mask names.
template <class F>
void give_wanted(Tape& tape, const F& call) {
  constexpr std::array operands{"input", "weight", "bias"};
  nlohmann::json mask = nlohmann::json::array();
  for (const char* operand : operands) mask.push_back(tape.wants(operand));
  const std::vector<int> gradients = call(plain_argument("output_mask", mask));
  auto next = gradients.begin();
  for (const char* operand : operands)
    if (tape.wants(operand)) tape.give(operand, *next++);
}

void batch_norm(Tape& tape) {
  const auto& node = tape.node();
  if (!tape.gradient()) throw NoGradient("a gradient of its statistics");
  const bool training = node.operation() != "batch_norm";
  const auto operand = [&](const char* name) {
    return node.find(name) == nullptr ? plain_argument(name, nullptr) : tape.same(name);
  };
  const auto saved = [&](const char* name, std::size_t i) {
    return training ? tensor_argument(name, tape.output(i)) : plain_argument(name, nullptr);
  };
  give_wanted(tape, [&](const Argument& mask) {
    return tape.calls("native_batch_norm_backward.default",
                      {tensor_argument("grad_out", *tape.gradient()), tape.same("input"), tape.same("weight"),
                       operand("running_mean"), operand("running_var"), saved("save_mean", 1), saved("save_invstd", 2),
                       plain_argument("train", training), tape.same("eps"), mask});
  });
}

// y -> y, each row's mean, 1 / deviation
void keep_rows(Tape& tape, Node& node) {
  const auto input = node.tensor("input");
  Shape rows = tape.shape(input);
  std::fill(rows.end() - static_cast<std::ptrdiff_t>(node.ints("normalized_shape").size()), rows.end(), 1);
  for (const char* name : {"_mean", "_rstd"})
    node.outputs.push_back(tape.add_value(node.name + name, {tape.type(input), rows}));
  node.op = "aten.native_layer_norm.default";
  std::erase_if(node.args, [](const Argument& argument) { return argument.name == "cudnn_enable"; });
}

void layer_norm(Tape& tape) {
  if (!tape.gradient()) throw NoGradient("a gradient of its statistics");
  give_wanted(tape, [&](const Argument& mask) {
    return tape.calls("native_layer_norm_backward.default",
                      {tensor_argument("grad_out", *tape.gradient()), tape.same("input"), tape.same("normalized_shape"),
                       tensor_argument("mean", tape.output(1)), tensor_argument("rstd", tape.output(2)),
                       tape.same("weight"), tape.same("bias"), mask});
  });
}

}  // namespace

std::span<const BackwardRule> normalisation_rules() {
  static constexpr BackwardRule all[] = {{"_native_batch_norm_legit", batch_norm},
                                         {"_native_batch_norm_legit_functional", batch_norm},
                                         {"batch_norm", batch_norm, keep_statistics},
                                         {"layer_norm", layer_norm, keep_rows},
                                         {"native_layer_norm", layer_norm}};
  return all;
}

}  // namespace strata::graph
