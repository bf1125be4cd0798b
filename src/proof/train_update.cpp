// SPDX-License-Identifier: Apache-2.0
// One optimiser step between two states, and pairs of steps in which the gradient cancels (train_checks.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "common/parallel.hpp"
#include "proof/adam_update.hpp"
#include "proof/difference.hpp"
#include "proof/train_checks.hpp"

namespace strata::proof {

namespace {

// SGD with what all optimisers have.
struct Sgd : core::Sgd {
  double lr = 0, weight_decay = 0;
  double clipped = 1;  // what gradients are multiplied by
};
using Values = std::vector<double>;
constexpr double rounding = 8 * 0x1p-24;

// The tensors of one parameter around one step; v and v' are empty without a buffer.
struct Parameter {
  Values w, v, g, w_after, v_after;
};

std::optional<Values> read(const SafeTensors& state, const std::string& name) {
  const TensorView* tensor = state.find(name);
  return tensor ? std::optional(to_doubles(*tensor)) : std::nullopt;
}

std::optional<Parameter> parameter_of(const std::string& name, const SafeTensors& before, const SafeTensors& gradient,
                                      const SafeTensors& after) {
  const auto w = read(before, "weight:" + name), g = read(gradient, "momentum:" + name),
             now = read(after, "weight:" + name);
  if (!w || !g || !now || w->size() != g->size() || w->size() != now->size()) return std::nullopt;
  Parameter out{.w = *w,
                .v = read(before, "momentum:" + name).value_or(Values()),
                .g = *g,
                .w_after = *now,
                .v_after = read(after, "momentum:" + name).value_or(Values())};
  if ((!out.v.empty() && out.v.size() != w->size()) || (!out.v_after.empty() && out.v_after.size() != w->size()))
    return std::nullopt;
  return out;
}

// Sums for the learning rate in use, over all parameters.
struct Rate {
  double product = 0, squares = 0, variance = 0;
  double value() const { return squares > 0 ? product / squares : 0; }
  double error(double lr) const { return squares > 0 ? std::sqrt(variance) / squares / lr : infinity; }
  void add(const Rate& other) {
    product += other.product;
    squares += other.squares;
    variance += other.variance;
  }
};

// The worse of both checks of one parameter, in units of what is allowed; adds to `rate`.
double mismatch(const Parameter& p, const Sgd& sgd, double spread, Rate& rate) {
  Values d(p.w.size()), v(p.w.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    d[i] = sgd.clipped * p.g[i] + sgd.weight_decay * p.w[i];
    v[i] = p.v.empty() || sgd.momentum == 0 ? d[i] : sgd.momentum * p.v[i] + (1 - sgd.dampening) * d[i];
  }
  double worst = 0;
  const double loose = 1e-5 + 4 * spread;  // of a gradient that is computed twice
  const double g_norm = sgd.clipped * norm(p.g);
  if (!p.v_after.empty()) {
    Values off(d.size());
    for (std::size_t i = 0; i < off.size(); ++i) off[i] = p.v_after[i] - v[i];
    const double allowed =
        rounding * (sgd.momentum * norm(p.v) + g_norm + sgd.weight_decay * norm(p.w)) + loose * g_norm + 1e-37;
    worst = norm(off) / allowed;
    if (!std::isfinite(worst)) return infinity;
  } else if (sgd.momentum > 0) {
    return infinity;
  }
  const bool by_gradient =
      p.v_after.empty() || sgd.nesterov;  // the update then holds the gradient that was computed again
  double largest = 0;
  for (const double g : p.g) largest = std::max(largest, sgd.clipped * std::abs(g));
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double velocity = p.v_after.empty() ? v[i] : p.v_after[i];
    const double u = sgd.nesterov ? d[i] + sgd.momentum * velocity : velocity;
    const double moved = p.w[i] - p.w_after[i], ulp = 0x1p-23 * std::max(std::abs(p.w[i]), std::abs(p.w_after[i]));
    const double allowed =
        4 * 0x1p-23 * (std::abs(p.w[i]) + sgd.lr * std::abs(u)) + (by_gradient ? sgd.lr * loose * largest : 0) + 1e-37;
    const double ratio = std::abs(moved - sgd.lr * u) / allowed;
    if (!std::isfinite(ratio)) return infinity;
    worst = std::max(worst, ratio);
    if (sgd.lr * std::abs(u) <= 8 * ulp) continue;
    rate.product += moved * u;
    rate.squares += u * u;
    rate.variance += (ulp * ulp / 12 + std::pow(0x1p-24 * sgd.lr * u, 2)) * u * u;
  }
  return worst;
}

// What one parameter's step shows.
struct Judged {
  bool complete = false, has_momentum = false;
  double worst = 0;
  Rate rate;
};

// What gradients seem to have been multiplied by: least squares over all parameters.
double share_in_use(const std::vector<std::string>& parameters, const SafeTensors& before, const SafeTensors& gradient,
                    const SafeTensors& after, const Sgd& sgd) {
  double product = 0, squares = 0;
  for (const auto& name : parameters) {
    const auto p = parameter_of(name, before, gradient, after);
    if (!p) continue;
    const bool buffered = !p->v.empty() && sgd.momentum > 0;
    for (std::size_t i = 0; i < p->g.size(); ++i) {
      double d = (p->w[i] - p->w_after[i]) / sgd.lr;  // of a step without a buffer
      if (!p->v_after.empty())
        d = buffered ? (p->v_after[i] - sgd.momentum * p->v[i]) / (1 - sgd.dampening) : p->v_after[i];
      product += (d - sgd.weight_decay * p->w[i]) * p->g[i];
      squares += p->g[i] * p->g[i];
    }
  }
  return squares > 0 ? product / squares : 0;
}

// The step of every parameter by one set of hyperparameters.
using JudgeAll = std::function<std::vector<Judged>(const Sgd&)>;

// Which other optimiser the step fits.
std::pair<std::string, std::string> other_optimiser(const std::vector<Judged>& own, const JudgeAll& judge_all,
                                                    const Sgd& sgd) {
  if (sgd.momentum > 0 && std::none_of(own.begin(), own.end(), [](const auto& p) { return p.has_momentum; }))
    return {"the state holds no momentum: momentum is not applied", "momentum is not applied"};
  const auto fits = [&](auto change) {
    Sgd other = sgd;
    change(other);
    const auto judged = judge_all(other);
    return std::all_of(judged.begin(), judged.end(), [](const auto& p) { return p.worst <= 1; });
  };
  if (sgd.clipped < 1 && fits([](Sgd& s) { s.clipped = 1; }))
    return {"its gradients are not clipped", "gradients are not clipped"};
  if (sgd.momentum > 0 && fits([](Sgd& s) { s.momentum = 0, s.nesterov = false; }))
    return {"it is a step without momentum", "momentum is not applied"};
  if (sgd.weight_decay > 0 && fits([](Sgd& s) { s.weight_decay = 0; }))
    return {"it is a step without weight decay", "weight decay is not applied"};
  if (sgd.dampening > 0 && fits([](Sgd& s) { s.dampening = 0; }))
    return {"it is a step without dampening", "dampening is not applied"};
  if (fits([](Sgd& s) { s.nesterov = !s.nesterov; }))
    return {sgd.nesterov ? "it is a step without Nesterov's momentum" : "it is a step with Nesterov's momentum",
            "Nesterov's momentum is wrong"};
  return {};
}

}  // namespace

