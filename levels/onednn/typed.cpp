// SPDX-License-Identifier: Apache-2.0
// Operations on elements of any type: calculations that oneDNN has no call for, whole numbers and truths, lookups by
// numbers that are computed.
#include "typed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/calculation.hpp"
#include "kit/elements.hpp"
#include "kit/indexing.hpp"
#include "kit/moving.hpp"
#include "operations.hpp"

namespace strata::onednn {
namespace {

kit::Calculation calculation_named(const std::string& name) {
  const auto* at = std::find(std::begin(kit::calculation_names), std::end(kit::calculation_names), name);
  if (at == std::end(kit::calculation_names)) throw Unsupported("the calculation " + name);
  return static_cast<kit::Calculation>(at - std::begin(kit::calculation_names));
}

Dims of_one_at_least(const Dims& shape) {
  return shape.empty() ? Dims{1} : shape;
}

int first_output(const Builder& b) {
  return b.node().outputs.at(0);
}

void calculate(Builder& b) {
  const auto calculation = graph::calculation_of(b.graph(), b.node());
  if (!calculation) throw Unsupported("a case of it that is not known");
  const Typed result = typed_result(b);
  std::vector<kit::elements::Source> sources;
  std::vector<memory> handles;
  for (const auto& operand : calculation->operands) {
    kit::elements::Source source{.is_number = operand.value < 0, .whole = operand.whole, .number = operand.number};
    memory handle;
    if (operand.value >= 0) {
      const Typed read = typed(b, operand.value);
      handle = read.bytes;
      source.type = read.type;
      source.strides = kit::broadcast_strides(read.shape, result.shape);
    }
    sources.push_back(std::move(source));
    handles.push_back(handle);
  }
  b.own("elements", [how = calculation_named(calculation->how), in_float = calculation->in_float, sources, handles,
                     result]() mutable {
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!sources[i].is_number) sources[i].data = handles[i].get_data_handle();
    kit::elements::run(how, in_float, sources, result.shape, result.to(), result.type);
  });
}

// oneDNN squares, and takes roots; it knows no power of two tensors.
void power(Builder& b) {
  const double exponent =
      graph::is_typed(b.graph(), b.node()) || b.is_tensor("exponent") || !b.has("exponent") ? 0 : b.number("exponent");
  if (exponent != 2 && exponent != 0.5) return calculate(b);
  const auto how = exponent == 2 ? dnnl::algorithm::eltwise_square : dnnl::algorithm::eltwise_sqrt;
  b.is(applied(b, how, b.tensor("self")));
}

// ----------------------------------------------------------------------------------------------------- other places

void move(Builder& b, const Typed& source, const Typed& result, kit::Move how) {
  how.bytes = kit::bytes_of(source.type);
  b.own("elements", [source, result, how = std::move(how)] { how.run(source.data(), result.to()); });
}

// The same elements in another shape.
void view(Builder& b) {
  const auto& described = b.graph().value(first_output(b));
  const Tensor& tensor = b.library().typed(b.graph(), self_of(b));
  Tensor lying = b.in(tensor, tensor.desc);
  lying.desc = typed_desc(described.type, described.shape);
  b.is(lying);
}

void expand(Builder& b) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  move(b, source, result,
       {.dims = result.shape,
        .from_strides = kit::broadcast_strides(source.shape, result.shape),
        .to_strides = kit::row_major_strides_of(result.shape)});
}

