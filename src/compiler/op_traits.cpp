// SPDX-License-Identifier: Apache-2.0
#include "compiler/op_traits.hpp"

#include <limits>
#include <set>

#include "graph/operations.hpp"

namespace strata::compiler {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

bool among(const Step& step, const std::set<std::string_view>& names) {
  return names.contains(step.node.operation());
}

PostOp activation(const char* operation, double alpha = 0, double beta = 0) {
  return {.kind = PostOp::Kind::activation, .operation = operation, .alpha = alpha, .beta = beta, .value = -1};
}

// A bound of clamp: a number, or none; nullopt: a tensor.
std::optional<double> bound(const graph::Node& node, const char* name, double none) {
  const auto* argument = node.find(name);
  if (argument == nullptr || node.is_null(name)) return none;
  if (argument->kind != graph::Argument::Kind::plain) return std::nullopt;
  return node.number(name);
}

std::optional<PostOp> clamped(const graph::Node& node) {
  const auto low = bound(node, "min", -infinite), high = bound(node, "max", infinite);
  // PyTorch gives the upper bound where the lower is above it; libraries do not agree on that
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return activation("clamp", *low, *high);
}

}  // namespace

std::optional<PostOp> as_activation(const Step& step) {
  const auto& node = step.node;
  const auto name = node.operation();
  if (!step.posts.empty() || step.view || step.typed) return std::nullopt;
  static const std::set<std::string_view> simple{"relu", "hardswish", "hardsigmoid", "sigmoid", "tanh", "silu"};
  if (simple.contains(name)) return activation(name.c_str());
  if (name == "relu6") return activation("clamp", 0, 6);
  if (name == "hardtanh") return activation("clamp", node.number("min_val"), node.number("max_val"));
  if (name == "clamp" || name == "clamp_min" || name == "clamp_max") return clamped(node);
  if (name == "gelu") return activation(node.text("approximate") == "tanh" ? "gelu_tanh" : "gelu");
  if (name == "leaky_relu") return activation("leaky_relu", node.number("negative_slope"));
  if (name == "elu" && node.number("scale") == 1 && node.number("input_scale") == 1)
    return activation("elu", node.number("alpha"));
  return std::nullopt;
}

bool is_convolution(const Step& step) {
  return among(step, {"conv1d", "conv2d", "conv3d"});
}
bool is_linear(const Step& step) {
  return among(step, {"linear"});
}

bool is_average_pool(const Step& step) {
  return among(step, {"avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
                      "adaptive_avg_pool3d", "strata.avg_pool_backward", "strata.adaptive_avg_pool_backward"});
}

bool windows_are_alike(const Program& program, const Step& pool) {
  const auto& node = pool.node;
  const auto name = node.operation();
  if (name.find("adaptive") == std::string::npos) {
    if (node.find("divisor_override") != nullptr && !node.is_null("divisor_override")) return false;
    return !node.flag("count_include_pad") || !node.flag("ceil_mode");
  }
  const auto *large = &program.value(operands_of(pool).front()).shape,
             *small = &program.value(node.outputs.front()).shape;
  if (name.starts_with("strata.")) std::swap(large, small);
  for (std::size_t d = 2; d < small->size(); ++d)
    if ((*small)[d] <= 0 || (*large)[d] % (*small)[d] != 0) return false;
  return true;
}

bool is_input_gradient(const Step& step) {
  return among(step, {"strata.convolution_backward_data"});
}

bool is_elementwise(const Step& step) {
  static const std::set<std::string_view> names{"abs",         "add",
                                                "clamp",       "clamp_max",
                                                "clamp_min",   "copy",
                                                "div",         "elu",
                                                "exp",         "gelu",
                                                "hardsigmoid", "hardswish",
                                                "hardtanh",    "leaky_relu",
                                                "mul",         "neg",
                                                "relu",        "relu6",
                                                "rsub",        "sigmoid",
                                                "silu",        "sqrt",
                                                "sub",         "tanh",
                                                "strata.copy", "strata.scale_shift"};
  static const std::set<std::string_view> gradients{"gelu_backward",       "hardsigmoid_backward", "hardswish_backward",
                                                    "leaky_relu_backward", "silu_backward",        "sigmoid_backward",
                                                    "tanh_backward",       "strata.clamp_backward"};
  const auto& node = step.node;
  if (step.typed) return false;  // it has one layout, and results of other types than its operands
  if (node.operation() == "batch_norm") return !node.flag("training");
  return names.contains(node.operation()) || gradients.contains(node.operation());
}

bool supports_post_ops(const Step& step) {
  if (step.node.operation() == "strata.batch_norm_train") return true;
  return !step.view && !step.typed && step.when == When::run && step.node.outputs.size() == 1 &&
         (is_convolution(step) || is_linear(step) ||
          among(step, {"matmul", "mm", "bmm", "addmm", "add", "mul", "sub", "div", "strata.scale_shift"}));
}

bool supports_post_op(const Step& step, const PostOp& post) {
  if (!supports_post_ops(step)) return false;
  if (step.node.operation() != "strata.batch_norm_train") return true;
  // strata's own kernel: a sum, then a clamp to bounds that hold 0
  if (post.kind == PostOp::Kind::add) return step.posts.empty();
  const bool sum_alone = step.posts.empty() || (step.posts.size() == 1 && step.posts.front().kind == PostOp::Kind::add);
  return sum_alone && (post.operation == "relu" || (post.operation == "clamp" && post.alpha <= 0 && post.beta >= 0));
}

std::int64_t flops_of(const Program& program, const Step& step) {
  const auto* operation = graph::find_operation(step.node.operation());
  if (operation == nullptr || operation->flops == nullptr) return 0;
  return operation->flops(graph::Call(program.graph, step.node));
}

bool only_renames_axes(const Step& step, Layout from, Layout to) {
  if (step.node.operation() != "permute") return false;
  auto dims = step.node.ints("dims");
  for (auto& dim : dims) dim += dim < 0 ? 4 : 0;
  using Dims = std::vector<std::int64_t>;
  return (from == Layout::channels_last && to == Layout::plain && dims == Dims{0, 2, 3, 1}) ||
         (from == Layout::plain && to == Layout::channels_last && dims == Dims{0, 3, 1, 2});
}

bool view_keeps_order(const Program& program, const Step& step) {
  const int source = operands_of(step).front(), output = step.node.outputs.front();
  const auto &from = program.value(source), &to = program.value(output);
  const auto a = program.place(source).layout, b = program.place(output).layout;
  if (step.node.operation() == "permute") return only_renames_axes(step, a, b);
  if (from.shape == to.shape) return same_bytes(from, a, b, program.block);
  return same_bytes(from, a, Layout::plain, program.block) && same_bytes(to, Layout::plain, b, program.block);
}

}  // namespace strata::compiler
