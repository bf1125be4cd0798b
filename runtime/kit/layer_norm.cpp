// SPDX-License-Identifier: Apache-2.0
// Layer norm: oneDNN's call in inference; in training loops that keep each row's mean and deviation, and the gradients.
#include <algorithm>
#include <cmath>

#include "kit/internals.hpp"
#include "kit/sums.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

float* data_of(const memory& tensor) {
  return tensor ? static_cast<float*>(tensor.get_data_handle()) : nullptr;
}

struct Forward {
  memory source, scale, shift, result, mean, deviation;
  Extent rows, length;
  double epsilon;

  void operator()() const {
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < rows; ++row) normalise(row);
  }

  void normalise(Extent row) const {
    const float *from = data_of(source) + row * length, *gamma = data_of(scale), *beta = data_of(shift);
    float* to = data_of(result) + row * length;
    const auto count = static_cast<double>(length);
    const auto middle = static_cast<float>(sum_of(length, [&](Extent i) { return from[i]; }) / count);
    const double variance = sum_of(length, [&](Extent i) { return (from[i] - middle) * (from[i] - middle); }) / count;
    const auto inverse = static_cast<float>(1 / std::sqrt(variance + epsilon));
    data_of(mean)[row] = middle;
    data_of(deviation)[row] = inverse;
    for (Extent i = 0; i < length; ++i) to[i] = (from[i] - middle) * inverse;
    for (Extent i = 0; gamma != nullptr && i < length; ++i) to[i] *= gamma[i];
    for (Extent i = 0; beta != nullptr && i < length; ++i) to[i] += beta[i];
  }
};

struct Backward {
  memory gradient, source, mean, deviation, scale, result, of_scale, of_shift;
  Extent rows, length;

  void operator()() const {
    if (result) {
#pragma omp parallel for schedule(static)
      for (Extent row = 0; row < rows; ++row)
        data_of(scale) != nullptr ? differentiate<true>(row) : differentiate<false>(row);
    }
    if (!of_scale && !of_shift) return;
#pragma omp parallel for schedule(static)
    for (Extent first = 0; first < length; first += columns_of_sum)
      differentiate_columns(first, std::min(columns_of_sum, length - first));
  }

 private:
  template <bool scaled>
  void differentiate(Extent row) const {
    const float *above = data_of(gradient) + row * length, *from = data_of(source) + row * length,
                *gamma = data_of(scale), middle = data_of(mean)[row], inverse = data_of(deviation)[row];
    float* to = data_of(result) + row * length;
    const auto incoming = [&](Extent i) { return scaled ? above[i] * gamma[i] : above[i]; };
    const auto count = static_cast<double>(length);
    const auto flat = static_cast<float>(sum_of(length, incoming) / count);
    const auto slope = static_cast<float>(
        sum_of(length, [&](Extent i) { return incoming(i) * ((from[i] - middle) * inverse); }) / count);
    for (Extent i = 0; i < length; ++i) to[i] = inverse * (incoming(i) - flat - (from[i] - middle) * inverse * slope);
  }

  // Of a few columns over all rows, so that threads share no sum.
  void differentiate_columns(Extent first, Extent count) const {
    const auto gradients = [&](Extent row) {
      const float* above = data_of(gradient) + row * length + first;
      return [above](Extent i) { return above[i]; };
    };
    const auto products = [&](Extent row) {
      const float *above = data_of(gradient) + row * length + first, *from = data_of(source) + row * length + first;
      const float middle = data_of(mean)[row], inverse = data_of(deviation)[row];
      return [=](Extent i) { return above[i] * ((from[i] - middle) * inverse); };
    };
    double totals[columns_of_sum];
    const auto store = [&](const memory& into, const auto& values) {
      if (!into) return;
      sum_columns(rows, count, values, totals);
      for (Extent i = 0; i < count; ++i) data_of(into)[first + i] = static_cast<float>(totals[i]);
    };
    store(of_scale, products);
    store(of_shift, gradients);
  }
};

void add_with_statistics(Program& program, const LayerNorm& how) {
  Internals& in = program.internals();
  in.add_own(Forward{handle_of(in, how.source), stored_handle(program, how.scale), stored_handle(program, how.shift),
                     handle_of(in, how.result), handle_of(in, how.mean), handle_of(in, how.deviation),
                     rows_of(how.source, how.over), how.over, static_cast<double>(how.epsilon)},
             false, "kit:layer_norm");
}

}  // namespace

void layer_norm(Program& program, const LayerNorm& how) {
  if (how.mean) return add_with_statistics(program, how);
  Internals& in = program.internals();
  using flag = dnnl::normalization_flags;
  const Extent rows = rows_of(how.source, how.over);
  const auto desc = row_major({rows, how.over}, how.source.type), result = row_major({rows, how.over}, how.result.type),
             of_weight = row_major({how.over});
  auto flags = flag::none;
  if (how.scale) flags |= flag::use_scale;
  if (how.shift) flags |= flag::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc pd(in.engine, dnnl::prop_kind::forward_inference, desc,
                                                             result, how.epsilon, flags, plain_attributes());
  std::vector<std::pair<int, memory>> arguments{{DNNL_ARG_SRC, in.handle(how.source, desc)},
                                                {DNNL_ARG_DST, in.handle(how.result, result)}};
  if (how.scale) arguments.emplace_back(DNNL_ARG_SCALE, in.packed(how.scale, of_weight, of_weight));
  if (how.shift) arguments.emplace_back(DNNL_ARG_SHIFT, in.packed(how.shift, of_weight, of_weight));
  in.add(dnnl::layer_normalization_forward(pd), pd, std::move(arguments));
}

void layer_norm_backward(Program& program, const LayerNormBackward& how) {
  Internals& in = program.internals();
  in.add_own(
      Backward{handle_of(in, how.gradient), handle_of(in, how.source), handle_of(in, how.mean),
               handle_of(in, how.deviation), stored_handle(program, how.scale), handle_of(in, how.result),
               handle_of(in, how.of_scale), handle_of(in, how.of_shift), rows_of(how.source, how.over), how.over},
      false, "kit:layer_norm_backward");
}

}  // namespace kit
