// SPDX-License-Identifier: Apache-2.0
// A recurrent layer (graph/recurrent.hpp): all its gradients by one call, which reads the workspace that the forward
// call keeps. Outputs on which nothing depends have a gradient of zeros.
#include "graph/recurrent.hpp"

#include <array>

#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

void keep_workspace(Tape& tape, Node& node) {
  for (auto& argument : node.args)
    if (argument.name == "train") argument.plain = true;
  node.outputs.push_back(tape.add_value(node.name + "_workspace", {tape.type(node.tensor("input")), {0}}));
}

// Of output `i`; zeros where nothing depends on it.
Argument gradient_of(Tape& tape, const char* name, std::size_t i) {
  if (const auto gradient = tape.gradient(i)) return tensor_argument(name, *gradient);
  return tensor_argument(name, tape.call("zeros_like.default",
                                         {tensor_argument("self", tape.output(i)), plain_argument("dtype", nullptr)}));
}

void layer(Tape& tape) {
  const auto& node = tape.node();
  const auto kind = recurrent_layer(Call(tape.graph(), node)).kind;
  const bool has_cell = kind == Recurrence::lstm;
  constexpr std::array operands{"input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_"};
  std::array<bool, operands.size()> wanted{};
  for (std::size_t i = 0; i < operands.size(); ++i) wanted[i] = tape.wants(operands[i]);
  // but in a GRU both biases are added, so that one gradient is that of both
  const bool shared = kind != Recurrence::gru && wanted[3] && wanted[4];
  if (shared) wanted[4] = false;
  std::vector<Argument> arguments;
  for (const char* operand : operands) arguments.push_back(tape.same(operand));
  const auto add_output = [&](const char* name, std::size_t i) {
    arguments.push_back(tensor_argument(name, tape.output(i)));
  };
  add_output("output", 0);
  add_output("hy_", 1);
  if (has_cell) add_output("cy_", 2);
  arguments.push_back(gradient_of(tape, "grad_output", 0));
  arguments.push_back(gradient_of(tape, "grad_hy", 1));
  if (has_cell) arguments.push_back(gradient_of(tape, "grad_cy", 2));
  arguments.push_back(tape.same("reverse"));
  arguments.push_back(tape.same("mode"));
  add_output("workspace", has_cell ? 3 : 2);
  arguments.push_back(plain_argument("output_mask", wanted));
  const auto gradients = tape.calls("mkldnn_rnn_layer_backward.default", std::move(arguments));
  auto next = gradients.begin();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!wanted[i]) continue;
    tape.give(operands[i], *next);
    if (shared && i == 3) tape.give(operands[4], *next);
    ++next;
  }
}

}  // namespace

std::span<const BackwardRule> recurrent_rules() {
  static constexpr BackwardRule all[] = {{"mkldnn_rnn_layer", layer, keep_workspace}};
  return all;
}

}  // namespace strata::graph
