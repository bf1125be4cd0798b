// SPDX-License-Identifier: Apache-2.0
// oneDNN's calls for one layer of a recurrent network in one direction, and its weights between PyTorch's order and the
// library's: of a GRU the gates r, z, n are z, r, n there; the two biases are added, but for the last of a GRU's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "kit/recurrence.hpp"

namespace kit::recurrent {

using dnnl::memory;
using Kind = Recurrence;

struct Layer {
  Kind kind = Kind::tangent;
  bool reverse = false;
  bool gives_state = true, gives_cell = true;  // the last ones
  memory::dim steps = 0, batch = 0, inputs = 0, hidden = 0;

  bool has_cell() const { return kind == Kind::lstm; }
  memory::dim gates() const { return gates_of(kind); }
  memory::dim biases() const { return kind == Kind::gru ? 4 : gates(); }
  memory::dim weight_elements(memory::dim columns) const { return gates() * hidden * columns; }
};

// Row-major tensors; states are [layers, directions, batch, hidden] to the library.
inline memory::desc sequence_desc(const Layer& layer, memory::dim width) {
  return {{layer.steps, layer.batch, width}, memory::data_type::f32, memory::format_tag::tnc};
}
inline memory::desc state_desc(const Layer& layer) {
  return {{1, 1, layer.batch, layer.hidden}, memory::data_type::f32, memory::format_tag::ldnc};
}
inline memory::desc bias_desc(const Layer& layer) {
  return {{1, 1, layer.biases(), layer.hidden}, memory::data_type::f32, memory::format_tag::ldgo};
}
// A weight [gates hidden, columns], as it lies row-major, and in whatever layout the library likes.
inline memory::desc weight_desc(const Layer& layer, memory::dim columns) {
  return {{1, 1, columns, layer.gates(), layer.hidden}, memory::data_type::f32, memory::format_tag::ldgoi};
}
inline memory::desc any_weight(const Layer& layer, memory::dim columns) {
  return {{1, 1, columns, layer.gates(), layer.hidden}, memory::data_type::f32, memory::format_tag::any};
}

// Between PyTorch's order of gates and the library's, in either direction; `each`: the elements of a gate.
inline void order_gates(Kind kind, std::ptrdiff_t each, const float* from, float* to) {
  for (std::ptrdiff_t gate = 0; gate < gates_of(kind); ++gate) {
    const auto place = kind == Kind::gru && gate < 2 ? 1 - gate : gate;
    std::copy_n(from + gate * each, each, to + place * each);
  }
}

// The library's bias of PyTorch's two, of which each may be null.
inline void join_biases(const Layer& layer, const float* inner, const float* outer, float* to) {
  const auto hidden = layer.hidden;
  const auto sum = [&](memory::dim i) {
    return (inner == nullptr ? 0.0F : inner[i]) + (outer == nullptr ? 0.0F : outer[i]);
  };
  if (layer.kind != Kind::gru) {
    for (memory::dim i = 0; i < layer.gates() * hidden; ++i) to[i] = sum(i);
    return;
  }
  for (memory::dim i = 0; i < hidden; ++i) {
    to[i] = sum(hidden + i);
    to[hidden + i] = sum(i);
    to[2 * hidden + i] = inner == nullptr ? 0.0F : inner[2 * hidden + i];
    to[3 * hidden + i] = outer == nullptr ? 0.0F : outer[2 * hidden + i];
  }
}

// The gradients of PyTorch's two biases; null: it is not wanted.
inline void split_biases(const Layer& layer, const float* from, float* inner, float* outer) {
  const auto hidden = layer.hidden;
  for (auto [to, last] : {std::pair(inner, 2 * hidden), std::pair(outer, 3 * hidden)}) {
    if (to == nullptr) continue;
    if (layer.kind != Kind::gru) {
      std::copy_n(from, layer.gates() * hidden, to);
      continue;
    }
    std::copy_n(from + hidden, hidden, to);
    std::copy_n(from, hidden, to + hidden);
    std::copy_n(from + last, hidden, to + 2 * hidden);
  }
}

namespace internal {

// What a layer's forward call is described by.
struct Descs {
  memory::desc source, result, state, cell, inner, outer, bias, last_state, last_cell;

