// SPDX-License-Identifier: Apache-2.0
// Calculations on elements of any type, as calls of a program.
#include <string>

#include "kit/internals.hpp"
#include "kit/moving.hpp"
#include "kit/operations.hpp"

namespace kit {
namespace {

// elements::run() with its operands in place.
struct Calculated {
  Calculation how;
  bool in_float;
  Type type;
  const char* step;
  std::vector<Extent> dims;
  memory handles[3], result;
  // the sources' bytes are known when it runs; a step runs in one thread at a time
  std::shared_ptr<std::vector<elements::Source>> sources = std::make_shared<std::vector<elements::Source>>();

  void operator()() const {
    for (std::size_t i = 0; i < sources->size(); ++i)
      if (auto& source = (*sources)[i]; !source.is_number) source.data = handles[i].get_data_handle();
    try {
      elements::run(how, in_float, *sources, dims, result.get_data_handle(), type);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(step) + ": " + error.what());
    }
  }
};

elements::Source source_of(const Operand& operand, const std::vector<Extent>& dims) {
  elements::Source source{.type = operand.tensor.type,
                          .strides = {},
                          .is_number = operand.is_number,
                          .whole = operand.whole,
                          .number = operand.number};
  if (source.is_number) return source;
  source.strides = broadcast_strides(dims_of(operand.tensor.shape), dims);
  return source;
}

}  // namespace

void calculate(Program& program, const Calculate& how) {
  Internals& in = program.internals();
  Calculated call{.how = how.how,
                  .in_float = how.in_float,
                  .type = how.result.type,
                  .step = in.step,
                  .dims = dims_of(how.result.shape),
                  .handles = {},
                  .result = raw_handle(in, how.result)};
  for (const Operand* operand : {&how.left, &how.right, &how.third}) {
    if (!*operand) continue;
    const auto number = call.sources->size();
    call.sources->push_back(source_of(*operand, call.dims));
    if (!operand->is_number) call.handles[number] = raw_handle(in, operand->tensor);
  }
  in.add_own(std::move(call), false, "kit:elements");
}

}  // namespace kit
