// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"
#include "graph/calculation.hpp"
#include "graph/expand.hpp"
#include "graph/operations.hpp"

namespace strata::compiler {
namespace {

// Operations whose result is their first operand where shape and type stay: values have no strides, and nothing is
// written into a value that is still read.
constexpr std::array<std::string_view, 13> same{"alias",           "clone",   "contiguous",     "detach", "lift_fresh",
                                                "lift_fresh_copy", "to",      "_to_copy",       "expand", "expand_as",
                                                "alpha_dropout",   "dropout", "feature_dropout"};

bool drops(const graph::Node& node) {
  return node.find("train") != nullptr && node.flag("train") && node.number("p") > 0;
}

bool is_self(const graph::Argument& argument) {
  return argument.kind == graph::Argument::Kind::tensor && (argument.name == "self" || argument.name == "input");
}

bool is_view(const graph::Graph& graph, const graph::Node& node) {
  const auto* operation = graph::find_operation(node.operation());
  if (operation != nullptr && operation->aliasing == graph::Aliasing::reshape) return true;
  if (node.operation() == "_unsafe_view") return true;
  if (std::find(same.begin(), same.end(), node.operation()) == same.end() || drops(node)) return false;
  if (node.args.empty() || !is_self(node.args.front()) || node.outputs.size() != 1) return false;
  const auto &from = graph.value(node.args.front().values.front()), &to = graph.value(node.outputs.front());
  return from.type == to.type && from.shape == to.shape;
}

// Views that change nothing at all give way to their operands.
void remove_identities(Program& program) {
  for (const auto& step : program.steps) {
    if (!step.view) continue;
    const int from = operands_of(step).front(), to = step.node.outputs.front();
    if (program.value(from).shape == program.value(to).shape) replace_uses(program, to, from);
  }
}

}  // namespace

Result<Program> lower(graph::Graph graph, std::int64_t block) {
  if (block != 8 && block != 16)
    return fail(fmt::format("blocks of {} channels", block), "allowed are 8 and 16", Exit::usage);
  graph = STRATA_TRY(graph::expanded(std::move(graph)));
  Program program;
  program.block = block;
  try {
    for (auto& node : graph.nodes) {
      Step step;
      // JSON sorts arguments by name; operands_of() shall give the operand proper first
      std::stable_partition(node.args.begin(), node.args.end(), is_self);
      step.view = is_view(graph, node);
      step.graph_nodes = {node.name};
      step.node = std::move(node);
      program.steps.push_back(std::move(step));
    }
    graph.nodes.clear();
    for (auto& value : graph.values) {
      value.producer = -1;
      value.consumers.clear();
    }
    program.graph = std::move(graph);
    for (auto& step : program.steps) step.typed = graph::is_typed(program.graph, step.node);
    expand_einsums(program);
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "remove the bundle's folder; it is made again");
  }
  remove_identities(program);
  STRATA_TRY(recompute_places(program));
  materialize_outputs(program);
  STRATA_TRY(remove_dead(program));
  STRATA_TRY(plan_memory(program));
  return program;
}

}  // namespace strata::compiler
