// SPDX-License-Identifier: Apache-2.0
#include "graph/write.hpp"

namespace strata::graph {
namespace {

using Json = nlohmann::ordered_json;

Json named_json(const std::vector<Named>& all, const char* name) {
  auto list = Json::array();
  for (const auto& element : all) {
    list.push_back(Json{{name, element.name}, {"value", element.value}});
    if (element.frozen) list.back()["frozen"] = true;
  }
  return list;
}

Json argument_json(const Argument& argument) {
  if (argument.kind == Argument::Kind::plain) return argument.plain;
  if (argument.kind == Argument::Kind::tensor) return {{"value", argument.values.front()}};
  auto list = Json::array();
  for (const int value : argument.values) list.push_back(value < 0 ? Json() : Json(value));
  return {{"values", list}};
}

Json node_json(const Node& node) {
  auto args = Json::object();
  for (const auto& argument : node.args) args[argument.name] = argument_json(argument);
  return {{"op", node.op},           {"name", node.name},     {"args", args},
          {"outputs", node.outputs}, {"module", node.module}, {"module_type", node.module_type},
          {"source", node.source}};
}

}  // namespace

nlohmann::ordered_json to_json(const Graph& graph) {
  auto values = Json::array(), nodes = Json::array();
  for (const auto& value : graph.values)
    values.push_back({{"name", value.name}, {"dtype", name_of(value.type)}, {"shape", value.shape}});
  for (const auto& node : graph.nodes) nodes.push_back(node_json(node));
  return {{"graph", 1},
          {"mode", name_of(graph.mode)},
          {"values", values},
          {"inputs", named_json(graph.inputs, "name")},
          {"parameters", named_json(graph.parameters, "name")},
          {"buffers", named_json(graph.buffers, "name")},
          {"constants", named_json(graph.constants, "name")},
          {"nodes", nodes},
          {"outputs", named_json(graph.outputs, "name")},
          {"updates", named_json(graph.updates, "buffer")}};
}

std::string to_text(const Graph& graph) {
  std::string text;
  const auto all = to_json(graph);
  for (const auto& [key, value] : all.items()) {
    text += text.empty() ? "{" : ",\n";
    text += Json(key).dump() + ":";
    if (!value.is_array() || value.empty()) {
      text += value.dump();
      continue;
    }
    for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "[\n" : ",\n") + value[i].dump();
    text += "]";
  }
  return text + "}\n";
}

}  // namespace strata::graph
