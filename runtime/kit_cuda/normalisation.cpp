// SPDX-License-Identifier: Apache-2.0
// Operations along dimensions: softmax, norms, sums and means; attention, which consists of such.
#include "kit_cuda/kernels/normalisation.hpp"

#include <limits>
#include <stdexcept>

#include "kit_cuda/kernels/reduction.hpp"
#include "kit_cuda/kernels/softmax.hpp"
#include "kit_cuda/post_ops.hpp"

namespace kit {
namespace {

void add_softmax(Program& program, const Tensor& source, const Tensor& result, int axis, bool logarithm) {
  Internals& in = program.internals();
  in.add("softmax", [&in, source, result, axis, logarithm](Stream on) {
    device::softmax(on, in.source(source), axis, logarithm, in.target(result));
  });
}

void reduce(Program& program, device::Reduction kind, const Reduce& how) {
  Internals& in = program.internals();
  in.add("reduce",
         [&in, kind, how](Stream on) { device::reduce(on, in.source(how.source), kind, in.target(how.result)); });
}

// What stands beside a batch norm: a sum, then a clamp.
Fused beside_norm(const PostOps& posts, const Tensor& result) {
  const auto fused = fused_of(posts, result);
  if (!fused) throw std::logic_error("a post that a batch norm in training lacks");
  return *fused;
}

// With statistics that are not the batch's. For the backward step `deviation` keeps the variance with epsilon.
void add_fixed_norm(Program& program, const BatchNorm& how, const Tensor& mean, const Tensor& deviation) {
  Internals& in = program.internals();
  reorder(program, {program.stored(how.running_mean), mean});
  apply(program, {program.stored(how.running_variance), line(1, static_cast<float>(how.epsilon)), deviation});
  const Tensor scale = how.scale ? program.stored(how.scale) : Tensor{},
               shift = how.shift ? program.stored(how.shift) : Tensor{};
  in.add("normalise", [&in, how, mean, deviation, scale, shift](Stream on) {
    device::normalise(on, in.source(how.source),
                      {in.floats(mean), in.floats(deviation), in.floats(scale), in.floats(shift), 0},
                      in.target(how.result), then_of(in, how.then));
  });
}

}  // namespace

void softmax(Program& program, const Softmax& how) {
  add_softmax(program, how.source, how.result, how.axis, false);
}
void log_softmax(Program& program, const Softmax& how) {
  add_softmax(program, how.source, how.result, how.axis, true);
}
void exact_log_softmax(Program& program, const Scores& how) {
  add_softmax(program, how.source, how.result, 1, true);
}

void softmax_backward(Program& program, const SoftmaxBackward& how) {
  Internals& in = program.internals();
  in.add("softmax_backward", [&in, how](Stream on) {
    device::softmax_backward(on, in.source(how.gradient), in.source(how.source), how.axis, how.of_log,
                             in.target(how.result));
  });
}
void log_softmax_backward(Program& program, const LogSoftmaxBackward& how) {
  softmax_backward(program, {how.gradient, how.log_softmax, how.result, 1, true});
}

void sum(Program& program, const Reduce& how) {
  reduce(program, device::Reduction::sum, how);
}
void mean(Program& program, const Reduce& how) {
  reduce(program, device::Reduction::mean, how);
}
void largest(Program& program, const Reduce& how) {
  reduce(program, device::Reduction::largest, how);
}
void euclidean_norm(Program& program, const Reduce& how) {
  reduce(program, device::Reduction::norm, how);
}

void mean_of_places(Program& program, const Reduce& how) {
  Shape ones{how.source.shape[0], how.source.shape[1]};
  while (ones.rank < how.source.shape.rank) ones[ones.rank++] = 1;
  Tensor result = how.result.as(ones);
  result.layout = Layout::plain;  // of one pixel all layouts are the same bytes
  mean(program, {how.source, result});
}

void layer_norm(Program& program, const LayerNorm& how) {
  Internals& in = program.internals();
  const Tensor scale = how.scale ? program.stored(how.scale) : Tensor{},
               shift = how.shift ? program.stored(how.shift) : Tensor{};
  in.add("layer_norm", [&in, how, scale, shift](Stream on) {
    device::layer_norm(on, {.x = in.floats(how.source),
                            .rows = rows_of(how.source, how.over),
                            .length = how.over,
                            .scale = in.floats(scale),
                            .shift = in.floats(shift),
                            .epsilon = static_cast<double>(how.epsilon),
                            .y = in.floats_to(how.result),
                            .mean = in.floats_to(how.mean),
                            .deviation = in.floats_to(how.deviation)});
  });
}

void layer_norm_backward(Program& program, const LayerNormBackward& how) {
  Internals& in = program.internals();
  in.add("layer_norm_backward", [&in, how, scale = how.scale ? program.stored(how.scale) : Tensor{}](Stream on) {
    device::layer_norm_backward(on, {.gradient = in.floats(how.gradient),
                                     .x = in.floats(how.source),
                                     .rows = rows_of(how.source, how.over),
                                     .length = how.over,
                                     .mean = in.floats(how.mean),
                                     .deviation = in.floats(how.deviation),
                                     .scale = in.floats(scale),
                                     .of_x = in.floats_to(how.result),
                                     .of_scale = in.floats_to(how.of_scale),
                                     .of_shift = in.floats_to(how.of_shift)});
  });
}

void batch_norm(Program& program, const BatchNorm& how) {
  Internals& in = program.internals();
  const Shape channels{how.source.shape[1]};
  const Tensor mean = how.mean ? how.mean : in.temporary(channels),
               deviation = how.deviation ? how.deviation : in.temporary(channels);
  if (how.fixed_statistics) return add_fixed_norm(program, how, mean, deviation);
  const auto stored = [&](const Weight& weight) { return weight ? program.stored(weight) : Tensor{}; };
  in.add("batch_norm", [&in, how, mean, deviation, fused = beside_norm(how.then, how.result), scale = stored(how.scale),
                        shift = stored(how.shift), running_mean = stored(how.running_mean),
                        running_variance = stored(how.running_variance)](Stream on) {
    device::batch_norm(on, {.x = in.source(how.source),
                            .scale = in.floats(scale),
                            .shift = in.floats(shift),
                            .summand = in.source(fused.summand),
                            .low = fused.then.low,
                            .high = fused.then.high,
                            .epsilon = how.epsilon,
                            .momentum = how.momentum,
                            .old_mean = in.floats(running_mean),
                            .old_variance = in.floats(running_variance),
                            .new_mean = in.floats_to(running_mean),
                            .new_variance = in.floats_to(running_variance),
                            .mean = in.floats_to(mean),
                            .deviation = in.floats_to(deviation),
                            .y = in.target(how.result)});
  });
}

void batch_norm_backward(Program& program, const BatchNormBackward& how) {
  Internals& in = program.internals();
  in.add("batch_norm_backward", [&in, how, scale = how.scale ? program.stored(how.scale) : Tensor{}](Stream on) {
    const float* deviation = in.floats(how.deviation);
    device::batch_norm_backward(on, {.gradient = in.source(how.gradient),
                                     .summand = in.source(how.summand),
                                     .activated = in.source(how.activated),
                                     .low = how.low,
                                     .high = how.high,
                                     .x = in.source(how.source),
                                     .mean = in.floats(how.mean),
                                     .deviation = how.fixed_statistics ? nullptr : deviation,
                                     .variance = how.fixed_statistics ? deviation : nullptr,
                                     .scale = in.floats(scale),
                                     .of_x = in.target(how.result),
                                     .masked = in.target(how.masked),
                                     .of_scale = in.floats_to(how.of_scale),
                                     .of_shift = in.floats_to(how.of_shift)});
  });
  if (how.trains_scale) descend(program, {how.scale, how.of_scale});
  if (how.trains_shift) descend(program, {how.shift, how.of_shift});
}

void attention(Program& program, const Attention& how) {
  Internals& in = program.internals();
  const int rank = how.query.shape.rank;
  Shape shape = how.query.shape;
  shape[rank - 1] = how.key.shape[rank - 2];
  const Tensor scaled = in.temporary(how.query.shape), scores = in.temporary(shape);
  apply(program, {how.query, line(how.scale, 0), scaled});
  matrix_product(program, {.left = scaled, .right = how.key, .result = scores, .transposed = true});
  if (how.causal) {
    const Extent rows = shape[rank - 2], columns = shape[rank - 1];
    std::vector<float> mask(static_cast<std::size_t>(rows * columns));
    for (Extent i = 0; i < rows * columns; ++i)
      mask[static_cast<std::size_t>(i)] = i % columns > i / columns ? -std::numeric_limits<float>::infinity() : 0.0F;
    in.add("causal", [&in, scores, view = view_of(Shape{rows, columns}, Layout::plain),
                      at = in.table(mask.data(), mask.size() * sizeof(float))](Stream on) {
      const device::Source above{reinterpret_cast<const float*>(in.table_memory.get() + at), view};
      device::combine(on, in.source(scores), device::Binary::add, above, 1, in.target(scores));
    });
  }
  if (how.mask) add(program, {scores, how.mask, scores});
  softmax(program, {scores, scores, rank - 1});
  matrix_product(program, {.left = scores, .right = how.value, .result = how.result});
}

}  // namespace kit
