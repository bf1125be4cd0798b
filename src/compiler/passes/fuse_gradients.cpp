// SPDX-License-Identifier: Apache-2.0
// In training: a batch norm's gradient (strata.batch_norm_backward) takes along the mask of the activation behind it
// and the sum of two gradients before that, all of which it reads anyway. Where others read the masked gradient too
// (the shortcut of a residual block), it becomes a result of the batch norm's step, which must be its first reader.
// The update of a matrix takes along the product that is its gradient (strata.sgd_of_product), which then never lies in
// memory, where the batch is so small that the update waits for memory.
#include <algorithm>

#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

// Of the product's operands along what is summed: the batch. Measured: with 4 rows an update is faster so, with 64 the
// step takes the same time in less memory (docs/results: training speed). Beyond 64 nothing was measured.
constexpr std::int64_t most_rows = 128;

bool is_sum(const Program& program, const Step& step) {
  const auto& node = step.node;
  if (node.operation() != "add" || !node.is_tensor("other") || !step.posts.empty() ||
      (node.find("alpha") != nullptr && node.number("alpha") != 1))
    return false;
  const auto& shape = program.value(node.outputs.front()).shape;
  return program.value(node.tensor("self")).shape == shape && program.value(node.tensor("other")).shape == shape;
}

void replace(Step& step, const std::string& name, int value) {
  for (auto& argument : step.node.args)
    if (argument.name == name) argument = tensor_argument(name, value);
}

class Fuser {
 public:
  explicit Fuser(Program& program) : p_(program), uses_(uses_of(program)) {}

  void fuse(std::size_t at) {
    Step& step = p_.steps[at];
    if (step.node.operation() == "strata.sgd") take_product(step, static_cast<int>(at));
    if (step.node.operation() != "strata.batch_norm_backward" ||
        p_.value(step.node.tensor("gradient")).shape.size() != 4)
      return;
    take_mask(step, static_cast<int>(at));
    take_sum(step, static_cast<int>(at));
  }

 private:
  Step* producer(int value) {
    const int at = uses_.producer[static_cast<std::size_t>(value)];
    return at < 0 ? nullptr : &p_.steps[static_cast<std::size_t>(at)];
  }

  void take_mask(Step& step, int at) {
    const int gradient = step.node.tensor("gradient");
    Step* mask = producer(gradient);
    const auto& readers = uses_.consumers[static_cast<std::size_t>(gradient)];
    if (mask == nullptr || mask->node.operation() != "strata.clamp_backward" || readers.front() != at ||
        uses_.read_at_end[static_cast<std::size_t>(gradient)])
      return;
    const bool others_read = readers.size() > 1;
    replace(step, "gradient", mask->node.tensor("gradient"));
    for (const char* name : {"result", "low", "high"}) step.node.args.push_back(*mask->node.find(name));
    step.graph_nodes.insert(step.graph_nodes.end(), mask->graph_nodes.begin(), mask->graph_nodes.end());
    mask->node.outputs.clear();
    if (others_read) step.node.outputs.push_back(gradient);
    step.node.args.push_back(plain_argument("gives_masked", others_read));
    // the operand has a new reader, at a later place
    auto& moved = uses_.consumers[static_cast<std::size_t>(step.node.tensor("gradient"))];
    std::replace(moved.begin(), moved.end(), static_cast<int>(mask - p_.steps.data()), at);
  }

  void take_sum(Step& step, int at) {
    const int gradient = step.node.tensor("gradient");
    Step* sum = producer(gradient);
    if (sum == nullptr || !is_sum(p_, *sum) || !uses_.only_reader(gradient, at)) return;
    replace(step, "gradient", sum->node.tensor("self"));
    step.node.args.push_back(tensor_argument("summand", sum->node.tensor("other")));
    step.graph_nodes.insert(step.graph_nodes.end(), sum->graph_nodes.begin(), sum->graph_nodes.end());
    sum->node.outputs.clear();
  }

  // A weight, or what may become a view of one, which a step in between may have changed.
  bool is_of_weight(int value) {
    for (;;) {
      if (p_.place(value).in == Place::In::weights) return true;
      const Step* source = producer(value);
      if (source == nullptr) return false;
      const auto operands = operands_of(*source);
      if (operands.size() != 1) return false;
      value = operands.front();
    }
  }

  void take_product(Step& step, int at) {
    const int gradient = step.node.tensor("gradient");
    Step* product = producer(gradient);
    if (p_.target != Target::cpu || product == nullptr || product->node.operation() != "mm" ||
        !product->posts.empty() || !uses_.only_reader(gradient, at))
      return;
    const int left = product->node.tensor("self"), right = product->node.tensor("mat2");
    if (p_.value(left).shape[1] > most_rows || is_of_weight(left) || is_of_weight(right)) return;
    step.node.op = "strata.sgd_of_product.default";
    step.node.args = {tensor_argument("parameter", step.node.tensor("parameter")), tensor_argument("left", left),
                      tensor_argument("right", right)};
    step.graph_nodes.insert(step.graph_nodes.end(), product->graph_nodes.begin(), product->graph_nodes.end());
    product->node.outputs.clear();
  }

  Program& p_;
  Uses uses_;
};

}  // namespace

Result<void> fuse_gradients(Program& program) {
  if (program.graph.mode != graph::Mode::train) return {};
  Fuser fuser(program);
  for (std::size_t at = 0; at < program.steps.size(); ++at) fuser.fuse(at);
  std::erase_if(program.steps, [](const Step& step) { return step.node.outputs.empty(); });
  return recompute_places(program);
}

}  // namespace strata::compiler
