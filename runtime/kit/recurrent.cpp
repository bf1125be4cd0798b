// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks by oneDNN's calls. Weights are brought into the library's order of gates and its layout
// when they are loaded, those that are trained in every step: they lie row-major, as their update changes them.
#include "kit/recurrent.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "kit/internals.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

using recurrent::desc_of, recurrent::Layer;

float* floats_of(const memory& tensor) {
  return tensor ? static_cast<float*>(tensor.get_data_handle()) : nullptr;
}

template <class How>
Layer layer_of(const How& how) {
  Layer layer{.kind = how.kind, .reverse = how.reverse};
  layer.gives_state = bool{how.last_state};
  layer.gives_cell = bool{how.last_cell};
  layer.steps = how.source.shape[0];
  layer.batch = how.source.shape[1];
  layer.inputs = how.source.shape[2];
  layer.hidden = how.state.shape[1];
  return layer;
}

struct OrderGates {
  Recurrence kind;
  Extent each;
  memory from, to;
  void operator()() const { recurrent::order_gates(kind, each, floats_of(from), floats_of(to)); }
};

struct JoinBiases {
  Layer layer;
  memory inner, outer, to;
  void operator()() const { recurrent::join_biases(layer, floats_of(inner), floats_of(outer), floats_of(to)); }
};

struct SplitBiases {
  Layer layer;
  memory from, inner, outer;
  void operator()() const { recurrent::split_biases(layer, floats_of(from), floats_of(inner), floats_of(outer)); }
};

struct Empty {
  memory to;
  std::size_t bytes;
  void operator()() const { std::memset(to.get_data_handle(), 0, bytes); }
};

bool changes(const Internals& in, Weight weight) {
  if (!weight) return false;
  const auto& entry = in.weights.at(static_cast<std::size_t>(weight.number));
  return entry.trained || entry.changed;
}

// What a step of load() makes of weights; the same of the same ones is made once, as of a cell that is called often.
template <class Make>
Weight made_at_load(Internals& in, const std::string& name, const std::vector<int>& reads, Extent elements,
                    const Make& make) {
  if (const auto known = in.saved.find(name); known != in.saved.end()) return known->second;
  in.weights.emplace_back();
  in.weights.back().shape = {elements};
  const Weight made{static_cast<int>(in.weights.size()) - 1, {elements}};
  in.add_load_step({reads, made.number, [&in, made, make] { make(in.allocate_computed(made.number)); }});
  return in.saved[name] = made;
}

// In the layout `to`; `columns`: of its matrix.
memory weight_as(Program& program, const Layer& layer, Weight weight, Extent columns, const memory::desc& to) {
  Internals& in = program.internals();
  const auto seen = recurrent::weight_desc(layer, columns);
  const bool orders = layer.kind == Recurrence::gru;
  const Extent each = layer.hidden * columns;
  if (!changes(in, weight)) {
    const int number = weight.number;
    if (orders)
      weight = made_at_load(in, "gates of weight " + std::to_string(number), {number}, layer.weight_elements(columns),
                            [&in, number, kind = layer.kind, each](float* ordered) {
                              const auto* from = in.weights[static_cast<std::size_t>(number)].data;
                              recurrent::order_gates(kind, each, from, ordered);
                            });
    return in.packed(weight, seen, to);
  }
  Tensor lies = program.stored(weight);
  if (orders) {
    const Tensor ordered = in.temporary_bytes(seen.get_size());
    in.add_own(OrderGates{layer.kind, each, in.handle(lies, seen), in.handle(ordered, seen)}, true, "kit:gates");
    lies = ordered;
  }
  const memory from = in.handle(lies, seen);
  if (seen == to) return from;
  const memory packed = in.handle(in.temporary_bytes(to.get_size()), to);
  in.add_reorder(from, packed);
  return packed;
}

memory bias_of(Program& program, const Layer& layer, Weight inner, Weight outer) {
  Internals& in = program.internals();
  const auto desc = recurrent::bias_desc(layer);
  if (changes(in, inner) || changes(in, outer)) {
    const memory joined = in.handle(in.temporary_bytes(desc.get_size()), desc);
    in.add_own(JoinBiases{layer, stored_handle(program, inner), stored_handle(program, outer), joined}, true,
               "kit:biases");
    return joined;
  }
  std::vector<int> reads;
  for (const Weight& weight : {inner, outer})
    if (weight) reads.push_back(weight.number);
  const auto name = "biases of weights " + std::to_string(inner.number) + " and " + std::to_string(outer.number) +
                    " of " + std::to_string(static_cast<int>(layer.kind)) + " by " + std::to_string(layer.hidden);
  const Weight joined =
      made_at_load(in, name, reads, layer.biases() * layer.hidden, [&in, layer, inner, outer](float* to) {
        const auto data_of = [&](Weight weight) {
          return weight ? in.weights[static_cast<std::size_t>(weight.number)].data : nullptr;
        };
        recurrent::join_biases(layer, data_of(inner), data_of(outer), to);
      });
  return in.packed(joined, desc, desc);
}

using Arguments = std::vector<std::pair<int, memory>>;

// What both directions of the computation read.
template <class How>
Arguments operands(Program& program, const Layer& layer, const How& how, const dnnl::primitive_desc& pd) {
  Internals& in = program.internals();
  const auto state = recurrent::state_desc(layer);
  Arguments all{
      {DNNL_ARG_SRC_LAYER, in.handle(how.source, recurrent::sequence_desc(layer, layer.inputs))},
      {DNNL_ARG_SRC_ITER, in.handle(how.state, state)},
      {DNNL_ARG_WEIGHTS_LAYER, weight_as(program, layer, how.inner, layer.inputs, desc_of(pd, DNNL_ARG_WEIGHTS_LAYER))},
      {DNNL_ARG_WEIGHTS_ITER, weight_as(program, layer, how.outer, layer.hidden, desc_of(pd, DNNL_ARG_WEIGHTS_ITER))},
      {DNNL_ARG_BIAS, bias_of(program, layer, how.inner_bias, how.outer_bias)}};
  if (layer.has_cell()) all.emplace_back(DNNL_ARG_SRC_ITER_C, in.handle(how.cell, state));
  return all;
}

