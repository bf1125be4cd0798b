// SPDX-License-Identifier: Apache-2.0
// Batch norm. In training the forward node also gives the batch's mean and 1 / deviation, from which
// native_batch_norm_backward computes (Ioffe and Szegedy 2015, section 3): with x' = (x - mean) / deviation and sums
// over all but the channels, d bias = sum g, d weight = sum g x', dx = weight / deviation (g - (d bias + x' d weight) /
// n). Layer norm (Ba, Kiros and Hinton 2016) over the last axes likewise, with h = g weight: dx = (h - mean h - x'
// mean(h x')) / deviation, from statistics that are computed again.
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

// The operations of which the gradient of a layer norm consists, over its axes.
class LayerNorm {
 public:
  explicit LayerNorm(Tape& tape) : tape_(tape) {
    const auto rank = static_cast<std::int64_t>(tape.shape(tape.node().tensor("input")).size());
    const auto count = static_cast<std::int64_t>(tape.node().ints("normalized_shape").size());
    for (auto axis = rank - count; axis < rank; ++axis) axes_.push_back(axis);
  }
  int mean(int x) const {
    return tape_.call("mean.dim", {tensor_argument("self", x), plain_argument("dim", axes_),
                                   plain_argument("keepdim", true), plain_argument("dtype", nullptr)});
  }
  int difference(int x, int y) const {
    return tape_.call("sub.Tensor",
                      {tensor_argument("self", x), tensor_argument("other", y), plain_argument("alpha", 1)});
  }
  int times(int x, int y) const {
    return tape_.call("mul.Tensor", {tensor_argument("self", x), tensor_argument("other", y)});
  }
  int over(int x, int y) const {
    return tape_.call("div.Tensor", {tensor_argument("self", x), tensor_argument("other", y)});
  }
  int deviation(int centred, double epsilon) const {
    const int variance = tape_.call("add.Scalar", {tensor_argument("self", mean(times(centred, centred))),
                                                   plain_argument("other", epsilon), plain_argument("alpha", 1)});
    return tape_.call("sqrt.default", {tensor_argument("self", variance)});
  }

 private:
  Tape& tape_;
  Shape axes_;
};

void layer_norm(Tape& tape) {
  const auto& node = tape.node();
  const LayerNorm does(tape);
  const int input = node.tensor("input"), gradient = *tape.gradient();
  if (tape.wants("bias")) tape.give("bias", tape.summed_to(gradient, tape.shape(node.tensor("bias"))));
  if (!tape.wants(input) && !tape.wants("weight")) return;
  const int centred = does.difference(input, does.mean(input));
  const int deviation = does.deviation(centred, node.number("eps")), normal = does.over(centred, deviation);
  if (tape.wants("weight"))
    tape.give("weight", tape.summed_to(does.times(gradient, normal), tape.shape(node.tensor("weight"))));
  if (!tape.wants(input)) return;
  const int of_normal = node.is_null("weight") ? gradient : does.times(gradient, node.tensor("weight"));
  const int without_mean = does.difference(of_normal, does.mean(of_normal));
  const int along = does.times(normal, does.mean(does.times(of_normal, normal)));
  tape.give(input, does.over(does.difference(without_mean, along), deviation));
}

}  // namespace

std::span<const BackwardRule> normalisation_rules() {
  static constexpr BackwardRule all[] = {{"_native_batch_norm_legit", batch_norm},
                                         {"_native_batch_norm_legit_functional", batch_norm},
                                         {"batch_norm", batch_norm, keep_statistics},
                                         {"layer_norm", layer_norm}};
  return all;
}

}  // namespace strata::graph
