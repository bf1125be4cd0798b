// SPDX-License-Identifier: Apache-2.0
// Activations: ATen's backward operation of each. ReLU, sigmoid and tanh read the result, the others the input, so that
// the input of a ReLU need not be kept. Derivatives at kinks are PyTorch's: 0 at the ends of a clip, 0 of ReLU at 0.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

Argument gradient_of(const Tape& tape) {
  return tensor_argument("grad_output", *tape.gradient());
}

void give(Tape& tape, const char* op, std::vector<Argument> arguments) {
  tape.give("self", tape.call(op, std::move(arguments)));
}

void relu(Tape& tape) {
  give(tape, "threshold_backward.default",
       {gradient_of(tape), tensor_argument("self", tape.output(0)), plain_argument("threshold", 0)});
}

void sigmoid(Tape& tape) {
  give(tape, "sigmoid_backward.default", {gradient_of(tape), tensor_argument("output", tape.output(0))});
}

void tanh(Tape& tape) {
  give(tape, "tanh_backward.default", {gradient_of(tape), tensor_argument("output", tape.output(0))});
}

void relu6(Tape& tape) {
  give(tape, "hardtanh_backward.default",
       {gradient_of(tape), tape.same("self"), plain_argument("min_val", 0), plain_argument("max_val", 6)});
}

void hardtanh(Tape& tape) {
  give(tape, "hardtanh_backward.default",
       {gradient_of(tape), tape.same("self"), tape.same("min_val"), tape.same("max_val")});
}

void hardswish(Tape& tape) {
  give(tape, "hardswish_backward.default", {gradient_of(tape), tape.same("self")});
}

void hardsigmoid(Tape& tape) {
  give(tape, "hardsigmoid_backward.default", {gradient_of(tape), tape.same("self")});
}

void silu(Tape& tape) {
  give(tape, "silu_backward.default", {gradient_of(tape), tape.same("self")});
}

void gelu(Tape& tape) {
  give(tape, "gelu_backward.default", {gradient_of(tape), tape.same("self"), tape.same("approximate")});
}

void leaky_relu(Tape& tape) {
  give(tape, "leaky_relu_backward.default",
       {gradient_of(tape), tape.same("self"), tape.same("negative_slope"), plain_argument("self_is_result", false)});
}

}  // namespace

std::span<const BackwardRule> activation_rules() {
  static constexpr BackwardRule all[] = {{"gelu", gelu},         {"hardsigmoid", hardsigmoid}, {"hardswish", hardswish},
                                         {"hardtanh", hardtanh}, {"leaky_relu", leaky_relu},   {"relu", relu},
                                         {"relu6", relu6},       {"sigmoid", sigmoid},         {"silu", silu},
                                         {"tanh", tanh}};
  return all;
}

}  // namespace strata::graph
