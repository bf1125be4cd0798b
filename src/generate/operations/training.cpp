// SPDX-License-Identifier: Apache-2.0
// Steps of training: gradients, statistics, losses, updates (compiler/training.hpp says what they are).
#include <fmt/format.h>

#include "common/escape.hpp"
#include "compiler/op_traits.hpp"
#include "generate/operations.hpp"
#include "generate/operations/window.hpp"

namespace strata::generate {
namespace {

Fields joined(Fields fields, Fields more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

std::string tensor(const Emitter& e, std::string_view argument) {
  return e.is_tensor(argument) ? e.tensor(e.node().tensor(argument)) : "";
}
std::string weight(const Emitter& e, std::string_view argument) {
  return e.is_tensor(argument) ? e.weight(e.node().tensor(argument)) : "";
}
const graph::Shape& shape(const Emitter& e, std::string_view argument) {
  return e.shape(e.node().tensor(argument));
}

void convolution_backward_data(Emitter& e) {
  e.call(e.step().kernel == compiler::Kernel::winograd ? "winograd_backward_data" : "convolution_backward_data",
         joined({{"gradient", tensor(e, "gradient")}, {"weight", weight(e, "weight")}, {"result", e.result()}},
                convolution_window(e, shape(e, "weight"))));
}

void train_convolution(Emitter& e) {
  const auto& of = shape(e, "weight");
  e.call("convolution_backward_weights", joined({{"gradient", tensor(e, "gradient")},
                                                 {"source", tensor(e, "source")},
                                                 {"shape", braces(of)},
                                                 {"weight", weight(e, "weight")},
                                                 {"bias", weight(e, "bias")}},
                                                convolution_window(e, of)));
}

void convolution_backward_weights(Emitter& e) {
  const auto& of = e.shape(e.output());
  e.call("convolution_backward_weights", joined({{"gradient", tensor(e, "gradient")},
                                                 {"source", tensor(e, "source")},
                                                 {"shape", braces(of)},
                                                 {"of_weight", e.result(0)},
                                                 {"of_bias", e.result(1)}},
                                                convolution_window(e, of)));
}

// A flag that a step may lack.
std::string is_on(const Emitter& e, std::string_view flag) {
  return e.has(flag) && e.node().flag(flag) ? "true" : "";
}

void batch_norm_train(Emitter& e) {
  e.call("batch_norm", {{"source", tensor(e, "source")},
                        {"scale", weight(e, "scale")},
                        {"shift", weight(e, "shift")},
                        {"running_mean", weight(e, "running_mean")},
                        {"running_variance", weight(e, "running_var")},
                        {"result", e.result()},
                        {"mean", e.result(1)},
                        {"deviation", e.result(2)},
                        {"momentum", double_literal(e.node().number("momentum"))},
                        {"epsilon", double_literal(e.node().number("eps"))},
                        {"fixed_statistics", is_on(e, "fixed_statistics")},
                        {"then", e.posts()}});
}

void batch_norm_backward(Emitter& e) {
  const auto& trains = e.node().find("trains")->plain;
  const bool fused = e.is_tensor("result"), gives_masked = !is_on(e, "gives_masked").empty();
  const auto on = [](const nlohmann::json& flag) { return flag.get<bool>() ? "true" : ""; };
  e.call("batch_norm_backward", {{"gradient", tensor(e, "gradient")},
                                 {"summand", tensor(e, "summand")},
                                 {"activated", tensor(e, "result")},
                                 {"low", fused ? float_literal(e.node().number("low")) : ""},
                                 {"high", fused ? float_literal(e.node().number("high")) : ""},
                                 {"source", tensor(e, "source")},
                                 {"mean", tensor(e, "mean")},
                                 {"deviation", tensor(e, "deviation")},
                                 {"scale", weight(e, "scale")},
                                 {"shift", weight(e, "shift")},
                                 {"trains_scale", on(trains[0])},
                                 {"trains_shift", on(trains[1])},
                                 {"fixed_statistics", is_on(e, "fixed_statistics")},
                                 {"result", e.result()},
                                 {"of_scale", e.result(1)},
                                 {"of_shift", e.result(2)},
                                 {"masked", gives_masked ? e.result(e.node().outputs.size() - 1) : ""}});
}

void clamp_backward(Emitter& e) {
  e.call("clamp_backward", {{"gradient", tensor(e, "gradient")},
                            {"activated", tensor(e, "result")},
                            {"low", float_literal(e.node().number("low"))},
                            {"high", float_literal(e.node().number("high"))},
                            {"result", e.result()}});
}

// ATen's backward of a function: the forward function's own name and numbers are in the node.
void apply_backward(Emitter& e) {
  const auto name = e.node().operation();
  compiler::Step forward = e.step();
  forward.node.op = "aten." + name.substr(0, name.size() - std::string_view("_backward").size()) + ".default";
  const bool of_result = e.is_tensor("output");
  if (name == "leaky_relu_backward" && e.node().flag("self_is_result"))
    throw Unsupported("a gradient by the result of a function");
  const auto post = compiler::as_activation(forward);
  if (!post) throw Unsupported("a case of it that no function of oneDNN is");
  e.call("apply_backward", {{"gradient", tensor(e, "grad_output")},
                            {"source", tensor(e, of_result ? "output" : "self")},
                            {"function", function_of(*post)},
                            {"of_result", of_result ? "true" : ""},
                            {"result", e.result()}});
}

// A call with a struct within it: function(p, kind, {...}, more).
void pool_call(Emitter& e, const std::string& head, const std::string& source, const Window& window,
               const std::string& tail) {
  e.call_between(head, joined({{"source", source}, {"result", e.result()}}, fields_of(window)), tail);
}

void max_pool(Emitter& e) {
  pool_call(e, "max_pool_training(p, {", tensor(e, "source"), pool_window(e, shape(e, "source"), e.shape(e.output())),
            "}, " + e.result(1) + ");");
}

void max_pool_backward(Emitter& e) {
  pool_call(e, "pool_backward(p, Pool::Kind::max, {", tensor(e, "gradient"),
            pool_window(e, e.shape(e.output()), shape(e, "gradient")), "}, " + tensor(e, "workspace") + ");");
}

void average_backward(Emitter& e, const Window& window, bool with_padding) {
  pool_call(e, fmt::format("pool_backward(p, Pool::Kind::{}, {{", with_padding ? "average_with_padding" : "average"),
            tensor(e, "gradient"), window, "});");
}

void uneven_backward(Emitter& e, const std::string& spans, double divisor) {
  e.call("uneven_average_pool_backward", uneven_fields(e, e.node().tensor("gradient"), spans, divisor));
}

void avg_pool_backward(Emitter& e) {
  const auto &in = e.shape(e.output()), &out = shape(e, "gradient");
  const auto window = pool_window(e, in, out);
  const bool with_padding = e.node().flag("count_include_pad"), divided = e.has("divisor_override");
  if (!divided && (window.exact || !with_padding)) return average_backward(e, window, with_padding);
  uneven_backward(e, window_spans(window, in, out, with_padding), divided ? e.node().number("divisor_override") : 0);
}

void adaptive_avg_pool_backward(Emitter& e) {
  const auto &in = e.shape(e.output()), &out = shape(e, "gradient");
  const auto window = adaptive_window(in, out);
  window.exact ? average_backward(e, window, false) : uneven_backward(e, adaptive_spans(in, out), 0);
}

void dropout(Emitter& e) {
  e.call("dropout", {{"source", tensor(e, "source")},
                     {"result", e.result()},
                     {"mask", e.result(1)},
                     {"p", double_literal(e.node().number("p"))}});
}
void dropout_again(Emitter& e) {
  e.call("dropout_again", {{"source", tensor(e, "source")},
                           {"result", e.result()},
                           {"mask", tensor(e, "mask")},
                           {"p", double_literal(e.node().number("p"))}});
}
void dropout_backward(Emitter& e) {
  e.call("dropout_backward", {{"gradient", tensor(e, "gradient")},
                              {"mask", tensor(e, "mask")},
                              {"scale", float_literal(e.node().number("scale"))},
                              {"result", e.result()}});
}

// What losses read: in float64, since oneDNN's logarithm is off by more than the rounding of a loss.
bool is_rows(const Emitter& e, std::string_view scores) {
  return shape(e, scores).size() == 2 && e.dimension("dim", 2) == 1;
}

void log_softmax_train(Emitter& e) {
  Fields fields{{"source", tensor(e, "scores")}, {"result", e.result()}};
  if (is_rows(e, "scores")) return e.call("exact_log_softmax", fields);
  fields.emplace_back("axis", std::to_string(e.dimension("dim", shape(e, "scores").size())));
  e.call("log_softmax", fields);
}

void any_softmax_backward(Emitter& e, std::string_view result, bool of_log) {
  const auto gradient = e.self();
  e.call("softmax_backward", {{"gradient", e.tensor(gradient)},
                              {"source", tensor(e, result)},
                              {"result", e.result()},
                              {"axis", std::to_string(e.dimension("dim", e.shape(gradient).size()))},
                              {"of_log", of_log ? "true" : ""}});
}
void softmax_backward(Emitter& e) {
  any_softmax_backward(e, "output", false);
}
void log_softmax_backward(Emitter& e) {
  if (!is_rows(e, "gradient")) return any_softmax_backward(e, "result", true);
  e.call("log_softmax_backward",
         {{"gradient", tensor(e, "gradient")}, {"log_softmax", tensor(e, "result")}, {"result", e.result()}});
}
void nll_loss(Emitter& e) {
  e.call("negative_log_likelihood", {{"source", tensor(e, "scores")}, {"result", e.result()}});
}
void nll_loss_backward(Emitter& e) {
  e.call("negative_log_likelihood_backward", {{"source", tensor(e, "scores")}, {"result", e.result()}});
}

void descend(Emitter& e) {
  e.call("descend", {{"parameter", weight(e, "parameter")},
                     {"gradient", tensor(e, "gradient")},
                     {"share", e.is_tensor("share") ? tensor(e, "share") : ""}});
}
void clip_gradients(Emitter& e) {
  std::vector<std::string> gradients;
  for (const int value : e.node().tensors("gradients")) gradients.push_back(e.tensor(value));
  e.call("clip_gradients", {{"gradients", fmt::format("{{{}}}", fmt::join(gradients, ", "))}, {"share", e.result()}});
}
void descend_product(Emitter& e) {
  e.call("descend_product",
         {{"parameter", weight(e, "parameter")}, {"left", tensor(e, "left")}, {"right", tensor(e, "right")}});
}
void count(Emitter& e) {
  e.line(fmt::format("p.count({});", escape::cpp_string(e.file_name(e.node().tensor("buffer")))));
}

}  // namespace

void add_training(Operations& table) {
  table["strata.convolution_backward_data"] = convolution_backward_data;
  table["strata.train_convolution"] = train_convolution;
  table["strata.convolution_backward_weights"] = convolution_backward_weights;
  table["strata.batch_norm_train"] = batch_norm_train;
  table["strata.batch_norm_backward"] = batch_norm_backward;
  table["strata.clamp_backward"] = clamp_backward;
  for (const char* name : {"hardswish_backward", "hardsigmoid_backward", "silu_backward", "sigmoid_backward",
                           "tanh_backward", "gelu_backward", "leaky_relu_backward"})
    table[name] = apply_backward;
  table["strata.max_pool_train"] = max_pool;
  table["strata.max_pool_backward"] = max_pool_backward;
  table["strata.avg_pool_backward"] = avg_pool_backward;
  table["strata.adaptive_avg_pool_backward"] = adaptive_avg_pool_backward;
  table["strata.dropout_train"] = dropout;
  table["strata.dropout_again"] = dropout_again;
  table["strata.dropout_backward"] = dropout_backward;
  table["strata.log_softmax"] = log_softmax_train;
  table["strata.log_softmax_backward"] = log_softmax_backward;
  table["_softmax_backward_data"] = softmax_backward;
  table["strata.nll_loss"] = nll_loss;
  table["strata.nll_loss_backward"] = nll_loss_backward;
  table["strata.sgd"] = descend;
  table["strata.clip_gradients"] = clip_gradients;
  table["strata.sgd_of_product"] = descend_product;
  table["strata.count"] = count;
}

}  // namespace strata::generate
