// SPDX-License-Identifier: Apache-2.0
#include "primitives/primitives.hpp"

#include <stdexcept>

namespace strata::primitives {
namespace {

constexpr const char* infers_only = "this library of primitives is for inference alone";

}  // namespace

Result<void> Primitives::keep(const graph::Graph&, int) {
  return fail(infers_only, "", Exit::environment);
}
void Primitives::write_kept(int, const std::byte*) {
  throw std::logic_error(infers_only);
}
void Primitives::read_kept(int, std::byte*) const {
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
