// SPDX-License-Identifier: Apache-2.0
#include "graph/backward/backward.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/backward/rules.hpp"
#include "graph/expand.hpp"
#include "graph/load.hpp"
#include "graph/write.hpp"

namespace strata::graph {
namespace {

const std::map<std::string_view, BackwardRule>& table() {
  static const auto all = [] {
    std::map<std::string_view, BackwardRule> result;
    for (const auto family : {activation_rules(), arithmetic_rules(), attention_rules(), convolution_rules(),
                              dropout_rules(), einsum_rules(), function_rules(), image_rules(), join_rules(),
                              linear_rules(), loss_rules(), move_rules(), normalisation_rules(), place_rules(),
                              pooling_rules(), recurrent_rules(), reduction_rules(), softmax_rules(), view_rules()})
      for (const auto& rule : family) result.emplace(rule.name, rule);
    return result;
  }();
  return all;
}

bool wants_any(const Tape& tape, const Node& node) {
  for (const auto& argument : node.args)
    for (const int value : argument.values)
      if (value >= 0 && tape.wants(value)) return true;
  return false;
}

// What depends on a trained parameter needs a gradient, if it can have one.
void spread_needs(Tape& tape) {
  const auto& graph = tape.graph();
  for (const auto& parameter : graph.parameters)
    if (!parameter.frozen && is_floating(graph.value(parameter.value).type)) tape.need(parameter.value);
  for (const auto& node : graph.nodes) {
    if (node.operation() == "detach" || !wants_any(tape, node)) continue;
    for (const int output : node.outputs)
      if (is_floating(graph.value(output).type)) tape.need(output);
  }
}

// Forward nodes give what their backward operations read.
void prepare(Tape& tape) {
  for (std::size_t n = 0; n < tape.graph().nodes.size(); ++n) {
    Node node = tape.graph().nodes[n];
    const auto* rule = find_backward(node.operation());
    if (rule == nullptr || rule->prepare == nullptr) continue;
    // what is switched on in training changes whether or not a gradient goes through it; others only for one
    const bool differs = node.operation() == "dropout" || node.operation() == "batch_norm";
    if (!differs && !wants_any(tape, node)) continue;
    rule->prepare(tape, node);
    tape.graph().nodes[n] = node;
  }
}

// The network's first output; it must be the loss.
void take_loss(const Tape& tape, const Graph& graph, TrainingGraph& result) {
  const auto& output = graph.outputs.front();
  if (!tape.shape(output.value).empty() || !is_floating(tape.type(output.value)))
    throw NoGradient(fmt::format("the network's first output '{}' is {} {}, a loss is one number", output.name,
                                 name_of(tape.type(output.value)), to_string(tape.shape(output.value))));
  if (!tape.wants(output.value))
    throw NoGradient(fmt::format("no trained parameter has influence on the output '{}'", output.name));
  result.loss = output.value;
}

void append_loss(Tape& tape, Loss kind, TrainingGraph& result) {
  auto& graph = tape.graph();
  if (kind == Loss::output) return take_loss(tape, graph, result);
  int scores = graph.outputs.front().value;
  const auto shape = tape.shape(scores);
  const auto name = graph.outputs.front().name;
  if (shape.size() != 2 || !is_floating(tape.type(scores)))
    throw NoGradient(fmt::format("the network's first output '{}' is {} {}, a loss needs scores [batch, classes]", name,
                                 name_of(tape.type(scores)), to_string(shape)));
  if (!tape.wants(scores)) throw NoGradient(fmt::format("no trained parameter has influence on the output '{}'", name));
  for (const auto& input : graph.inputs)
    if (input.name == "labels") throw NoGradient("the network has an input 'labels', which is the loss's own");
  result.labels = tape.add_value("labels", {Type::int64, {shape[0]}});
  graph.inputs.push_back({"labels", result.labels});
  Node place;
  place.module = "loss";
  place.module_type = kind == Loss::cross_entropy ? "CrossEntropyLoss" : "NLLLoss";
  tape.set_current_node(place);
  if (kind == Loss::cross_entropy) {
    scores = tape.call("_log_softmax.default", {tensor_argument("self", scores), plain_argument("dim", 1),
                                                plain_argument("half_to_float", false)});
    tape.need(scores);
  }
  result.loss =
      tape.call("nll_loss_forward.default", {tensor_argument("self", scores), tensor_argument("target", result.labels),
                                             plain_argument("weight", nullptr), plain_argument("reduction", 1),
                                             plain_argument("ignore_index", -100)});
  tape.need(result.loss);
}

// Nodes from the last to the first: all that read a value come before what gives it, so that its gradient is complete.
void go_back(Tape& tape, std::size_t count) {
  for (std::size_t n = count; n-- > 0;) {
    const Node node = tape.graph().nodes[n];
    const bool reached = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](int output) { return tape.gradients().contains(output); });
    if (!reached || !wants_any(tape, node)) continue;
    tape.set_current_node(node);
    const auto* rule = find_backward(node.operation());
    if (rule == nullptr) throw NoGradient("no backward rule for this operation");
    rule->backward(tape);
  }
}

