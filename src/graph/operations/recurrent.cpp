// SPDX-License-Identifier: Apache-2.0
// One layer of a recurrent network in one direction, and its gradients (graph/recurrent.hpp).
#include "graph/recurrent.hpp"

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

void need_tensor(const Call& call, const char* argument, const Shape& shape, Type type) {
  const auto* value = call.maybe_in(argument);
  need(value != nullptr, "'{}' is left out", argument);
  need(value->shape == shape && value->type == type, "'{}' is {} {}, it should be {} {}", argument,
       name_of(value->type), to_string(value->shape), name_of(type), to_string(shape));
}

// Null, or of this shape.
void need_bias(const Call& call, const char* argument, const Shape& shape, Type type) {
  if (call.maybe_in(argument) != nullptr) need_tensor(call, argument, shape, type);
}

std::vector<Described> forward(const Call& call) {
  const auto layer = recurrent_layer(call);
  const auto& input = call.in("input");
  const Shape state{layer.batch, layer.hidden};
  std::vector<Described> all{{input.type, {layer.steps, layer.batch, layer.hidden}}, {input.type, state}};
  if (layer.kind == Recurrence::lstm) all.push_back({input.type, state});
  // how many bytes the library keeps is its own affair
  if (call.node().flag("train")) all.push_back({input.type, {0}});
  return all;
}

std::int64_t rows_of(const Value& input) {
  need(input.shape.size() > 1, "the input is {}, it should have steps and samples", to_string(input.shape));
  return product({input.shape[0], input.shape[1]});
}

// At every step every sample goes through both matrices once; biases are vectors.
std::int64_t forward_flops(const Call& call) {
  return product({2, rows_of(call.in("input")), call.in("weight0").elements() + call.in("weight1").elements()});
}

std::vector<Described> backward(const Call& call) {
  const auto layer = recurrent_layer(call);
  const auto type = call.in("input").type;
  const Shape state{layer.batch, layer.hidden};
  need_tensor(call, "grad_output", {layer.steps, layer.batch, layer.hidden}, type);
  need_tensor(call, "grad_hy", state, type);
  if (layer.kind == Recurrence::lstm) need_tensor(call, "grad_cy", state, type);
  const Shape bias{call.in("weight0").shape[0]};
  return masked(call, {{type, call.in("input").shape},
                       {type, call.in("weight0").shape},
                       {type, call.in("weight1").shape},
                       {type, bias},
                       {type, bias},
                       {type, state},
                       {type, state}});
}

// The gradient of a product is two of its size: what goes back through the steps is computed in any case, those of the
// input and of the weights where they are wanted.
std::int64_t backward_flops(const Call& call) {
  const auto &inner = call.in("weight0"), &outer = call.in("weight1");
  const auto* flags = call.node().find("output_mask");
  need(flags != nullptr && flags->plain.is_array() && flags->plain.size() == 7, "output_mask has not 7 flags");
  const auto& mask = flags->plain;
  auto elements = outer.elements();
  if (mask.at(0).get<bool>()) elements += inner.elements();
  if (mask.at(1).get<bool>()) elements += inner.elements();
  if (mask.at(2).get<bool>()) elements += outer.elements();
  return product({2, rows_of(call.in("input")), elements});
}

}  // namespace

RecurrentLayer recurrent_layer(const Call& call) {
  const auto& node = call.node();
  const auto mode = node.integer("mode");
  need(mode >= 0 && mode <= 3, "'mode' is {}, it should be 0 (RNN of ReLU), 1 (of tanh), 2 (LSTM) or 3 (GRU)", mode);
  const auto kind = static_cast<Recurrence>(mode);
  const auto &input = call.in("input"), &state = call.in("hx_");
  need(is_floating(input.type), "the input is {}, it should be of floating-point numbers", name_of(input.type));
  need(input.shape.size() == 3, "the input is {}, it should be [steps, samples, inputs]", to_string(input.shape));
  need(!state.shape.empty(), "the state is a scalar");
  const RecurrentLayer layer{.kind = kind,
                             .steps = input.shape[0],
                             .batch = input.shape[1],
                             .inputs = input.shape[2],
                             .hidden = state.shape.back()};
  const auto rows = times(gates_of(kind), layer.hidden);
  need_tensor(call, "hx_", {layer.batch, layer.hidden}, input.type);
  if (kind == Recurrence::lstm) need_tensor(call, "cx_", {layer.batch, layer.hidden}, input.type);
  need_tensor(call, "weight0", {rows, layer.inputs}, input.type);
  need_tensor(call, "weight1", {rows, layer.hidden}, input.type);
  need_bias(call, "weight2", {rows}, input.type);
  need_bias(call, "weight3", {rows}, input.type);
  return layer;
}

std::span<const Operation> recurrent_operations() {
  static constexpr Operation all[] = {{"mkldnn_rnn_layer", forward, forward_flops},
                                      {"mkldnn_rnn_layer_backward", backward, backward_flops}};
  return all;
}

}  // namespace strata::graph
