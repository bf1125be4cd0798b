// SPDX-License-Identifier: Apache-2.0
#include "compiler/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "compiler/lower.hpp"
#include "compiler/step_builder.hpp"
#include "graph/recurrent.hpp"
#include "kit/recurrence.hpp"

namespace strata::compiler {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;

// A case of an operation without a step.
struct NoStep {
  std::string what;
};

// Writes the nodes of a training graph anew, in their order.
class Rewriter {
 public:
  Rewriter(graph::TrainingGraph training, std::int64_t block)
      : training_(std::move(training)), graph_(training_.graph), block_(block) {
    for (const auto& gradient : training_.gradients)
      gradient_of_[gradient.value].push_back(parameter_named(gradient.name));
    for (const auto& update : graph_.updates) update_of_[update.value] = update;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (const auto& argument : graph_.nodes[n].args)
        for (const int value : argument.values) last_reader_[value] = n;
  }

  // The graph, and how many of its nodes end the forward pass and the loss.
  graph::TrainingGraph rewritten() {
    std::size_t forward = 0, loss = 0;
    for (now_ = 0; now_ < graph_.nodes.size(); ++now_) {
      if (now_ == training_.forward_nodes) forward = nodes_.size();
      if (now_ == training_.loss_nodes) loss = nodes_.size();
      node_ = graph_.nodes[now_];
      rewrite();
      update_what_is_free();
    }
    if (clips()) clip_and_update();
    if (!waiting_.empty() || !update_of_.empty()) {
      const auto name = waiting_.empty() ? update_of_.begin()->second.name : graph_.value(waiting_.front().second).name;
      throw NoStep{fmt::format("no step changes '{}'", name)};
    }
    training_.forward_nodes = forward;
    training_.loss_nodes = loss;
    graph_.nodes = std::move(nodes_);
    graph_.updates = std::move(effects_);
    graph_.outputs = {{"loss", training_.loss}};
    std::erase_if(graph_.inputs, [&](const auto& element) { return element.value == training_.labels; });
    return std::move(training_);
  }

  const Node& node() const { return node_; }

 private:
  static graph::Shape no_elements() { return {0}; }

  int parameter_named(const std::string& name) const {
    for (const auto& parameter : graph_.parameters)
      if (parameter.name == name) return parameter.value;
    throw NoStep{"a gradient of no parameter"};
  }
  std::string name_of_weight(int value) const {
    for (const auto* list : {&graph_.parameters, &graph_.buffers})
      for (const auto& named : *list)
        if (named.value == value) return named.name;
    throw NoStep{"a weight that is none"};
  }

  int add_value(const std::string& name, graph::Shape shape) {
    graph::Value value;
    value.name = name;
    value.shape = std::move(shape);
    graph_.values.push_back(std::move(value));
    return static_cast<int>(graph_.values.size()) - 1;
  }
  int add_effect(const std::string& of) {
    const int effect = add_value("changed." + of, no_elements());
    effects_.push_back({of, effect});
    return effect;
  }

  // A node in the place of the present one.
  void emit(const std::string& op, std::vector<Argument> args, std::vector<int> outputs, const std::string& name = "") {
    Node changed = node_;
    changed.op = op;
    changed.args = std::move(args);
    changed.outputs = std::move(outputs);
    if (!name.empty()) changed.name = name;
    nodes_.push_back(std::move(changed));
  }
  Argument tensor(const std::string& name, std::string_view from) const {
    return tensor_argument(name, node_.maybe_tensor(from).value_or(-1));
  }
  Argument plain(const std::string& name) const {
    const auto* argument = node_.find(name);
    return plain_argument(name, argument == nullptr ? nlohmann::json() : argument->plain);
  }
  // All arguments but tensors.
  std::vector<Argument> with_plain(std::vector<Argument> tensors) const {
    for (const auto& argument : node_.args)
      if (argument.kind == Argument::Kind::plain) tensors.push_back(argument);
    return tensors;
  }
  std::vector<bool> mask() const {
    std::vector<bool> all;
    for (const auto& is_needed : node_.find("output_mask")->plain) all.push_back(is_needed.get<bool>());
    return all;
  }

