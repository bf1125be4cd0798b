// SPDX-License-Identifier: Apache-2.0
// Gives convolutions to the kernel that is fastest for their shape (kernels.hpp). A linear layer that reads a flattened
// image, which was reordered for that, reads the image itself where a kernel can.
#include "compiler/kernels.hpp"
#include "compiler/op_traits.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

// The step that computes the first operand; null: none does.
const Step* before(const Program& program, const Uses& uses, int value) {
  const int producer = uses.producer[static_cast<std::size_t>(value)];
  return producer < 0 ? nullptr : &program.steps[static_cast<std::size_t>(producer)];
}

// The image in blocks whose rows, flattened, are the operand; -1: it is none.
int image_before(const Program& program, const Uses& uses, int operand) {
  const Step* flat = before(program, uses, operand);
  if (flat == nullptr || !flat->view || flat->node.operation() == "permute") return -1;
  const int plain = operands_of(*flat).front();
  const auto &from = program.value(plain).shape, &to = program.value(operand).shape;
  if (from.size() != 4 || to.size() != 2 || from[0] != to[0]) return -1;
  const Step* reorder = before(program, uses, plain);
  if (reorder == nullptr || reorder->node.operation() != "strata.reorder") return -1;
  const int image = operands_of(*reorder).front();
  return program.place(image).layout == Layout::blocked ? image : -1;
}

// The same layer, of the image instead of its flattened form.
Step of_image(const Step& step, int image) {
  Step changed = step;
  for (auto& argument : changed.node.args)
    if (argument.name == "input") argument = tensor_argument("input", image);
  return changed;
}

}  // namespace

Result<void> choose_kernels(Program& program) {
  if (program.target != Target::cpu) return {};  // the kernels are for processors
  const auto uses = uses_of(program);
  for (auto& step : program.steps) {
    const bool has_weight = is_convolution(step) || is_linear(step) || is_input_gradient(step);
    if (step.view || step.when != When::run || !has_weight) continue;
    if (is_linear(step)) {
      const int image = image_before(program, uses, step.node.tensor("input"));
      if (image < 0) continue;
      const Step changed = of_image(step, image);
      if (best_kernel(program, changed) != Kernel::library) step = changed;
    }
    step.kernel = best_kernel(program, step);
  }
  return remove_dead(program);
}

}  // namespace strata::compiler
