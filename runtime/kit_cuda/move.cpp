// SPDX-License-Identifier: Apache-2.0
// Operations that compute nothing: layouts, orders, parts, broadcasts, concatenation. All are copies between strides.
#include "kit_cuda/kernels/move.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "kit_cuda/internals.hpp"

namespace kit {
namespace {

Part box(const Tensor& tensor, const Shape& from, const Shape& step, const Shape& length) {
  Part part{view_of(tensor)};
  for (int d = 0; d < part.view.rank; ++d) {
    if (d < from.rank) part.first += from[d] * part.view.strides[d];
    if (d < step.rank) part.view.strides[d] *= step[d];
    part.view.extents[d] = length[d];
  }
  return part;
}

void add_part(Internals& in, const char* kernel, const Tensor& from, const Part& source, const Tensor& to,
              const Part& result) {
  in.add(
      kernel, [&in, from, source, to, result](Stream on) { in.copy(on, from, source, to, result); }, true);
}

// Where the numbers of rows of a table of `height` lie, behind a place for a fault; they are checked when they are
// loaded, so that no kernel meets one.
std::size_t add_numbers(Internals& in, const Tensor& rows, Extent height) {
  if (rows.region != Region::listed || rows.type != Type::int64)
    throw std::logic_error("rows that are no int64 of the weights' files, on a GPU");
  const std::vector<std::int64_t> none(static_cast<std::size_t>(rows.shape.elements()) + 1);
  const auto place = in.table(none.data(), none.size() * sizeof(std::int64_t));
  in.add_load_step({{}, -1, [&in, rows, height, place, step = std::string(in.step)] {
                      const auto* all = reinterpret_cast<const std::int64_t*>(
                          in.lists[static_cast<std::size_t>(rows.at)].bytes.get());
                      for (const auto row : std::span(all, static_cast<std::size_t>(rows.shape.elements())))
                        if (row < -height || row >= height)
                          throw std::runtime_error(step + " looks up row " + std::to_string(row) + " in a table of " +
                                                   std::to_string(height));
                      device::copy_to_device(in.table_memory.get() + place + sizeof(std::int64_t), all,
                                             static_cast<std::size_t>(rows.bytes()), in.stream);
                    }});
  return place;
}

std::int64_t* numbers_at(const Internals& in, std::size_t place) {
  return reinterpret_cast<std::int64_t*>(in.table_memory.get() + place);
}

}  // namespace

void reorder(Program& program, const Reorder& how) {
  program.internals().add_copy(how.source, how.result);
}

void permute(Program& program, const Permute& how) {
  const auto whole = view_of(how.source);
  Part source{whole};
  for (int d = 0; d < how.order.rank; ++d) {
    source.view.extents[d] = whole.extents[how.order[d]];
    source.view.strides[d] = whole.strides[how.order[d]];
  }
  add_part(program.internals(), "permute", how.source, source, how.result, {view_of(how.result)});
}

void copy(Program& program, const Copy& how) {
  if (how.length.elements() == 0) return;
  add_part(program.internals(), "copy", how.source, box(how.source, how.from, how.step, how.length), how.result,
           box(how.result, how.to, how.result_step, how.length));
}

void expand(Program& program, const Expand& how) {
  add_part(program.internals(), "expand", how.source, {view_of(how.source)}, how.result, {view_of(how.result)});
}

void concatenate(Program& program, const Concatenate& how) {
  Shape to;
  to.rank = how.result.shape.rank;
  for (const Tensor& source : how.sources) {
    if (source.shape.elements() == 0) continue;
    add_part(program.internals(), "concatenate", source, {view_of(source)}, how.result,
             box(how.result, to, {}, source.shape));
    to[how.axis] += source.shape[how.axis];
  }
}

void look_up(Program& program, const LookUp& how) {
  Internals& in = program.internals();
  const auto height = how.source.shape[0], count = how.rows.shape.elements();
  const auto length = how.result.shape.elements() / std::max<Extent>(count, 1);
  in.add(
      "look_up",
      [&in, how, height, length, count, place = add_numbers(in, how.rows, height)](Stream on) {
        auto* fault = numbers_at(in, place);
        device::look_up(on, in.floats(how.source), height, length, fault + 1, count, in.floats_to(how.result), fault);
      },
      true);
}

void add_rows(Program& program, const LookUp& how) {
  Internals& in = program.internals();
  const auto height = how.result.shape[0], count = how.rows.shape.elements();
  const auto length = how.source.shape.elements() / std::max<Extent>(count, 1);
  in.add("add_rows", [&in, how, height, length, count, place = add_numbers(in, how.rows, height)](Stream on) {
    auto* fault = numbers_at(in, place);
    device::add_rows(on, in.floats(how.source), fault + 1, count, in.floats_to(how.result), height, length, fault);
  });
}

void fill(Program& program, const Fill& how) {
  Internals& in = program.internals();
  in.add(
      "fill", [&in, how](Stream on) { device::fill(on, in.target(how.result), how.value); }, true);
}

}  // namespace kit
