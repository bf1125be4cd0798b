// SPDX-License-Identifier: Apache-2.0
// What depends on weights alone is computed when they are loaded: such steps become steps of `load`. They are never
// computed at compile time, since weight sets change. In a training graph parameters change in every step, so that only
// constants count.
#include <algorithm>
#include <set>

#include "compiler/passes/passes.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

std::vector<bool> fixed_values(const Program& program) {
  std::vector<bool> fixed(program.graph.values.size(), false);
  const auto take = [&](const std::vector<graph::Named>& list) {
    for (const auto& element : list) fixed[static_cast<std::size_t>(element.value)] = true;
  };
  take(program.graph.constants);
  if (program.graph.mode == graph::Mode::infer) {
    take(program.graph.parameters);
    take(program.graph.buffers);
  }
  return fixed;
}

// Its result is another one in every run.
bool is_random(const Step& step) {
  static const std::set<std::string_view> names{
      "bernoulli", "dropout", "feature_dropout", "alpha_dropout", "strata.dropout_train", "strata.dropout_again"};
  return names.contains(step.node.operation());
}

}  // namespace

Result<void> fold_constants(Program& program) {
  auto fixed = fixed_values(program);
  const auto is_fixed = [&](int value) { return static_cast<bool>(fixed[static_cast<std::size_t>(value)]); };
  // an output is the caller's memory, which a step of the run has to fill
  const auto is_output = [&](int value) {
    const auto& outputs = program.graph.outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& output) { return program.same_storage(output.value, value); });
  };
  // what is computed when weights are loaded lies as weights do
  const auto is_kept = [&](int value) { return is_computed_with(program.value(value).type); };
  for (auto& step : program.steps) {
    const auto operands = operands_of(step);
    const auto& outputs = step.node.outputs;
    if (!std::all_of(operands.begin(), operands.end(), is_fixed) ||
        std::any_of(outputs.begin(), outputs.end(), is_output) || is_random(step) ||
        !(step.view || std::all_of(outputs.begin(), outputs.end(), is_kept)))
      continue;
    step.when = When::load;
    for (const int value : outputs) fixed[static_cast<std::size_t>(value)] = true;
  }
  std::stable_partition(program.steps.begin(), program.steps.end(),
                        [](const Step& step) { return step.when == When::load; });
  return recompute_places(program);
}

}  // namespace strata::compiler