  // The gradient is read by nothing but the update of one parameter, and nothing reads that parameter later.
  bool only_updates(int gradient, int parameter) const {
    if (clips()) return false;
    const auto it = gradient_of_.find(gradient);
    const auto read = last_reader_.find(parameter);
    return it != gradient_of_.end() && it->second == std::vector<int>{parameter} &&
           graph_.value(gradient).consumers.empty() && (read == last_reader_.end() || read->second <= now_);
  }

  // Gradients that are complete wait until nothing reads their parameter any more.
  void update_what_is_free() {
    for (const int output : graph_.nodes[now_].outputs)
      if (const auto it = gradient_of_.find(output); it != gradient_of_.end() && !done_.contains(output))
        for (const int parameter : it->second) waiting_.emplace_back(output, parameter);
    if (clips()) return;
    std::erase_if(waiting_, [&](const auto& pair) {
      const auto [gradient, parameter] = pair;
      const auto read = last_reader_.find(parameter);
      if (read != last_reader_.end() && read->second > now_) return false;
      update(parameter, gradient, -1);
      return true;
    });
  }
  void update(int parameter, int gradient, int share) {
    const auto name = name_of_weight(parameter);
    emit("strata.sgd.default",
         {tensor_argument("parameter", parameter), tensor_argument("gradient", gradient),
          tensor_argument("share", share)},
         {add_effect(name)}, "sgd." + name);
  }
  bool clips() const { return training_.clip_norm > 0; }
  // Behind everything else.
  void clip_and_update() {
    Argument gradients{.name = "gradients", .kind = Argument::Kind::tensors, .plain = {}, .values = {}};
    for (const auto& [gradient, parameter] : waiting_) gradients.values.push_back(gradient);
    const int share = add_value("clipped_share", {1});
    emit("strata.clip_gradients.default", {std::move(gradients), plain_argument("norm", training_.clip_norm)}, {share},
         "clip_gradients");
    for (const auto& [gradient, parameter] : waiting_) update(parameter, gradient, share);
    waiting_.clear();
  }

  void rewrite() {
    const auto name = node_.operation();
    if (name == "convolution_backward") return convolution();
    if (name == "_native_batch_norm_legit_functional" || name == "_native_batch_norm_legit") return batch_norm();
    if (name == "batch_norm" && !node_.flag("training") && !node_.is_null("running_mean")) return fixed_batch_norm();
    if (name == "native_batch_norm_backward") return batch_norm_backward();
    if (name == "threshold_backward") return relu_backward();
    if (name == "hardtanh_backward") return hardtanh_backward();
    if (name == "max_pool2d_with_indices") return max_pool();
    if (name == "max_pool2d_with_indices_backward")
      return emit("strata.max_pool_backward.default",
                  with_plain({tensor("gradient", "grad_output"), tensor("workspace", "indices")}), node_.outputs);
    if (name == "avg_pool2d_backward" || name == "_adaptive_avg_pool2d_backward")
      return emit(name == "avg_pool2d_backward" ? "strata.avg_pool_backward.default"
                                                : "strata.adaptive_avg_pool_backward.default",
                  with_plain({tensor("gradient", "grad_output")}), node_.outputs);
    if (name == "native_dropout") return dropout();
    if (name == "native_dropout_backward")
      return emit("strata.dropout_backward.default",
                  with_plain({tensor("gradient", "grad_output"), tensor("mask", "mask")}), node_.outputs);
    if (name == "nll_loss_forward")
      return emit("strata.nll_loss.default", {tensor("scores", "self")}, {node_.outputs.front()});
    if (name == "nll_loss_backward")
      return emit("strata.nll_loss_backward.default", {tensor("scores", "self")}, node_.outputs);
    if (name == "_log_softmax" || name == "log_softmax")
      return emit("strata.log_softmax.default", {tensor("scores", "self"), plain("dim")}, node_.outputs);
    if (name == "_log_softmax_backward_data")
      return emit("strata.log_softmax_backward.default",
                  {tensor("gradient", "grad_output"), tensor("result", "output"), plain("dim")}, node_.outputs);
    // the gradient of the loss by itself, which losses of labels do not read
    if (name == "ones_like" && now_ >= training_.loss_nodes && training_.labels >= 0) return;
    if (name == "mkldnn_rnn_layer" && node_.flag("train")) return recurrent_layer();
    if (counts()) return count();
    nodes_.push_back(node_);
  }

