// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks in one direction, and their gradients (graph/recurrent.hpp).
#include "graph/recurrent.hpp"

#include <fmt/format.h>

#include <array>

#include "generate/operations.hpp"

namespace strata::generate {
namespace {

constexpr std::array names_of_kinds{"relu", "tangent", "lstm", "gru"};

std::string tensor_if_given(const Emitter& e, std::string_view argument) {
  return e.has(argument) ? e.tensor(e.node().tensor(argument)) : std::string();
}
std::string weight_if_given(const Emitter& e, std::string_view argument) {
  return e.has(argument) ? e.weight(e.node().tensor(argument)) : std::string();
}

// What both directions of the computation read; what is left out is empty.
Fields operands(const Emitter& e) {
  if (e.target() == compiler::Target::cuda) throw Unsupported("a recurrent layer on a GPU");
  const auto& node = e.node();
  if (e.type(node.tensor("input")) != graph::Type::float32)
    throw Unsupported(fmt::format("a recurrent layer of {}", graph::name_of(e.type(node.tensor("input")))));
  return {{"kind", fmt::format("Recurrence::{}", names_of_kinds.at(static_cast<std::size_t>(node.integer("mode"))))},
          {"reverse", node.flag("reverse") ? "true" : ""},
          {"source", tensor_if_given(e, "input")},
          {"state", tensor_if_given(e, "hx_")},
          {"cell", tensor_if_given(e, "cx_")},
          {"inner", weight_if_given(e, "weight0")},
          {"outer", weight_if_given(e, "weight1")},
          {"inner_bias", weight_if_given(e, "weight2")},
          {"outer_bias", weight_if_given(e, "weight3")}};
}

bool has_cell(const Emitter& e) {
  return e.node().integer("mode") == static_cast<int>(graph::Recurrence::lstm);
}

void forward(Emitter& e) {
  auto fields = operands(e);
  const auto add = [&](const char* name, std::size_t i) {
    const bool is_there = i < e.node().outputs.size() && e.is_used(e.output(i));
    fields.emplace_back(name, is_there ? e.result(i) : std::string());
  };
  const std::size_t behind = has_cell(e) ? 3 : 2;
  add("result", 0);
  add("last_state", 1);
  if (has_cell(e)) add("last_cell", 2);
  if (e.node().flag("train")) add("workspace", behind);
  e.call("recurrent_layer", fields);
}

void backward(Emitter& e) {
  auto fields = operands(e);
  for (const auto& [name, argument] :
       {std::pair("result", "output"), std::pair("last_state", "hy_"), std::pair("last_cell", "cy_"),
        std::pair("workspace", "workspace"), std::pair("gradient", "grad_output"),
        std::pair("of_last_state", "grad_hy"), std::pair("of_last_cell", "grad_cy")})
    fields.emplace_back(name, tensor_if_given(e, argument));
  std::size_t output = 0;
  const auto& mask = e.node().find("output_mask")->plain;
  constexpr std::array names{"of_source",     "of_inner", "of_outer", "of_inner_bias",
                             "of_outer_bias", "of_state", "of_cell"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (mask.at(i).get<bool>()) fields.emplace_back(names[i], e.result(output++));
  e.call("recurrent_backward", fields);
}

// Layers stand in the place of every other form of these (graph/expand.hpp).
void of_unknown_form(Emitter& e) {
  if (e.node().find("data") != nullptr) throw Unsupported("a sequence that is packed by lengths");
  throw Unsupported("an LSTM with projections (proj_size), or other weights than two matrices and two biases a layer");
}

}  // namespace

void add_recurrences(Operations& table) {
  table["mkldnn_rnn_layer"] = forward;
  table["mkldnn_rnn_layer_backward"] = backward;
  for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) table[name] = of_unknown_form;
}

}  // namespace strata::generate
