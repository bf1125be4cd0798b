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

// Of one axis, or of all elements.
std::vector<Described> place(const Call& call) {
  const auto& self = call.self().shape;
  const auto& node = call.node();
  const bool all = node.find("dim") == nullptr || node.is_null("dim"),
             keep = node.find("keepdim") != nullptr && node.flag("keepdim");
  Shape shape = all ? Shape(keep ? self.size() : 0, 1) : self;
  if (!all && !self.empty()) {
    const auto axis = axis_of(node.integer("dim"), self.size());
    shape[axis] = 1;
    if (!keep) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return {{Type::int64, shape}};
}

std::vector<Described> running_sum(const Call& call) {
  const auto own = is_floating(call.self().type) ? call.self().type : Type::int64;
  axis_of(call.node().integer("dim"), call.self().shape.size());
  return {{type_argument(call, "dtype", own), call.self().shape}};
}

// Values and places, in order along an axis.
std::vector<Described> sort(const Call& call) {
  axis_of(call.node().integer("dim"), call.self().shape.size());
  return {{call.self().type, call.self().shape}, {Type::int64, call.self().shape}};
}

// The k largest or smallest along an axis, and their places.
std::vector<Described> topk(const Call& call) {
  Shape shape = call.self().shape;
  const auto axis = axis_of(call.node().integer("dim"), shape.size());
  const auto k = call.node().integer("k");
  need(k >= 0 && k <= (shape.empty() ? 1 : shape[axis]), "{} of {}", k, to_string(shape));
  if (!shape.empty()) shape[axis] = k;
  return {{call.self().type, shape}, {Type::int64, shape}};
}

}  // namespace

std::span<const Operation> reduction_operations() {
  static constexpr Operation all[] = {{"amax", extreme}, {"amin", extreme},       {"argmax", place},
                                      {"argmin", place}, {"cumsum", running_sum}, {"linalg_vector_norm", norm},
                                      {"mean", mean},    {"sort", sort},          {"sum", sum},
                                      {"topk", topk}};
  return all;
}

}  // namespace strata::graph
