// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1). With P = softmax(scale Q K^T + mask), which is
// computed again in place of being kept, and G the gradient of P V: dV = P^T G, dP = G V^T, dS the softmax's gradient
// of dP, dQ = scale dS K, dK = dS^T (scale Q), and of the mask dS.
#include <cmath>

#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

constexpr std::int64_t last = -1;

void attention(Tape& tape) {
  const auto& node = tape.node();
  if (node.number("dropout_p") != 0) throw NoGradient("attention with dropout");
  if (node.flag("is_causal")) throw NoGradient("causal attention; a mask that is a tensor can be trained through");
  if (node.find("enable_gqa") != nullptr && node.flag("enable_gqa")) throw NoGradient("attention with grouped queries");
  const int query = node.tensor("query"), key = node.tensor("key"), value = node.tensor("value");
  const int mask = node.maybe_tensor("attn_mask").value_or(-1);
  if (mask >= 0 && !is_floating(tape.type(mask))) throw NoGradient("attention with a mask of truth values");
  const double scale = node.find("scale") != nullptr && !node.is_null("scale")
                           ? node.number("scale")
                           : 1 / std::sqrt(static_cast<double>(tape.shape(query).back()));
  const int gradient = *tape.gradient(), queries = times_number(tape, query, scale);
  int scores = product(tape, queries, transposed(tape, key));
  if (mask >= 0)
    scores = tape.call("add.Tensor",
                       {tensor_argument("self", scores), tensor_argument("other", mask), plain_argument("alpha", 1)});
  const int shares = tape.call("_softmax.default", {tensor_argument("self", scores), plain_argument("dim", last),
                                                    plain_argument("half_to_float", false)});
  const auto give = [&](int to, int part) { tape.give(to, tape.summed_to(part, tape.shape(to))); };
  if (tape.wants(value)) give(value, product(tape, transposed(tape, shares), gradient));
  if (!tape.wants(query) && !tape.wants(key) && !tape.wants(mask)) return;
  const int of_shares = product(tape, gradient, transposed(tape, value));
  const int of_scores =
      tape.call("_softmax_backward_data.default",
                {tensor_argument("grad_output", of_shares), tensor_argument("output", shares),
                 plain_argument("dim", last), plain_argument("input_dtype", std::string(name_of(tape.type(shares))))});
  if (tape.wants(query)) give(query, times_number(tape, product(tape, of_scores, key), scale));
  if (tape.wants(key)) give(key, product(tape, transposed(tape, of_scores), queries));
  if (tape.wants(mask)) give(mask, of_scores);
}

}  // namespace

std::span<const BackwardRule> attention_rules() {
  static constexpr BackwardRule all[] = {{"scaled_dot_product_attention", attention}};
  return all;
}

}  // namespace strata::graph