void permuted(Builder& b, const std::vector<std::size_t>& order) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  const auto own = kit::row_major_strides_of(source.shape);
  Dims strides;
  for (const auto axis : order) strides.push_back(own.at(axis));
  move(b, source, result,
       {.dims = result.shape, .from_strides = strides, .to_strides = kit::row_major_strides_of(result.shape)});
}
void permute(Builder& b) {
  const auto rank = static_cast<std::int64_t>(typed(b, self_of(b)).shape.size());
  std::vector<std::size_t> order;
  for (const auto dim : b.integers("dims")) order.push_back(static_cast<std::size_t>(dim < 0 ? dim + rank : dim));
  permuted(b, order);
}
void transpose(Builder& b) {
  std::vector<std::size_t> order(typed(b, self_of(b)).shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (b.operation() == "t")
    std::reverse(order.begin(), order.end());
  else
    std::swap(order.at(b.dimension("dim0", order.size())), order.at(b.dimension("dim1", order.size())));
  permuted(b, order);
}

// `length` elements of an axis from `begin` on, in steps.
void part(Builder& b, std::size_t axis, std::int64_t begin, std::int64_t length, std::int64_t step) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  Dims dims = source.shape, strides = kit::row_major_strides_of(source.shape);
  const auto first = begin * strides[axis];
  dims[axis] = length;
  strides[axis] *= step;
  move(b, source, result,
       {.dims = dims, .from_strides = strides, .to_strides = kit::row_major_strides_of(dims), .from = first});
}
void slice(Builder& b) {
  const auto shape = typed(b, self_of(b)).shape;
  const auto axis = b.dimension("dim", shape.size());
  const auto start = b.has("start") ? b.integer("start") : 0;
  const auto begin = std::clamp<std::int64_t>(start < 0 ? start + shape[axis] : start, 0, shape[axis]);
  part(b, axis, begin, of_one_at_least(b.graph().value(first_output(b)).shape)[axis], b.integer("step"));
}
void select(Builder& b) {
  const auto shape = typed(b, self_of(b)).shape;
  const auto axis = b.dimension("dim", shape.size());
  const auto index = b.integer("index");
  part(b, axis, index < 0 ? index + shape[axis] : index, 1, 1);
}

void join(Builder& b) {
  const Typed result = typed_result(b);
  const auto axis = b.dimension("dim", result.shape.size());
  const auto strides = kit::row_major_strides_of(result.shape);
  std::int64_t at = 0;
  for (const int value : b.node().tensors("tensors")) {
    Typed source = typed(b, value);
    if (source.shape.size() < result.shape.size())  // stack
      source.shape.insert(source.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    move(b, source, result,
         {.dims = source.shape,
          .from_strides = kit::row_major_strides_of(source.shape),
          .to_strides = strides,
          .to = at * strides[axis]});
    at += source.shape[axis];
  }
}

void repeat(Builder& b) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  const auto often = b.integers("repeats");
  // each axis as often as said, and within that its own elements
  Dims dims, from, own = source.shape;
  own.insert(own.begin(), often.size() - std::min(often.size(), own.size()), 1);
  const auto strides = kit::row_major_strides_of(own);
  for (std::size_t d = 0; d < often.size(); ++d) {
    dims.insert(dims.end(), {often[d], own[d]});
    from.insert(from.end(), {0, strides[d]});
  }
  if (dims.empty()) dims = from = {1};
  move(b, source, result, {.dims = dims, .from_strides = from, .to_strides = kit::row_major_strides_of(dims)});
}

// ----------------------------------------------------------------------------------------------- by computed numbers

void pick(Builder& b, int table, const std::vector<int>& lists) {
  const Typed source = typed(b, table), result = typed_result(b);
  std::vector<kit::indexing::List> shapes;
  std::vector<Typed> numbers;
  for (const int list : lists) {
    if (list < 0) {
      shapes.emplace_back();
      continue;
    }
    numbers.push_back(typed(b, list));
    if (numbers.back().type != kit::Type::int64 && numbers.back().type != kit::Type::int32)
      throw Unsupported("a lookup by truths");
    shapes.push_back({true, numbers.back().type, b.graph().value(list).shape});
  }
  b.own("elements by numbers",
        [source, result, numbers, picking = kit::indexing::picking(source.shape, shapes, source.type)]() mutable {
          for (std::size_t i = 0; i < numbers.size(); ++i) picking.numbers[i].data = numbers[i].data();
          picking.run(source.data(), result.to());
        });
}
void index(Builder& b) {
  pick(b, self_of(b), b.node().tensors("indices"));
}
void embedding(Builder& b) {
  pick(b, b.node().tensor("weight"), {b.node().tensor("indices")});
}
void index_select(Builder& b) {
  std::vector<int> lists(b.dimension("dim", typed(b, self_of(b)).shape.size()), -1);
  lists.push_back(b.node().tensor("index"));
  pick(b, self_of(b), lists);
}