  explicit Descs(const Layer& layer)
      : source(sequence_desc(layer, layer.inputs)),
        result(sequence_desc(layer, layer.hidden)),
        state(state_desc(layer)),
        cell(state_desc(layer)),
        inner(any_weight(layer, layer.inputs)),
        outer(any_weight(layer, layer.hidden)),
        bias(bias_desc(layer)) {
    if (layer.gives_state) last_state = state;
    if (layer.gives_cell) last_cell = cell;
  }
};

inline dnnl::rnn_direction direction_of(const Layer& layer) {
  return layer.reverse ? dnnl::rnn_direction::unidirectional_right2left
                       : dnnl::rnn_direction::unidirectional_left2right;
}
inline dnnl::algorithm function_of(const Layer& layer) {
  return layer.kind == Kind::relu ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_tanh;
}

inline auto lstm(const dnnl::engine& engine, dnnl::prop_kind kind, const Layer& layer,
                 const dnnl::primitive_attr& attributes) {
  const Descs d(layer);
  return dnnl::lstm_forward::primitive_desc(engine, kind, direction_of(layer), d.source, d.state, d.cell, d.inner,
                                            d.outer, d.bias, d.result, d.last_state, d.last_cell, attributes);
}
inline auto gru(const dnnl::engine& engine, dnnl::prop_kind kind, const Layer& layer,
                const dnnl::primitive_attr& attributes) {
  const Descs d(layer);
  return dnnl::lbr_gru_forward::primitive_desc(engine, kind, direction_of(layer), d.source, d.state, d.inner, d.outer,
                                               d.bias, d.result, d.last_state, attributes);
}
inline auto plain(const dnnl::engine& engine, dnnl::prop_kind kind, const Layer& layer,
                  const dnnl::primitive_attr& attributes) {
  const Descs d(layer);
  return dnnl::vanilla_rnn_forward::primitive_desc(engine, kind, function_of(layer), direction_of(layer), d.source,
                                                   d.state, d.inner, d.outer, d.bias, d.result, d.last_state,
                                                   attributes);
}

}  // namespace internal

// Layouts of its operands: desc_of().
inline dnnl::primitive_desc forward_of(const dnnl::engine& engine, bool trains, const Layer& layer,
                                       const dnnl::primitive_attr& attributes) {
  const auto kind = trains ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  if (layer.kind == Kind::lstm) return internal::lstm(engine, kind, layer, attributes);
  if (layer.kind == Kind::gru) return internal::gru(engine, kind, layer, attributes);
  return internal::plain(engine, kind, layer, attributes);
}

// Of a layer that gives its last state and cell. The library adds to the gradients of weights and bias what it finds:
// they must be zeros.
inline dnnl::primitive_desc backward_of(const dnnl::engine& engine, const Layer& layer,
                                        const dnnl::primitive_attr& attributes) {
  constexpr auto trains = dnnl::prop_kind::forward_training, back = dnnl::prop_kind::backward;
  const internal::Descs d(layer);
  const auto direction = internal::direction_of(layer);
  if (layer.kind == Kind::lstm)
    return dnnl::lstm_backward::primitive_desc(engine, back, direction, d.source, d.state, d.cell, d.inner, d.outer,
                                               d.bias, d.result, d.state, d.cell, d.source, d.state, d.cell, d.inner,
                                               d.outer, d.bias, d.result, d.state, d.cell,
                                               internal::lstm(engine, trains, layer, attributes), attributes);
  if (layer.kind == Kind::gru)
    return dnnl::lbr_gru_backward::primitive_desc(
        engine, back, direction, d.source, d.state, d.inner, d.outer, d.bias, d.result, d.state, d.source, d.state,
        d.inner, d.outer, d.bias, d.result, d.state, internal::gru(engine, trains, layer, attributes), attributes);
  return dnnl::vanilla_rnn_backward::primitive_desc(engine, back, internal::function_of(layer), direction, d.source,
                                                    d.state, d.inner, d.outer, d.bias, d.result, d.state, d.source,
                                                    d.state, d.inner, d.outer, d.bias, d.result, d.state,
                                                    internal::plain(engine, trains, layer, attributes), attributes);
}

inline memory::desc desc_of(const dnnl::primitive_desc& pd, int argument) {
  return pd.query_md(dnnl::query::exec_arg_md, argument);
}

}  // namespace kit::recurrent
