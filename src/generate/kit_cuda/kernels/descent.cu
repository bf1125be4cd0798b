// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/kernels/descent.hpp"

namespace kit_cuda {
namespace {

constexpr Index piece_length = 8192;

KIT_DEVICE inline void step(const Rates& rates, float* weight, float* velocity, float gradient, Index i) {
  const float d = gradient + rates.decay * weight[i];
  if (rates.plain) {
    weight[i] -= rates.rate * d;
    return;
  }
  // what a first step finds as velocity may be anything, NaN too
  const float v = (rates.before == 0 ? 0 : rates.before * velocity[i]) + rates.share * d;
  velocity[i] = v;
  weight[i] -= rates.rate * (rates.of_gradient * d + rates.of_velocity * v);
}

}  // namespace

Rates rates_of(const Sgd& sgd, bool has_momentum) {
  const auto momentum = static_cast<float>(sgd.momentum);
  return {static_cast<float>(sgd.rate),
          static_cast<float>(sgd.weight_decay),
          has_momentum ? momentum : 0.0F,
          has_momentum ? static_cast<float>(1 - sgd.dampening) : 1.0F,
          sgd.nesterov ? momentum : 1.0F,
          sgd.nesterov ? 1.0F : 0.0F,
          momentum == 0};
}

void descend(Stream stream, const Rates& given, float* weight, float* velocity, const float* gradient, Index count) {
  const Rates rates = given;
  for_each(stream, count, [=] KIT_DEVICE(Index i) { step(rates, weight, velocity, gradient[i], i); });
}

void descend(Stream stream, const Rates* rates, float* weight, float* velocity, const float* gradient, Index count) {
  for_each(stream, count, [=] KIT_DEVICE(Index i) { step(*rates, weight, velocity, gradient[i], i); });
}

void add_pieces(std::vector<Piece>& pieces, float* weight, float* velocity, const float* gradient, Index count) {
  for (Index begin = 0; begin < count; begin += piece_length)
    pieces.push_back({weight + begin, velocity == nullptr ? nullptr : velocity + begin, gradient + begin,
                      std::min(piece_length, count - begin)});
}

void descend_all(Stream stream, const Rates* rates, const Piece* pieces, Index count) {
  for_each_row(stream, count, piece_length, false, [=] KIT_DEVICE(Index row, const Team& team) {
    const Piece piece = pieces[row];
    for (Index i = team.index; i < piece.count; i += team.size)
      step(*rates, piece.weight, piece.velocity, piece.gradient[i], i);
  });
}

}  // namespace kit_cuda
