// SPDX-License-Identifier: Apache-2.0
// Graphs of one node, written by hand.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/load.hpp"

namespace strata::graph {

using nlohmann::json;

struct Tensor {
  Shape shape;
  const char* type = "float32";
};

// A graph of one node; tensors are given in order, `args` refer to them by {"value":n}, and outputs follow them.
inline Result<Graph> one_node(const std::string& op, const std::vector<Tensor>& tensors, const json& args,
                              const std::vector<Tensor>& outputs) {
  json all = json::parse(
      R"({"graph":1,"mode":"infer","inputs":[],"parameters":[],"buffers":[],"constants":[],"outputs":[],"updates":[]})");
  json node = {{"op", op},
               {"name", "it"},
               {"args", args},
               {"module", "net.layer"},
               {"module_type", "Layer"},
               {"source", "net.py:3"}};
  for (const auto& tensor : tensors) {
    const auto name = "t" + std::to_string(all["inputs"].size());
    all["inputs"].push_back({{"name", name}, {"value", all["values"].size()}});
    all["values"].push_back({{"name", name}, {"dtype", tensor.type}, {"shape", tensor.shape}});
  }
  for (const auto& tensor : outputs) {
    node["outputs"].push_back(all["values"].size());
    all["outputs"].push_back({{"name", "o" + std::to_string(all["outputs"].size())}, {"value", all["values"].size()}});
    all["values"].push_back({{"name", "o"}, {"dtype", tensor.type}, {"shape", tensor.shape}});
  }
  all["nodes"] = json::array({node});
  return parse(all.dump(), "graph.json");
}

inline json value(int index) {
  return {{"value", index}};
}
inline json values(const std::vector<int>& indices) {
  return {{"values", indices}};
}

}  // namespace strata::graph
