// SPDX-License-Identifier: Apache-2.0
// Guesses why a probe step differs, from what it resembles instead (train_checks.hpp). Only names causes; the judgement
// is made before.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "proof/difference.hpp"
#include "proof/train_checks.hpp"

namespace strata::proof {

namespace {

// Least squares of actual = factor * wanted; `left` is what remains, relative to the actual.
struct Fit {
  double factor = 0, left = 1;
};
class Sums {
 public:
  void add(double actual, double expected) {
    cross_ += actual * expected;
    expected_squares_ += expected * expected;
    actual_ += actual * actual;
  }
  Fit fit() const {
    if (!(expected_squares_ > 0) || !(actual_ > 0)) return {};
    const double factor = cross_ / expected_squares_;
    return {factor, std::sqrt(std::max(0.0, actual_ - factor * cross_) / actual_)};
  }

 private:
  double cross_ = 0, expected_squares_ = 0, actual_ = 0;
};

class Causes {
 public:
  Causes(const TrainReference& reference, std::string_view set, const SafeTensors& loss, const SafeTensors& after,
         const std::vector<Deviation>& failing)
      : reference_(reference), set_(set), loss_(loss), after_(after), failing_(failing) {}

  StepCause find() const {
    for (auto cause :
         {&Causes::no_momentum, &Causes::not_trained, &Causes::labels_moved, &Causes::scaled, &Causes::decayed,
          &Causes::statistics_kept, &Causes::statistics_differ, &Causes::reduced, &Causes::only_step})
      if (auto result = (this->*cause)(); !result.sentence.empty()) return result;
    return {};
  }

 private:
  bool fails(const std::string& what) const {
    return std::any_of(failing_.begin(), failing_.end(), [&](const Deviation& d) { return d.what == what; });
  }
  std::vector<std::string> failing_with(std::string_view prefix) const {
    std::vector<std::string> out;
    for (const auto& d : failing_)
      if (d.what.starts_with(prefix)) out.push_back(d.what.substr(prefix.size()));
    return out;
  }
  const TensorView* gradient(const std::string& parameter) const { return after_.find("momentum:" + parameter); }
  template <class Visit>
  void in_pairs(const TensorView* actual, const TensorView* expected, Visit visit) const {
    if (!actual || !expected || actual->elements() != expected->elements()) return;
    in_chunks(*actual, *expected, [&](std::size_t, std::span<const double> a, std::span<const double> w) {
      for (std::size_t i = 0; i < a.size(); ++i) visit(a[i], w[i]);
    });
  }

  StepCause no_momentum() const {
    const auto& all = reference_.parameters();
    if (all.empty() || std::any_of(all.begin(), all.end(), [&](const auto& p) { return gradient(p); })) return {};
    return {"the state holds no momentum, though the optimiser was set to 0.9: momentum is not applied",
            "momentum is not applied"};
  }

  // Gradients that are exactly zero, or have no buffer, while others are right.
  StepCause not_trained() const {
    std::vector<std::string> still;
    for (const auto& parameter : failing_with("grad:")) {
      const TensorView* g = gradient(parameter);
      bool zero = true;
      if (g)
        for (const double value : to_doubles(*g)) zero = zero && value == 0;
      if (zero) still.push_back(parameter);
    }
    if (still.empty() || still.size() == reference_.parameters().size()) return {};
    const bool biases =
        std::all_of(still.begin(), still.end(), [](const auto& name) { return name.ends_with("bias"); });
    return {fmt::format("{} {} no gradient, the first is {}: {}", still.size(),
                        still.size() == 1 ? "parameter has" : "parameters have", still.front(),
                        biases ? "biases are not trained" : "they are not trained"),
            biases ? "biases are not trained" : "parameters are not trained"};
  }

