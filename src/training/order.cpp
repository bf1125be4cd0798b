// SPDX-License-Identifier: Apache-2.0
#include "training/order.hpp"

#include <numeric>

#include "common/safetensors.hpp"
#include "stats/schedule.hpp"

namespace strata::training {
namespace {

template <class T>
TensorView view_of(const char* dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

Order draw_order(std::int64_t images, std::int64_t batch, const Augment& augment, std::uint64_t seed, int repeat,
                 int epoch) {
  // Far apart in the generator's sequence, so that no epoch repeats another's draws.
  stats::Random random(seed ^ (0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(repeat + 1)) ^
                       (0xd1b54a32d192ed03ULL * static_cast<std::uint64_t>(epoch + 1)));
  Order order;
  order.batch = batch;
  order.steps = images / batch;
  order.samples.resize(static_cast<std::size_t>(images));
  std::iota(order.samples.begin(), order.samples.end(), 0);
  random.shuffle(order.samples);
  order.samples.resize(static_cast<std::size_t>(order.steps * batch));
  if (augment.flip)
    for (std::size_t i = 0; i < order.samples.size(); ++i)
      order.flip.push_back(static_cast<std::uint8_t>(random.below(2)));
  if (augment.shift > 0)
    for (std::size_t i = 0; i < 2 * order.samples.size(); ++i)
      order.shift.push_back(static_cast<std::int8_t>(
          static_cast<int>(random.below(2 * static_cast<std::uint64_t>(augment.shift) + 1)) - augment.shift));
  return order;
}

Result<void> write_order(const std::filesystem::path& path, const Order& order) {
  std::vector<std::pair<std::string, TensorView>> tensors{
      {"samples", view_of("I64", {order.steps, order.batch}, order.samples)}};
  if (!order.flip.empty()) tensors.emplace_back("flip", view_of("U8", {order.steps, order.batch}, order.flip));
  if (!order.shift.empty()) tensors.emplace_back("shift", view_of("I8", {order.steps, order.batch, 2}, order.shift));
  return write_safetensors(path, tensors);
}

}  // namespace strata::training
