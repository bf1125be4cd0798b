// SPDX-License-Identifier: Apache-2.0
// Operations on each element, by the kit's own kernels: functions, sums and products, scale and shift by channel, and
// the gradients of functions.
#include "kit_cuda/post_ops.hpp"

namespace kit {
namespace {

void add_combined(Program& program, device::Binary how, const char* kernel, const Combine& operands) {
  Internals& in = program.internals();
  in.add(kernel, [&in, how, operands](Stream on) {
    device::combine(on, in.source(operands.left), how, in.source(operands.right), operands.factor,
                    in.target(operands.result), then_of(in, operands.then));
  });
  add_post_ops(in, operands.result, {}, operands.then, device::Then::most);
}

}  // namespace

void add(Program& program, const Combine& how) {
  add_combined(program, device::Binary::add, "add", how);
}
void subtract(Program& program, const Combine& how) {
  add_combined(program, device::Binary::subtract, "subtract", how);
}
void multiply(Program& program, const Combine& how) {
  add_combined(program, device::Binary::multiply, "multiply", how);
}
void divide(Program& program, const Combine& how) {
  add_combined(program, device::Binary::divide, "divide", how);
}

void apply(Program& program, const Apply& how) {
  Internals& in = program.internals();
  in.add("apply", [&in, how](Stream on) {
    device::apply(on, in.source(how.source), how.function, in.target(how.result), then_of(in, how.then));
  });
  add_post_ops(in, how.result, {}, how.then, device::Then::most);
}

void scale_shift(Program& program, const ScaleShift& how) {
  Internals& in = program.internals();
  in.add("scale_shift", [&in, how, scale = program.stored(how.scale), shift = program.stored(how.shift)](Stream on) {
    device::scale_shift(on, in.source(how.source), in.floats(scale), in.floats(shift), in.target(how.result),
                        then_of(in, how.then));
  });
  add_post_ops(in, how.result, {}, how.then, device::Then::most);
}

void apply_backward(Program& program, const ApplyBackward& how) {
  Internals& in = program.internals();
  in.add("apply_backward", [&in, how](Stream on) {
    device::apply_backward(on, in.source(how.gradient), in.source(how.source), how.function, how.of_result,
                           in.target(how.result));
  });
}

void clamp_backward(Program& program, const ClampBackward& how) {
  apply_backward(program, {how.gradient, how.activated, clip(how.low, how.high), true, how.result});
}

}  // namespace kit
