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

int joined(Expansion& e, const char* op, int self, int other, const std::string& name) {
  std::vector<Argument> arguments{tensor_argument("self", self), tensor_argument("other", other)};
  if (std::string_view(op) == "add.Tensor" || std::string_view(op) == "sub.Tensor")
    arguments.push_back(plain_argument("alpha", 1));
  return e.call(op, std::move(arguments), name);
}

int with_number(Expansion& e, const char* op, int self, double number, const std::string& name) {
  std::vector<Argument> arguments{tensor_argument("self", self), plain_argument("other", number)};
  if (std::string_view(op) == "add.Scalar") arguments.push_back(plain_argument("alpha", 1));
  return e.call(op, std::move(arguments), name);
}

int of_one(Expansion& e, const char* op, int self, const std::string& name) {
  return e.call(op, {tensor_argument("self", self)}, name);
}

int clamped(Expansion& e, int self, const nlohmann::json& low, const nlohmann::json& high, const std::string& name) {
  return e.call("clamp.default",
                {tensor_argument("self", self), plain_argument("min", low), plain_argument("max", high)}, name);
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
  return joined(e, "sub.Tensor", e.node().tensor("self"), e.node().tensor("target"), "difference");
}

void mse(Expansion& e) {
  const int apart = difference(e);
  end_reduced(e, joined(e, "mul.Tensor", apart, apart, "squared"));
}

void l1(Expansion& e) {
  end_reduced(e, of_one(e, "abs.default", difference(e), "size"));
}

// d d / 2 up to a bound of |d|, then bound (|d| - bound / 2): c (d - c / 2), c the difference within the bounds.
int bounded_square(Expansion& e, double bound) {
  const int apart = difference(e), within = clamped(e, apart, -bound, bound, "within"),
            half = with_number(e, "mul.Scalar", within, 0.5, "half");
  return joined(e, "mul.Tensor", within, joined(e, "sub.Tensor", apart, half, "beyond"), "bounded");
}

void smooth_l1(Expansion& e) {
  const double beta = e.node().find("beta") == nullptr ? 1 : e.node().number("beta");
  if (beta <= 0) return l1(e);
  const int losses = bounded_square(e, beta);
  end_reduced(e, beta == 1 ? losses : with_number(e, "mul.Scalar", losses, 1 / beta, "scaled"));
}

void huber(Expansion& e) {
  end_reduced(e, bounded_square(e, e.node().find("delta") == nullptr ? 1 : e.node().number("delta")));
}

// The losses times the weight, if there is one.
int weighted(Expansion& e, int losses) {
  const int weight = e.value_or_none("weight");
  return weight < 0 ? losses : joined(e, "mul.Tensor", losses, weight, "weighted");
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
    const int log = of_one(e, "log.default", clamped(e, value, least, nullptr, name + "_from"), name);
    return clamped(e, log, -100, nullptr, name + "_least");
  };
  const int with = joined(e, "mul.Tensor", target, logarithm(p, "log"), "with"),
            without =
                joined(e, "mul.Tensor", rest_of(e, target, "target_rest"), logarithm(rest, "log_rest"), "without");
  const int losses = of_one(e, "neg.default", joined(e, "add.Tensor", with, without, "both"), "losses");
  end_reduced(e, weighted(e, losses));
}

int softplus_of_negative(Expansion& e, int x) {
  return e.call("softplus.default", {tensor_argument("self", of_one(e, "neg.default", x, "negative"))}, "softplus");
}

// (1 - t) x + w log(1 + exp(-x)), w = 1 + (pos_weight - 1) t
void bce_with_logits(Expansion& e) {
  const int x = e.node().tensor("self"), target = e.node().tensor("target"), positive = e.value_or_none("pos_weight");
  int softplus = softplus_of_negative(e, x);
  if (positive >= 0) {
    const int beyond = with_number(e, "add.Scalar", positive, -1, "beyond");
    const int factor =
        with_number(e, "add.Scalar", joined(e, "mul.Tensor", target, beyond, "further"), 1, "log_weight");
    softplus = joined(e, "mul.Tensor", softplus, factor, "positive");
  }
  const int linear = joined(e, "mul.Tensor", rest_of(e, target, "rest"), x, "linear");
  end_reduced(e, weighted(e, joined(e, "add.Tensor", linear, softplus, "losses")));
}