  // The last layer's bias has the gradient mean(p - onehot(label)), so that its error tells which labels were used
  // instead.
  StepCause labels_moved() const {
    const TensorView* labels = reference_.labels(0);
    if (!labels || !fails("loss")) return {};
    const auto right = to_doubles(*labels);
    const auto batch = static_cast<double>(right.size());
    for (auto name = reference_.parameters().rbegin(); name != reference_.parameters().rend(); ++name) {
      const TensorView *got = gradient(*name), *expected = reference_.expected(set_, "grad:" + *name);
      if (!got || !expected || expected->shape.size() != 1 || got->shape != expected->shape || !name->ends_with("bias"))
        continue;
      const auto classes = static_cast<std::size_t>(expected->shape[0]);
      if (std::any_of(right.begin(), right.end(), [&](double l) { return l >= static_cast<double>(classes); }))
        return {};
      const auto a = to_doubles(*got), w = to_doubles(*expected);
      const auto fits = [&](const std::vector<double>& other) {
        std::vector<double> change(classes, 0.0);
        for (std::size_t i = 0; i < right.size(); ++i) {
          if (other[i] < 0 || other[i] >= static_cast<double>(classes)) return false;
          change[static_cast<std::size_t>(right[i])] += 1 / batch;
          change[static_cast<std::size_t>(other[i])] -= 1 / batch;
        }
        double off = 0, size = 0;
        for (std::size_t k = 0; k < classes; ++k) {
          off += std::pow(a[k] - w[k] - change[k], 2);
          size += change[k] * change[k];
        }
        return size > 0 && off < 1e-4 * size;
      };
      for (const int by : {1, -1}) {
        std::vector<double> moved = right;
        for (double& l : moved) l = std::fmod(l + by + static_cast<double>(classes), static_cast<double>(classes));
        if (fits(moved))
          return {fmt::format("the gradient is that of labels that are off by {}", by > 0 ? "one" : "minus one"),
                  "labels are off by one"};
      }
      for (int other = 1; other < reference_.ring(); ++other)
        if (const TensorView* theirs = reference_.labels(other);
            theirs && theirs->elements() == labels->elements() && fits(to_doubles(*theirs)))
          return {fmt::format("the gradient is that of the labels of input {}", other),
                  "labels belong to another input"};
      return {};
    }
    return {};
  }

  // Every gradient is the same multiple of what it should be.
  StepCause scaled() const {
    Sums sums;
    for (const auto& parameter : reference_.parameters())
      in_pairs(gradient(parameter), reference_.expected(set_, "grad:" + parameter),
               [&](double a, double w) { sums.add(a, w); });
    const Fit fit = sums.fit();
    if (fit.left > 1e-2 || std::abs(fit.factor - 1) < 0.01) return {};
    Sums of_loss;
    in_pairs(loss_.find("0/loss"), reference_.expected(set_, "loss"), [&](double a, double w) { of_loss.add(a, w); });
    const TensorView* labels = reference_.labels(0);
    const double batch = labels ? static_cast<double>(labels->elements()) : 0;
    if (std::abs(fit.factor / batch - 1) < 0.01)
      return {
          fmt::format(
              "every gradient is {:.4g} times the reference{}: the loss is summed over the batch where the mean is due",
              fit.factor, std::abs(of_loss.fit().factor / batch - 1) < 0.01 ? ", and so is the loss" : ""),
          "loss is summed, not averaged"};
    return {fmt::format("every gradient is {:.4g} times the reference: the loss or the learning rate is scaled",
                        fit.factor),
            "gradients are scaled by a constant"};
  }

  // The buffer holds g + c w.
  StepCause decayed() const {
    Sums sums;
    for (const auto& parameter : failing_with("grad:")) {
      const TensorView *g = gradient(parameter), *expected = reference_.expected(set_, "grad:" + parameter),
                       *weight = reference_.weight(set_, parameter);
      if (!g || !expected || !weight || g->elements() != expected->elements() || g->elements() != weight->elements())
        continue;
      const auto a = to_doubles(*g), w = to_doubles(*expected), held = to_doubles(*weight);
      for (std::size_t i = 0; i < a.size(); ++i) sums.add(a[i] - w[i], held[i]);
    }
    const Fit fit = sums.fit();
    if (fit.left > 0.05) return {};
    return {fmt::format("the gradients hold {:.3g} times the weights: weight decay is applied where none was asked for",
                        fit.factor),
            "weight decay is baked in"};
  }

  StepCause statistics_kept() const {
    const auto failing = failing_with("stat:");
    for (const auto& buffer : failing) {
      const TensorView *now = after_.find("weight:" + buffer), *before = reference_.weight(set_, buffer);
      if (!now || !before || !same_bytes(*now, *before)) return {};
    }
    if (failing.empty()) return {};
    return {
        fmt::format("{} BatchNorm statistics are those that were loaded: BatchNorm runs in eval mode", failing.size()),
        "BatchNorm runs in eval mode"};
  }

