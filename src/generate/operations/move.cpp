// SPDX-License-Identifier: Apache-2.0
// Operations that compute nothing: other orders, parts, concatenation, padding, broadcasts, layouts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "generate/operations.hpp"

namespace strata::generate {
namespace {

using Numbers = std::vector<std::int64_t>;

void need_plain(const Emitter& e) {
  if (e.layout(e.self()) != compiler::Layout::plain || e.layout(e.output()) != compiler::Layout::plain)
    throw Unsupported("a part or another order of a tensor that is not row-major");
}

void reorder(Emitter& e) {
  e.call("reorder", {{"source", e.tensor(e.self())}, {"result", e.result()}});
}

// A node that could be a view, but is not: the same elements in another shape.
void reshape(Emitter& e) {
  need_plain(e);
  const auto& shape = e.shape(e.output());
  e.call("reorder", {{"source", fmt::format("{}.as({})", e.tensor(e.self()), braces(shape))}, {"result", e.result()}});
}

void permuted(Emitter& e, const Numbers& order) {
  need_plain(e);
  e.call("permute", {{"source", e.tensor(e.self())}, {"order", braces(order)}, {"result", e.result()}});
}

void permute(Emitter& e) {
  Numbers order = e.node().ints("dims");
  for (auto& dim : order) dim += dim < 0 ? static_cast<std::int64_t>(order.size()) : 0;
  permuted(e, order);
}

void exchange(Emitter& e, std::int64_t first, std::int64_t second) {
  Numbers order(e.shape(e.self()).size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order.at(static_cast<std::size_t>(first)), order.at(static_cast<std::size_t>(second)));
  permuted(e, order);
}

void transpose(Emitter& e) {
  const auto rank = e.shape(e.self()).size();
  exchange(e, e.dimension("dim0", rank), e.dimension("dim1", rank));
}
void matrix_transpose(Emitter& e) {
  if (e.shape(e.self()).size() < 2) return reshape(e);
  exchange(e, 0, 1);
}

void expand(Emitter& e) {
  need_plain(e);
  e.call("expand", {{"source", e.tensor(e.self())}, {"result", e.result()}});
}

// `length` along a dimension from `begin` on, in steps, as output i.
void part(Emitter& e, std::int64_t dim, std::int64_t begin, std::int64_t length, std::int64_t step, std::size_t i) {
  const auto at = static_cast<std::size_t>(dim);
  Numbers of = e.shape(e.self()), from(of.size(), 0), steps(of.size(), 1);
  of[at] = length;
  from[at] = begin;
  steps[at] = step;
  const bool same = e.shape(e.output(i)) == of;
  e.call("copy", {{"source", e.tensor(e.self())},
                  {"from", braces(from)},
                  {"step", step == 1 ? "" : braces(steps)},
                  {"length", braces(of)},
                  {"result", same ? e.result(i) : fmt::format("{}.as({})", e.result(i), braces(of))}});
}

std::int64_t start_of_slice(const Emitter& e, std::int64_t extent) {
  const auto start = e.has("start") ? e.node().integer("start") : 0;
  return std::clamp<std::int64_t>(start < 0 ? start + extent : start, 0, extent);
}

void slice(Emitter& e) {
  need_plain(e);
  const auto& of = e.shape(e.self());
  const auto dim = e.dimension("dim", of.size());
  part(e, dim, start_of_slice(e, of[static_cast<std::size_t>(dim)]), e.shape(e.output())[static_cast<std::size_t>(dim)],
       e.node().integer("step"), 0);
}

void select(Emitter& e) {
  need_plain(e);
  const auto& of = e.shape(e.self());
  const auto dim = e.dimension("dim", of.size());
  const auto index = e.node().integer("index");
  part(e, dim, index < 0 ? index + of[static_cast<std::size_t>(dim)] : index, 1, 1, 0);
}

// Zeros but for the gradient of a part, in steps from `begin` on along a dimension.
void part_of_zeros(Emitter& e, std::int64_t dim, std::int64_t begin, std::int64_t step, const Numbers& length) {
  need_plain(e);
  const auto at = static_cast<std::size_t>(dim);
  Numbers to(e.shape(e.output()).size(), 0), steps(to.size(), 1);
  to[at] = begin;
  steps[at] = step;
  e.call("fill", {{"result", e.result()}});
  e.call("copy", {{"source", fmt::format("{}.as({})", e.tensor(e.self()), braces(length))},
                  {"length", braces(length)},
                  {"result", e.result()},
                  {"to", braces(to)},
                  {"result_step", step == 1 ? "" : braces(steps)}});
}

void slice_backward(Emitter& e) {
  const auto& of = e.shape(e.output());
  const auto dim = e.dimension("dim", of.size());
  part_of_zeros(e, dim, start_of_slice(e, of[static_cast<std::size_t>(dim)]), e.node().integer("step"),
                e.shape(e.self()));
}

void select_backward(Emitter& e) {
  Numbers length = e.shape(e.output());
  const auto dim = e.dimension("dim", length.size());
  auto index = e.node().integer("index");
  if (index < 0) index += length[static_cast<std::size_t>(dim)];
  length[static_cast<std::size_t>(dim)] = 1;
  part_of_zeros(e, dim, index, 1, length);
}

// chunk, split, unbind: parts one behind the other along a dimension, as their shapes say.
void divide_up(Emitter& e) {
  need_plain(e);
  const auto& of = e.shape(e.self());
  const auto dim = e.dimension("dim", of.size());
  const bool keeps = e.node().operation() != "unbind";
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < e.node().outputs.size(); ++i) {
    const auto length = keeps ? e.shape(e.output(i))[static_cast<std::size_t>(dim)] : 1;
    if (e.is_used(e.output(i))) part(e, dim, begin, length, 1, i);
    begin += length;
  }
}

// cat and stack, whose tensors first get an axis of one element.
void concatenate(Emitter& e) {
  auto shape = e.shape(e.output());
  const auto axis = e.dimension("dim", shape.size());
  shape.at(static_cast<std::size_t>(axis)) = 1;
  const auto as = e.node().operation() == "stack" ? fmt::format(".as({})", braces(shape)) : "";
  std::vector<std::string> sources;
  for (const int value : e.node().tensors("tensors")) sources.push_back(e.tensor(value) + as);
  e.call("concatenate", {{"sources", fmt::format("{{{}}}", fmt::join(sources, ", "))},
                         {"axis", std::to_string(axis)},
                         {"result", e.result()}});
}

void pad(Emitter& e) {
  if (e.has("mode") && e.node().text("mode") != "constant")
    throw Unsupported("padding in the mode " + e.node().text("mode"));
  need_plain(e);
  const auto widths = e.node().ints("pad");
  if (std::any_of(widths.begin(), widths.end(), [](auto width) { return width < 0; }))
    throw Unsupported("negative padding");
  Numbers to(e.shape(e.output()).size(), 0);
  for (std::size_t i = 0; i < widths.size() / 2; ++i) to[to.size() - 1 - i] = widths[2 * i];
  e.call("fill", {{"result", e.result()}, {"value", float_literal(e.has("value") ? e.node().number("value") : 0)}});
  e.call("copy", {{"source", e.tensor(e.self())},
                  {"length", braces(e.shape(e.self()))},
                  {"result", e.result()},
                  {"to", braces(to)}});
}

void roll(Emitter& e) {
  need_plain(e);
  Numbers shifts = e.node().ints("shifts"), over = e.node().ints("dims");
  if (shifts.size() != over.size()) throw Unsupported("a roll of the flattened tensor");
  const auto& dims = e.shape(e.self());
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i] < 0) over[i] += static_cast<std::int64_t>(dims.size());
    const auto extent = std::max<std::int64_t>(dims.at(static_cast<std::size_t>(over[i])), 1);
    shifts[i] = (shifts[i] % extent + extent) % extent;
  }
  // each rolled dimension falls into two pieces
  for (std::size_t piece = 0; piece < (std::size_t{1} << over.size()); ++piece) {
    Numbers from(dims.size(), 0), to(dims.size(), 0), length = dims;
    for (std::size_t i = 0; i < over.size(); ++i) {
      const auto d = static_cast<std::size_t>(over[i]);
      const bool wraps = (piece >> i & 1) != 0;
      length[d] = wraps ? shifts[i] : dims[d] - shifts[i];
      from[d] = wraps ? dims[d] - shifts[i] : 0;
      to[d] = wraps ? 0 : shifts[i];
    }
    if (std::find(length.begin(), length.end(), 0) == length.end())
      e.call("copy", {{"source", e.tensor(e.self())},
                      {"from", braces(from)},
                      {"length", braces(length)},
                      {"result", e.result()},
                      {"to", braces(to)}});
  }
}

