// SPDX-License-Identifier: Apache-2.0
#include "proof/late_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "proof/adam_update.hpp"
#include "proof/difference.hpp"

namespace strata::proof {
namespace {

// Twice the bound of a probe: both sides are float32. Over several steps more values come near a kink, where one side
// goes another way than the moved weights did; steps that were left out are off by ten thousands of times.
constexpr double kTimesNoise = 16, kOfSeveralSteps = 4;
constexpr double kRounding = 8 * 0x1p-24;

double times_noise(const LateStep& level) {
  return level.losses.size() > 1 ? kOfSeveralSteps * kTimesNoise : kTimesNoise;
}

// How far a step moved a tensor; a buffer that was not there before began at 0. nullopt: it is not there afterwards, or
// has another shape than `like`.
std::optional<std::vector<double>> change(const LateStep& step, const std::string& name, const TensorView* like) {
  const TensorView* after = step.after->find(name);
  if (after == nullptr || (like != nullptr && after->shape != like->shape)) return std::nullopt;
  auto values = to_doubles(*after);
  if (const TensorView* before = step.before->find(name); before != nullptr && before->shape == after->shape) {
    const auto old = to_doubles(*before);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= old[i];
  }
  return values;
}

double envelope_of(const TrainReference& reference, const std::string& name) {
  const auto own = name.substr(name.find(':') + 1);
  const double gradient = reference.envelope("timed", "grad:" + own);
  return gradient > 0 ? gradient : reference.envelope("timed", "stat:" + own);
}

// "weight:", "momentum:", ...
std::string kind_of(const std::string& name) {
  return name.substr(0, name.find(':') + 1);
}

// Root mean square of all of eager's changes of weights, or of one kind of buffers.
double root_mean_square(const LateStep& eager, std::string_view kind) {
  double squares = 0, count = 0;
  for (const auto& name : eager.after->names())
    if (name.starts_with(kind))
      for (const double value : change(eager, name, nullptr).value_or(std::vector<double>{})) {
        squares += value * value;
        ++count;
      }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

// All but generators, of which each level has its own.
std::vector<std::string> moved_names(const SafeTensors& state) {
  auto names = state.names();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("generator:"); });
  return names;
}

std::string described(const std::string& name) {
  const auto own = name.substr(name.find(':') + 1);
  if (name.starts_with("momentum:")) return "the momentum of " + own;
  return name.starts_with("weight:") ? own : name.substr(0, name.find(':')) + " of " + own;
}

// nullopt: the losses are those of `nearest`. What is allowed does not shrink from a step to the next.
std::optional<OutputVerdict> other_loss(const TrainReference& reference, const LateStep& level, const LateStep& eager,
                                        const LateStep& moved, const LateStep& nearest, double spread) {
  double noise = 0;
  const auto steps = std::min({eager.losses.size(), moved.losses.size(), nearest.losses.size(), level.losses.size()});
  for (std::size_t i = 0; i < steps; ++i) {
    const double own = level.losses[i], loss = nearest.losses[i];
    noise = std::max(noise, std::abs(moved.losses[i] - eager.losses[i]));
    const double allowed = times_noise(level) * std::max(noise, reference.envelope("timed", "loss") * std::abs(loss)) +
                           (1e-6 + 4 * spread) * std::abs(loss) + 1e-7;
    const double off = std::abs(own - loss);
    if (off <= allowed) continue;
    auto verdict = not_equal(fmt::format("its loss is {:.7g}, eager's {:.7g} from the same weights on the same {}", own,
                                         loss, i == 0 ? "batch" : "batches"),
                             "another loss on the same batch", "loss");
    verdict.worst_ratio = off / allowed;
    return verdict;
  }
  return std::nullopt;
}

}  // namespace

double moved_share(const LateStep& eager, const LateStep& moved) {
  double off = 0, size = 0;
  for (const auto& name : eager.after->names()) {
    if (!name.starts_with("weight:")) continue;
    const auto de = change(eager, name, nullptr), dm = change(moved, name, eager.after->find(name));
    if (!de || !dm) return infinity;
    for (std::size_t i = 0; i < de->size(); ++i) {
      off += ((*dm)[i] - (*de)[i]) * ((*dm)[i] - (*de)[i]);
      size += (*de)[i] * (*de)[i];
    }
  }
  return size > 0 ? std::sqrt(off / size) : 0;
}

