// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/passes/passes.hpp"
#include "compiler/uses.hpp"
#include "graph/operations.hpp"

namespace strata::compiler {
namespace {

// Operations whose result is their first operand where shape and type stay: values have no strides, and nothing is
// written into a value that is still read.
constexpr std::array<std::string_view, 14> same{
    "alias",    "clone",  "contiguous", "detach",       "lift_fresh",    "lift_fresh_copy", "to",
    "_to_copy", "expand", "expand_as",  "_unsafe_view", "alpha_dropout", "dropout",         "feature_dropout"};

bool drops(const graph::Node& node) {
  return node.find("train") != nullptr && node.flag("train") && node.number("p") > 0;
}

bool is_view(const graph::Graph& graph, const graph::Node& node) {
  const auto* operation = graph::find_operation(node.operation());
  if (operation != nullptr && operation->aliasing == graph::Aliasing::reshape) return true;
  if (std::find(same.begin(), same.end(), node.operation()) == same.end() || drops(node)) return false;
  const auto& first = node.args;
  const auto self = std::find_if(first.begin(), first.end(), [](const graph::Argument& one) {
    return one.kind == graph::Argument::Kind::tensor && (one.name == "self" || one.name == "input");
  });
  if (self == first.end() || node.outputs.size() != 1) return false;
  const auto &from = graph.value(self->values.front()), &to = graph.value(node.outputs.front());
  const bool reshapes = node.operation() == "_unsafe_view";
  return from.type == to.type && (from.shape == to.shape || reshapes);
}

}  // namespace

Result<Program> lower(graph::Graph graph, std::int64_t block) {
  if (block != 8 && block != 16)
    return fail(fmt::format("blocks of {} channels", block), "allowed are 8 and 16", Exit::usage);
  Program program;
  program.block = block;
  try {
    for (auto& node : graph.nodes) {
      Step step;
      step.view = is_view(graph, node);
      step.covers = {node.name};
      // operands_of() gives a step's arguments in order; a view is of the first
      if (step.view)
        std::stable_partition(node.args.begin(), node.args.end(), [](const graph::Argument& one) {
          return one.kind == graph::Argument::Kind::tensor && (one.name == "self" || one.name == "input");
        });
      step.node = std::move(node);
      program.steps.push_back(std::move(step));
    }
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "remove the bundle's folder; it is made again");
  }
  graph.nodes.clear();
  for (auto& value : graph.values) {
    value.producer = -1;
    value.consumers.clear();
  }
  program.graph = std::move(graph);
  if (auto done = settle(program); !done) return tl::unexpected(done.error());
  own_outputs(program);
  if (auto done = remove_dead(program); !done) return tl::unexpected(done.error());
  if (auto done = plan_memory(program); !done) return tl::unexpected(done.error());
  return program;
}

}  // namespace strata::compiler
