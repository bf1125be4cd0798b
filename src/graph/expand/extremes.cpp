// SPDX-License-Identifier: Apache-2.0
// Maxima and minima with their places; orders without their values.
#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// Of an axis: where the extreme is, with extent 1 there; the first of equal ones.
int place_of(Expansion& e, int value, std::size_t axis, bool largest) {
  return e.call(largest ? "argmax.default" : "argmin.default",
                {tensor_argument("self", value), plain_argument("dim", axis), plain_argument("keepdim", true)},
                "place");
}
int looked_up(Expansion& e, int value, std::size_t axis, int place) {
  return e.call("gather.default",
                {tensor_argument("self", value), plain_argument("dim", axis), tensor_argument("index", place),
                 plain_argument("sparse_grad", false)},
                "looked_up");
}

void reduce(Expansion& e, bool largest, const Shape& axes, bool keeps) {
  e.end(largest ? "amax.default" : "amin.default", {tensor_argument("self", e.node().tensor("self")),
                                                    plain_argument("dim", axes), plain_argument("keepdim", keeps)});
}

void of_all(Expansion& e, bool largest) {
  const int self = e.node().tensor("self");
  if (is_floating(e.type(self))) return reduce(e, largest, {}, false);
  const int row = e.viewed(self, {elements(e.shape(self))}, "row");
  e.end_as(looked_up(e, row, 0, place_of(e, row, 0, largest)));
}

// Values and places. In training the value is looked up: PyTorch hands the gradient to that place alone.
void along_axis(Expansion& e, bool largest) {
  const auto& node = e.node();
  const int self = node.tensor("self");
  const Shape shape = e.shape(self);
  if (shape.empty()) return;
  const auto axis = e.axis("dim", shape.size());
  if (e.infers() && is_floating(e.type(self)) && !e.is_read(1))
    return reduce(e, largest, {static_cast<std::int64_t>(axis)}, node.flag("keepdim"));
  const int place = place_of(e, self, axis, largest);
  const int value = looked_up(e, self, axis, place);
  e.call("view.default", {tensor_argument("self", place), plain_argument("size", e.shape(e.result(1)))}, "indices",
         e.result(1));
  e.end_as(value);
}

void extreme(Expansion& e, bool largest) {
  const auto which = e.node().overload();
  if (which == "default") return of_all(e, largest);
  if (which == "dim") return along_axis(e, largest);
  if (which == "other")
    e.end(largest ? "maximum.default" : "minimum.default",
          {tensor_argument("self", e.node().tensor("self")), tensor_argument("other", e.node().tensor("other"))});
}
void max(Expansion& e) {
  extreme(e, true);
}
void min(Expansion& e) {
  extreme(e, false);
}

// Of truths, whether the largest, or the smallest, is one.
void truth(Expansion& e, bool largest) {
  const auto& node = e.node();
  const auto which = node.overload();
  int self = node.tensor("self");
  if (which != "default" && which != "dim") return;
  if (e.type(self) != Type::boolean)
    self = e.call("ne.Scalar", {tensor_argument("self", self), plain_argument("other", 0)}, "truths");
  const bool whole = which == "default" || e.shape(self).empty();
  if (whole) self = e.viewed(self, {elements(e.shape(self))}, "row");
  const auto axis = whole ? 0 : e.axis("dim", e.shape(self).size());
  e.end_as(looked_up(e, self, axis, place_of(e, self, axis, largest)));
}
void any(Expansion& e) {
  truth(e, true);
}
void all_true(Expansion& e) {
  truth(e, false);
}

// The places of a sort.
void argsort(Expansion& e) {
  const auto& node = e.node();
  const auto* stable = node.find("stable");
  e.calls("sort.stable",
          {tensor_argument("self", node.tensor("self")),
           plain_argument("stable", stable == nullptr ? nlohmann::json(false) : stable->plain),
           plain_argument("dim", node.integer("dim")), plain_argument("descending", node.flag("descending"))},
          "sorted", {-1, e.result()});
}

}  // namespace

std::span<const ExpansionRule> extreme_expansions() {
  static constexpr ExpansionRule all[] = {
      {"all", all_true}, {"any", any}, {"argsort", argsort}, {"max", max}, {"min", min}};
  return all;
}

}  // namespace strata::graph
