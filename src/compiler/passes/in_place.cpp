// SPDX-License-Identifier: Apache-2.0
// A step that reads each element before it writes the same place puts its result over an operand that nobody reads
// later: element-wise steps over their operands, on a processor layers over what they add (oneDNN's sum in place of a
// binary post).
#include <algorithm>

#include "compiler/passes/passes.hpp"
#include "compiler/use_def.hpp"
#include "compiler/verify.hpp"

namespace strata::compiler {
namespace {

// The last step that reads any value of each storage; one behind the last step for what is kept.
std::vector<int> last_reads(const Program& program) {
  std::vector<int> last(program.places.size(), -1);
  const auto at = [&](int value) -> int& { return last[static_cast<std::size_t>(program.place(value).storage)]; };
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    for (const int value : operands_of(program.steps[s])) at(value) = static_cast<int>(s);
  for (const auto* list : {&program.graph.outputs, &program.graph.updates})
    for (const auto& named : *list) at(named.value) = static_cast<int>(program.steps.size());
  return last;
}

}  // namespace

Result<void> in_place(Program& program) {
  auto last = last_reads(program);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const auto& step = program.steps[s];
    if (step.when != When::run || step.view || step.node.outputs.size() != 1) continue;
    const int own = program.place(step.node.outputs.front()).storage;
    for (const int operand : operands_of(step)) {
      const int over = program.place(operand).storage;
      if (program.place(over).in != Place::In::arena || program.place(own).in != Place::In::arena) continue;
      if (last[static_cast<std::size_t>(over)] != static_cast<int>(s) || !may_write_over(program, step, operand))
        continue;
      for (auto& place : program.places)
        if (place.storage == own) place.storage = over;
      last[static_cast<std::size_t>(over)] = last[static_cast<std::size_t>(own)];
      break;
    }
  }
  return {};
}

}  // namespace strata::compiler
