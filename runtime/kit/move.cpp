// SPDX-License-Identifier: Apache-2.0
// Operations that compute nothing: layouts, orders, parts, broadcasts, concatenation.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "kit/internals.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

void need_plain(const Tensor& tensor) {
  if (tensor.layout != Layout::plain)
    throw std::logic_error("a part or another order of a tensor that is not row-major");
}

// A box of a row-major tensor: where it begins, and its strides.
std::pair<memory::desc, std::size_t> box(const Tensor& tensor, const Shape& from, const Shape& step,
                                         const Shape& length) {
  need_plain(tensor);
  auto strides = row_major_strides(dims_of(tensor.shape));
  Extent first = 0;
  for (int i = 0; i < from.rank; ++i) first += from[i] * strides[static_cast<std::size_t>(i)];
  for (int i = 0; i < step.rank; ++i) strides[static_cast<std::size_t>(i)] *= step[i];
  const auto type = data_type_of(tensor.type);
  return {memory::desc(dims_of(length), type, strides), static_cast<std::size_t>(first) * memory::data_type_size(type)};
}

// The nearest bfloat16, of two the even one: the upper half of a float32 that is no NaN.
std::uint16_t rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

// Writes a row-major tensor from one whose strides may be 0.
struct Written {
  memory source, result;
  std::vector<Extent> dims, strides;
  Type type;
  void operator()() const { type == Type::bfloat16 ? write<std::uint16_t>() : write<float>(); }
  template <class Element>
  void write() const {
    const auto* from = static_cast<const Element*>(source.get_data_handle());
    auto* to = static_cast<Element*>(result.get_data_handle());
    const Extent inner = dims.back(), step = strides.back();
    Extent rows = 1;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < rows; ++row) {
      Extent rest = row, at = 0;
      for (std::size_t d = dims.size() - 1; d-- > 0;) {
        at += rest % dims[d] * strides[d];
        rest /= dims[d];
      }
      for (Extent i = 0; i < inner; ++i) to[row * inner + i] = from[at + i * step];
    }
  }
};

// Rows of a table of `extent` rows, each of `length` elements.
struct Rows {
  const Internals* in;
  const char* step;
  kit::Rows numbers;
  Extent extent, length;
  const std::vector<std::int64_t>& all() const { return in->lists[static_cast<std::size_t>(numbers.number)].rows; }
  Extent first_of(Extent row) const {
    if (row < -extent || row >= extent)
      throw std::runtime_error(std::string(step) + " looks up row " + std::to_string(row) + " in a table of " +
                               std::to_string(extent));
    return (row < 0 ? row + extent : row) * length;
  }
};

struct LookedUp {
  Rows rows;
  memory source, result;
  Type type;
  void operator()() const { type == Type::bfloat16 ? write<std::uint16_t>() : write<float>(); }
  template <class Element>
  void write() const {
    const auto* from = static_cast<const Element*>(source.get_data_handle());
    auto* to = static_cast<Element*>(result.get_data_handle());
    for (const Extent row : rows.all()) to = std::copy_n(from + rows.first_of(row), rows.length, to);
  }
};

struct AddedUp {
  Rows rows;
  memory source, table;
  void operator()() const {
    const auto* from = static_cast<const float*>(source.get_data_handle());
    auto* into = static_cast<float*>(table.get_data_handle());
    std::fill_n(into, rows.extent * rows.length, 0.0F);
    for (const Extent row : rows.all()) {
      float* to = into + rows.first_of(row);
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
    if (type == Type::bfloat16)
      std::fill_n(static_cast<std::uint16_t*>(result.get_data_handle()), elements, rounded(value));
    else
      std::fill_n(static_cast<float*>(result.get_data_handle()), elements, value);
  }
};

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
  const memory::desc view(new_dims, data_type_of(how.source.type), new_strides);
  in.add_reorder(in.handle(how.source, view), in.handle(how.result, desc_of(how.result)));
}

void copy(Program& program, const Copy& how) {
  if (how.length.elements() == 0) return;
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
  Internals& in = program.internals();
  const auto dims = dims_of(how.result.shape);
  auto own = dims_of(how.source.shape);
  own.insert(own.begin(), dims.size() - own.size(), 1);
  auto strides = row_major_strides(own);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (own[i] != dims[i]) strides[i] = 0;
  in.add_own(Written{in.handle(how.source, desc_of(how.source)), in.handle(how.result, desc_of(how.result)), dims,
                     strides, how.source.type},
             true, "kit:expand");
}

void concatenate(Program& program, const Concatenate& how) {
  Internals& in = program.internals();
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
  need_plain(how.source);
  need_plain(how.result);
  Internals& in = program.internals();
  const Extent length = how.result.shape.elements() / std::max<Extent>(how.rows.count, 1);
  in.add_own(LookedUp{{&in, in.step, how.rows, how.source.shape[0], length},
                      handle_of(in, how.source),
                      handle_of(in, how.result),
                      how.source.type},
             true, "kit:look_up");
}

void add_rows(Program& program, const LookUp& how) {
  need_plain(how.source);
  need_plain(how.result);
  Internals& in = program.internals();
  const Extent length = how.source.shape.elements() / std::max<Extent>(how.rows.count, 1);
  in.add_own(
      AddedUp{
          {&in, in.step, how.rows, how.result.shape[0], length}, handle_of(in, how.source), handle_of(in, how.result)},
      false, "kit:add_rows");
}

void fill(Program& program, const Fill& how) {
  Internals& in = program.internals();
  need_plain(how.result);
  in.add_own(
      Filled{in.handle(how.result, desc_of(how.result)), how.result.shape.elements(), how.value, how.result.type}, true,
      "kit:fill");
}

}  // namespace kit
