// SPDX-License-Identifier: Apache-2.0
// Batch norm. In training the forward node also gives the batch's mean and 1 / deviation, from which
// native_batch_norm_backward computes (Ioffe and Szegedy 2015, section 3): with x' = (x - mean) / deviation and sums
// over all but the channels, d bias = sum g, d weight = sum g x', dx = weight / deviation (g - (d bias + x' d weight) /
// n).
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
  std::erase_if(node.args, [&](const Argument& one) {
    return one.name == "cudnn_enabled" || (!tracked && one.name.starts_with("running_"));
  });
}

void batch_norm(Tape& tape) {
  const auto& node = tape.node();
  if (!tape.gradient()) throw NoGradient("a gradient of its statistics");
  const bool training = node.operation() != "batch_norm";
  const auto given = [&](const char* name) {
    return node.find(name) == nullptr ? plain_argument(name, nullptr) : tape.same(name);
  };
  const auto kept = [&](const char* name, std::size_t i) {
    return training ? tensor_argument(name, tape.output(i)) : plain_argument(name, nullptr);
  };
  const bool of_input = tape.wants("input"), of_weight = tape.wants("weight"), of_bias = tape.wants("bias");
  const auto gradients = tape.calls(
      "native_batch_norm_backward.default",
      {tensor_argument("grad_out", *tape.gradient()), tape.same("input"), tape.same("weight"), given("running_mean"),
       given("running_var"), kept("save_mean", 1), kept("save_invstd", 2), plain_argument("train", training),
       tape.same("eps"), plain_argument("output_mask", {of_input, of_weight, of_bias})});
  auto next = gradients.begin();
  if (of_input) tape.give("input", *next++);
  if (of_weight) tape.give("weight", *next++);
  if (of_bias) tape.give("bias", *next++);
}

}  // namespace

std::span<const BackwardRule> normalisation_rules() {
  static constexpr BackwardRule all[] = {{"_native_batch_norm_legit", batch_norm},
                                         {"_native_batch_norm_legit_functional", batch_norm},
                                         {"batch_norm", batch_norm, keep_statistics}};
  return all;
}

}  // namespace strata::graph
