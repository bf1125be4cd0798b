// SPDX-License-Identifier: Apache-2.0
// Convolutions with stride, padding, dilation and groups, and transposed ones.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// Before and after together, for each spatial axis.
std::vector<std::int64_t> padding_of(const Call& call, const Shape& kernel, const std::vector<std::int64_t>& dilation,
                                     std::size_t spatial) {
  const auto* padding = call.node().find("padding");
  std::vector<std::int64_t> both(spatial, 0);
  if (padding != nullptr && padding->plain.is_string()) {
    const auto name = call.node().text("padding");
    need(name == "same" || name == "valid", "padding is '{}', allowed are same and valid", name);
    if (name == "same")
      for (std::size_t i = 0; i < spatial; ++i) both[i] = dilation[i] * (kernel[2 + i] - 1);
    return both;
  }
  const auto each = call.node().ints("padding");
  need(each.size() == spatial, "padding has {} numbers, wanted are {}", each.size(), spatial);
  for (std::size_t i = 0; i < spatial; ++i) {
    need(each[i] >= 0, "padding is {}", each[i]);
    both[i] = times(2, each[i]);
  }
  return both;
}

// input [N, C, ...], weight [K, C / groups, ...] -> [N, K, ...]
Shape convolved(const Call& call) {
  const auto& input = call.in("input");
  const auto& weight = call.in("weight");
  const auto rank = weight.shape.size();
  need(rank >= 3 && input.shape.size() == rank,
       "the input is {}, the weight {}: batches of the weight's rank are wanted", to_string(input.shape),
       to_string(weight.shape));
  const auto spatial = rank - 2;
  const auto groups = call.node().integer("groups");
  need(groups > 0 && weight.shape[0] % groups == 0, "{} output channels in {} groups", weight.shape[0], groups);
  need(input.shape[1] == times(weight.shape[1], groups),
       "the input has {} channels, the weight {} wants {} in each of {} groups", input.shape[1],
       to_string(weight.shape), weight.shape[1], groups);
  need(weight.type == input.type, "the input is {}, the weight {}", name_of(input.type), name_of(weight.type));
  const auto stride = call.node().ints("stride"), dilation = call.node().ints("dilation");
  need(stride.size() == spatial && dilation.size() == spatial,
       "stride and dilation have {} and {} numbers, wanted are {}", stride.size(), dilation.size(), spatial);
  const auto padding = padding_of(call, weight.shape, dilation, spatial);
  Shape shape{input.shape[0], weight.shape[0]};
  for (std::size_t i = 0; i < spatial; ++i) {
    need(stride[i] > 0 && dilation[i] > 0, "stride {} and dilation {} must be positive", stride[i], dilation[i]);
    const auto room = input.shape[2 + i] + padding[i] - times(dilation[i], weight.shape[2 + i] - 1) - 1;
    need(room >= 0, "the kernel {} is larger than the padded input {}", to_string(weight.shape),
         to_string(input.shape));
    shape.push_back(room / stride[i] + 1);
  }
  return shape;
}

// bias [K]
std::vector<Described> convolution(const Call& call) {
  const auto& input = call.in("input");
  const auto shape = convolved(call);
  if (const auto* bias = call.maybe_in("bias"))
    need(bias->shape == Shape{shape[1]} && bias->type == input.type, "the bias is {} for {} output channels",
         to_string(bias->shape), shape[1]);
  return {{input.type, shape}};
}

// Of input, weight and bias those that output_mask wants.
std::vector<Described> convolution_backward(const Call& call) {
  const auto &input = call.in("input"), &weight = call.in("weight"), &gradient = call.in("grad_output");
  need(!call.node().flag("transposed"), "a transposed convolution");
  const auto expected = convolved(call);
  need(gradient.shape == expected && gradient.type == input.type, "the gradient is {} {}, the convolution gives {}",
       name_of(gradient.type), to_string(gradient.shape), to_string(expected));
  return masked(call, {{input.type, input.shape}, {weight.type, weight.shape}, {weight.type, {weight.shape[0]}}});
}

// as many for the gradient of the input, and for that of the weight, as for the result
std::int64_t backward_flops(const Call& call) {
  const auto& weight = call.in("weight");
  const auto channels = weight.shape.at(0);
  if (channels == 0) return 0;
  const auto& mask = call.node().find("output_mask")->plain;
  const std::int64_t products = (mask[0].get<bool>() ? 1 : 0) + (mask[1].get<bool>() ? 1 : 0);
  return product({2 * products, call.in("grad_output").elements(), weight.elements() / channels});
}

}  // namespace

namespace {

// input [N, C, ...] or [C, ...], weight [C, K / groups, ...] -> [N, K, ...] or [K, ...]
std::vector<Described> transposed_convolution(const Call& call) {
  const auto &input = call.in("input").shape, &weight = call.in("weight").shape;
  const auto groups = call.node().integer("groups");
  const std::size_t channels = input.size() == weight.size() ? 1 : 0, spatial = weight.size() - 2;
  need(weight.size() >= 3 && input.size() == spatial + 1 + channels && groups > 0 && input[channels] == weight[0],
       "the input {} does not fit the weight {} in {} groups", to_string(input), to_string(weight), groups);
  const auto of = [&](const char* name) {
    auto all = call.node().ints(name);
    if (all.size() == 1) all.resize(spatial, all.front());
    need(all.size() == spatial, "{} has {} numbers, wanted are {}", name, all.size(), spatial);
    return all;
  };
  const auto stride = of("stride"), padding = of("padding"), more = of("output_padding"), dilation = of("dilation");
  Shape shape(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(channels));
  shape.push_back(times(weight[1], groups));
  for (std::size_t d = 0; d < spatial; ++d)
    shape.push_back((input[channels + 1 + d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (weight[2 + d] - 1) +
                    more[d] + 1);
  return {{call.in("input").type, shape}};
}

}  // namespace

// Every output element takes one multiply-add for each weight of its channel.
std::int64_t convolution_flops(const Call& call) {
  if (call.node().find("transposed") != nullptr && call.node().flag("transposed"))
    return transposed_convolution_flops(call);
  const auto& weight = call.in("weight");
  need(weight.shape.size() >= 3, "the weight is {}", to_string(weight.shape));
  const auto channels = weight.shape.front();
  return channels == 0 ? 0 : product({2, call.out().elements(), weight.elements() / channels});
}

// weight [C, K / groups, ...]: every input element goes into as many products as its channel has weights, whatever
// stride, padding and dilation make of the output.
std::int64_t transposed_convolution_flops(const Call& call) {
  const auto& weight = call.in("weight");
  need(weight.shape.size() >= 3, "the weight is {}", to_string(weight.shape));
  const auto channels = weight.shape.front();
  return channels == 0 ? 0 : product({2, call.in("input").elements(), weight.elements() / channels});
}

std::span<const Operation> convolution_operations() {
  static constexpr Operation all[] = {{"conv1d", convolution, convolution_flops},
                                      {"conv2d", convolution, convolution_flops},
                                      {"conv3d", convolution, convolution_flops},
                                      {"conv_transpose1d", transposed_convolution, transposed_convolution_flops},
                                      {"conv_transpose2d", transposed_convolution, transposed_convolution_flops},
                                      {"conv_transpose3d", transposed_convolution, transposed_convolution_flops},
                                      {"convolution_backward", convolution_backward, backward_flops}};
  return all;
}

}  // namespace strata::graph