// Memory for a gradient that the library adds up in, emptied first.
memory emptied(Internals& in, const memory::desc& desc) {
  const memory to = in.handle(in.temporary_bytes(desc.get_size()), desc);
  in.add_own(Empty{to, desc.get_size()}, true, "kit:fill");
  return to;
}

// Row-major and in PyTorch's order of gates, of a gradient in the library's.
void give_weight(Internals& in, const Layer& layer, const memory& gradient, Extent columns, const Tensor& result) {
  if (!result) return;
  const auto desc = recurrent::weight_desc(layer, columns);
  if (layer.kind != Recurrence::gru) return in.add_reorder(gradient, in.handle(result, desc));
  const memory plain = in.handle(in.temporary_bytes(desc.get_size()), desc);
  in.add_reorder(gradient, plain);
  in.add_own(OrderGates{layer.kind, layer.hidden * columns, plain, in.handle(result, desc)}, true, "kit:gates");
}

}  // namespace

void recurrent_layer(Program& program, const RecurrentLayer& how) {
  Internals& in = program.internals();
  const Layer layer = layer_of(how);
  const auto pd = recurrent::forward_of(in.engine, bool{how.workspace}, layer, plain_attributes());
  const auto state = recurrent::state_desc(layer);
  auto arguments = operands(program, layer, how, pd);
  arguments.emplace_back(DNNL_ARG_DST_LAYER, in.handle(how.result, recurrent::sequence_desc(layer, layer.hidden)));
  if (how.last_state) arguments.emplace_back(DNNL_ARG_DST_ITER, in.handle(how.last_state, state));
  if (how.last_cell) arguments.emplace_back(DNNL_ARG_DST_ITER_C, in.handle(how.last_cell, state));
  if (how.workspace) {
    const auto kept = desc_of(pd, DNNL_ARG_WORKSPACE);
    if (kept.get_size() > static_cast<std::size_t>(how.workspace.bytes()))
      throw std::logic_error(
          "the library keeps more of a recurrent layer than was planned for: " + std::to_string(kept.get_size()) +
          " bytes in place of " + std::to_string(how.workspace.bytes()));
    arguments.emplace_back(DNNL_ARG_WORKSPACE, in.handle(how.workspace, kept));
  }
  in.add(dnnl::primitive(pd), pd, std::move(arguments));
}

void recurrent_backward(Program& program, const RecurrentBackward& how) {
  Internals& in = program.internals();
  const Layer layer = layer_of(how);
  const auto pd = recurrent::backward_of(in.engine, layer, plain_attributes());
  const auto state = recurrent::state_desc(layer), sequence = recurrent::sequence_desc(layer, layer.hidden),
             source = recurrent::sequence_desc(layer, layer.inputs);
  const auto result = [&](const Tensor& wanted, const memory::desc& desc) {
    return in.handle(wanted ? wanted : in.temporary_bytes(desc.get_size()), desc);
  };
  auto arguments = operands(program, layer, how, pd);
  arguments.emplace_back(DNNL_ARG_DST_LAYER, in.handle(how.result, sequence));
  arguments.emplace_back(DNNL_ARG_DST_ITER, in.handle(how.last_state, state));
  arguments.emplace_back(DNNL_ARG_WORKSPACE, in.handle(how.workspace, desc_of(pd, DNNL_ARG_WORKSPACE)));
  arguments.emplace_back(DNNL_ARG_DIFF_DST_LAYER, in.handle(how.gradient, sequence));
  arguments.emplace_back(DNNL_ARG_DIFF_DST_ITER, in.handle(how.of_last_state, state));
  arguments.emplace_back(DNNL_ARG_DIFF_SRC_LAYER, result(how.of_source, source));
  arguments.emplace_back(DNNL_ARG_DIFF_SRC_ITER, result(how.of_state, state));
  if (layer.has_cell()) {
    arguments.emplace_back(DNNL_ARG_DST_ITER_C, in.handle(how.last_cell, state));
    arguments.emplace_back(DNNL_ARG_DIFF_DST_ITER_C, in.handle(how.of_last_cell, state));
    arguments.emplace_back(DNNL_ARG_DIFF_SRC_ITER_C, result(how.of_cell, state));
  }
  const memory of_inner = emptied(in, desc_of(pd, DNNL_ARG_DIFF_WEIGHTS_LAYER)),
               of_outer = emptied(in, desc_of(pd, DNNL_ARG_DIFF_WEIGHTS_ITER)),
               of_bias = emptied(in, desc_of(pd, DNNL_ARG_DIFF_BIAS));
  arguments.emplace_back(DNNL_ARG_DIFF_WEIGHTS_LAYER, of_inner);
  arguments.emplace_back(DNNL_ARG_DIFF_WEIGHTS_ITER, of_outer);
  arguments.emplace_back(DNNL_ARG_DIFF_BIAS, of_bias);
  in.add(dnnl::primitive(pd), pd, std::move(arguments));
  give_weight(in, layer, of_inner, layer.inputs, how.of_inner);
  give_weight(in, layer, of_outer, layer.hidden, how.of_outer);
  if (how.of_inner_bias || how.of_outer_bias)
    in.add_own(SplitBiases{layer, of_bias, handle_of(in, how.of_inner_bias), handle_of(in, how.of_outer_bias)}, true,
               "kit:biases");
}

}  // namespace kit
