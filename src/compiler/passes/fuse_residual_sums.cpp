// SPDX-License-Identifier: Apache-2.0
// The sum of a layer's result, which nobody else reads, and of a value of the same shape that is there before the layer
// runs becomes a post of the layer; what was fused into the sum (its activation) follows. Where both operands are
// layers' results, the later layer takes it.
#include <algorithm>

#include "compiler/op_traits.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

// The operands of a plain sum of two float32 tensors of one shape; nullopt: it is none.
std::optional<std::pair<int, int>> summands(const Program& program, const Step& step) {
  const auto& node = step.node;
  if (node.operation() != "add" || step.when != When::run || step.view || !node.is_tensor("other") ||
      (node.find("alpha") != nullptr && node.number("alpha") != 1))
    return std::nullopt;
  const int a = node.tensor("self"), b = node.tensor("other");
  const auto& result = program.value(node.outputs.front());
  for (const int operand : {a, b})
    if (program.value(operand).shape != result.shape || program.value(operand).type != graph::Type::float32)
      return std::nullopt;
  return a == b ? std::nullopt : std::optional(std::pair(a, b));
}

// A product by a weight broadcast (a layer's scale) takes a sum, and what follows it, as cheaply as a layer does.
bool takes_sum(Step step, const std::vector<PostOp>& then) {
  if (step.node.operation() == "add" || step.node.operation() == "sub") return false;
  const PostOp sum{.kind = PostOp::Kind::add, .operation = "add", .alpha = 0, .beta = 0, .value = 0};
  if (!supports_post_op(step, sum)) return false;
  step.posts.push_back(sum);
  for (const auto& post : then) {
    if (!supports_post_op(step, post)) return false;
    step.posts.push_back(post);
  }
  return true;
}

}  // namespace

Result<void> fuse_residual_sums(Program& program) {
  auto uses = uses_of(program);
  const auto producer_of = [&](int value) { return uses.producer[static_cast<std::size_t>(value)]; };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    auto& step = program.steps[s];
    const auto pair = summands(program, step);
    if (!pair) continue;
    const auto [into_value, other] =
        producer_of(pair->first) > producer_of(pair->second) ? *pair : std::pair(pair->second, pair->first);
    const int into = producer_of(into_value);
    if (into <= producer_of(other) || !uses.only_reader(into_value, static_cast<int>(s))) continue;
    auto& layer = program.steps[static_cast<std::size_t>(into)];
    if (!takes_sum(layer, step.posts)) continue;
    layer.posts.push_back({.kind = PostOp::Kind::add, .operation = "add", .alpha = 0, .beta = 0, .value = other});
    layer.posts.insert(layer.posts.end(), step.posts.begin(), step.posts.end());
    auto& readers = uses.consumers[static_cast<std::size_t>(other)];
    std::replace(readers.begin(), readers.end(), static_cast<int>(s), into);
    uses.producer[static_cast<std::size_t>(step.node.outputs.front())] = into;
    absorb(layer, step);
  }
  std::erase_if(program.steps, [](const Step& step) { return step.node.outputs.empty(); });
  return recompute_places(program);
}

}  // namespace strata::compiler
