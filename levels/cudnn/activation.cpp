// SPDX-License-Identifier: Apache-2.0
// Activations and softmax with their gradients: one kernel of strata's each, in the layout of their input.
#include <limits>

#include "kit_cuda/kernels/elementwise.hpp"
#include "kit_cuda/kernels/softmax.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Function;
using kit_cuda::Stream;

Function function_of(Builder& b) {
  const auto name = b.operation();
  const auto is = [&](std::string_view candidate) {
    return name == candidate || name == std::string(candidate) + "_backward";
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto bound = [&](std::string_view argument, double without) {
    return static_cast<float>(b.has(argument) ? b.number(argument) : without);
  };
  if (is("sigmoid")) return kit::sigmoid();
  if (is("tanh")) return kit::tangent();
  if (is("exp")) return kit::exponential();
  if (is("sqrt")) return kit::square_root();
  if (is("abs")) return kit::absolute();
  if (is("relu6")) return kit::clip(0, 6);
  if (is("hardtanh")) return kit::clip(bound("min_val", -1), bound("max_val", 1));
  if (name.starts_with("clamp")) return kit::clip(bound("min", -infinite), bound("max", infinite));
  if (is("hardswish")) return kit::hardswish();
  if (is("hardsigmoid")) return kit::hardsigmoid();
  if (is("silu")) return kit::silu();
  if (is("leaky_relu")) return kit::relu(static_cast<float>(b.number("negative_slope")));
  if (is("gelu")) return b.text("approximate") == "tanh" ? kit::gelu_tanh() : kit::gelu();
  if (!is("elu")) return kit::relu();
  if (b.number("scale") != 1 || b.number("input_scale") != 1) throw Unsupported("elu with scales");
  return kit::elu(static_cast<float>(b.number("alpha")));
}

void elementwise(Builder& b) {
  const Tensor x = b.tensor("self"), y = b.result_like(x);
  b.own([=, f = function_of(b)](Stream stream) { kit_cuda::apply(stream, x.source(), f, y.target()); }, x.view, y.view);
}

void backward(Builder& b, const char* data, bool of_result) {
  const Tensor g = b.tensor("grad_output"), x = b.tensor(data), to = b.result_like(x);
  b.own([=, f = function_of(b)](
            Stream stream) { kit_cuda::apply_backward(stream, g.source(), x.source(), f, of_result, to.target()); },
        g.view, to.view);
}

void of_operand(Builder& b) {
  if (b.operation() == "leaky_relu_backward" && b.flag("self_is_result"))
    throw Unsupported("leaky_relu_backward from the result");
  backward(b, "self", false);
}
void of_result(Builder& b) {
  backward(b, "output", true);
}
// of ReLU alone, whose result is given
void threshold(Builder& b) {
  if (b.number("threshold") != 0) throw Unsupported("a threshold that is not 0");
  backward(b, "self", true);
}

template <bool logarithm>
void softmax(Builder& b) {
  const Tensor x = b.tensor("self"), y = b.result_like(x);
  const auto axis = static_cast<int>(b.dimension("dim", x.dims().size()));
  b.own([=](Stream stream) { kit_cuda::softmax(stream, x.source(), axis, logarithm, y.target()); }, x.view, y.view);
}

template <bool logarithm>
void softmax_backward(Builder& b) {
  const Tensor g = b.tensor("grad_output"), y = b.tensor("output"), to = b.result_like(y);
  const auto axis = static_cast<int>(b.dimension("dim", y.dims().size()));
  b.own(
      [=](Stream stream) { kit_cuda::softmax_backward(stream, g.source(), y.source(), axis, logarithm, to.target()); },
      g.view, to.view);
}

}  // namespace

void add_activations(Operations& table) {
  for (const char* name : {"relu", "sigmoid", "tanh", "exp", "sqrt", "abs", "clamp", "clamp_min", "clamp_max", "relu6",
                           "hardtanh", "hardswish", "hardsigmoid", "silu", "elu", "leaky_relu", "gelu"})
    table[name] = elementwise;
  for (const char* name : {"hardtanh_backward", "hardswish_backward", "hardsigmoid_backward", "silu_backward",
                           "leaky_relu_backward", "gelu_backward"})
    table[name] = of_operand;
  table["sigmoid_backward"] = table["tanh_backward"] = of_result;
  table["threshold_backward"] = threshold;
  table["softmax"] = table["_softmax"] = softmax<false>;
  table["log_softmax"] = table["_log_softmax"] = softmax<true>;
  table["_softmax_backward_data"] = softmax_backward<false>;
  table["_log_softmax_backward_data"] = softmax_backward<true>;
}

}  // namespace strata::cudnn