  // A statistic moves to (1 - m) s + m u. A wrong m scales every move alike; a variance over n for n - 1 scales u.
  StepCause statistics_differ() const {
    const auto failing = failing_with("stat:");
    if (failing.empty() || !failing_with("grad:").empty()) return {};
    Sums moves;
    for (const auto& buffer : failing) {
      const TensorView *now = after_.find("weight:" + buffer), *expected = reference_.expected(set_, "stat:" + buffer),
                       *before = reference_.weight(set_, buffer);
      if (!now || !expected || !before || now->elements() != expected->elements() ||
          before->elements() != expected->elements())
        return {};
      const auto a = to_doubles(*now), w = to_doubles(*expected), b = to_doubles(*before);
      for (std::size_t i = 0; i < a.size(); ++i) moves.add(a[i] - b[i], w[i] - b[i]);
    }
    const bool variances =
        std::all_of(failing.begin(), failing.end(), [](const auto& name) { return name.ends_with("running_var"); });
    // First, since of many samples (n - 1) / n is hard to tell from a momentum, which would move the means too.
    for (const double momentum : {0.1, 0.01, 0.05, 0.001, 0.03, 0.003})
      if (const double samples = variances ? biased_over(failing.front(), momentum) : 0; samples > 1)
        return {
            fmt::format("BatchNorm's running variances are biased: divided by n = {:.0f} where n - 1 is due", samples),
            "BatchNorm variance is biased"};
    if (const Fit fit = moves.fit(); fit.left < 1e-3)
      return {fmt::format("BatchNorm statistics move {:.4g} times as far as they should: another momentum", fit.factor),
              "BatchNorm momentum differs"};
    return {};
  }

  // n if the buffer was moved towards the variance over n instead of n - 1 with this momentum; 0 otherwise.
  double biased_over(const std::string& buffer, double momentum) const {
    const auto now = to_doubles(*after_.find("weight:" + buffer)),
               expected = to_doubles(*reference_.expected(set_, "stat:" + buffer)),
               before = to_doubles(*reference_.weight(set_, buffer));
    Sums sums;
    for (std::size_t i = 0; i < now.size(); ++i)
      sums.add(now[i] - (1 - momentum) * before[i], expected[i] - (1 - momentum) * before[i]);
    const Fit fit = sums.fit();
    return fit.left < 1e-4 && fit.factor < 1 && fit.factor > 0.4 ? 1 / (1 - fit.factor) : 0;
  }

  StepCause reduced() const {
    std::size_t rounded = 0, count = 0;
    for (const auto& parameter : reference_.parameters()) {
      const TensorView* g = gradient(parameter);
      if (!g || g->dtype != "F32") return {};
      for (std::int64_t i = 0; i < g->elements(); ++i, ++count) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, g->data + 4 * i, 4);
        rounded += (bits & 0xffffu) == 0;
      }
    }
    if (count < 8 || rounded < count) return {};
    return {"every gradient is exactly a bfloat16 number: the level computes in reduced precision",
            "computes in reduced precision (bfloat16)"};
  }

  // Gradients are right and weights do not move by them.
  StepCause only_step() const {
    const auto failing = failing_with("step:");
    if (failing.size() != failing_.size()) return {};
    Sums sums;
    for (const auto& parameter : failing) {
      const TensorView *v = gradient(parameter), *now = after_.find("weight:" + parameter),
                       *before = reference_.weight(set_, parameter);
      if (!v || !now || !before || v->elements() != now->elements() || v->elements() != before->elements()) return {};
      const auto u = to_doubles(*v), a = to_doubles(*now), b = to_doubles(*before);
      for (std::size_t i = 0; i < a.size(); ++i) sums.add(b[i] - a[i], u[i]);
    }
    const Fit fit = sums.fit();
    const bool biases =
        failing.size() < reference_.parameters().size() &&
        std::all_of(failing.begin(), failing.end(), [](const auto& name) { return name.ends_with("bias"); });
    if (fit.left > 0.01 && biases)
      return {"the gradients are right, and biases do not move by them", "biases are not trained"};
    if (fit.left > 0.01)
      return {"the gradients are right, and the weights do not move by them", "weights do not move by gradients"};
    return {
        fmt::format("the gradients are right, and the weights move by {:.6g} times them where the learning rate is 1",
                    fit.factor),
        "another learning rate is in use"};
  }

  const TrainReference& reference_;
  std::string_view set_;
  const SafeTensors &loss_, &after_;
  const std::vector<Deviation>& failing_;
};

}  // namespace

StepCause step_cause(const TrainReference& reference, std::string_view set, const SafeTensors& loss,
                     const SafeTensors& after, const std::vector<Deviation>& failing) {
  return Causes(reference, set, loss, after, failing).find();
}

}  // namespace strata::proof
