// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN as their layers in each direction (recurrent.hpp), and their cells as layers of one step. What is
// packed by lengths, or projected, stays as it is.
#include "graph/recurrent.hpp"

#include <fmt/format.h>

#include "graph/expand/expansion.hpp"

namespace strata::graph {
namespace {

Recurrence kind_of(const std::string& operation) {
  if (operation.starts_with("lstm")) return Recurrence::lstm;
  if (operation.starts_with("gru")) return Recurrence::gru;
  return operation.starts_with("rnn_relu") ? Recurrence::relu : Recurrence::tanh;
}

// The state, and of an LSTM the cell.
std::vector<int> initial_states(const Node& node, Recurrence kind) {
  return kind == Recurrence::lstm ? node.tensors("hx") : std::vector<int>{node.tensor("hx")};
}

// Weights by their order in PyTorch: of the input, of the state, and both biases; -1: left out.
struct OneLayer {
  Recurrence kind;
  int input;
  std::vector<int> weights, states;
  bool reverse = false;
};

std::vector<int> add_layer(Expansion& e, const OneLayer& layer, const std::string& name, std::vector<int> into = {}) {
  const auto maybe = [](const char* argument, int value) {
    return value < 0 ? plain_argument(argument, nullptr) : tensor_argument(argument, value);
  };
  return e.calls(
      "mkldnn_rnn_layer.default",
      {tensor_argument("input", layer.input), tensor_argument("weight0", layer.weights.at(0)),
       tensor_argument("weight1", layer.weights.at(1)), maybe("weight2", layer.weights.at(2)),
       maybe("weight3", layer.weights.at(3)), tensor_argument("hx_", layer.states.at(0)),
       maybe("cx_", layer.states.size() > 1 ? layer.states[1] : -1), plain_argument("reverse", layer.reverse),
       plain_argument("mode", static_cast<int>(layer.kind)), plain_argument("train", false)},
      name, std::move(into));
}

class Network {
 public:
  explicit Network(Expansion& e)
      : e_(e), node_(e.node()), kind_(kind_of(node_.operation())), initial_(initial_states(node_, kind_)) {
    directions_ = node_.flag("bidirectional") ? 2 : 1;
    layers_ = node_.integer("num_layers");
    weights_each_ = node_.flag("has_biases") ? 4 : 2;
  }

  // False: of a form that is not known.
  bool is_known() const {
    return node_.overload() == "input" && layers_ > 0 && e_.shape(node_.tensor("input")).size() == 3 &&
           static_cast<std::int64_t>(node_.tensors("params").size()) == layers_ * directions_ * weights_each_;
  }

  void expand() {
    const bool batch_first = node_.flag("batch_first");
    int sequence = node_.tensor("input");
    if (batch_first) sequence = turned(sequence, "steps_first");
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      if (layer > 0) sequence = dropped_out(sequence, layer);
      const bool last = layer + 1 == layers_ && !batch_first;
      sequence = add_directions(layer, sequence, last ? e_.result() : -1);
    }
    if (batch_first) turned(sequence, "", e_.result());
    for (std::size_t i = 0; i < last_.size(); ++i) give_states(i);
  }

 private:
  int turned(int value, const std::string& name, int into = -1) {
    return e_.call("transpose.int",
                   {tensor_argument("self", value), plain_argument("dim0", 0), plain_argument("dim1", 1)}, name, into);
  }

  int dropped_out(int value, std::int64_t layer) {
    const double p = node_.number("dropout");
    if (e_.infers() || !node_.flag("train") || p == 0) return value;
    return e_.call("dropout.default",
                   {tensor_argument("input", value), plain_argument("p", p), plain_argument("train", true)},
                   fmt::format("dropout{}", layer));
  }

  // Part `index` of the initial states.
  int initial(std::size_t which, std::int64_t index) {
    const auto shape = e_.shape(initial_.at(which));
    const auto name = fmt::format("{}{}", which == 0 ? "state" : "cell", index);
    if (shape.at(0) == 1) return e_.viewed(initial_[which], {shape.at(1), shape.at(2)}, name);
    return e_.call("select.int",
                   {tensor_argument("self", initial_[which]), plain_argument("dim", 0), plain_argument("index", index)},
                   name);
  }

  int add_directions(std::int64_t layer, int sequence, int into) {
    std::vector<int> results;
    for (std::int64_t direction = 0; direction < directions_; ++direction) {
      const auto index = layer * directions_ + direction;
      OneLayer one{
          .kind = kind_, .input = sequence, .weights = weights(index), .states = {}, .reverse = direction == 1};
      for (std::size_t i = 0; i < initial_.size(); ++i) one.states.push_back(initial(i, index));
      const auto name = fmt::format("layer{}{}", layer, direction == 1 ? "_reverse" : "");
      const auto outputs = add_layer(e_, one, name, {directions_ == 1 ? into : -1});
      results.push_back(outputs[0]);
      last_.resize(initial_.size());
      for (std::size_t i = 0; i < last_.size(); ++i) last_[i].push_back(outputs[i + 1]);
    }
    if (directions_ == 1) return results.front();
    return e_.call("cat.default", {tensors_argument("tensors", results), plain_argument("dim", 2)},
                   fmt::format("both{}", layer), into);
  }

  std::vector<int> weights(std::int64_t index) const {
    const auto first = node_.tensors("params").begin() + static_cast<std::ptrdiff_t>(index * weights_each_);
    std::vector<int> all(first, first + static_cast<std::ptrdiff_t>(weights_each_));
    all.resize(4, -1);
    return all;
  }

  // The last states of all layers and directions.
  void give_states(std::size_t i) {
    const int result = e_.result(i + 1);
    const auto name = i == 0 ? "last_state" : "last_cell";
    if (last_[i].size() == 1)
      e_.viewed(last_[i].front(), e_.shape(result), name, result);
    else
      e_.call("stack.default", {tensors_argument("tensors", last_[i]), plain_argument("dim", 0)}, name, result);
  }

  Expansion& e_;
  const Node& node_;
  Recurrence kind_;
  std::vector<int> initial_;
  std::int64_t directions_ = 1, layers_ = 0, weights_each_ = 0;
  std::vector<std::vector<int>> last_;  // states, and of an LSTM cells, by layer and direction
};

void recurrent_network(Expansion& e) {
  if (e.node().overload() != "input") return;
  Network network(e);
  if (network.is_known()) network.expand();
}

void recurrent_cell(Expansion& e) {
  const auto& node = e.node();
  const auto kind = kind_of(node.operation());
  Shape shape = e.shape(node.tensor("input"));
  if (shape.size() != 2) return;
  shape.insert(shape.begin(), 1);
  const OneLayer one{
      .kind = kind,
      .input = e.viewed(node.tensor("input"), shape, "step"),
      .weights = {node.tensor("w_ih"), node.tensor("w_hh"), e.value_or_none("b_ih"), e.value_or_none("b_hh")},
      .states = initial_states(node, kind)};
  std::vector<int> into{-1};
  into.insert(into.end(), node.outputs.begin(), node.outputs.end());
  add_layer(e, one, "", into);
}

}  // namespace

std::span<const ExpansionRule> recurrent_expansions() {
  static constexpr ExpansionRule all[] = {{"gru", recurrent_network},      {"gru_cell", recurrent_cell},
                                          {"lstm", recurrent_network},     {"lstm_cell", recurrent_cell},
                                          {"rnn_relu", recurrent_network}, {"rnn_relu_cell", recurrent_cell},
                                          {"rnn_tanh", recurrent_network}, {"rnn_tanh_cell", recurrent_cell}};
  return all;
}

}  // namespace strata::graph
