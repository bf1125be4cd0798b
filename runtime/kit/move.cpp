// SPDX-License-Identifier: Apache-2.0
// Operations that compute nothing: layouts, orders, parts, broadcasts, concatenation.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "kit/indexing.hpp"
#include "kit/internals.hpp"
#include "kit/moving.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

void need_plain(const Tensor& tensor) {
  if (tensor.layout != Layout::plain)
    throw std::logic_error("a part or another order of a tensor that is not row-major");
}

// Where a box begins, in elements, and its strides.
std::pair<Extent, std::vector<Extent>> strides_of_box(const Tensor& tensor, const Shape& from, const Shape& step) {
  auto strides = row_major_strides(dims_of(tensor.shape));
  Extent first = 0;
  for (int i = 0; i < from.rank; ++i) first += from[i] * strides[static_cast<std::size_t>(i)];
  for (int i = 0; i < step.rank; ++i) strides[static_cast<std::size_t>(i)] *= step[i];
  return {first, strides};
}

std::pair<memory::desc, std::size_t> box(const Tensor& tensor, const Shape& from, const Shape& step,
                                         const Shape& length) {
  need_plain(tensor);
  const auto [first, strides] = strides_of_box(tensor, from, step);
  const auto type = data_type_of(tensor.type);
  return {memory::desc(dims_of(length), type, strides), static_cast<std::size_t>(first) * memory::data_type_size(type)};
}

// The nearest bfloat16, of two the even one: the upper half of a float32 that is no NaN.
std::uint16_t rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

struct Moved {
  memory source, result;
  Move how;
  void operator()() const { how.run(source.get_data_handle(), result.get_data_handle()); }
};

// Rows of a table of `extent` rows, each of `length` elements.
struct Rows {
  memory numbers;
  Type type;
  const char* step;
  Extent count, extent, length;

  Rows(Internals& in, const Tensor& rows, Extent extent_of_table, Extent elements)
      : numbers(raw_handle(in, rows)),
        type(rows.type),
        step(in.step),
        count(rows.shape.elements()),
        extent(extent_of_table),
        length(elements / std::max<Extent>(count, 1)) {}
  // Where the row begins that number i means.
  Extent first_of(Extent i) const {
    try {
      return indexing::number_at(numbers.get_data_handle(), type, i, extent) * length;
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(step) + ": " + error.what());
    }
  }
};

struct LookedUp {
  Rows rows;
  memory source, result;
  Extent bytes;  // of an element
  void operator()() const {
    const auto* from = static_cast<const std::byte*>(source.get_data_handle());
    auto* to = static_cast<std::byte*>(result.get_data_handle());
    for (Extent i = 0; i < rows.count; ++i) to = std::copy_n(from + rows.first_of(i) * bytes, rows.length * bytes, to);
  }
};

struct AddedUp {
  Rows rows;
  memory source, table;
  void operator()() const {
    const auto* from = static_cast<const float*>(source.get_data_handle());
    auto* into = static_cast<float*>(table.get_data_handle());
    std::fill_n(into, rows.extent * rows.length, 0.0F);
    for (Extent number = 0; number < rows.count; ++number) {
      float* to = into + rows.first_of(number);
      for (Extent i = 0; i < rows.length; ++i) to[i] += from[i];
      from += rows.length;
    }
  }
};

struct Filled {
  memory result;
  Extent elements;
  float value;
  Type type;
  void operator()() const {
    switch (type) {
      case Type::bfloat16:
        return fill(rounded(value));
      case Type::int64:
        return fill(static_cast<std::int64_t>(value));
      case Type::int32:
        return fill(static_cast<std::int32_t>(value));
      case Type::uint8:
      case Type::boolean:
        return fill(static_cast<std::uint8_t>(value));
      default:
        return fill(value);
    }
  }
  template <class Element>
  void fill(Element element) const {
    std::fill_n(static_cast<Element*>(result.get_data_handle()), elements, element);
  }
};

// A move of what no library calculates with, or of strides that it refuses. `dims` with their strides.
void add_move(Internals& in, const Tensor& source, Extent from, std::vector<Extent> from_strides, const Tensor& result,
              Extent to, std::vector<Extent> to_strides, std::vector<Extent> dims, const char* kernel) {
  in.add_own(Moved{raw_handle(in, source),
                   raw_handle(in, result),
                   {std::move(dims), std::move(from_strides), std::move(to_strides), from, to, bytes_of(source.type)}},
             true, kernel);
}

// oneDNN refuses strides that look as if elements overlapped: the last of a part in steps may end the dimension.
bool describable(Extent length, const Shape& step, const Tensor& tensor, int d) {
  return d >= step.rank || step[d] == 1 || length <= 1 || length * step[d] <= tensor.shape[d];
}