void with_rows(Emitter& e, const char* function, int source, int rows) {
  need_plain(e);
  e.call(function, {{"source", e.tensor(source)}, {"rows", e.tensor(rows)}, {"result", e.result()}});
}

void need_numbers(const Emitter& e, int value) {
  if (e.type(value) != graph::Type::int64 && e.type(value) != graph::Type::int32)
    throw Unsupported(fmt::format("a lookup by numbers of type {}", graph::name_of(e.type(value))));
}

// Rows of a table by a list of numbers, or any elements by several.
void index(Emitter& e) {
  const auto& lists = e.node().tensors("indices");
  for (const int list : lists)
    if (list >= 0) need_numbers(e, list);
  if (lists.size() == 1) return with_rows(e, "look_up", e.self(), lists.front());
  if (e.target() == compiler::Target::cuda)
    throw Unsupported("a lookup by several lists, or not in the first dimension, on a GPU");
  need_plain(e);
  std::vector<std::string> numbers;
  for (const int list : lists) numbers.push_back(list < 0 ? "{}" : e.tensor(list));
  e.call("pick", {{"source", e.tensor(e.self())},
                  {"numbers", fmt::format("{{{}}}", fmt::join(numbers, ", "))},
                  {"result", e.result()}});
}

// Along one axis.
void index_select(Emitter& e) {
  need_plain(e);
  need_numbers(e, e.node().tensor("index"));
  const auto axis = e.dimension("dim", e.shape(e.self()).size());
  std::vector<std::string> numbers(static_cast<std::size_t>(axis), "{}");
  numbers.push_back(e.tensor(e.node().tensor("index")));
  e.call("pick", {{"source", e.tensor(e.self())},
                  {"numbers", fmt::format("{{{}}}", fmt::join(numbers, ", "))},
                  {"result", e.result()}});
}

