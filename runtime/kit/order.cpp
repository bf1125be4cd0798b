// SPDX-License-Identifier: Apache-2.0
// Elements in order (sorting.hpp), and written to computed places (writing.hpp), as calls of a program.
#include "kit/internals.hpp"
#include "kit/operations.hpp"
#include "kit/sorting.hpp"
#include "kit/writing.hpp"

namespace kit {
namespace {

// A result that is left out has no bytes.
struct MaybeBytes {
  bool given;
  memory bytes;
  MaybeBytes(Internals& in, const Tensor& tensor)
      : given(static_cast<bool>(tensor)), bytes(given ? raw_handle(in, tensor) : memory()) {}
  void* data() const { return given ? bytes.get_data_handle() : nullptr; }
};

}  // namespace

void sort(Program& program, const Sort& how) {
  Internals& in = program.internals();
  in.add_own(
      [way = indexing::along(extents_of(how.source), static_cast<std::size_t>(how.axis)), type = how.source.type,
       order = sorting::Order{.descending = how.descending, .sorted = how.sorted, .most = how.most},
       source = raw_handle(in, how.source), values = MaybeBytes(in, how.values), places = MaybeBytes(in, how.places)] {
        sorting::run(source.get_data_handle(), type, way, order, values.data(),
                     static_cast<std::int64_t*>(places.data()));
      },
      false, "kit:sort");
}

void scatter(Program& program, const Scatter& how) {
  Internals& in = program.internals();
  const indexing::Scattering scattering{.shape = extents_of(how.self),
                                        .of_numbers = extents_of(how.numbers),
                                        .of_source = extents_of(how.source),
                                        .axis = static_cast<std::size_t>(how.axis),
                                        .type = how.result.type,
                                        .type_of_numbers = how.numbers.type,
                                        .adds = how.adds};
  in.add_own(
      [scattering, step = in.step, self = raw_handle(in, how.self), numbers = raw_handle(in, how.numbers),
       source = raw_handle(in, how.source), result = raw_handle(in, how.result)] {
        in_step(step, [&] {
          scattering.run(self.get_data_handle(), numbers.get_data_handle(), source.get_data_handle(),
                         result.get_data_handle());
        });
      },
      true, "kit:scatter");
}

void put(Program& program, const Put& how) {
  Internals& in = program.internals();
  std::vector<indexing::List> lists;
  std::vector<memory> numbers;
  for (const Tensor& list : how.numbers) {
    lists.push_back({static_cast<bool>(list), list.type, extents_of(list)});
    if (list) numbers.push_back(raw_handle(in, list));
  }
  auto picking = std::make_shared<indexing::Picking>(indexing::picking(extents_of(how.self), lists, how.self.type));
  in.add_own(
      [picking, numbers, adds = how.adds, type = how.self.type, elements = how.self.shape.elements(), step = in.step,
       self = raw_handle(in, how.self), values = raw_handle(in, how.values), result = raw_handle(in, how.result)] {
        for (std::size_t i = 0; i < numbers.size(); ++i) picking->numbers[i].data = numbers[i].get_data_handle();
        in_step(step, [&] {
          indexing::put(*picking, self.get_data_handle(), elements, values.get_data_handle(), type, adds,
                        result.get_data_handle());
        });
      },
      true, "kit:put");
}

}  // namespace kit
