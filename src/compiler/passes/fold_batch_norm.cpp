// SPDX-License-Identifier: Apache-2.0
// A batch norm with given statistics is y = (x - mean) gamma / sqrt(var + eps) + beta by channel. After a convolution
// or linear layer that nobody else reads, it goes into that layer's weights, in steps of `load`:
//   strata.scale_weight: weight[k, ...] s[k]               s[k] = gamma[k] / sqrt(var[k] + eps); weight null: s itself
//   strata.shift_bias:   (bias[k] - mean[k]) s[k] + beta[k]   bias null: 0; gamma null: 1; beta null: 0
// in float64, rounded once to float32. Elsewhere it becomes strata.scale_shift with s and the shift of a bias of 0.
#include <algorithm>
#include <iterator>

#include "compiler/op_traits.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

bool is_weight(const Program& program, int value) {
  return value < 0 || program.place(value).in == Place::In::weights;
}

int tensor_or_none(const graph::Node& node, std::string_view arg) {
  return node.find(arg) == nullptr ? -1 : node.maybe_tensor(arg).value_or(-1);
}

// A batch norm's arguments; -1: null.
struct Norm {
  int input = -1, gamma = -1, beta = -1, mean = -1, var = -1;
  nlohmann::json eps;
};

// nullopt: not a batch norm with statistics that are weights.
std::optional<Norm> norm_of(const Program& program, const Step& step) {
  const auto& node = step.node;
  if (node.operation() != "batch_norm" || node.flag("training") || node.outputs.size() != 1 || !step.posts.empty() ||
      step.when != When::run)
    return std::nullopt;
  const Norm norm{.input = node.tensor("input"),
                  .gamma = tensor_or_none(node, "weight"),
                  .beta = tensor_or_none(node, "bias"),
                  .mean = tensor_or_none(node, "running_mean"),
                  .var = tensor_or_none(node, "running_var"),
                  .eps = node.find("eps")->plain};
  if (norm.mean < 0 || norm.var < 0 || program.value(norm.input).type != graph::Type::float32) return std::nullopt;
  for (const int operand : {norm.gamma, norm.beta, norm.mean, norm.var})
    if (!is_weight(program, operand)) return std::nullopt;
  return norm;
}

class Folder {
 public:
  explicit Folder(Program& program) : program_(program), uses_(uses_of(program)) {}

  void fold(Step& step, const Norm& norm) {
    const int producer = uses_.producer[static_cast<std::size_t>(norm.input)];
    Step* layer = producer < 0 ? nullptr : &program_.steps[static_cast<std::size_t>(producer)];
    const auto index = static_cast<int>(&step - program_.steps.data());
    if (layer != nullptr && foldable(*layer) && uses_.only_reader(norm.input, index))
      into_layer(*layer, step, norm);
    else
      to_scale_shift(step, norm);
  }

  void finish() {
    std::erase_if(program_.steps, [](const Step& step) { return step.node.outputs.empty(); });
    // behind the other steps of load, which may give the weights that are scaled
    const auto run = std::find_if(program_.steps.begin(), program_.steps.end(),
                                  [](const Step& step) { return step.when == When::run; });
    program_.steps.insert(run, std::make_move_iterator(built_.begin()), std::make_move_iterator(built_.end()));
  }

 private:
  bool foldable(const Step& layer) const {
    // a linear layer's outputs are the channels only of rows
    const bool by_channel =
        is_convolution(layer) || (is_linear(layer) && program_.value(layer.node.outputs.front()).shape.size() == 2);
    return by_channel && layer.posts.empty() && layer.when == When::run &&
           is_weight(program_, layer.node.tensor("weight")) && is_weight(program_, tensor_or_none(layer.node, "bias"));
  }

  int load(const std::string& op, const std::string& name, std::vector<graph::Argument> args, const Norm& norm,
           int like, const Step& step) {
    const int result = add_value(program_, name, program_.value(like));
    args.push_back(tensor_argument("gamma", norm.gamma));
    args.push_back(tensor_argument("var", norm.var));
    args.push_back(plain_argument("eps", norm.eps));
    Step folded = make_step(program_, op, std::move(args), {result});
    folded.when = When::load;
    folded.graph_nodes = step.graph_nodes;
    set_place(folded, step);
    built_.push_back(std::move(folded));
    return result;
  }
  int scaled(int weight, const Norm& norm, const Step& step) {
    return load("strata.scale_weight.default", step.node.name + ".scale", {tensor_argument("weight", weight)}, norm,
                weight < 0 ? norm.var : weight, step);
  }
  int shifted(int bias, const Norm& norm, const Step& step) {
    return load("strata.shift_bias.default", step.node.name + ".shift",
                {tensor_argument("bias", bias), tensor_argument("mean", norm.mean), tensor_argument("beta", norm.beta)},
                norm, norm.mean, step);
  }

  void into_layer(Step& layer, Step& step, const Norm& norm) {
    const int weight = scaled(layer.node.tensor("weight"), norm, step),
              bias = shifted(tensor_or_none(layer.node, "bias"), norm, step);
    for (auto& argument : layer.node.args) {
      if (argument.name == "weight") argument = tensor_argument("weight", weight);
      if (argument.name == "bias") argument = tensor_argument("bias", bias);
    }
    absorb(layer, step);
  }

  void to_scale_shift(Step& step, const Norm& norm) {
    const int scale = scaled(-1, norm, step), shift = shifted(-1, norm, step);
    step.node.op = "strata.scale_shift.default";
    step.node.args = {tensor_argument("self", norm.input), tensor_argument("scale", scale),
                      tensor_argument("shift", shift)};
  }

  Program& program_;
  Uses uses_;
  std::vector<Step> built_;
};

}  // namespace

Result<void> fold_batch_norm(Program& program) {
  Folder folder(program);
  for (auto& step : program.steps)
    if (const auto norm = norm_of(program, step)) folder.fold(step, *norm);
  folder.finish();
  return recompute_places(program);
}

}  // namespace strata::compiler
