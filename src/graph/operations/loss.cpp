// SPDX-License-Identifier: Apache-2.0
// Losses of a classifier.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

enum Reduction : std::int64_t { none = 0, mean = 1, sum = 2 };

// scores [N, C, ...], target [N, ...] of classes, or probabilities like the scores
std::vector<Described> loss(const Call& call) {
  const auto& self = call.self();
  const auto& target = call.in("target");
  need(!self.shape.empty(), "the scores are a scalar");
  Shape classes = self.shape;
  classes.erase(classes.begin() + (classes.size() > 1 ? 1 : 0));
  const bool probabilities =
      is_floating(target.type) && target.shape == self.shape && call.node().operation() == "cross_entropy_loss";
  need(probabilities || (!is_floating(target.type) && target.shape == classes), "scores {}, target {} {}",
       to_string(self.shape), name_of(target.type), to_string(target.shape));
  const auto reduction = call.node().integer("reduction");
  need(reduction >= none && reduction <= sum, "reduction {}", reduction);
  return {{self.type, reduction == none ? classes : Shape{}}};
}

// The loss, and the weight that it was divided by.
std::vector<Described> nll_loss_forward(const Call& call) {
  auto outputs = loss(call);
  outputs.push_back({call.self().type, {}});
  return outputs;
}

}  // namespace

std::span<const Operation> loss_operations() {
  static constexpr Operation all[] = {
      {"cross_entropy_loss", loss}, {"nll_loss", loss}, {"nll_loss_forward", nll_loss_forward}, {"nll_loss_nd", loss}};
  return all;
}

}  // namespace strata::graph
