// SPDX-License-Identifier: Apache-2.0
// Steps none of whose results reaches an output or an update are taken out. Steps of `load` then come first.
#include <algorithm>

#include "compiler/passes/passes.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {

Result<void> remove_dead(Program& program) {
  std::vector<bool> needed = uses_of(program).read_at_end;
  std::vector<Step> left;
  for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step) {
    const auto& outputs = step->node.outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](int v) { return needed[static_cast<std::size_t>(v)]; }))
      continue;
    for (const int value : operands_of(*step)) needed[static_cast<std::size_t>(value)] = true;
    left.push_back(std::move(*step));
  }
  std::reverse(left.begin(), left.end());
  std::stable_partition(left.begin(), left.end(), [](const Step& step) { return step.when == When::load; });
  program.steps = std::move(left);
  return recompute_places(program);
}

}  // namespace strata::compiler
