// SPDX-License-Identifier: Apache-2.0
// Losses as ATen defines them, of calculations that have gradients.
#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

enum class Reduction : std::int64_t { none = 0, mean = 1, sum = 2 };

Reduction reduction_of(const Expansion& e) {
  return static_cast<Reduction>(e.node().integer("reduction"));
}

int summed(Expansion& e, int self, const std::string& name) {
  return e.call("sum.default", {tensor_argument("self", self), plain_argument("dtype", nullptr)}, name);
}

// What the node gives of the losses of single elements.
void end_reduced(Expansion& e, int losses) {
  switch (reduction_of(e)) {
    case Reduction::mean:
      return e.end("mean.default", {tensor_argument("self", losses), plain_argument("dtype", nullptr)});
    case Reduction::sum:
      return e.end("sum.default", {tensor_argument("self", losses), plain_argument("dtype", nullptr)});
    default:
      return e.end_as(losses);
  }
}

int difference(Expansion& e) {
  return e.of_two("sub.Tensor", e.node().tensor("self"), e.node().tensor("target"), "difference");
}

void mse(Expansion& e) {
  const int apart = difference(e);
  end_reduced(e, e.of_two("mul.Tensor", apart, apart, "squared"));
}

void l1(Expansion& e) {
  end_reduced(e, e.of_one("abs.default", difference(e), "size"));
}

// d d / 2 up to a bound of |d|, then bound (|d| - bound / 2): c (d - c / 2), c the difference within the bounds.
int bounded_square(Expansion& e, double bound) {
  const int apart = difference(e), within = e.clamped(apart, -bound, bound, "within"),
            half = e.with_number("mul.Scalar", within, 0.5, "half");
  return e.of_two("mul.Tensor", within, e.of_two("sub.Tensor", apart, half, "beyond"), "bounded");
}

void smooth_l1(Expansion& e) {
  const double beta = e.node().find("beta") == nullptr ? 1 : e.node().number("beta");
  if (beta <= 0) return l1(e);
  const int losses = bounded_square(e, beta);
  end_reduced(e, beta == 1 ? losses : e.with_number("mul.Scalar", losses, 1 / beta, "scaled"));
}

void huber(Expansion& e) {
  end_reduced(e, bounded_square(e, e.node().find("delta") == nullptr ? 1 : e.node().number("delta")));
}

// The losses times the weight, if there is one.
int weighted(Expansion& e, int losses) {
  const int weight = e.value_or_none("weight");
  return weight < 0 ? losses : e.of_two("mul.Tensor", losses, weight, "weighted");
}

// 1 - target
int rest_of(Expansion& e, int target, const std::string& name) {
  return e.call("rsub.Scalar",
                {tensor_argument("self", target), plain_argument("other", 1), plain_argument("alpha", 1)}, name);
}

// - t log p - (1 - t) log(1 - p), logarithms at least -100
void bce(Expansion& e) {
  const int p = e.node().tensor("self"), target = e.node().tensor("target");
  constexpr double least = 1.2e-38;  // below it float32 has no logarithm, and a gradient would be 0 / 0
  const int rest = rest_of(e, p, "rest");
  const auto logarithm = [&](int value, const std::string& name) {
    const int log = e.of_one("log.default", e.clamped(value, least, nullptr, name + "_from"), name);
    return e.clamped(log, -100, nullptr, name + "_least");
  };
  const int with = e.of_two("mul.Tensor", target, logarithm(p, "log"), "with"),
            without = e.of_two("mul.Tensor", rest_of(e, target, "target_rest"), logarithm(rest, "log_rest"), "without");
  const int losses = e.of_one("neg.default", e.of_two("add.Tensor", with, without, "both"), "losses");
  end_reduced(e, weighted(e, losses));
}

