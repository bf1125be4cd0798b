// SPDX-License-Identifier: Apache-2.0
// Variances and deviations over axes, and norms by the mean square.
#include <algorithm>

#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

int mean_over(Expansion& e, int value, const Shape& axes, bool keeps, const std::string& name, int into = -1) {
  return e.call("mean.dim",
                {tensor_argument("self", value), plain_argument("dim", axes), plain_argument("keepdim", keeps),
                 plain_argument("dtype", nullptr)},
                name, into);
}

// What is subtracted from the number of elements that are divided by.
double correction_of(const Node& node) {
  if (node.find("unbiased") != nullptr) return node.flag("unbiased") ? 1 : 0;
  return node.find("correction") == nullptr || node.is_null("correction") ? 1 : node.number("correction");
}

void spread(Expansion& e, bool as_root) {
  const auto& node = e.node();
  const int x = node.tensor("self");
  const Shape shape = e.shape(x);
  const auto chosen =
      axes_of(node.find("dim") == nullptr || node.is_null("dim") ? Shape() : node.ints("dim"), shape.size());
  const bool keeps = node.find("keepdim") != nullptr && node.flag("keepdim");
  Shape axes;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!chosen[d]) continue;
    axes.push_back(static_cast<std::int64_t>(d));
    count *= shape[d];
  }
  const double divisor = static_cast<double>(count) - correction_of(node);
  if (axes.empty() || divisor <= 0 || !is_floating(e.type(x))) return;
  const int centred = e.call("sub.Tensor",
                             {tensor_argument("self", x), tensor_argument("other", mean_over(e, x, axes, true, "mean")),
                              plain_argument("alpha", 1)},
                             "centred");
  const int squares =
      e.call("mul.Tensor", {tensor_argument("self", centred), tensor_argument("other", centred)}, "squares");
  const int sum = e.call("sum.dim_IntList",
                         {tensor_argument("self", squares), plain_argument("dim", axes),
                          plain_argument("keepdim", keeps), plain_argument("dtype", nullptr)},
                         "sum");
  if (node.outputs.size() > 1) mean_over(e, x, axes, keeps, "given_mean", e.result(1));
  if (!as_root) return e.end("div.Scalar", {tensor_argument("self", sum), plain_argument("other", divisor)});
  const int variance =
      e.call("div.Scalar", {tensor_argument("self", sum), plain_argument("other", divisor)}, "variance");
  e.end("sqrt.default", {tensor_argument("self", variance)});
}
void var(Expansion& e) {
  spread(e, false);
}
void deviation(Expansion& e) {
  spread(e, true);
}

// x / sqrt(mean square + eps) over the last axes, times a weight.
void rms_norm(Expansion& e) {
  constexpr double least = 1.1920928955078125e-07;  // of float32, which PyTorch takes where none is given
  const auto& node = e.node();
  const int x = node.tensor("input"), weight = e.value_or_none("weight");
  const auto rank = e.shape(x).size(), last = node.ints("normalized_shape").size();
  Shape axes;
  for (std::size_t d = rank - std::min(last, rank); d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
  const int squares = e.call("mul.Tensor", {tensor_argument("self", x), tensor_argument("other", x)}, "squares");
  const int shifted =
      e.call("add.Scalar",
             {tensor_argument("self", mean_over(e, squares, axes, true, "mean_square")),
              plain_argument("other", e.has("eps") ? node.number("eps") : least), plain_argument("alpha", 1)},
             "shifted");
  const int scale = e.call("rsqrt.default", {tensor_argument("self", shifted)}, "scale");
  std::vector<Argument> factors{tensor_argument("self", x), tensor_argument("other", scale)};
  if (weight < 0) return e.end("mul.Tensor", std::move(factors));
  const int normal = e.call("mul.Tensor", std::move(factors), "normal");
  e.end("mul.Tensor", {tensor_argument("self", normal), tensor_argument("other", weight)});
}

}  // namespace

std::span<const ExpansionRule> statistics_expansions() {
  static constexpr ExpansionRule all[] = {
      {"rms_norm", rms_norm}, {"std", deviation}, {"std_mean", deviation}, {"var", var}, {"var_mean", var}};
  return all;
}

}  // namespace strata::graph
