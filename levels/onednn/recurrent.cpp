// SPDX-License-Identifier: Apache-2.0
// One layer of an LSTM, GRU or RNN in one direction, and its gradients. What prepares weights (the order of gates, the
// sum of biases) is a loop of strata's: when weights are loaded, in training in every step.
#include "kit/recurrent.hpp"

#include "graph/recurrent.hpp"
#include "operations.hpp"

namespace strata::onednn {
namespace {

using kit::recurrent::desc_of, kit::recurrent::Kind, kit::recurrent::Layer;
using Arguments = std::vector<std::pair<int, Tensor>>;

Layer layer_of(Builder& b) {
  const auto found = graph::recurrent_layer(graph::Call(b.graph(), b.node()));
  Layer layer{.kind = static_cast<Kind>(found.kind), .reverse = b.flag("reverse")};
  layer.steps = found.steps;
  layer.batch = found.batch;
  layer.inputs = found.inputs;
  layer.hidden = found.hidden;
  return layer;
}

// Row-major, seen as `desc` of as many elements.
Tensor seen_as(Builder& b, std::string_view argument, const memory::desc& desc) {
  Tensor tensor = b.plain(b.tensor(argument));
  tensor.desc = desc;
  return tensor;
}

// In the layout `to`, with the library's order of gates.
Tensor weight_as(Builder& b, const Layer& layer, std::string_view argument, memory::dim columns,
                 const memory::desc& to) {
  const Tensor given = b.tensor(argument);
  Tensor weight = given.weight && is_row_major(given.desc) ? given : b.plain(given);
  if (layer.kind == Kind::gru)
    weight =
        b.prepared("gates", row_major(weight.dims()), {weight}, [layer, columns](const auto& from, float* ordered) {
          kit::recurrent::order_gates(layer.kind, layer.hidden * columns, from[0], ordered);
        });
  weight.desc = kit::recurrent::weight_desc(layer, columns);
  return b.in(weight, to);
}

Tensor bias_of(Builder& b, const Layer& layer) {
  const auto desc = kit::recurrent::bias_desc(layer);
  const bool has_inner = b.has("weight2"), has_outer = b.has("weight3");
  std::vector<Tensor> given;
  if (has_inner) given.push_back(b.tensor("weight2"));
  if (has_outer) given.push_back(b.tensor("weight3"));
  if (given.empty()) return b.constant(desc.get_dims(), std::vector<float>(desc.get_size() / sizeof(float), 0.0F));
  const auto how = has_inner && has_outer ? "both biases" : has_inner ? "inner bias" : "outer bias";
  Tensor bias = b.prepared(how, desc, given, [layer, has_inner, has_outer](const auto& from, float* joined) {
    kit::recurrent::join_biases(layer, has_inner ? from[0] : nullptr, has_outer ? from[has_inner ? 1 : 0] : nullptr,
                                joined);
  });
  bias.weight = false;  // it is there in every run
  return bias;
}

// What both directions of the computation read.
Arguments operands(Builder& b, const Layer& layer, const dnnl::primitive_desc& pd) {
  const auto state = kit::recurrent::state_desc(layer);
  Arguments all{
      {DNNL_ARG_SRC_LAYER, seen_as(b, "input", kit::recurrent::sequence_desc(layer, layer.inputs))},
      {DNNL_ARG_SRC_ITER, seen_as(b, "hx_", state)},
      {DNNL_ARG_WEIGHTS_LAYER, weight_as(b, layer, "weight0", layer.inputs, desc_of(pd, DNNL_ARG_WEIGHTS_LAYER))},
      {DNNL_ARG_WEIGHTS_ITER, weight_as(b, layer, "weight1", layer.hidden, desc_of(pd, DNNL_ARG_WEIGHTS_ITER))},
      {DNNL_ARG_BIAS, bias_of(b, layer)}};
  if (layer.has_cell()) all.emplace_back(DNNL_ARG_SRC_ITER_C, seen_as(b, "cx_", state));
  return all;
}

void forward(Builder& b) {
  const Layer layer = layer_of(b);
  const bool trains = b.flag("train");
  const auto pd = kit::recurrent::forward_of(b.engine(), trains, layer, Builder::attr());
  const auto state = kit::recurrent::state_desc(layer);
  auto arguments = operands(b, layer, pd);
  arguments.emplace_back(DNNL_ARG_DST_LAYER, b.result(kit::recurrent::sequence_desc(layer, layer.hidden), 0));
  arguments.emplace_back(DNNL_ARG_DST_ITER, b.result(state, 1));
  if (layer.has_cell()) arguments.emplace_back(DNNL_ARG_DST_ITER_C, b.result(state, 2));
  if (trains) {
    const Tensor workspace = b.temporary(desc_of(pd, DNNL_ARG_WORKSPACE));
    arguments.emplace_back(DNNL_ARG_WORKSPACE, workspace);
    b.leave(layer.has_cell() ? 3 : 2, {.tensor = workspace, .from = {}, .to = {}});
  }
  b.add(dnnl::primitive(pd), pd, std::move(arguments));
}

// Memory for a gradient that the library adds up in, emptied first.
Tensor emptied(Builder& b, const memory::desc& desc) {
  const Tensor to = b.temporary(desc);
  b.own(layout_name(desc), [bytes = b.handle(to), size = desc.get_size()] {
    auto* data = static_cast<std::byte*>(bytes.get_data_handle());
    std::fill_n(data, size, std::byte{0});
  });
  return to;
}

// Of a weight, in PyTorch's order of gates.
void give_weight(Builder& b, const Layer& layer, const Tensor& gradient, memory::dim columns, std::size_t output) {
  Tensor plain = b.in(gradient, kit::recurrent::weight_desc(layer, columns));
  plain.desc = row_major(b.shape(output));
  if (layer.kind != Kind::gru) return b.is(plain, output);
  b.own("gates", [layer, columns, from = b.handle(plain), to = b.handle(b.result(plain.desc, output))] {
    kit::recurrent::order_gates(layer.kind, layer.hidden * columns, static_cast<const float*>(from.get_data_handle()),
                                static_cast<float*>(to.get_data_handle()));
  });
}

void give_bias(Builder& b, const Layer& layer, const Tensor& gradient, bool inner, std::size_t output) {
  b.own("biases",
        [layer, inner, from = b.handle(gradient), to = b.handle(b.result(row_major(b.shape(output)), output))] {
          auto* into = static_cast<float*>(to.get_data_handle());
          kit::recurrent::split_biases(layer, static_cast<const float*>(from.get_data_handle()), inner ? into : nullptr,
                                       inner ? nullptr : into);
        });
}

void backward(Builder& b) {
  const Layer layer = layer_of(b);
  const auto mask = b.flags("output_mask");
  const auto pd = kit::recurrent::backward_of(b.engine(), layer, Builder::attr());
  const auto sequence = kit::recurrent::sequence_desc(layer, layer.hidden), state = kit::recurrent::state_desc(layer);
  auto arguments = operands(b, layer, pd);
  arguments.emplace_back(DNNL_ARG_DST_LAYER, seen_as(b, "output", sequence));
  arguments.emplace_back(DNNL_ARG_DST_ITER, seen_as(b, "hy_", state));
  arguments.emplace_back(DNNL_ARG_DIFF_DST_LAYER, seen_as(b, "grad_output", sequence));
  arguments.emplace_back(DNNL_ARG_DIFF_DST_ITER, seen_as(b, "grad_hy", state));
  if (layer.has_cell()) {
    arguments.emplace_back(DNNL_ARG_DST_ITER_C, seen_as(b, "cy_", state));
    arguments.emplace_back(DNNL_ARG_DIFF_DST_ITER_C, seen_as(b, "grad_cy", state));
  }
  arguments.emplace_back(DNNL_ARG_WORKSPACE, b.left("workspace").tensor);
  std::vector<std::size_t> output(mask.size(), 0);
  for (std::size_t i = 1; i < mask.size(); ++i) output[i] = output[i - 1] + (mask[i - 1] ? 1 : 0);
  const auto result = [&](std::size_t i, const memory::desc& desc) {
    return mask.at(i) ? b.result(desc, output[i]) : b.temporary(desc);
  };
  const Tensor of_inner = emptied(b, desc_of(pd, DNNL_ARG_DIFF_WEIGHTS_LAYER)),
               of_outer = emptied(b, desc_of(pd, DNNL_ARG_DIFF_WEIGHTS_ITER)),
               of_bias = emptied(b, desc_of(pd, DNNL_ARG_DIFF_BIAS));
  arguments.emplace_back(DNNL_ARG_DIFF_SRC_LAYER, result(0, kit::recurrent::sequence_desc(layer, layer.inputs)));
  arguments.emplace_back(DNNL_ARG_DIFF_WEIGHTS_LAYER, of_inner);
  arguments.emplace_back(DNNL_ARG_DIFF_WEIGHTS_ITER, of_outer);
  arguments.emplace_back(DNNL_ARG_DIFF_BIAS, of_bias);
  arguments.emplace_back(DNNL_ARG_DIFF_SRC_ITER, result(5, state));
  if (layer.has_cell()) arguments.emplace_back(DNNL_ARG_DIFF_SRC_ITER_C, result(6, state));
  b.add(dnnl::primitive(pd), pd, std::move(arguments));
  if (mask.at(1)) give_weight(b, layer, of_inner, layer.inputs, output[1]);
  if (mask.at(2)) give_weight(b, layer, of_outer, layer.hidden, output[2]);
  if (mask.at(3)) give_bias(b, layer, of_bias, true, output[3]);
  if (mask.at(4)) give_bias(b, layer, of_bias, false, output[4]);
}

// Layers stand in the place of every other form of these (graph/expand.hpp).
void of_unknown_form(Builder& b) {
  if (b.node().find("data") != nullptr) throw Unsupported("a sequence that is packed by lengths");
  throw Unsupported("an LSTM with projections (proj_size), or other weights than two matrices and two biases a layer");
}

}  // namespace

void add_recurrences(Operations& table) {
  table["mkldnn_rnn_layer"] = forward;
  table["mkldnn_rnn_layer_backward"] = backward;
  for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) table[name] = of_unknown_form;
}

}  // namespace strata::onednn
