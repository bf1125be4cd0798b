// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention: softmax(query key^T scale + mask) value.
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// query [..., L, E], key [..., S, E], value [..., S, F] -> [..., L, F]
std::vector<Described> attention(const Call& call) {
  const auto& query = call.in("query").shape;
  const auto& key = call.in("key").shape;
  const auto& value = call.in("value").shape;
  const auto rank = query.size();
  need(rank >= 2 && key.size() == rank && value.size() == rank, "query {}, key {} and value {} must have one rank",
       to_string(query), to_string(key), to_string(value));
  need(query.back() == key.back() && key[rank - 2] == value[rank - 2], "query {}, key {} and value {} do not fit",
       to_string(query), to_string(key), to_string(value));
  Shape shape(query.begin(), query.end() - 2);
  if (!call.node().flag("enable_gqa")) shape = broadcast(shape, Shape(key.begin(), key.end() - 2));
  if (const auto* mask = call.maybe_in("attn_mask")) {
    Shape scores = shape;
    scores.insert(scores.end(), {query[rank - 2], key[rank - 2]});
    need(broadcast(mask->shape, scores) == scores, "the mask {} does not fit scores {}", to_string(mask->shape),
         to_string(scores));
  }
  shape.insert(shape.end(), {query[rank - 2], value.back()});
  return {{call.in("query").type, shape}};
}

}  // namespace

// Two products of matrices for each head.
std::int64_t attention_flops(const Call& call) {
  const auto& query = call.in("query").shape;
  const auto& value = call.in("value").shape;
  const auto& out = call.out();
  need(value.size() >= 2 && !query.empty() && !out.shape.empty(), "query {} and value {}", to_string(query),
       to_string(value));
  return out.shape.back() == 0
             ? 0
             : product({2, out.elements() / out.shape.back(), value[value.size() - 2], query.back() + value.back()});
}

std::span<const Operation> attention_operations() {
  static constexpr Operation all[] = {{"scaled_dot_product_attention", attention, attention_flops}};
  return all;
}

}  // namespace strata::graph