void softplus(Expansion& e) {
  const auto factor = [&](const char* name, double usual) {
    return e.node().find(name) == nullptr ? usual : e.node().number(name);
  };
  const double beta = factor("beta", 1);
  if (beta == 1 && e.node().args.size() == 1) return;
  if (beta * factor("threshold", 20) < 16) return;  // the line that it becomes from there on is seen
  if (beta == 1) return e.end("softplus.default", {tensor_argument("self", e.node().tensor("self"))});
  const int scaled = with_number(e, "mul.Scalar", e.node().tensor("self"), beta, "scaled");
  const int result = e.call("softplus.default", {tensor_argument("self", scaled)}, "softplus");
  e.end("mul.Scalar", {tensor_argument("self", result), plain_argument("other", 1 / beta)});
}

void log_sigmoid(Expansion& e) {
  e.end("neg.default", {tensor_argument("self", softplus_of_negative(e, e.node().tensor("self")))});
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
  const int losses = only_counted(
      e, c, of_one(e, "neg.default", e.viewed(picked, e.shape(c.safe), "of_sample"), "negative"), "losses");
  return weights < 0 ? losses : joined(e, "mul.Tensor", losses, weights, "weighted");
}

// What the losses of samples are reduced to; of all but the mean as for other losses.
int reduced(Expansion& e, int losses, int total, const std::string& name) {
  const auto how = reduction_of(e);
  if (how == Reduction::none) return losses;
  const int all = summed(e, losses, name + "_sum");
  return how == Reduction::sum ? all : joined(e, "div.Tensor", all, total, name);
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
  return of_one(e, "neg.default", sums, name);
}

// The target is a share of each class.
void of_shares(Expansion& e, const Classes& c, double smoothing) {
  int target = c.target;
  const auto classes = e.shape(c.logs)[static_cast<std::size_t>(c.axis)];
  if (smoothing > 0)
    target = with_number(e, "add.Scalar", with_number(e, "mul.Scalar", target, 1 - smoothing, "share"),
                         smoothing / static_cast<double>(classes), "smoothed");
  int parts = joined(e, "mul.Tensor", c.logs, target, "parts");
  if (c.weight >= 0) parts = joined(e, "mul.Tensor", parts, along_classes(e, c), "weighted");
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
  if (c.weight >= 0) logs = joined(e, "mul.Tensor", logs, along_classes(e, c), "weighted_logs");
  const int of_all =
      reduced(e, only_counted(e, c, minus_sum_of_classes(e, c, logs, "of_all"), "smooth_losses"), total, "smooth");
  const auto share = smoothing / static_cast<double>(e.shape(scores)[static_cast<std::size_t>(axis)]);
  e.end("add.Tensor", {tensor_argument("self", with_number(e, "mul.Scalar", of_classes, 1 - smoothing, "part")),
                       tensor_argument("other", of_all), plain_argument("alpha", share)});
}

}  // namespace

std::span<const ExpansionRule> loss_expansions() {
  static constexpr ExpansionRule all[] = {{"binary_cross_entropy", bce},
                                          {"binary_cross_entropy_with_logits", bce_with_logits},
                                          {"cross_entropy_loss", cross_entropy},
                                          {"huber_loss", huber},
                                          {"l1_loss", l1},
                                          {"log_sigmoid", log_sigmoid},
                                          {"mse_loss", mse},
                                          {"nll_loss", nll},
                                          {"nll_loss2d", nll},
                                          {"nll_loss_nd", nll},
                                          {"smooth_l1_loss", smooth_l1},
                                          {"softplus", softplus}};
  return all;
}

}  // namespace strata::graph