  std::vector<Argument> window() const {
    return {plain("stride"), plain("padding"), plain("dilation"), plain("groups")};
  }

  void convolution() {
    if (node_.flag("transposed")) throw NoStep{"the gradient of a transposed convolution"};
    const auto needed = mask();
    const int weight = node_.tensor("weight");
    std::size_t output = 0;
    if (needed.at(0)) {
      std::vector<Argument> args{tensor("gradient", "grad_output"), tensor_argument("weight", weight)};
      std::ranges::move(window(), std::back_inserter(args));
      emit("strata.convolution_backward_data.default", std::move(args), {node_.outputs[output++]},
           node_.name + (needed.at(1) || needed.at(2) ? "_data" : ""));
    }
    if (!needed.at(1) && !needed.at(2)) return;
    const int of_weight = needed.at(1) ? node_.outputs[output++] : -1,
              of_bias = needed.at(2) ? node_.outputs[output] : -1;
    const int bias = of_bias >= 0 && gradient_of_.contains(of_bias) ? gradient_of_[of_bias].front() : -1;
    const bool updates =
        (of_weight < 0 || only_updates(of_weight, weight)) && (of_bias < 0 || only_updates(of_bias, bias));
    std::vector<Argument> args{tensor("gradient", "grad_output"), tensor("source", "input")};
    if (updates && of_weight >= 0) {
      args.push_back(tensor_argument("weight", weight));
      args.push_back(tensor_argument("bias", bias));
      std::ranges::move(window(), std::back_inserter(args));
      std::vector<int> effects{add_effect(name_of_weight(weight))};
      if (bias >= 0) effects.push_back(add_effect(name_of_weight(bias)));
      done_.insert({of_weight, of_bias});
      return emit("strata.train_convolution.default", std::move(args), std::move(effects));
    }
    std::ranges::move(window(), std::back_inserter(args));
    const auto& shape = graph_.value(weight).shape;
    emit("strata.convolution_backward_weights.default", std::move(args),
         {of_weight >= 0 ? of_weight : add_value(node_.name + ".unread_weight", shape),
          of_bias >= 0 ? of_bias : add_value(node_.name + ".unread_bias", {shape[0]})});
  }

  void batch_norm() {
    if (!node_.flag("training")) throw NoStep{"a batch norm with given statistics in a training step"};
    std::vector<int> outputs(node_.outputs.begin(), node_.outputs.begin() + 3);
    std::vector<Argument> args{tensor("source", "input"), tensor("scale", "weight"), tensor("shift", "bias")};
    if (node_.outputs.size() == 5) {
      args.push_back(tensor("running_mean", "running_mean"));
      args.push_back(tensor("running_var", "running_var"));
      for (const std::size_t i : {3, 4}) {
        const auto update = update_of_.find(node_.outputs[i]);
        if (update == update_of_.end()) throw NoStep{"running statistics that are no buffers"};
        outputs.push_back(add_effect(update->second.name));
        update_of_.erase(update);
      }
    }
    args.push_back(plain("momentum"));
    args.push_back(plain("eps"));
    emit("strata.batch_norm_train.default", std::move(args), std::move(outputs));
  }

