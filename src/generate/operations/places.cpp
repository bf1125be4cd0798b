// SPDX-License-Identifier: Apache-2.0
// Elements of any type in order, and written to computed places.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generate/operations.hpp"

namespace strata::generate {
namespace {

void need_processor(const Emitter& e) {
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
}

// Numbers of places, as the kit reads them.
std::string numbers_of(const Emitter& e, int value) {
  if (e.type(value) != graph::Type::int64 && e.type(value) != graph::Type::int32)
    throw Unsupported(fmt::format("places by numbers of type {}", graph::name_of(e.type(value))));
  return e.tensor(value);
}

// A scalar is a line of one element.
Fields order(const Emitter& e) {
  need_processor(e);
  const auto rank = e.shape(e.self()).size();
  const auto as_line = [&](const std::string& tensor) { return rank == 0 ? tensor + ".as({1})" : tensor; };
  const auto result = [&](std::size_t i) { return e.is_used(e.output(i)) ? as_line(e.result(i)) : std::string(); };
  return {{"source", as_line(e.tensor(e.self()))},
          {"axis", std::to_string(e.dimension("dim", std::max<std::size_t>(rank, 1)))},
          {"values", result(0)},
          {"places", result(1)}};
}

// Fields have the order of their declaration.
void call_sort(Emitter& e, const std::string& descending, const std::string& sorted, const std::string& most) {
  auto fields = order(e);
  fields.insert(fields.begin() + 2, {{"descending", descending}, {"sorted", sorted}, {"most", most}});
  e.call("sort", fields);
}
void sort(Emitter& e) {
  call_sort(e, e.node().flag("descending") ? "true" : "", "", "");
}
void topk(Emitter& e) {
  call_sort(e, e.node().flag("largest") ? "true" : "", e.node().flag("sorted") ? "" : "false",
            std::to_string(e.node().integer("k")));
}

void scattered(Emitter& e, bool adds) {
  need_processor(e);
  const int self = e.node().tensor("self");
  if (e.shape(self).empty()) throw Unsupported("of a scalar");
  if (!e.is_tensor("src") || e.has("reduce")) throw Unsupported("a case of it that is not known");
  e.call("scatter", {{"self", e.tensor(self)},
                     {"source", e.tensor(e.node().tensor("src"))},
                     {"numbers", numbers_of(e, e.node().tensor("index"))},
                     {"axis", std::to_string(e.dimension("dim", e.shape(self).size()))},
                     {"result", e.result()},
                     {"adds", adds ? "true" : ""}});
}
void scatter(Emitter& e) {
  scattered(e, false);
}
void scatter_add(Emitter& e) {
  scattered(e, true);
}

void index_put(Emitter& e) {
  need_processor(e);
  std::vector<std::string> numbers;
  for (const int list : e.node().tensors("indices")) numbers.push_back(list < 0 ? "{}" : numbers_of(e, list));
  e.call("put", {{"self", e.tensor(e.node().tensor("self"))},
                 {"values", e.tensor(e.node().tensor("values"))},
                 {"numbers", fmt::format("{{{}}}", fmt::join(numbers, ", "))},
                 {"result", e.result()},
                 {"adds", e.node().flag("accumulate") ? "true" : ""}});
}

}  // namespace

void add_places(Operations& table) {
  table["sort"] = sort;
  table["topk"] = topk;
  table["scatter"] = scatter;
  table["scatter_add"] = scatter_add;
  table["index_put"] = index_put;
}

}  // namespace strata::generate