double clipped_within(double due, double fitted, double norm_error) {
  return std::abs(fitted / due - 1) <= strict_limit * norm_error ? fitted : due;
}

double gradient_norm(const SafeTensors& gradients) {
  double squares = 0;
  for (const auto& name : gradients.names()) {
    if (!name.starts_with("momentum:")) continue;
    const double size = norm(to_doubles(*gradients.find(name)));
    squares += size * size;
  }
  return std::sqrt(squares);
}

UpdateVerdict check_update(const std::vector<std::string>& parameters, const SafeTensors& before,
                           const SafeTensors& gradient, const SafeTensors& after, const core::Optimiser& optimiser,
                           double lr, double spread, std::int64_t done, double norm_error) {
  if (optimiser.adam() != nullptr)
    return check_adam_update(parameters, before, gradient, after, optimiser, lr, spread, done, norm_error);
  const double clipped = optimiser.clip_norm > 0 ? core::clipped_share(optimiser, gradient_norm(gradient)) : 1;
  Sgd sgd{*optimiser.sgd(), lr, optimiser.weight_decay, clipped};
  if (clipped < 1)
    sgd.clipped = clipped_within(clipped, share_in_use(parameters, before, gradient, after, sgd), norm_error);
  const JudgeAll judge_all = [&](const Sgd& how) {
    std::vector<Judged> all(parameters.size());
    in_parallel(all.size(), [&](std::size_t i) {
      const auto p = parameter_of(parameters[i], before, gradient, after);
      if (!p) return;
      all[i].complete = true;
      all[i].has_momentum = !p->v_after.empty();
      all[i].worst = mismatch(*p, how, spread, all[i].rate);
    });
    return all;
  };
  UpdateVerdict out;
  const auto all = judge_all(sgd);
  std::vector<std::string> failing;
  Rate rate;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].complete) {
      out.verdict =
          not_equal(fmt::format("the state lacks '{}', its gradient, or has it in another shape", parameters[i]),
                    "the state is not complete", "weight:" + parameters[i]);
      return out;
    }
    rate.add(all[i].rate);
    out.verdict.worst_ratio = std::max(out.verdict.worst_ratio, all[i].worst);
    if (!(all[i].worst <= 1)) failing.push_back(parameters[i]);
  }
  out.rate = rate.value();
  out.rate_error = rate.error(lr);
  const double off = rate.squares > 0 ? std::abs(out.rate / lr - 1) : 0;
  const bool wrong_rate = rate.squares > 0 && off > std::max(6 * out.rate_error, 1e-5 + 4 * spread);
  const auto [cause, brief] =
      failing.empty() ? std::pair<std::string, std::string>() : other_optimiser(all, judge_all, sgd);
  if (!failing.empty() && !cause.empty()) {
    out.verdict = not_equal(fmt::format("{} of {} parameters do not move as the optimiser says: {}", failing.size(),
                                        parameters.size(), cause),
                            brief, "weight:" + failing.front());
  } else if (wrong_rate) {
    out.verdict = not_equal(fmt::format("the learning rate in use is {:.7g} where {:.7g} is due ({:.5g} times)",
                                        out.rate, lr, out.rate / lr),
                            "another learning rate is in use", "learning rate");
  } else if (!failing.empty()) {
    out.verdict = not_equal(fmt::format("{} of {} parameters do not move as the optimiser says, the first is {}",
                                        failing.size(), parameters.size(), failing.front()),
                            "parameters move otherwise", "weight:" + failing.front());
  }
  return out;
}