OutputVerdict check_late_step(const TrainReference& reference, const LateStep& level, const LateStep& eager,
                              const LateStep& moved, double spread, std::int64_t done, const LateStep* along) {
  OutputVerdict out;
  std::string worst;
  std::size_t wrong = 0;
  const auto& optimiser = reference.optimiser();
  std::map<std::string, double> kinds;  // root mean square of eager's changes, by prefix
  std::set<std::string> by_buffers;     // parameters that are judged by what their buffers say
  for (const auto& name : moved_names(*eager.after)) kinds.try_emplace(kind_of(name), 0);
  for (auto& [kind, size] : kinds) size = root_mean_square(eager, kind);
  if (optimiser.adam() != nullptr && level.losses.size() == 1)  // of several steps, as far as rounding carries those
    for (const auto& parameter : reference.parameters()) by_buffers.insert("weight:" + parameter);
  for (const auto& name : moved_names(*level.after))
    if (eager.after->find(name) == nullptr)
      return not_equal(fmt::format("the level's state holds {}, which eager's has not", name), "the state is another",
                       name);
  const auto names = moved_names(*eager.after);
  for (const auto& name : names) {
    if (by_buffers.contains(name)) continue;
    const auto de = change(eager, name, nullptr), dl = change(level, name, eager.after->find(name)),
               dm = change(moved, name, eager.after->find(name)),
               da = along != nullptr ? change(*along, name, eager.after->find(name)) : std::nullopt;
    const auto& dn = along != nullptr ? da : de;
    if (!dl || !dm || !dn)
      return not_equal(fmt::format("the level's state lacks {}, or has it in another shape", name),
                       "the state is not complete", name);
    std::vector<double> off(de->size()), noise(de->size());
    for (std::size_t i = 0; i < off.size(); ++i) {
      off[i] = (*dl)[i] - (*dn)[i];
      noise[i] = (*dm)[i] - (*de)[i];
    }
    const double size = norm(*de), floor = 0.01 * kinds[kind_of(name)] * std::sqrt(static_cast<double>(off.size()));
    // a square's relative error is twice that of the gradient, and more where a few elements are most of it
    const double times = (kind_of(name) == "exp_avg_sq:" ? 4 : 1) * times_noise(level);
    const double envelope = envelope_of(reference, name) + reference.norm_error("timed");
    const double allowed = times * std::max(norm(noise), envelope * (size + floor)) + 4 * spread * size +
                           kRounding * norm(to_doubles(*eager.after->find(name))) + 1e-30;
    const double ratio = norm(off) / allowed;
    if (!(ratio <= out.worst_ratio)) {
      out.worst_ratio = std::isfinite(ratio) ? ratio : infinity;
      worst = name;
    }
    if (!(ratio <= 1)) ++wrong;
  }
  if (auto other = other_loss(reference, level, eager, moved, along != nullptr ? *along : eager, spread)) {
    other->worst_ratio = std::max(out.worst_ratio, other->worst_ratio);
    return *other;
  }
  if (wrong == 0 && by_buffers.empty()) return out;
  if (wrong == 0) {
    auto weights = check_adam_weights(reference.parameters(), *level.before, *level.after, optimiser,
                                      core::learning_rate(optimiser, done), done);
    weights.worst_ratio = std::max(weights.worst_ratio, out.worst_ratio);
    return weights;
  }
  auto verdict = not_equal(
      fmt::format("{} of {} tensors move otherwise than eager's from the same state on the same {}, most of all {} "
                  "({:.3g} times what rounding allows)",
                  wrong, names.size(), level.losses.size() > 1 ? "batches" : "batch", described(worst),
                  out.worst_ratio),
      "a step leads elsewhere", worst);
  verdict.worst_ratio = out.worst_ratio;
  return verdict;
}

OutputVerdict check_score(const SplitScore& level, const SplitScore& eager) {
  const auto allowed = std::max<std::int64_t>(2, eager.samples / 500);
  if (std::abs(level.correct - eager.correct) > allowed)
    return not_equal(fmt::format("it finds {} of {} labels, eager {} with the same weights", level.correct,
                                 level.samples, eager.correct),
                     "scores with other weights", "score");
  if (!(std::abs(level.loss - eager.loss) <= 1e-3 * std::abs(eager.loss) + 1e-6))
    return not_equal(
        fmt::format("its mean loss is {:.7g}, eager's {:.7g} with the same weights", level.loss, eager.loss),
        "scores with other weights", "score");
  OutputVerdict equal;
  equal.worst_ratio = std::abs(level.loss - eager.loss) / (1e-3 * std::abs(eager.loss) + 1e-6);
  return equal;
}

}  // namespace strata::proof
