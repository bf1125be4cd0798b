// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions: ATen's convolution_backward, which gives the gradients of input, weight and
// bias that are wanted; and transposed ones.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

// Numbers a spatial axis; what PyTorch pads more behind than in front has no backward operation.
Shape padding_of(const Node& node, const Shape& kernel, const Shape& dilation) {
  const auto name = node.find("padding")->plain.is_string() ? node.text("padding") : std::string();
  if (name.empty()) return node.ints("padding");
  Shape padding(dilation.size(), 0);
  for (std::size_t i = 0; name == "same" && i < padding.size(); ++i) {
    const auto whole = dilation[i] * (kernel[2 + i] - 1);
    if (whole % 2 != 0) throw NoGradient("the padding 'same' of an even kernel");
    padding[i] = whole / 2;
  }
  return padding;
}

void convolution(Tape& tape) {
  const auto& node = tape.node();
  const auto weight = tape.shape(node.tensor("weight"));
  const auto dilation = node.ints("dilation");
  const bool of_input = tape.wants("input"), of_weight = tape.wants("weight"), of_bias = tape.wants("bias");
  const auto gradients = tape.calls(
      "convolution_backward.default",
      {tensor_argument("grad_output", *tape.gradient()), tape.same("input"), tape.same("weight"),
       plain_argument("bias_sizes", node.is_null("bias") ? nlohmann::json() : nlohmann::json(Shape{weight[0]})),
       tape.same("stride"), plain_argument("padding", padding_of(node, weight, dilation)), tape.same("dilation"),
       plain_argument("transposed", false), plain_argument("output_padding", Shape(dilation.size(), 0)),
       tape.same("groups"), plain_argument("output_mask", {of_input, of_weight, of_bias})});
  auto next = gradients.begin();
  if (of_input) tape.give("input", *next++);
  if (of_weight) tape.give("weight", *next++);
  if (of_bias) tape.give("bias", *next++);
}

// A transposed convolution is the gradient of a convolution's input. So the gradient of its own input is that
// convolution, of the gradient, and that of its weight is the convolution's, with input and gradient exchanged.
void transposed_convolution(Tape& tape) {
  const auto& node = tape.node();
  const int gradient = *tape.gradient(), input = node.tensor("input");
  const auto rank = tape.shape(node.tensor("weight")).size() - 2;
  const auto numbers = [&](const char* name) {
    auto all = node.ints(name);
    if (all.size() == 1) all.resize(rank, all.front());
    return all;
  };
  const Shape stride = numbers("stride"), padding = numbers("padding"), dilation = numbers("dilation"),
              more = numbers("output_padding");
  for (std::size_t d = 0; d < rank; ++d)
    if (more[d] >= stride[d]) throw NoGradient("an output padding that is not smaller than the stride");
  if (tape.wants("input"))
    tape.give(input,
              tape.call("conv" + std::to_string(rank) + "d.default",
                        {tensor_argument("input", gradient), tape.same("weight"), plain_argument("bias", nullptr),
                         plain_argument("stride", stride), plain_argument("padding", padding),
                         plain_argument("dilation", dilation), tape.same("groups")}));
  if (tape.wants("weight"))
    tape.give("weight",
              tape.call("convolution_backward.default",
                        {tensor_argument("grad_output", input), tensor_argument("input", gradient), tape.same("weight"),
                         plain_argument("bias_sizes", nullptr), plain_argument("stride", stride),
                         plain_argument("padding", padding), plain_argument("dilation", dilation),
                         plain_argument("transposed", false), plain_argument("output_padding", Shape(rank, 0)),
                         tape.same("groups"), plain_argument("output_mask", {false, true, false})}));
  if (!tape.wants("bias")) return;
  Shape channels(rank + 2, 1);
  channels[1] = tape.shape(gradient)[1];
  tape.give("bias", tape.viewed(tape.summed_to(gradient, channels), {channels[1]}));
}

}  // namespace

std::span<const BackwardRule> convolution_rules() {
  static constexpr BackwardRule all[] = {{"conv1d", convolution},
                                         {"conv2d", convolution},
                                         {"conv3d", convolution},
                                         {"conv_transpose1d", transposed_convolution},
                                         {"conv_transpose2d", transposed_convolution},
                                         {"conv_transpose3d", transposed_convolution}};
  return all;
}

}  // namespace strata::graph
