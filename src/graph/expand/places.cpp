// SPDX-License-Identifier: Apache-2.0
// Elements written to computed places: one form of each.
#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// A tensor of this number, with the shape of another one; a graph makes no tensors of its own.
int filled(Expansion& e, int like, Type type, const Argument& number) {
  const int zeros = e.call("zeros_like.default",
                           {tensor_argument("self", like), plain_argument("dtype", name_of(Type::float32))}, "zeros");
  const int all = e.call(
      "add.Scalar", {tensor_argument("self", zeros), plain_argument("other", number.plain), plain_argument("alpha", 1)},
      "filled");
  if (type == Type::float32) return all;
  return e.call("_to_copy.default", {tensor_argument("self", all), plain_argument("dtype", name_of(type))}, "cast");
}

// One number, written to every place.
void scatter(Expansion& e) {
  const auto& node = e.node();
  if (node.find("value") == nullptr || node.find("reduce") != nullptr) return;
  const int self = node.tensor("self"), index = node.tensor("index");
  const int source = filled(e, index, e.type(self), *node.find("value"));
  e.end("scatter.src", {tensor_argument("self", self), plain_argument("dim", node.integer("dim")),
                        tensor_argument("index", index), tensor_argument("src", source)});
}

// Where a mask is true one value.
void put_where(Expansion& e, int self, int mask, int values) {
  Shape shape = e.shape(mask);
  shape.resize(e.shape(self).size(), 1);
  const int value = e.viewed(values, Shape(shape.size(), 1), "value");
  e.end("where.self", {tensor_argument("condition", e.viewed(mask, shape, "mask")), tensor_argument("self", value),
                       tensor_argument("other", self)});
}

// The shape of what lists name in `self`.
Shape places_of(const Expansion& e, const std::vector<int>& lists) {
  return e
      .described("index.Tensor", {tensor_argument("self", e.node().tensor("self")), tensors_argument("indices", lists)})
      .shape;
}

// self with the values, in the shape of what they replace, at the places that the lists name.
void put(Expansion& e, const std::vector<int>& lists, int values, bool adds) {
  const int self = e.node().tensor("self");
  const Shape places = places_of(e, lists);
  if (e.shape(values) != places)
    values = e.call("expand.default", {tensor_argument("self", values), plain_argument("size", places)}, "values");
  e.end("index_put.default", {tensor_argument("self", self), tensors_argument("indices", lists),
                              tensor_argument("values", values), plain_argument("accumulate", adds)});
}

void index_put(Expansion& e) {
  const auto& node = e.node();
  const auto& lists = node.tensors("indices");
  const int self = node.tensor("self"), values = node.tensor("values");
  const bool adds = node.flag("accumulate");
  const bool by_mask = lists.size() == 1 && lists[0] >= 0 && e.type(lists[0]) == Type::boolean;
  if (by_mask && !adds && elements(e.shape(values)) == 1) return put_where(e, self, lists[0], values);
  for (const int list : lists)
    if (list >= 0 && e.type(list) == Type::boolean) return;
  if (e.shape(values) != places_of(e, lists)) put(e, lists, values, adds);
}

// By a list of one axis.
void put_along(Expansion& e, const char* source, bool adds) {
  const auto& node = e.node();
  const auto rank = e.shape(node.tensor("self")).size();
  if (rank == 0) return;
  std::vector<int> lists(e.axis("dim", rank), -1);
  lists.push_back(node.tensor("index"));
  int values = node.tensor(source);
  if (node.find("alpha") != nullptr && node.number("alpha") != 1)
    values = e.call("mul.Scalar", {tensor_argument("self", values), plain_argument("other", node.find("alpha")->plain)},
                    "scaled");
  put(e, lists, values, adds);
}
void index_add(Expansion& e) {
  put_along(e, "source", true);
}
void index_copy(Expansion& e) {
  put_along(e, "source", false);
}

// One number, written to all parts of an axis that a list names.
void index_fill(Expansion& e) {
  const auto& node = e.node();
  const int self = node.tensor("self");
  if (node.is_tensor("value") || e.shape(self).empty() || elements(e.shape(self)) == 0) return;
  const int row = e.viewed(self, {elements(e.shape(self))}, "row");
  std::vector<int> lists(e.axis("dim", e.shape(self).size()), -1);
  lists.push_back(node.tensor("index"));
  const int value = filled(e, e.sliced(row, 0, 0, 1, "one"), e.type(self), *node.find("value"));
  put(e, lists, e.viewed(value, Shape(e.shape(self).size(), 1), "value"), false);
}

// The tensor with one of an axis' parts replaced.
void select_scatter(Expansion& e) {
  const auto& node = e.node();
  const int self = node.tensor("self"), part = node.tensor("src");
  Shape shape = e.shape(self);
  if (shape.empty()) return;
  const auto axis = e.axis("dim", shape.size());
  const auto index = node.integer("index") + (node.integer("index") < 0 ? shape[axis] : 0);
  shape[axis] = 1;
  e.end("slice_scatter.default", {tensor_argument("self", self), tensor_argument("src", e.viewed(part, shape, "part")),
                                  plain_argument("dim", axis), plain_argument("start", index),
                                  plain_argument("end", index + 1), plain_argument("step", 1)});
}

}  // namespace

std::span<const ExpansionRule> place_expansions() {
  static constexpr ExpansionRule all[] = {{"index_add", index_add},   {"index_copy", index_copy},
                                          {"index_fill", index_fill}, {"index_put", index_put},
                                          {"scatter", scatter},       {"select_scatter", select_scatter}};
  return all;
}

}  // namespace strata::graph