void name_outputs(Tape& tape, TrainingGraph& result) {
  auto& graph = tape.graph();
  graph.outputs = {{"loss", result.loss}};
  for (const auto& parameter : graph.parameters) {
    const auto it = tape.gradients().find(parameter.value);
    if (parameter.frozen || it == tape.gradients().end()) continue;
    result.gradients.push_back({parameter.name, it->second});
    graph.outputs.push_back({"grad:" + parameter.name, it->second});
  }
}

}  // namespace

const BackwardRule* find_backward(std::string_view operation) {
  const auto it = table().find(operation);
  return it == table().end() ? nullptr : &it->second;
}

Result<Loss> loss_named(std::string_view name) {
  if (name == "cross_entropy") return Loss::cross_entropy;
  if (name == "nll") return Loss::nll;
  return fail(fmt::format("the loss '{}' is not one of: cross_entropy, nll", name), "", Exit::environment);
}

Result<Loss> loss_of(const Graph& network, std::string_view name) {
  const bool is_number = !network.outputs.empty() && network.value(network.outputs.front().value).shape.empty();
  return is_number ? Loss::output : loss_named(name);
}

Result<TrainingGraph> differentiate(const Graph& captured, Loss loss) {
  if (captured.mode != Mode::train)
    return fail("the graph is of mode infer, a training step needs that of mode train", "capture with --mode train");
  const auto network = STRATA_TRY(expanded(captured));
  TrainingGraph result;
  Tape tape(network);
  try {
    spread_needs(tape);
    prepare(tape);
    result.forward_nodes = tape.graph().nodes.size();
    append_loss(tape, loss, result);
    result.loss_nodes = tape.graph().nodes.size();
    const int seed =
        tape.call("ones_like.default", {tensor_argument("self", result.loss), plain_argument("dtype", nullptr)});
    tape.give(result.loss, seed);
    go_back(tape, result.loss_nodes);
  } catch (const NoGradient& error) {
    const auto& node = tape.node();
    const auto where = node.op.empty() ? std::string() : node.where() + ": ";
    return fail(fmt::format("{}{}", where, error.what()), "levels on PyTorch can train it", Exit::environment);
  } catch (const std::runtime_error& error) {  // ShapeError, ArgumentError
    return fail(fmt::format("{}: {}", tape.node().where(), error.what()), "levels on PyTorch can train it",
                Exit::environment);
  }
  name_outputs(tape, result);
  // read back like any other graph: every value defined once and before its use, producers and consumers set
  auto checked = parse(to_text(tape.graph()), "the training graph");
  if (!checked) return tl::unexpected(checked.error());
  result.graph = *std::move(checked);
  return result;
}

namespace {

// A batch norm without running statistics has the batch's own in either mode.
void evaluate(Node& node) {
  const bool normalises = node.operation() == "batch_norm";
  if (normalises && node.is_null("running_mean")) return;
  for (auto& argument : node.args) {
    if (argument.name == "train" || (normalises && argument.name == "training")) argument.plain = false;
    if (argument.name == "dropout_p") argument.plain = 0.0;
  }
  if (normalises) node.outputs.resize(1);
}

}  // namespace

Graph evaluation_of(const Graph& network) {
  Graph graph = network;
  graph.mode = Mode::infer;
  graph.updates.clear();
  for (auto& node : graph.nodes) evaluate(node);
  // what only updates read is gone with them
  std::vector<bool> used(graph.values.size(), false);
  for (const auto& output : graph.outputs) used[static_cast<std::size_t>(output.value)] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const auto& node = graph.nodes[n];
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](int output) { return used[static_cast<std::size_t>(output)]; });
    if (!read) {
      graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n));
      continue;
    }
    for (const auto& argument : node.args)
      for (const int value : argument.values)
        if (value >= 0) used[static_cast<std::size_t>(value)] = true;
  }
  return graph;
}

}  // namespace strata::graph