// (1 - t) x + w log(1 + exp(-x)), w = 1 + (pos_weight - 1) t
void bce_with_logits(Expansion& e) {
  const int x = e.node().tensor("self"), target = e.node().tensor("target"), positive = e.value_or_none("pos_weight");
  int softplus = e.of_one("softplus.default", e.of_one("neg.default", x, "negated"), "softplus");
  if (positive >= 0) {
    const int beyond = e.with_number("add.Scalar", positive, -1, "beyond");
    const int factor = e.with_number("add.Scalar", e.of_two("mul.Tensor", target, beyond, "further"), 1, "log_weight");
    softplus = e.of_two("mul.Tensor", softplus, factor, "positive");
  }
  const int linear = e.of_two("mul.Tensor", rest_of(e, target, "rest"), x, "linear");
  end_reduced(e, weighted(e, e.of_two("add.Tensor", linear, softplus, "losses")));
}

// What losses of classes are made of: logarithms of shares, the axis of the classes, and by which samples count.
struct Classes {
  int logs;
  std::int64_t axis;
  int target, weight, counted = -1, safe = -1;  // of classes; counted: booleans, safe: 0 where it does not count
};

std::int64_t class_axis(const Expansion& e, int scores) {
  return e.shape(scores).size() > 1 ? 1 : 0;
}

void find_counted(Expansion& e, Classes& c) {
  const auto ignored = e.node().find("ignore_index") == nullptr ? -100 : e.node().integer("ignore_index");
  c.counted = e.call("ne.Scalar", {tensor_argument("self", c.target), plain_argument("other", ignored)}, "counted");
  c.safe = e.call(
      "where.ScalarOther",
      {tensor_argument("condition", c.counted), tensor_argument("self", c.target), plain_argument("other", 0)}, "safe");
}

int only_counted(Expansion& e, const Classes& c, int values, const std::string& name) {
  return e.call(
      "where.ScalarOther",
      {tensor_argument("condition", c.counted), tensor_argument("self", values), plain_argument("other", 0.0)}, name);
}

// The weight of each sample's class, 0 where it does not count.
int weights_of_samples(Expansion& e, const Classes& c) {
  const auto all = elements(e.shape(c.safe));
  const int rows = e.call("index_select.default",
                          {tensor_argument("self", c.weight), plain_argument("dim", 0),
                           tensor_argument("index", e.viewed(c.safe, {all}, "flat"))},
                          "weights_flat");
  return only_counted(e, c, e.viewed(rows, e.shape(c.safe), "weights_all"), "weights");
}

// By what the sum of the losses is divided: the weights of the samples that count, or their number.
int total_of(Expansion& e, const Classes& c, int weights) {
  if (weights >= 0) return summed(e, weights, "total");
  const int ones = e.call(
      "where.Scalar",
      {tensor_argument("condition", c.counted), plain_argument("self", 1.0), plain_argument("other", 0.0)}, "ones");
  return summed(e, ones, "total");
}

// - log share of the target's class, of each sample that counts.
int losses_of_samples(Expansion& e, const Classes& c, int weights) {
  Shape apart = e.shape(c.logs);
  apart[static_cast<std::size_t>(c.axis)] = 1;
  const int picked =
      e.call("gather.default",
             {tensor_argument("self", c.logs), plain_argument("dim", c.axis),
              tensor_argument("index", e.viewed(c.safe, apart, "index")), plain_argument("sparse_grad", false)},
             "picked");
  const int losses =
      only_counted(e, c, e.of_one("neg.default", e.viewed(picked, e.shape(c.safe), "of_sample"), "negative"), "losses");
  return weights < 0 ? losses : e.of_two("mul.Tensor", losses, weights, "weighted");
}

// What the losses of samples are reduced to; of all but the mean as for other losses.
int reduced(Expansion& e, int losses, int total, const std::string& name) {
  const auto how = reduction_of(e);
  if (how == Reduction::none) return losses;
  const int all = summed(e, losses, name + "_sum");
  return how == Reduction::sum ? all : e.of_two("div.Tensor", all, total, name);
}

void nll(Expansion& e) {
  const int scores = e.node().tensor("self");
  Classes c{scores, class_axis(e, scores), e.node().tensor("target"), e.value_or_none("weight")};
  find_counted(e, c);
  const int weights = c.weight < 0 ? -1 : weights_of_samples(e, c);
  e.end_as(reduced(e, losses_of_samples(e, c, weights), total_of(e, c, weights), "mean"));
}

