// SPDX-License-Identifier: Apache-2.0
#include "compiler/step_builder.hpp"

#include <algorithm>
#include <utility>

namespace strata::compiler {

int add_value(Program& program, const std::string& name, const graph::Value& like) {
  graph::Value value;
  value.name = name;
  value.type = like.type;
  value.shape = like.shape;
  program.graph.values.push_back(std::move(value));
  program.places.emplace_back();
  return static_cast<int>(program.graph.values.size()) - 1;
}

graph::Argument tensor_argument(const std::string& name, int value) {
  graph::Argument argument;
  argument.name = name;
  if (value < 0) return argument;
  argument.kind = graph::Argument::Kind::tensor;
  argument.values = {value};
  return argument;
}

graph::Argument plain_argument(const std::string& name, nlohmann::json plain) {
  graph::Argument argument;
  argument.name = name;
  argument.plain = std::move(plain);
  return argument;
}

Step make_step(const Program& program, const std::string& op, std::vector<graph::Argument> args,
               std::vector<int> outputs) {
  Step step;
  step.node.op = op;
  step.node.args = std::move(args);
  step.node.outputs = std::move(outputs);
  // its first result was just made, and values are never removed
  step.node.name = program.value(step.node.outputs.front()).name;
  return step;
}

void set_place(Step& step, const Step& like) {
  step.node.module = like.node.module;
  step.node.module_type = like.node.module_type;
  step.node.source = like.node.source;
  step.phase = like.phase;
}

void absorb(Step& into, Step& from) {
  into.node.outputs.front() = from.node.outputs.front();
  from.node.outputs.clear();
  into.graph_nodes.insert(into.graph_nodes.end(), from.graph_nodes.begin(), from.graph_nodes.end());
}

void replace_uses(Program& program, int from, int to) {
  for (auto& step : program.steps) {
    for (auto& argument : step.node.args) std::replace(argument.values.begin(), argument.values.end(), from, to);
    for (auto& post : step.posts)
      if (post.value == from) post.value = to;
  }
  for (auto* list : {&program.graph.outputs, &program.graph.updates})
    for (auto& element : *list)
      if (element.value == from) element.value = to;
}

}  // namespace strata::compiler
