// SPDX-License-Identifier: Apache-2.0
// Images brought to another size: ATen's operation for each; and taken apart into windows, which is the reverse of
// putting them together.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

Argument factor(const Node& node, std::size_t axis, const char* name) {
  if (const auto* all = node.find("scale_factors"); all != nullptr && !node.is_null("scale_factors"))
    return plain_argument(name, all->plain.at(axis));
  return plain_argument(name, node.find(name) == nullptr ? nlohmann::json() : node.find(name)->plain);
}

void resize(Tape& tape) {
  const auto& node = tape.node();
  const int image = node.tensor(node.find("self") == nullptr ? "input" : "self");
  const Shape to = tape.shape(tape.output(0));
  std::vector<Argument> arguments{tensor_argument("grad_output", *tape.gradient()),
                                  plain_argument("output_size", Shape(to.begin() + 2, to.end())),
                                  plain_argument("input_size", tape.shape(image))};
  if (node.find("align_corners") != nullptr) arguments.push_back(tape.same("align_corners"));
  arguments.push_back(factor(node, 0, "scales_h"));
  arguments.push_back(factor(node, 1, "scales_w"));
  tape.give(image, tape.call(node.operation() + "_backward.default", std::move(arguments)));
}

std::vector<Argument> windows(Tape& tape) {
  return {tensor_argument("self", *tape.gradient()), tape.same("kernel_size"), tape.same("dilation"),
          tape.same("padding"), tape.same("stride")};
}

void take_apart(Tape& tape) {
  const Shape image = tape.shape(tape.node().tensor("self"));
  auto arguments = windows(tape);
  arguments.push_back(plain_argument("output_size", Shape(image.end() - 2, image.end())));
  tape.give("self", tape.call("col2im.default", std::move(arguments)));
}

void put_together(Tape& tape) {
  tape.give("self", tape.call("im2col.default", windows(tape)));
}

}  // namespace

std::span<const BackwardRule> image_rules() {
  static constexpr BackwardRule all[] = {
      {"_upsample_nearest_exact2d", resize}, {"col2im", put_together},        {"im2col", take_apart},
      {"upsample_bicubic2d", resize},        {"upsample_bilinear2d", resize}, {"upsample_nearest2d", resize}};
  return all;
}

}  // namespace strata::graph
