// SPDX-License-Identifier: Apache-2.0
// Elements by numbers that are computed, and along an axis (indexing.hpp), as calls of a program.
#include "kit/indexing.hpp"
#include "kit/internals.hpp"
#include "kit/operations.hpp"

namespace kit {
void pick(Program& program, const Pick& how) {
  Internals& in = program.internals();
  std::vector<indexing::List> lists;
  std::vector<memory> numbers;
  for (const Tensor& list : how.numbers) {
    lists.push_back({static_cast<bool>(list), list.type, extents_of(list)});
    if (list) numbers.push_back(raw_handle(in, list));
  }
  auto picking = std::make_shared<indexing::Picking>(indexing::picking(extents_of(how.source), lists, how.source.type));
  in.add_own(
      [picking, numbers, step = in.step, source = raw_handle(in, how.source), result = raw_handle(in, how.result)] {
        for (std::size_t i = 0; i < numbers.size(); ++i) picking->numbers[i].data = numbers[i].get_data_handle();
        in_step(step, [&] { picking->run(source.get_data_handle(), result.get_data_handle()); });
      },
      true, "kit:pick");
}

void gather(Program& program, const Gather& how) {
  Internals& in = program.internals();
  in.add_own(
      [shape = extents_of(how.source), to = extents_of(how.result), type = how.source.type,
       axis = static_cast<std::size_t>(how.axis), of_numbers = how.numbers.type, step = in.step,
       source = raw_handle(in, how.source), numbers = raw_handle(in, how.numbers),
       result = raw_handle(in, how.result)] {
        in_step(step, [&] {
          indexing::gather(source.get_data_handle(), shape, type, axis, numbers.get_data_handle(), of_numbers, to,
                           result.get_data_handle());
        });
      },
      true, "kit:gather");
}

void running_sum(Program& program, const AlongAxis& how) {
  Internals& in = program.internals();
  in.add_own(
      [way = indexing::along(extents_of(how.source), static_cast<std::size_t>(how.axis)), from = how.source.type,
       to = how.result.type, source = raw_handle(in, how.source), result = raw_handle(in, how.result)] {
        indexing::running_sum(source.get_data_handle(), from, way, result.get_data_handle(), to);
      },
      false, "kit:running_sum");
}

namespace {

void add_place_of(Program& program, const AlongAxis& how, bool smallest) {
  Internals& in = program.internals();
  in.add_own(
      [way = indexing::along(extents_of(how.source), static_cast<std::size_t>(how.axis)), type = how.source.type,
       smallest, source = raw_handle(in, how.source), result = raw_handle(in, how.result)] {
        indexing::place_of(source.get_data_handle(), type, way, smallest,
                           static_cast<std::int64_t*>(result.get_data_handle()));
      },
      false, "kit:place_of");
}

}  // namespace

void place_of_largest(Program& program, const AlongAxis& how) {
  add_place_of(program, how, false);
}
void place_of_smallest(Program& program, const AlongAxis& how) {
  add_place_of(program, how, true);
}

}  // namespace kit
