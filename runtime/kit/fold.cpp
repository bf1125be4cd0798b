// SPDX-License-Identifier: Apache-2.0
// Steps of load(): a batch norm with given statistics, folded into the weights before it.
#include <cmath>

#include "kit/loading.hpp"
#include "kit/operations.hpp"

namespace kit {
namespace {

Weight add_computed(Loading& in, Shape shape) {
  in.weights.emplace_back();
  in.weights.back().shape = shape;
  return {static_cast<int>(in.weights.size()) - 1, shape};
}

std::vector<int> numbers_of(std::initializer_list<Weight> weights) {
  std::vector<int> all;
  for (const Weight& weight : weights)
    if (weight) all.push_back(weight.number);
  return all;
}

// Element `i` as float64, or `none` for a weight that is left out.
double at(const Loading& in, Weight weight, Extent i, double none) {
  return weight ? static_cast<double>(in.weights[static_cast<std::size_t>(weight.number)].data[i]) : none;
}

}  // namespace

Weight scale_weight(Program& program, const ScaleWeight& how) {
  Loading& in = program.loading();
  const Weight folded = add_computed(in, how.weight ? how.weight.shape : how.variance.shape);
  in.add_load_step(
      {numbers_of({how.weight, how.scale, how.variance}), folded.number, [&in, how, folded] {
         const Extent channels = folded.shape[0], each = channels == 0 ? 0 : folded.shape.elements() / channels;
         float* to = in.allocate_computed(folded.number);
         const float* from = how.weight ? in.weights[static_cast<std::size_t>(how.weight.number)].data : nullptr;
#pragma omp parallel for schedule(static)
         for (Extent c = 0; c < channels; ++c) {
           const double factor = at(in, how.scale, c, 1) / std::sqrt(at(in, how.variance, c, 0) + how.epsilon);
           for (Extent i = c * each; i < (c + 1) * each; ++i)
             to[i] = static_cast<float>((from == nullptr ? 1.0 : static_cast<double>(from[i])) * factor);
         }
       }});
  return folded;
}

Weight shift_bias(Program& program, const ShiftBias& how) {
  Loading& in = program.loading();
  const Weight folded = add_computed(in, how.mean.shape);
  in.add_load_step(
      {numbers_of({how.bias, how.mean, how.scale, how.variance, how.shift}), folded.number, [&in, how, folded] {
         float* to = in.allocate_computed(folded.number);
         for (Extent c = 0; c < folded.shape.elements(); ++c) {
           const double factor = at(in, how.scale, c, 1) / std::sqrt(at(in, how.variance, c, 0) + how.epsilon);
           to[c] =
               static_cast<float>((at(in, how.bias, c, 0) - at(in, how.mean, c, 0)) * factor + at(in, how.shift, c, 0));
         }
       }});
  return folded;
}

}  // namespace kit