OutputVerdict check_pair(const std::vector<std::string>& parameters, const Pair& pair, double spread,
                         const std::string& fault) {
  const auto ratio_of = [&](const std::string& name) -> std::optional<double> {
    const auto w = read(*pair.before, "weight:" + name), a = read(*pair.a, "weight:" + name),
               b = read(*pair.b, "weight:" + name);
    const auto term = pair.term ? read(*pair.term, pair.prefix + name) : std::optional(Values(w ? w->size() : 0, 0.0));
    if (!w || !a || !b || !term || a->size() != w->size() || b->size() != w->size() || term->size() != w->size())
      return std::nullopt;
    Values off(w->size()), moved_a(w->size()), moved_b(w->size());
    for (std::size_t i = 0; i < off.size(); ++i) {
      moved_a[i] = (*w)[i] - (*a)[i];
      moved_b[i] = (*w)[i] - (*b)[i];
      off[i] = moved_b[i] - pair.factor * moved_a[i] - pair.scale * (*term)[i];
    }
    const double allowed = rounding * ((1 + pair.factor) * norm(*w) + norm(moved_b) + pair.factor * norm(moved_a)) +
                           1e-5 * std::abs(pair.scale) * norm(*term) + spread * (norm(moved_a) + norm(moved_b)) + 1e-37;
    return norm(off) / allowed;
  };
  std::vector<std::optional<double>> ratios(parameters.size());
  in_parallel(ratios.size(), [&](std::size_t i) { ratios[i] = ratio_of(parameters[i]); });
  OutputVerdict out;
  std::string first;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (!ratios[i])
      return not_equal(fmt::format("the state lacks '{}' or has it in another shape", parameters[i]),
                       "the state is not complete", "weight:" + parameters[i]);
    const double ratio = *ratios[i];
    out.worst_ratio = std::max(out.worst_ratio, std::isfinite(ratio) ? ratio : infinity);
    if (ratio <= 1) continue;
    if (wrong++ == 0) first = parameters[i];
  }
  if (wrong == 0) return out;
  auto verdict =
      not_equal(fmt::format("{}: {} of {} parameters, the first is {} (up to {:.3g} times what rounding allows)", fault,
                            wrong, parameters.size(), first, out.worst_ratio),
                fault, "weight:" + first);
  verdict.worst_ratio = out.worst_ratio;
  return verdict;
}

}  // namespace strata::proof