  // With running statistics that the step does not change.
  void fixed_batch_norm() {
    const auto& channels = graph_.value(node_.tensor("running_mean")).shape;
    const std::pair statistics{add_value(node_.name + ".mean", channels),
                               add_value(node_.name + ".deviation", channels)};
    statistics_of_[{node_.tensor("input"), node_.tensor("running_mean")}] = statistics;
    emit("strata.batch_norm_train.default",
         {tensor("source", "input"), tensor("scale", "weight"), tensor("shift", "bias"),
          tensor("running_mean", "running_mean"), tensor("running_var", "running_var"),
          plain_argument("fixed_statistics", true), plain_argument("momentum", 0.0), plain("eps")},
         {node_.outputs.front(), statistics.first, statistics.second});
  }

  void batch_norm_backward() {
    const bool fixed_statistics = !node_.flag("train");
    const auto statistics =
        fixed_statistics ? statistics_of_.at({node_.tensor("input"), node_.tensor("running_mean")}) : std::pair(-1, -1);
    const auto needed = mask();
    const int scale = node_.maybe_tensor("weight").value_or(-1);
    const auto channels = graph::Shape{graph_.value(node_.tensor("input")).shape.at(1)};
    std::size_t output = 0;
    std::vector<int> outputs;
    for (std::size_t i = 0; i < 3; ++i)
      outputs.push_back(needed.at(i) ? node_.outputs[output++]
                                     : add_value(fmt::format("{}.unread_{}", node_.name, i),
                                                 i == 0 ? graph_.value(node_.tensor("input")).shape : channels));
    std::vector<Argument> args{
        tensor("gradient", "grad_out"), tensor("source", "input"), tensor_argument("scale", scale),
        fixed_statistics ? tensor_argument("mean", statistics.first) : tensor("mean", "save_mean"),
        fixed_statistics ? tensor_argument("deviation", statistics.second) : tensor("deviation", "save_invstd")};
    std::vector<bool> trains{false, false};
    int shift = -1;
    for (const std::size_t i : {1, 2}) {
      const auto it = gradient_of_.find(outputs[i]);
      if (!needed.at(i) || it == gradient_of_.end()) continue;
      const int parameter = it->second.front();
      if (!only_updates(outputs[i], parameter)) continue;
      if (i == 2) shift = parameter;
      trains[i - 1] = true;
      done_.insert(outputs[i]);
      outputs.push_back(add_effect(name_of_weight(parameter)));
    }
    args.push_back(tensor_argument("shift", shift));
    args.push_back(plain_argument("trains", trains));
    args.push_back(plain_argument("fixed_statistics", fixed_statistics));
    emit("strata.batch_norm_backward.default", std::move(args), std::move(outputs));
  }

  void clamp_backward(int result, double low, double high) {
    emit("strata.clamp_backward.default",
         {tensor("gradient", "grad_output"), tensor_argument("result", result), plain_argument("low", low),
          plain_argument(
              "high", high == std::numeric_limits<double>::infinity() ? nlohmann::json("inf") : nlohmann::json(high))},
         node_.outputs);
  }

  void relu_backward() {
    clamp_backward(node_.tensor("self"), node_.number("threshold"), std::numeric_limits<double>::infinity());
  }

  // A clamp lies strictly between its bounds where its operand does, so that the operand need not be kept.
  void hardtanh_backward() {
    const double low = node_.number("min_val"), high = node_.number("max_val");
    int read = node_.tensor("self");
    for (const auto& node : nodes_)
      if (node.operation() == "hardtanh" && node.tensor("self") == read && node.number("min_val") == low &&
          node.number("max_val") == high) {
        read = node.outputs.front();
        break;
      }
    clamp_backward(read, low, high);
  }