void along_axis(Emitter& e, const char* function, Fields fields) {
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
  need_plain(e);
  fields.insert(fields.begin(), {"source", e.tensor(e.self())});
  fields.emplace_back("axis", std::to_string(e.dimension("dim", std::max<std::size_t>(e.shape(e.self()).size(), 1))));
  fields.emplace_back("result", e.result());
  e.call(function, fields);
}
void gather(Emitter& e) {
  need_numbers(e, e.node().tensor("index"));
  along_axis(e, "gather", {{"numbers", e.tensor(e.node().tensor("index"))}});
}
void running_sum(Emitter& e) {
  along_axis(e, "running_sum", {});
}
// Of all elements as one row where no axis is named.
void place_of(Emitter& e, const char* function) {
  if (e.has("dim")) return along_axis(e, function, {});
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
  need_plain(e);
  std::int64_t all = 1;
  for (const auto extent : e.shape(e.self())) all *= extent;
  e.call(function, {{"source", fmt::format("{}.as({{{}}})", e.tensor(e.self()), all)}, {"result", e.result()}});
}
void argmax(Emitter& e) {
  place_of(e, "place_of_largest");
}
void argmin(Emitter& e) {
  place_of(e, "place_of_smallest");
}

// The tensor as often as said along each axis, those in front among them.
void repeat(Emitter& e) {
  need_plain(e);
  const auto often = e.node().ints("repeats");
  Numbers own = e.shape(e.self());
  own.insert(own.begin(), often.size() - own.size(), 1);
  Numbers to(own.size(), 0);
  std::int64_t copies = 1;
  for (const auto times : often) copies *= times;
  if (copies > 64) throw Unsupported(fmt::format("a tensor that is repeated {} times", copies));
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    std::int64_t rest = copy;
    for (std::size_t d = own.size(); d-- > 0; rest /= often[d]) to[d] = rest % often[d] * own[d];
    e.call("copy", {{"source", fmt::format("{}.as({})", e.tensor(e.self()), braces(own))},
                    {"length", braces(own)},
                    {"result", e.result()},
                    {"to", braces(to)}});
  }
}

void embedding(Emitter& e) {
  with_rows(e, "look_up", e.node().tensor("weight"), e.node().tensor("indices"));
}
void embedding_backward(Emitter& e) {
  with_rows(e, "add_rows", e.node().tensor("grad_output"), e.node().tensor("indices"));
}

void zero(Emitter& e) {
  e.call("fill", {{"result", e.result()}});
}

void one(Emitter& e) {
  e.call("fill", {{"result", e.result()}, {"value", "1"}});
}

// The tensor with a slice of it replaced.
void slice_scatter(Emitter& e) {
  need_plain(e);
  const int part_of_it = e.node().tensor("src");
  const auto& dims = e.shape(e.self());
  const auto dim = static_cast<std::size_t>(e.dimension("dim", dims.size()));
  Numbers to(dims.size(), 0), steps(dims.size(), 1);
  to[dim] = start_of_slice(e, dims[dim]);
  steps[dim] = e.node().integer("step");
  e.call("reorder", {{"source", e.tensor(e.self())}, {"result", e.result()}});
  e.call("copy", {{"source", e.tensor(part_of_it)},
                  {"length", braces(e.shape(part_of_it))},
                  {"result", e.result()},
                  {"to", braces(to)},
                  {"result_step", braces(steps)}});
}

}  // namespace

void add_moves(Operations& table) {
  for (const char* name : {"view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"})
    table[name] = reshape;
  for (const char* name :
       {"strata.cast", "strata.reorder", "strata.copy", "alias", "clone", "contiguous", "detach", "lift_fresh_copy"})
    table[name] = reorder;
  for (const char* name : {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"}) table[name] = divide_up;
  for (const char* name : {"expand", "expand_as"}) table[name] = expand;
  for (const char* name : {"pad", "constant_pad_nd"}) table[name] = pad;
  table["slice_backward"] = slice_backward;
  table["select_backward"] = select_backward;
  for (const char* name : {"zero", "zeros_like"}) table[name] = zero;
  table["ones_like"] = one;
  table["index"] = index;
  table["index_select"] = index_select;
  table["gather"] = gather;
  table["cumsum"] = running_sum;
  table["argmax"] = argmax;
  table["argmin"] = argmin;
  table["repeat"] = repeat;
  table["embedding"] = embedding;
  table["embedding_dense_backward"] = embedding_backward;
  table["permute"] = permute;
  table["transpose"] = transpose;
  table["t"] = matrix_transpose;
  table["select"] = select;
  table["slice"] = slice;
  table["cat"] = table["stack"] = concatenate;
  table["roll"] = roll;
  table["slice_scatter"] = slice_scatter;
}

}  // namespace strata::generate
