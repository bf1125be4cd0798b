// SPDX-License-Identifier: Apache-2.0
// Elements of any type in order along an axis, and written to computed places: loops of strata's, since oneDNN has no
// call for either.
#include <fmt/format.h>

#include "kit/sorting.hpp"
#include "kit/writing.hpp"
#include "operations.hpp"
#include "typed.hpp"

namespace strata::onednn {
namespace {

void in_order(Builder& b, const kit::sorting::Order& order) {
  const Typed source = typed(b, self_of(b)), values = typed_result(b, 0), places = typed_result(b, 1);
  const auto way = kit::indexing::along(source.shape, b.dimension("dim", source.shape.size()));
  b.own("elements", [=] {
    kit::sorting::run(source.data(), source.type, way, order, values.to(), static_cast<std::int64_t*>(places.to()));
  });
}
void sort(Builder& b) {
  in_order(b, {.descending = b.flag("descending")});
}
void topk(Builder& b) {
  in_order(b, {.descending = b.flag("largest"), .sorted = b.flag("sorted"), .most = b.integer("k")});
}

Typed numbers_of(Builder& b, int value) {
  const Typed numbers = typed(b, value);
  if (numbers.type != kit::Type::int64 && numbers.type != kit::Type::int32)
    throw Unsupported(fmt::format("places by numbers of type {}", graph::name_of(b.graph().value(value).type)));
  return numbers;
}

void scattered(Builder& b, bool adds) {
  if (!b.is_tensor("src") || b.has("reduce")) throw Unsupported("a case of it that is not known");
  const Typed self = typed(b, self_of(b)), source = typed(b, b.node().tensor("src")),
              numbers = numbers_of(b, b.node().tensor("index")), result = typed_result(b);
  const kit::indexing::Scattering scattering{.shape = self.shape,
                                             .of_numbers = numbers.shape,
                                             .of_source = source.shape,
                                             .axis = b.dimension("dim", self.shape.size()),
                                             .type = self.type,
                                             .type_of_numbers = numbers.type,
                                             .adds = adds};
  b.own("elements by numbers", [=] { scattering.run(self.data(), numbers.data(), source.data(), result.to()); });
}
void scatter(Builder& b) {
  scattered(b, false);
}
void scatter_add(Builder& b) {
  scattered(b, true);
}

void index_put(Builder& b) {
  const Typed self = typed(b, self_of(b)), values = typed(b, b.node().tensor("values")), result = typed_result(b);
  std::vector<kit::indexing::List> shapes;
  std::vector<Typed> numbers;
  for (const int list : b.node().tensors("indices")) {
    if (list < 0) {
      shapes.emplace_back();
      continue;
    }
    numbers.push_back(numbers_of(b, list));
    shapes.push_back({true, numbers.back().type, b.graph().value(list).shape});
  }
  b.own("elements by numbers", [self, values, result, numbers, adds = b.flag("accumulate"),
                                picking = kit::indexing::picking(self.shape, shapes, self.type)]() mutable {
    for (std::size_t i = 0; i < numbers.size(); ++i) picking.numbers[i].data = numbers[i].data();
    kit::indexing::put(picking, self.data(), product(self.shape), values.data(), self.type, adds, result.to());
  });
}

}  // namespace

void add_places(Operations& table) {
  table["sort"] = sort;
  table["topk"] = topk;
  table["scatter"] = scatter;
  table["scatter_add"] = scatter_add;
  table["index_put"] = index_put;
}

}  // namespace strata::onednn