void copy_with_last_apart(Program& program, const Copy& how, int d) {
  const Extent last = how.length[d] - 1;
  Copy first = how, end = how;
  first.length[d] = last;
  end.length[d] = 1;
  const auto moved = [&](Shape from, const Shape& step) {
    for (; from.rank < how.length.rank; ++from.rank) from[from.rank] = 0;
    from[d] += last * (d < step.rank ? step[d] : 1);
    return from;
  };
  end.from = moved(how.from, how.step);
  end.to = moved(how.to, how.result_step);
  for (Shape* step : {&end.step, &end.result_step})
    if (d < step->rank) (*step)[d] = 1;
  copy(program, first);
  copy(program, end);
}

}  // namespace

void reorder(Program& program, const Reorder& how) {
  Internals& in = program.internals();
  if (!is_floating(how.source.type))
    return add_move(in, how.source, 0, {1}, how.result, 0, {1}, {how.source.shape.elements()}, "kit:copy");
  in.add_reorder(in.handle(how.source, desc_of(how.source)), in.handle(how.result, desc_of(how.result)));
}

void permute(Program& program, const Permute& how) {
  need_plain(how.source);
  need_plain(how.result);
  Internals& in = program.internals();
  const auto dims = dims_of(how.source.shape), strides = row_major_strides(dims);
  memory::dims new_dims, new_strides;
  for (const Extent i : how.order) {
    new_dims.push_back(dims.at(static_cast<std::size_t>(i)));
    new_strides.push_back(strides[static_cast<std::size_t>(i)]);
  }
  if (!is_floating(how.source.type))
    return add_move(in, how.source, 0, new_strides, how.result, 0, row_major_strides(new_dims), new_dims,
                    "kit:permute");
  const memory::desc view(new_dims, data_type_of(how.source.type), new_strides);
  in.add_reorder(in.handle(how.source, view), in.handle(how.result, desc_of(how.result)));
}

void copy(Program& program, const Copy& how) {
  if (how.length.elements() == 0) return;
  if (!is_floating(how.source.type)) {
    need_plain(how.source);
    need_plain(how.result);
    auto [from, from_strides] = strides_of_box(how.source, how.from, how.step);
    auto [to, to_strides] = strides_of_box(how.result, how.to, how.result_step);
    return add_move(program.internals(), how.source, from, from_strides, how.result, to, to_strides,
                    dims_of(how.length), "kit:copy");
  }
  for (int d = 0; d < how.length.rank; ++d)
    if (!describable(how.length[d], how.step, how.source, d) ||
        !describable(how.length[d], how.result_step, how.result, d))
      return copy_with_last_apart(program, how, d);
  Internals& in = program.internals();
  const auto [from, first] = box(how.source, how.from, how.step, how.length);
  const auto [to, place] = box(how.result, how.to, how.result_step, how.length);
  in.add_reorder(in.handle(how.source, from, first), in.handle(how.result, to, place));
}

void expand(Program& program, const Expand& how) {
  need_plain(how.source);
  need_plain(how.result);
  const auto dims = dims_of(how.result.shape);
  add_move(program.internals(), how.source, 0, broadcast_strides(dims_of(how.source.shape), dims), how.result, 0,
           row_major_strides(dims), dims, "kit:expand");
}

void concatenate(Program& program, const Concatenate& how) {
  Internals& in = program.internals();
  if (!is_floating(how.result.type)) {
    Shape to;
    to.rank = how.result.shape.rank;
    for (const Tensor& source : how.sources) {
      copy(program, {source, {}, {}, source.shape, how.result, to, {}});
      to[how.axis] += source.shape[how.axis];
    }
    return;
  }
  std::vector<memory::desc> descs;
  std::vector<std::pair<int, memory>> arguments;
  for (const Tensor& source : how.sources) {
    if (source.shape.elements() == 0) continue;
    arguments.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(descs.size()), in.handle(source, desc_of(source)));
    descs.push_back(desc_of(source));
  }
  const dnnl::concat::primitive_desc pd(in.engine, desc_of(how.result), how.axis, descs, plain_attributes());
  arguments.emplace_back(DNNL_ARG_DST, in.handle(how.result, desc_of(how.result)));
  in.add(dnnl::concat(pd), pd, std::move(arguments), true);
}

void look_up(Program& program, const LookUp& how) {
  Internals& in = program.internals();
  in.add_own(LookedUp{Rows(in, how.rows, how.source.shape[0], how.result.shape.elements()), raw_handle(in, how.source),
                      raw_handle(in, how.result), bytes_of(how.source.type)},
             true, "kit:look_up");
}

void add_rows(Program& program, const LookUp& how) {
  Internals& in = program.internals();
  in.add_own(AddedUp{Rows(in, how.rows, how.result.shape[0], how.source.shape.elements()), raw_handle(in, how.source),
                     raw_handle(in, how.result)},
             false, "kit:add_rows");
}

void fill(Program& program, const Fill& how) {
  Internals& in = program.internals();
  in.add_own(Filled{raw_handle(in, how.result), how.result.shape.elements(), how.value, how.result.type}, true,
             "kit:fill");
}

}  // namespace kit
