// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kit_cuda/kernels/descent.hpp"

namespace kit_cuda {
namespace {

constexpr Index piece_length = 8192;

KIT_DEVICE inline void adam_step(const Rates& rates, const Place& place, float gradient, Index i) {
  const float d = gradient + rates.decay * place.weight[i];
  // what a first step finds in the buffers may be anything, NaN too
  const float m = (rates.first != 0 ? 0 : rates.before * place.first[i]) + rates.share * d;
  const float v = (rates.first != 0 ? 0 : rates.square_before * place.second[i]) + rates.square_share * d * d;
  place.first[i] = m;
  place.second[i] = v;
  place.weight[i] = rates.decay_factor * place.weight[i] - rates.rate * m / (std::sqrt(v) / rates.root + rates.eps);
}

KIT_DEVICE inline void step(const Rates& rates, const Place& place, float gradient, Index i) {
  if (rates.adam != 0) return adam_step(rates, place, gradient, i);
  const float d = gradient + rates.decay * place.weight[i];
  if (rates.plain != 0) {
    place.weight[i] -= rates.rate * d;
    return;
  }
  const float v = (rates.before == 0 ? 0 : rates.before * place.first[i]) + rates.share * d;
  place.first[i] = v;
  place.weight[i] -= rates.rate * (rates.of_gradient * d + rates.of_velocity * v);
}

Place at(const Place& place, Index i) {
  return {place.weight + i, place.first == nullptr ? nullptr : place.first + i,
          place.second == nullptr ? nullptr : place.second + i};
}

}  // namespace

Rates rates_of(const Sgd& sgd, bool has_momentum) {
  const auto momentum = static_cast<float>(sgd.momentum);
  return {.rate = static_cast<float>(sgd.rate),
          .decay = static_cast<float>(sgd.weight_decay),
          .before = has_momentum ? momentum : 0.0F,
          .share = has_momentum ? static_cast<float>(1 - sgd.dampening) : 1.0F,
          .of_velocity = sgd.nesterov ? momentum : 1.0F,
          .of_gradient = sgd.nesterov ? 1.0F : 0.0F,
          .plain = momentum == 0 ? 1 : 0};
}

Rates rates_of(const Adam& adam, std::int64_t done, bool has_buffers) {
  const auto t = static_cast<double>(done + 1);
  const auto narrow = [](double value) { return static_cast<float>(value); };
  return {.rate = narrow(adam.rate / (1 - std::pow(adam.beta1, t))),
          .decay = adam.decoupled ? 0.0F : narrow(adam.weight_decay),
          .before = narrow(adam.beta1),
          .share = narrow(1 - adam.beta1),
          .square_before = narrow(adam.beta2),
          .square_share = narrow(1 - adam.beta2),
          .decay_factor = adam.decoupled ? narrow(1 - adam.rate * adam.weight_decay) : 1.0F,
          .root = narrow(std::sqrt(1 - std::pow(adam.beta2, t))),
          .eps = narrow(adam.eps),
          .plain = 0,
          .adam = 1,
          .first = has_buffers ? 0 : 1};
}

void descend(Stream stream, const Rates& description, Place place, const float* gradient, Index count) {
  const Rates rates = description;
  for_each(stream, count, [=] KIT_DEVICE(Index i) { step(rates, place, gradient[i], i); });
}

void descend(Stream stream, const Rates* rates, Place place, const float* gradient, Index count) {
  for_each(stream, count, [=] KIT_DEVICE(Index i) { step(*rates, place, gradient[i], i); });
}

void add_pieces(std::vector<Piece>& pieces, Place place, const float* gradient, Index count) {
  for (Index begin = 0; begin < count; begin += piece_length)
    pieces.push_back({at(place, begin), gradient + begin, std::min(piece_length, count - begin)});
}

void descend_all(Stream stream, const Rates* rates, const Piece* pieces, Index count) {
  for_each_row(stream, count, piece_length, false, [=] KIT_DEVICE(Index row, const Team& team) {
    const Piece piece = pieces[row];
    for (Index i = team.index; i < piece.count; i += team.size) step(*rates, piece.place, piece.gradient[i], i);
  });
}

}  // namespace kit_cuda
