// SPDX-License-Identifier: Apache-2.0
// Sums, means, maxima and norms over axes.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

Shape reduced(const Call& call) {
  const auto& self = call.self();
  const auto& node = call.node();
  // mean.default has no axes: all
  const auto dims = node.find("dim") == nullptr ? std::vector<std::int64_t>()
                                                : node.maybe_ints("dim").value_or(std::vector<std::int64_t>());
  const bool keep = node.find("keepdim") != nullptr && node.flag("keepdim");
  const auto chosen = axes_of(dims, self.shape.size());
  Shape shape;
  for (std::size_t i = 0; i < self.shape.size(); ++i) {
    if (!chosen[i]) shape.push_back(self.shape[i]);
    if (chosen[i] && keep) shape.push_back(1);
  }
  return shape;
}

std::vector<Described> mean(const Call& call) {
  const auto type = type_argument(call, "dtype", call.self().type);
  need(is_floating(type), "the mean of {} is not defined", name_of(type));
  return {{type, reduced(call)}};
}

std::vector<Described> sum(const Call& call) {
  const auto own = is_floating(call.self().type) ? call.self().type : Type::int64;
  return {{type_argument(call, "dtype", own), reduced(call)}};
}

std::vector<Described> extreme(const Call& call) {
  return {{call.self().type, reduced(call)}};
}

std::vector<Described> norm(const Call& call) {
  return {{type_argument(call, "dtype", call.self().type), reduced(call)}};
}

}  // namespace

std::span<const Operation> reduction_operations() {
  static constexpr Operation all[] = {
      {"amax", extreme}, {"amin", extreme}, {"linalg_vector_norm", norm}, {"mean", mean}, {"sum", sum}};
  return all;
}

}  // namespace strata::graph
