// SPDX-License-Identifier: Apache-2.0
// An activation whose operand nobody else reads becomes a post of the step that computes the operand.
#include "compiler/op_traits.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {

Result<void> fuse_activations(Program& program) {
  auto uses = uses_of(program);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    auto& step = program.steps[s];
    const auto post = step.when == When::run ? as_activation(step) : std::nullopt;
    if (!post) continue;
    const int input = operands_of(step).front();
    const int producer = uses.producer[static_cast<std::size_t>(input)];
    if (producer < 0 || program.value(input).type != graph::Type::float32 ||
        !uses.only_reader(input, static_cast<int>(s)))
      continue;
    auto& into = program.steps[static_cast<std::size_t>(producer)];
    if (!supports_post_op(into, *post)) continue;
    into.posts.push_back(*post);
    uses.producer[static_cast<std::size_t>(step.node.outputs.front())] = producer;
    absorb(into, step);
  }
  std::erase_if(program.steps, [](const Step& step) { return step.node.outputs.empty(); });
  return recompute_places(program);
}

}  // namespace strata::compiler