void gather(Builder& b) {
  const Typed source = typed(b, self_of(b)), numbers = typed(b, b.node().tensor("index")), result = typed_result(b);
  const auto axis = b.dimension("dim", source.shape.size());
  b.own("elements by numbers", [source, numbers, result, axis] {
    kit::indexing::gather(source.data(), source.shape, source.type, axis, numbers.data(), numbers.type, result.shape,
                          result.to());
  });
}

void running_sum(Builder& b) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  const auto way = kit::indexing::along(source.shape, b.dimension("dim", source.shape.size()));
  b.own("elements", [=] { kit::indexing::running_sum(source.data(), source.type, way, result.to(), result.type); });
}

void place_of(Builder& b, bool smallest) {
  const Typed source = typed(b, self_of(b)), result = typed_result(b);
  auto way = kit::indexing::along({product(source.shape)}, 0);
  if (b.has("dim")) way = kit::indexing::along(source.shape, b.dimension("dim", source.shape.size()));
  b.own("elements", [=] {
    kit::indexing::place_of(source.data(), source.type, way, smallest, static_cast<std::int64_t*>(result.to()));
  });
}
void argmax(Builder& b) {
  place_of(b, false);
}
void argmin(Builder& b) {
  place_of(b, true);
}

}  // namespace

Typed typed(Builder& b, int value) {
  const auto& described = b.graph().value(value);
  auto& library = b.library();
  const Tensor& tensor =
      described.type == graph::Type::float32 ? library.tensor(b.graph(), value) : library.typed(b.graph(), value);
  const Tensor lying = b.in(tensor, typed_desc(described.type, described.shape));
  return {b.handle(lying), kit_type(described.type), of_one_at_least(described.shape)};
}

Typed typed_result(Builder& b, std::size_t i) {
  const auto& described = b.graph().value(b.node().outputs.at(i));
  const Dims shape = of_one_at_least(described.shape);
  const auto desc = typed_desc(described.type, shape);
  if (described.type == graph::Type::float32) return {b.handle(b.result(desc, i)), kit::Type::float32, shape};
  const Tensor memory_of_it = b.temporary(desc);
  b.is(memory_of_it, i);
  return {b.handle(memory_of_it), kit_type(described.type), shape};
}

int self_of(Builder& b) {
  return b.node().tensor(b.is_tensor("self") ? "self" : "input");
}

kit::Type kit_type(graph::Type type) {
  switch (type) {
    case graph::Type::float32:
      return kit::Type::float32;
    case graph::Type::int64:
      return kit::Type::int64;
    case graph::Type::int32:
      return kit::Type::int32;
    case graph::Type::uint8:
      return kit::Type::uint8;
    case graph::Type::boolean:
      return kit::Type::boolean;
    default:
      throw Unsupported(fmt::format("a tensor of type {}", graph::name_of(type)));
  }
}

memory::desc typed_desc(graph::Type type, const Dims& shape) {
  Dims dims = of_one_at_least(shape);
  switch (type) {
    case graph::Type::float32:
      return row_major(dims);
    case graph::Type::int64:
      dims.push_back(2);
      return row_major(dims, memory::data_type::s32);
    case graph::Type::int32:
      return row_major(dims, memory::data_type::s32);
    case graph::Type::uint8:
    case graph::Type::boolean:
      return row_major(dims, memory::data_type::u8);
    default:
      throw Unsupported(fmt::format("a tensor of type {}", graph::name_of(type)));
  }
}

void add_calculations(Operations& table) {
  for (const auto name : graph::calculated_operations()) table[name] = calculate;
  table["pow"] = power;
  table["index"] = index;
  table["embedding"] = embedding;
  table["index_select"] = index_select;
  table["gather"] = gather;
  table["cumsum"] = running_sum;
  table["argmax"] = argmax;
  table["argmin"] = argmin;
  table["repeat"] = repeat;
}

Make typed_operation(std::string_view name) {
  static const Operations table = [] {
    Operations all;
    for (const char* view_name : {"view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze",
                                  "alias", "detach", "lift_fresh_copy", "clone", "contiguous"})
      all[view_name] = view;
    all["expand"] = all["expand_as"] = expand;
    all["permute"] = permute;
    all["transpose"] = all["t"] = transpose;
    all["slice"] = slice;
    all["select"] = select;
    all["cat"] = all["stack"] = join;
    return all;
  }();
  if (graph::is_calculated_where_typed(name)) return calculate;
  const auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace strata::onednn
