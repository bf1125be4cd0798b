// SPDX-License-Identifier: Apache-2.0
// Losses of classes and of values.
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

// Of each element, which broadcast.
std::vector<Described> of_values(const Call& call) {
  const auto &self = call.self(), &target = call.in("target");
  const auto reduction = call.node().integer("reduction");
  need(reduction >= none && reduction <= sum, "reduction {}", reduction);
  return {{promote(self, target), reduction == none ? broadcast(self.shape, target.shape) : Shape{}}};
}

}  // namespace

std::span<const Operation> loss_operations() {
  static constexpr Operation all[] = {{"binary_cross_entropy", of_values},
                                      {"binary_cross_entropy_with_logits", of_values},
                                      {"cross_entropy_loss", loss},
                                      {"huber_loss", of_values},
                                      {"l1_loss", of_values},
                                      {"mse_loss", of_values},
                                      {"nll_loss", loss},
                                      {"nll_loss2d", loss},
                                      {"nll_loss_forward", nll_loss_forward},
                                      {"nll_loss_nd", loss},
                                      {"smooth_l1_loss", of_values}};
  return all;
}

}  // namespace strata::graph
