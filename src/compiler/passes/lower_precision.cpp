// SPDX-License-Identifier: Apache-2.0
// In a program of bfloat16, what the library calculates reads and writes bfloat16 (its sums are float32, and its
// weights it rounds itself), what only moves elements keeps their type, and all else stays in float32. "strata.cast"
// stands between, once for each value and type. Inputs, outputs and weights are float32. In a training step layers,
// products and their gradients alone round their operands; all results stay in float32, parameters and sums of updates
// among them.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/op_traits.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

using graph::Type;
using Names = std::set<std::string_view>;

class Lowering {
 public:
  explicit Lowering(Program& program) : p_(program) {}

  void run() {
    if (p_.steps.empty()) return;
    auto steps = std::exchange(p_.steps, {});
    for (auto& step : steps) {
      if (step.when == When::run) convert(step);
      p_.steps.push_back(std::move(step));
    }
    for (auto& output : p_.graph.outputs) output.value = in_type(output.value, Type::float32, p_.steps.back());
  }

 private:
  bool is_weight(int value) const { return p_.place(value).in == Place::In::weights; }
  Type type_of(int value) const { return p_.value(value).type; }

  // A layer's weight is kept as the library likes it.
  bool is_layer(const Step& step) const {
    return (is_convolution(step) || is_linear(step)) && is_weight(step.node.tensor("weight")) &&
           !is_weight(operands_of(step).front());
  }
  bool trains() const { return p_.graph.mode == graph::Mode::train; }

  // Weights as factors lie in float32; a training step rounds them anew.
  bool is_product(const Step& step) const {
    if (!Names{"matmul", "mm", "bmm"}.contains(step.node.operation())) return false;
    if (trains()) return true;
    const auto& args = step.node.args;
    return std::none_of(args.begin(), args.end(), [&](const auto& element) {
      return element.kind == graph::Argument::Kind::tensor && is_weight(element.values.front());
    });
  }
  bool is_attention(const Step& step) const {
    return step.node.operation() == "scaled_dot_product_attention" && !is_weight(step.node.tensor("query")) &&
           !is_weight(step.node.tensor("key")) && !is_weight(step.node.tensor("value"));
  }

  bool computes_in_bfloat16(const Step& step) const {
    if (is_layer(step) || is_product(step)) return true;
    if (p_.target != Target::cpu) return false;  // strata's own kernels there are for float32
    Step alone = step;
    alone.posts.clear();
    if (as_activation(alone) || is_attention(step)) return true;
    if (is_average_pool(step)) return windows_are_alike(p_, step);
    static const Names known{
        "add",        "sub",  "mul",     "div",      "neg",         "rsub",         "max_pool1d", "max_pool2d",
        "max_pool3d", "mean", "softmax", "_softmax", "log_softmax", "_log_softmax", "layer_norm", "strata.scale_shift"};
    return known.contains(step.node.operation());
  }

  bool moves(const Step& step) const {
    if (step.view) return true;
    static const Names known{
        "cat",       "chunk",  "clone",     "contiguous", "expand",           "expand_as", "flatten", "permute",
        "reshape",   "select", "slice",     "split",      "split_with_sizes", "squeeze",   "stack",   "t",
        "transpose", "unbind", "unsqueeze", "view",       "strata.copy"};
    static const Names on_processors{"constant_pad_nd", "pad", "roll"};
    const auto name = step.node.operation();
    return known.contains(name) || (p_.target == Target::cpu && on_processors.contains(name));
  }

  bool is_gradient_of_layer(const Step& step) const {
    static const Names known{"strata.convolution_backward_data", "strata.train_convolution",
                             "strata.convolution_backward_weights"};
    return known.contains(step.node.operation());
  }

  // What a layer calls its weight and bias it rounds itself, the bias not at all.
  void round_operands(Step& step) {
    if (!is_layer(step) && !is_product(step) && !is_gradient_of_layer(step)) return;
    const bool product = is_product(step);
    for (auto& argument : step.node.args)
      for (int& value : argument.values)
        if (value >= 0 && is_computed_with(type_of(value)) && (product || !is_weight(value)))
          value = in_type(value, Type::bfloat16, step);
  }

  // Weights that are operands, as of norms and sums, stay as they are: the library takes them in float32.
  void convert(Step& step) {
    if (trains()) return round_operands(step);
    const bool lowers = computes_in_bfloat16(step), keeps = moves(step);
    auto type = lowers ? Type::bfloat16 : Type::float32;
    if (keeps)
      for (const int value : operands_of(step))
        if (type_of(value) == Type::bfloat16) type = Type::bfloat16;
    const auto read = [&](int value) {
      if (value < 0 || !is_computed_with(type_of(value)) || (is_weight(value) && !keeps)) return value;
      return in_type(value, type, step);
    };
    for (auto& argument : step.node.args)
      std::transform(argument.values.begin(), argument.values.end(), argument.values.begin(), read);
    for (auto& post : step.posts) post.value = read(post.value);
    for (const int output : step.node.outputs)
      if (auto& value = p_.graph.values[static_cast<std::size_t>(output)]; is_computed_with(value.type))
        value.type = type;
  }

  // The value in another type, made before the step that reads it, for the first time or as before.
  int in_type(int value, Type type, const Step& reader) {
    if (type_of(value) == type) return value;
    const auto [it, fresh] = built_.emplace(std::pair(value, type), -1);
    if (!fresh) return it->second;
    const auto name = p_.value(value).name + "." + std::string(graph::name_of(type));
    const int result = it->second = add_value(p_, name, p_.value(value));
    p_.graph.values.back().type = type;
    Step step = make_step(p_, "strata.cast.default", {tensor_argument("self", value)}, {result});
    step.graph_nodes = {reader.node.name};
    set_place(step, reader);
    p_.steps.push_back(std::move(step));
    return result;
  }

  Program& p_;
  std::map<std::pair<int, Type>, int> built_;
};

}  // namespace

Result<void> lower_precision(Program& program) {
  if (program.type != Type::bfloat16) return {};
  Lowering(program).run();
  return recompute_places(program);
}

}  // namespace strata::compiler
