// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/kernels/dropout.hpp"

namespace kit_cuda {
namespace {

KIT_DEVICE inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

void count_step(Stream stream, DropoutState* state) {
  for_each(stream, 1, [=] KIT_DEVICE(Index) { ++state->step; });
}

void dropout(Stream stream, const Dropout& how, Source x, Strided<std::uint8_t> mask, Target y) {
  const auto places = walk<3>({x.view, y.view, mask.view});
  const auto* state = how.state;
  const std::uint64_t layer = how.layer;
  const float scale = how.p == 1 ? 0.0F : static_cast<float>(1 / (1 - how.p));
  const auto limit = static_cast<std::uint64_t>((1 - how.p) * 9007199254740992.0);  // 2^53
  const float* from = x.data;
  float* to = y.data;
  auto* keeps = mask.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[3];
    places.find(i, at);
    const auto key = mixed(mixed(layer) + state->step);
    const bool keep = (mixed(key + static_cast<std::uint64_t>(at[2])) >> 11) < limit;
    keeps[at[2]] = keep ? 1 : 0;
    to[at[1]] = state->on == 0 ? from[at[0]] : keep ? from[at[0]] * scale : 0;
  });
}

void dropout_backward(Stream stream, const DropoutState* state, Source gradient, Strided<const std::uint8_t> mask,
                      float scale, Target to) {
  const auto places = walk<3>({gradient.view, mask.view, to.view});
  const float* from = gradient.data;
  const auto* keeps = mask.data;
  float* into = to.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[3];
    places.find(i, at);
    into[at[2]] = state->on == 0 ? from[at[0]] : keeps[at[1]] != 0 ? from[at[0]] * scale : 0;
  });
}

}  // namespace kit_cuda