// The weights of classes along their axis.
int along_classes(Expansion& e, const Classes& c) {
  Shape shape(e.shape(c.logs).size(), 1);
  shape[static_cast<std::size_t>(c.axis)] = e.shape(c.weight).at(0);
  return e.viewed(c.weight, shape, "class_weights");
}

int minus_sum_of_classes(Expansion& e, const Classes& c, int values, const std::string& name) {
  const int sums = e.call("sum.dim_IntList",
                          {tensor_argument("self", values), plain_argument("dim", Shape{c.axis}),
                           plain_argument("keepdim", false), plain_argument("dtype", nullptr)},
                          name + "_sums");
  return e.of_one("neg.default", sums, name);
}

// The target is a share of each class.
void of_shares(Expansion& e, const Classes& c, double smoothing) {
  int target = c.target;
  const auto classes = e.shape(c.logs)[static_cast<std::size_t>(c.axis)];
  if (smoothing > 0)
    target = e.with_number("add.Scalar", e.with_number("mul.Scalar", target, 1 - smoothing, "share"),
                           smoothing / static_cast<double>(classes), "smoothed");
  int parts = e.of_two("mul.Tensor", c.logs, target, "parts");
  if (c.weight >= 0) parts = e.of_two("mul.Tensor", parts, along_classes(e, c), "weighted");
  const int losses = minus_sum_of_classes(e, c, parts, "losses");
  if (reduction_of(e) != Reduction::mean) return end_reduced(e, losses);
  const auto samples = static_cast<double>(elements(e.shape(losses)));
  e.end("div.Scalar", {tensor_argument("self", summed(e, losses, "sum")), plain_argument("other", samples)});
}

void cross_entropy(Expansion& e) {
  const auto& node = e.node();
  const int scores = node.tensor("self");
  const auto axis = class_axis(e, scores);
  const double smoothing = node.find("label_smoothing") == nullptr ? 0 : node.number("label_smoothing");
  Classes c{
      e.call("log_softmax.int",
             {tensor_argument("self", scores), plain_argument("dim", axis), plain_argument("dtype", nullptr)}, "logs"),
      axis, node.tensor("target"), e.value_or_none("weight")};
  if (is_floating(e.type(c.target))) return of_shares(e, c, smoothing);
  find_counted(e, c);
  const int weights = c.weight < 0 ? -1 : weights_of_samples(e, c);
  const int total = total_of(e, c, weights);
  const int of_classes = reduced(e, losses_of_samples(e, c, weights), total, "mean");
  if (smoothing <= 0) return e.end_as(of_classes);
  int logs = c.logs;
  if (c.weight >= 0) logs = e.of_two("mul.Tensor", logs, along_classes(e, c), "weighted_logs");
  const int of_all =
      reduced(e, only_counted(e, c, minus_sum_of_classes(e, c, logs, "of_all"), "smooth_losses"), total, "smooth");
  const auto share = smoothing / static_cast<double>(e.shape(scores)[static_cast<std::size_t>(axis)]);
  e.end("add.Tensor", {tensor_argument("self", e.with_number("mul.Scalar", of_classes, 1 - smoothing, "part")),
                       tensor_argument("other", of_all), plain_argument("alpha", share)});
}

}  // namespace

std::span<const ExpansionRule> loss_expansions() {
  static constexpr ExpansionRule all[] = {{"binary_cross_entropy", bce},
                                          {"binary_cross_entropy_with_logits", bce_with_logits},
                                          {"cross_entropy_loss", cross_entropy},
                                          {"huber_loss", huber},
                                          {"l1_loss", l1},
                                          {"mse_loss", mse},
                                          {"nll_loss", nll},
                                          {"nll_loss2d", nll},
                                          {"nll_loss_nd", nll},
                                          {"smooth_l1_loss", smooth_l1}};
  return all;
}

}  // namespace strata::graph
