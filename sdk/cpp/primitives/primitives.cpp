// SPDX-License-Identifier: Apache-2.0
#include "primitives/primitives.hpp"

#include <cmath>
#include <stdexcept>

namespace strata::primitives {

AdamStep::AdamStep(const core::Optimiser& optimiser, std::int64_t step) {
  const auto& adam = *optimiser.adam();
  const auto t = static_cast<double>(step);
  const auto narrow = [](double value) { return static_cast<float>(value); };
  beta1 = narrow(adam.beta1), share1 = narrow(1 - adam.beta1);
  beta2 = narrow(adam.beta2), share2 = narrow(1 - adam.beta2);
  decay = adam.decoupled ? 0.0F : narrow(optimiser.weight_decay);
  decay_factor = adam.decoupled ? narrow(1 - optimiser.lr * optimiser.weight_decay) : 1.0F;
  rate = narrow(optimiser.lr / (1 - std::pow(adam.beta1, t)));
  root = narrow(std::sqrt(1 - std::pow(adam.beta2, t)));
  eps = narrow(adam.eps);
}
namespace {

constexpr const char* infers_only = "this library of primitives is for inference alone";

}  // namespace

Result<void> Primitives::declare_trained(const graph::Graph&, int) {
  return fail(infers_only, "", Exit::environment);
}
void Primitives::write_trained(int, const std::byte*) {
  throw std::logic_error(infers_only);
}
void Primitives::read_trained(int, std::byte*) const {
  throw std::logic_error(infers_only);
}
Result<void> Primitives::assign(const graph::Graph&, int, int, Steps&) {
  return fail(infers_only, "", Exit::environment);
}
Result<std::unique_ptr<Update>> Primitives::update(const graph::Graph&, int, int, Steps&) {
  return fail(infers_only, "", Exit::environment);
}
void Primitives::set_dropout(bool) {}
std::optional<std::uint64_t> Primitives::draws() const {
  return std::nullopt;
}
void Primitives::set_draws(std::uint64_t) {}

}  // namespace strata::primitives
