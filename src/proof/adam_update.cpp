// SPDX-License-Identifier: Apache-2.0
#include "proof/adam_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "proof/difference.hpp"

namespace strata::proof {
namespace adam {  // beside the rules for SGD, in which the same words mean others
namespace {

using Values = std::vector<double>;
constexpr double rounding = 8 * 0x1p-24;

// Adam as a step is to do it, or does by mistake.
struct Variant {
  enum class Eps { after, before_correction, in_root, in_root_before_correction };
  double lr, decay, beta1, beta2, eps, t;
  bool decoupled;
  double clipped = 1;  // what gradients are multiplied by
  bool corrects_mean = true, corrects_square = true;
  Eps place = Eps::after;

  double of_mean() const { return corrects_mean ? 1 - std::pow(beta1, t) : 1; }
  double of_square() const { return corrects_square ? 1 - std::pow(beta2, t) : 1; }
};

double divisor(const Variant& how, double correction, double square) {
  switch (how.place) {
    case Variant::Eps::before_correction:
      return (std::sqrt(square) + how.eps) / std::sqrt(correction);
    case Variant::Eps::in_root:
      return std::sqrt(square / correction + how.eps);
    case Variant::Eps::in_root_before_correction:
      return std::sqrt((square + how.eps) / correction);
    default:
      return std::sqrt(square / correction) + how.eps;
  }
}

// The tensors of one parameter around one step.
struct Parameter {
  std::string name;
  Values w, m, v, g, w_after, m_after, v_after;  // g is empty where it is not known
};

// In units of what is allowed.
struct Mismatch {
  double mean = 0, square = 0, weight = 0;
  double worst() const { return std::max({mean, square, weight}); }
  void join(const Mismatch& other) {
    mean = std::max(mean, other.mean);
    square = std::max(square, other.square);
    weight = std::max(weight, other.weight);
  }
};

// Sums for the learning rate in use. Steps of one size, as Adam's first ones are, are rounded alike in all weights of a
// binade, and so is 1 - lr decay; so the most that rounding can do counts, not its scatter.
struct Rate {
  double product = 0, squares = 0, most = 0;
  double value() const { return squares > 0 ? product / squares : 0; }
  double error(double lr) const { return squares > 0 ? most / squares / lr : infinity; }  // relative
};

double finite(double ratio) {
  return std::isfinite(ratio) ? ratio : infinity;
}

// What enters the moments: the gradient, with the decay where that goes through it.
Values entering(const Parameter& p, const Variant& how) {
  Values d = p.g;
  for (double& element : d) element *= how.clipped;
  if (!how.decoupled)
    for (std::size_t i = 0; i < d.size(); ++i) d[i] += how.decay * p.w[i];
  return d;
}

void judge_moments(const Parameter& p, const Variant& how, double spread, Mismatch& out) {
  const Values d = entering(p, how);
  const double loose = 1e-5 + 4 * spread;  // of a gradient that is computed twice
  const double own_norm = how.clipped * norm(p.g), with_decay = own_norm + (how.decoupled ? 0 : how.decay * norm(p.w));
  double largest = 0;
  Values off_mean(d.size()), off_square(d.size()), squares(d.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    squares[i] = d[i] * d[i];
    off_mean[i] = p.m_after[i] - how.beta1 * p.m[i] - (1 - how.beta1) * d[i];
    off_square[i] = p.v_after[i] - how.beta2 * p.v[i] - (1 - how.beta2) * squares[i];
    largest = std::max(largest, std::abs(d[i]));
  }
  const double of_mean =
      rounding * (how.beta1 * norm(p.m) + (1 - how.beta1) * with_decay) + loose * (1 - how.beta1) * own_norm + 1e-37;
  const double of_square =
      rounding * (how.beta2 * norm(p.v) + (1 - how.beta2) * (norm(squares) + 2 * with_decay * largest)) +
      2 * loose * (1 - how.beta2) * own_norm * largest + 1e-37;
  out.mean = finite(norm(off_mean) / of_mean);
  out.square = finite(norm(off_square) / of_square);
}

void judge_weights(const Parameter& p, const Variant& how, Mismatch& out, Rate* rate) {
  const double of_mean = how.of_mean(), of_square = how.of_square();
  for (std::size_t i = 0; i < p.w.size(); ++i) {
    const double u = p.m_after[i] / of_mean / divisor(how, of_square, p.v_after[i]),
                 decay = how.decoupled ? how.decay * p.w[i] : 0;
    const double moved = p.w[i] - p.w_after[i], ulp = 0x1p-23 * std::max(std::abs(p.w[i]), std::abs(p.w_after[i]));
    const double size = std::abs(u) + std::abs(decay);
    const double allowed = 4 * 0x1p-23 * (std::abs(p.w[i]) + how.lr * size) + 1e-37;
    out.weight = std::max(out.weight, finite(std::abs(moved - how.lr * (u + decay)) / allowed));
    if (rate == nullptr || how.lr * std::abs(u + decay) <= 8 * ulp) continue;
    const double direction = u + decay;
    rate->product += moved * direction;
    rate->squares += direction * direction;
    const double of_decay = decay != 0 ? 1.5 * 0x1p-24 * std::abs(p.w[i]) : 0;
    rate->most += (ulp / 2 + of_decay + 0x1p-22 * how.lr * size) * std::abs(direction);
  }
}

Mismatch judged(const Parameter& p, const Variant& how, double spread, Rate* rate = nullptr) {
  Mismatch out;
  if (!p.g.empty()) judge_moments(p, how, spread, out);
  judge_weights(p, how, out, rate);
  return out;
}

Mismatch judged(const std::vector<Parameter>& all, const Variant& how, double spread) {
  Mismatch out;
  for (const auto& p : all) out.join(judged(p, how, spread));
  return out;
}

// The beta by which a buffer moved from its value towards what entered: least squares over all parameters.
double beta_in_use(const std::vector<Parameter>& all, const Variant& how, bool of_square) {
  double product = 0, squares = 0;
  for (const auto& p : all) {
    const Values d = entering(p, how);
    const auto &before = of_square ? p.v : p.m, &after = of_square ? p.v_after : p.m_after;
    for (std::size_t i = 0; i < d.size(); ++i) {
      const double towards = of_square ? d[i] * d[i] : d[i], way = before[i] - towards;
      product += (after[i] - towards) * way;
      squares += way * way;
    }
  }
  return squares > 0 ? product / squares : 0;
}

using Cause = std::pair<std::string, std::string>;

struct Suspect {
  std::string sentence, brief;
  std::function<void(Variant&)> change;
};

// What a step may be in place of the right one.
std::vector<Suspect> suspects(const Variant& due) {
  std::vector<Suspect> all{
      {"it is a step without bias correction", "bias correction is missing",
       [](Variant& v) { v.corrects_mean = v.corrects_square = false; }},
      {"the bias of the mean of gradients (exp_avg) is not corrected", "bias correction is missing",
       [](Variant& v) { v.corrects_mean = false; }},
      {"the bias of the mean of squares (exp_avg_sq) is not corrected", "bias correction is missing",
       [](Variant& v) { v.corrects_square = false; }},
      {"eps is added under the root", "eps is in another place", [](Variant& v) { v.place = Variant::Eps::in_root; }},
      {"eps is added before the bias correction", "eps is in another place",
       [](Variant& v) { v.place = Variant::Eps::before_correction; }},
      {"eps is added under the root, before the bias correction", "eps is in another place",
       [](Variant& v) { v.place = Variant::Eps::in_root_before_correction; }},
      {"eps is not applied", "eps is not applied", [](Variant& v) { v.eps = 0; }}};
  if (due.clipped < 1)
    all.push_back({"its gradients are not clipped", "gradients are not clipped", [](Variant& v) { v.clipped = 1; }});
  if (due.decay > 0) {
    all.push_back(
        {"it is a step without weight decay", "weight decay is not applied", [](Variant& v) { v.decay = 0; }});
    all.push_back({due.decoupled ? "weight decay goes through the gradient, as Adam's does; AdamW's is apart from it"
                                 : "weight decay is apart from the gradient, as AdamW's is; Adam's goes through it",
                   due.decoupled ? "weight decay is Adam's, not AdamW's" : "weight decay is AdamW's, not Adam's",
                   [](Variant& v) { v.decoupled = !v.decoupled; }});
  }
  for (const double t : {1.0, due.t - 1, due.t + 1})
    if (t >= 1 && t != due.t)
      all.push_back({fmt::format("the bias is corrected as of step {:.0f}, this is step {:.0f}", t, due.t),
                     "bias correction counts other steps", [t](Variant& v) { v.t = t; }});
  for (int decade = 12; decade >= 0; --decade)
    if (const double eps = std::pow(10.0, -decade); std::abs(eps / due.eps - 1) > 0.01)
      all.push_back({fmt::format("eps in use is {:g} where {:g} is due", eps, due.eps), "another eps is in use",
                     [eps](Variant& v) { v.eps = eps; }});
  return all;
}

// Which other Adam the step fits.
Cause other_adam(const std::vector<Parameter>& all, const Variant& due, const Mismatch& mismatch, double spread) {
  for (const auto& [sentence, brief, change] : suspects(due)) {
    Variant other = due;
    change(other);
    if (judged(all, other, spread).worst() <= 1) return {sentence, brief};
  }
  for (const bool of_square : {false, true}) {
    if ((of_square ? mismatch.square : mismatch.mean) <= 1) continue;
    Variant other = due;
    (of_square ? other.beta2 : other.beta1) = beta_in_use(all, due, of_square);
    const auto again = judged(all, other, spread);
    constexpr double of_estimate = 10;
    if ((of_square ? again.square : again.mean) > of_estimate) continue;
    const auto name = of_square ? "beta2" : "beta1";
    return {fmt::format("{} in use is {:.4g} where {:g} is due", name, of_square ? other.beta2 : other.beta1,
                        of_square ? due.beta2 : due.beta1),
            fmt::format("another {} is in use", name)};
  }
  return {};
}

std::optional<Values> read(const SafeTensors& state, const std::string& name) {
  const TensorView* tensor = state.find(name);
  return tensor ? std::optional(to_doubles(*tensor)) : std::nullopt;
}

// Error: what is missing, or of another shape. `gradient`: nullptr where it is not known.
tl::expected<Parameter, std::string> parameter_of(const std::string& name, const SafeTensors& before,
                                                  const SafeTensors* gradient, const SafeTensors& after) {
  Parameter p{.name = name};
  const auto take = [&](const SafeTensors& state, const std::string& tensor, Values& into) {
    auto values = read(state, tensor);
    if (values) into = std::move(*values);
    return values.has_value() && into.size() == p.w.size();
  };
  if (auto w = read(before, "weight:" + name)) p.w = std::move(*w);
  if (p.w.empty() || !take(after, "weight:" + name, p.w_after)) return tl::unexpected("weight:" + name);
  if (gradient != nullptr && !take(*gradient, "momentum:" + name, p.g)) return tl::unexpected("momentum:" + name);
  for (const auto& [prefix, old, now] :
       {std::tuple{"exp_avg:", &p.m, &p.m_after}, std::tuple{"exp_avg_sq:", &p.v, &p.v_after}}) {
    if (!take(after, prefix + name, *now)) return tl::unexpected(prefix + name);
    if (before.find(prefix + name) == nullptr)
      old->assign(p.w.size(), 0.0);  // before a first step
    else if (!take(before, prefix + name, *old))
      return tl::unexpected(prefix + name);
  }
  return p;
}

Variant due_of(const core::Optimiser& optimiser, double lr, std::int64_t done) {
  const auto& adam = *optimiser.adam();
  return {.lr = lr,
          .decay = optimiser.weight_decay,
          .beta1 = adam.beta1,
          .beta2 = adam.beta2,
          .eps = adam.eps,
          .t = static_cast<double>(done + 1),
          .decoupled = adam.decoupled};
}

// What gradients seem to have been multiplied by: least squares over all parameters.
double share_in_use(const std::vector<std::string>& parameters, const SafeTensors& before, const SafeTensors& gradient,
                    const SafeTensors& after, const Variant& due) {
  double product = 0, squares = 0;
  for (const auto& name : parameters) {
    const auto p = parameter_of(name, before, &gradient, after);
    if (!p) continue;
    for (std::size_t i = 0; i < p->g.size(); ++i) {
      const double d = (p->m_after[i] - due.beta1 * p->m[i]) / (1 - due.beta1);
      product += (d - (due.decoupled ? 0 : due.decay * p->w[i])) * p->g[i];
      squares += p->g[i] * p->g[i];
    }
  }
  return squares > 0 ? product / squares : 0;
}

UpdateVerdict check(const std::vector<std::string>& parameters, const SafeTensors& before, const SafeTensors* gradient,
                    const SafeTensors& after, const Variant& due, double spread) {
  UpdateVerdict out;
  std::vector<Parameter> all;
  std::vector<std::string> failing;
  Rate rate;
  Mismatch mismatch;
  for (const auto& name : parameters) {
    auto p = parameter_of(name, before, gradient, after);
    if (!p) {
      out.verdict = not_equal(fmt::format("the state lacks '{}', or has it in another shape", p.error()),
                              "the state is not complete", p.error());
      return out;
    }
    const auto judged_parameter = judged(*p, due, spread, &rate);
    mismatch.join(judged_parameter);
    if (!(judged_parameter.worst() <= 1)) failing.push_back(name);
    all.push_back(std::move(*p));
  }
  out.verdict.worst_ratio = mismatch.worst();
  out.rate = rate.value();
  constexpr double sigmas = 6;  // as UpdateVerdict has it
  out.rate_error = rate.error(due.lr) / sigmas;
  const double off = rate.squares > 0 && due.lr > 0 ? std::abs(out.rate / due.lr - 1) : 0;
  const bool wrong_rate = off > std::max(sigmas * out.rate_error, 1e-5);
  if (failing.empty() && !wrong_rate) return out;
  Cause cause;
  if (!failing.empty()) cause = other_adam(all, due, mismatch, spread);
  const auto text =
      fmt::format("{} of {} parameters do not move as the optimiser says", failing.size(), parameters.size());
  if (!cause.first.empty())
    out.verdict = not_equal(fmt::format("{}: {}", text, cause.first), cause.second, "weight:" + failing.front());
  else if (wrong_rate && mismatch.mean <= 1 && mismatch.square <= 1)
    out.verdict = not_equal(fmt::format("the learning rate in use is {:.7g} where {:.7g} is due ({:.5g} times)",
                                        out.rate, due.lr, out.rate / due.lr),
                            "another learning rate is in use", "learning rate");
  else
    out.verdict = not_equal(fmt::format("{}, the first is {}", text, failing.front()), "parameters move otherwise",
                            "weight:" + failing.front());
  out.verdict.worst_ratio = mismatch.worst();
  return out;
}

}  // namespace
}  // namespace adam

UpdateVerdict check_adam_update(const std::vector<std::string>& parameters, const SafeTensors& before,
                                const SafeTensors& gradient, const SafeTensors& after, const core::Optimiser& optimiser,
                                double lr, double spread, std::int64_t done, double norm_error) {
  auto due = adam::due_of(optimiser, lr, done);
  if (optimiser.clip_norm > 0) due.clipped = core::clipped_share(optimiser, gradient_norm(gradient));
  if (due.clipped < 1)
    due.clipped = clipped_within(due.clipped, adam::share_in_use(parameters, before, gradient, after, due), norm_error);
  return adam::check(parameters, before, &gradient, after, due, spread);
}

OutputVerdict check_adam_weights(const std::vector<std::string>& parameters, const SafeTensors& before,
                                 const SafeTensors& after, const core::Optimiser& optimiser, double lr,
                                 std::int64_t done) {
  return adam::check(parameters, before, nullptr, after, adam::due_of(optimiser, lr, done), 0).verdict;
}

}  // namespace strata::proof