  // Bytes that go with each element of an image, in whatever layout it lies.
  int beside(int image, int output, std::int64_t bytes) {
    auto shape = graph_.value(image).shape;
    if (shape.size() == 4) shape[1] = (shape[1] + block_ - 1) / block_ * block_;
    const auto elements = graph::elements_of(shape);
    if (!elements) throw NoStep{"an image of more elements than 64 bits can count"};
    auto& value = graph_.values[static_cast<std::size_t>(output)];
    value.type = graph::Type::float32;
    value.shape = {(*elements * bytes + 3) / 4};
    return output;
  }

  void max_pool() {
    const int result = node_.outputs.at(0);
    std::int64_t places = 1;
    const auto kernel = node_.ints("kernel_size");
    for (const auto extent : kernel) places *= extent;
    if (kernel.size() == 1) places *= places;
    emit("strata.max_pool_train.default", with_plain({tensor("source", "self")}),
         {result, beside(result, node_.outputs.at(1), places < 256 ? 1 : 4)});
  }

  void dropout() {
    const int result = node_.outputs.at(0);
    emit("strata.dropout_train.default", with_plain({tensor("source", "input")}),
         {result, beside(result, node_.outputs.at(1), 1)});
  }

  void recurrent_layer() {
    const auto layer = graph::recurrent_layer(graph::Call(graph_, node_));
    const auto floats = kit::most_workspace_floats(static_cast<kit::Recurrence>(layer.kind), layer.steps, layer.batch,
                                                   layer.inputs, layer.hidden);
    graph_.values[static_cast<std::size_t>(node_.outputs.back())].shape = {floats};
    nodes_.push_back(node_);
  }

  // The count of steps that a batch norm keeps.
  bool counts() const {
    return node_.operation() == "add" && update_of_.contains(node_.outputs.front()) &&
           graph_.value(node_.outputs.front()).type == graph::Type::int64 && !node_.is_tensor("other") &&
           node_.integer("other") == 1;
  }
  void count() {
    const auto update = update_of_.find(node_.outputs.front());
    if (name_of_weight(node_.tensor("self")) != update->second.name) throw NoStep{"a count of another buffer"};
    emit("strata.count.default", {tensor("buffer", "self")}, {add_effect(update->second.name)});
    update_of_.erase(update);
  }

  graph::TrainingGraph training_;
  Graph& graph_;
  std::int64_t block_;
  std::map<int, std::vector<int>> gradient_of_;  // gradient -> parameters
  std::map<int, graph::Named> update_of_;        // new value of a buffer -> the buffer, until a step does it
  std::map<int, std::size_t> last_reader_;       // of each value, as an index of the given nodes
  std::map<std::pair<int, int>, std::pair<int, int>>
      statistics_of_;                         // (input, running mean) -> what the forward step kept
  std::set<int> done_;                        // gradients that their own step has put to use
  std::vector<std::pair<int, int>> waiting_;  // (gradient, parameter)
  std::vector<graph::Named> effects_;
  std::vector<Node> nodes_;
  Node node_;
  std::size_t now_ = 0;
};

}  // namespace

Result<Program> lower_training(graph::TrainingGraph training, std::int64_t block) {
  Rewriter rewriter(std::move(training), block);
  try {
    training = rewriter.rewritten();
  } catch (const NoStep& refused) {
    return fail(fmt::format("{}: {}", rewriter.node().where(), refused.what), "the levels on PyTorch can train it",
                Exit::environment);
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "remove the bundle's folder; it is made again");
  }
  std::map<std::string, Phase> phases;
  for (std::size_t n = 0; n < training.graph.nodes.size(); ++n)
    phases[training.graph.nodes[n].name] = n < training.forward_nodes ? Phase::forward
                                           : n < training.loss_nodes  ? Phase::loss
                                                                      : Phase::backward;
  auto program = lower(std::move(training.graph), block);
  if (!program) return program;
  for (auto& step : program->steps)
    if (const auto it = phases.find(step.node.name); it != phases.end()) step.phase = it->second;
  return program;
}

}  // namespace strata::compiler
