// SPDX-License-Identifier: Apache-2.0
#include "measure/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/interrupt.hpp"
#include "core/bundle_info.hpp"
#include "measure/train_rules.hpp"
#include "measure/train_steps.hpp"
#include "stats/sample.hpp"

namespace strata::measure {
using proof::OutputVerdict;
using proof::TrainReference;
namespace {

constexpr int kRepeats = 8;  // of a level that is not deterministic (docs/method.md)
constexpr int kDropoutSteps = 64;
constexpr double kTinyMomentum = 0x1p-40;  // so that a buffer is kept, and is the last gradient

// The loss of an input in what a level gave; NaN: it is not there.
double loss_in(const SafeTensors& given, int index) {
  const TensorView* one = given.find(fmt::format("{}/loss", index));
  return one && one->elements() == 1 ? value_at(*one, 0) : std::nan("");
}

// The variance of the steps' gradients, summed over the elements of each parameter.
class Scatter {
 public:
  void add(const TrainState& state, const TrainReference::Variances& parameters) {
    ++steps_;
    for (const auto& [parameter, known] : parameters) {
      const TensorView* gradient = state.tensors.find("momentum:" + parameter);
      auto& [sums, squares] = of_[parameter];
      const auto values = gradient ? to_doubles(*gradient) : std::vector<double>{std::nan("")};
      sums.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        sums[i] += values[i];
        squares += values[i] * values[i];
      }
    }
  }
  int steps() const { return steps_; }
  // Appends each parameter's variance, and begins anew.
  void end_group(TrainReference::Variances& into) {
    for (auto& [parameter, moments] : of_) {
      double of_means = 0;
      for (const double sum : moments.sums) of_means += sum * sum / steps_;
      into[parameter].push_back((moments.squares - of_means) / (steps_ - 1));
    }
    of_.clear();
    steps_ = 0;
  }

 private:
  struct Moments {
    std::vector<double> sums;
    double squares = 0;
  };
  std::map<std::string, Moments> of_;
  int steps_ = 0;
};

// What steps with dropout as given, from weights that stay, are like.
struct DropoutSteps {
  std::vector<double> losses;
  TrainReference::Variances variances;
};

Try<DropoutSteps> dropout_steps(Session& session, const TrainReference& reference) {
  DropoutSteps out;
  std::vector<std::string> names;
  for (const auto& [parameter, variances] : reference.dropout_variances()) names.push_back("momentum:" + parameter);
  const int watched = names.empty() ? 0 : reference.dropout_groups() * reference.dropout_group();
  Scatter scatter;
  for (int i = 0; i < std::max(kDropoutSteps, watched) && !interrupted(); ++i) {
    const auto loss = session.prove({0});
    if (!loss) return tl::unexpected(loss.error());
    if (i < kDropoutSteps) out.losses.push_back(loss_in(*loss, 0));
    if (i >= watched) continue;
    const auto state = session.state(names);
    if (!state) return tl::unexpected(state.error());
    scatter.add(*state, reference.dropout_variances());
    if (scatter.steps() == reference.dropout_group()) scatter.end_group(out.variances);
  }
  return out;
}

// Losses and gradients with dropout as given, then two runs in eval mode.
Try<void> prove_dropout(Player& player, Session& session, const TrainReference& reference) {
  if (auto done = begin(session, "timed", true, with(proof::still_optimiser(), &core::Sgd::momentum, kTinyMomentum));
      !done)
    return done;
  const auto steps = dropout_steps(session, reference);
  if (!steps) return tl::unexpected(steps.error());
  const auto& losses = steps->losses;
  player.training.variances = proof::check_variances(reference.dropout_variances(), steps->variances);
  const TensorView* loss = reference.expected("timed", "loss");
  const double rounding =
      loss == nullptr ? 0 : proof::strict_limit * reference.envelope("timed", "loss") * std::abs(value_at(*loss, 0));
  player.training.dropout = proof::check_dropout(reference.dropout_losses(), losses, rounding);
  if (!player.training.dropout) player.training.dropout_note = "eager's losses with dropout differ by rounding alone";
  if (!session.loaded().value("deterministic", true)) {
    player.training.evaluation_note = "the level is not deterministic";
    return {};
  }
  if (auto done = session.set_mode("eval", true); !done) return done;
  const auto read = [&]() -> Try<std::vector<std::vector<double>>> {
    const auto outputs = session.prove({0});
    if (!outputs) return tl::unexpected(outputs.error());
    std::vector<std::vector<double>> values;
    for (const auto& name : outputs->names()) values.push_back(to_doubles(*outputs->find(name)));
    return values;
  };
  const auto first = read(), second = read();
  if (!first) return tl::unexpected(first.error());
  if (!second) return tl::unexpected(second.error());
  player.training.evaluation = *first == *second && !first->empty()
                                   ? OutputVerdict{}
                                   : proof::not_equal("two runs in eval mode differ: dropout is still applied",
                                                      "dropout in eval mode", "dropout");
  return {};
}

// The losses of the whole ring from the same weights: gradients are compared on input 0 alone.
Try<void> prove_losses(Player& player, Session& session, const TrainReference& reference) {
  if (auto done = begin(session, "probe1", false, proof::still_optimiser()); !done) return done;
  std::vector<int> all(static_cast<std::size_t>(reference.ring()));
  std::iota(all.begin(), all.end(), 0);
  const auto losses = session.prove(all);
  if (!losses) return tl::unexpected(losses.error());
  player.training.losses = proof::check_losses(reference, *losses, player.tolerance());
  return {};
}

OutputVerdict diverged(int index) {
  return proof::not_equal(
      fmt::format(
          "the loss of input {} is not finite within a block that began with the case's weights: if every level "
          "ends so, the learning rate is too large (--optimiser sgd:lr=...)",
          index),
      "the loss is not finite", "loss");
}

Failure unequal(const OutputVerdict& verdict, const std::string& when) {
  return {state_of(verdict), fmt::format("{}: {}", when, verdict.reason), "", ""};
}

}  // namespace

Try<void> prove_training(Player& player, Session& session, const Judge& judge) {
  const TrainReference& reference = *judge.training;
  for (const auto& set : reference.sets()) {
    if (interrupted()) return {};
    std::vector<SafeTensors> repeats;
    const bool repeat = set == "probe1" && !session.loaded().value("deterministic", true);
    for (int i = 0; repeat && i < kRepeats; ++i) {
      auto step = probe_step(session, set);
      if (!step) return tl::unexpected(step.error());
      repeats.push_back(step->after.tensors);
    }
    if (repeat) player.evidence.own_spread = proof::gradient_spread(reference, set, repeats);
    auto step = probe_step(session, set);
    if (!step) return tl::unexpected(step.error());
    check_counts(player, session, step->after, proof::probe_optimiser());
    player.training.steps[set] =
        proof::check_gradients(reference, set, step->loss, step->after.tensors, player.tolerance());
    if (!player.training.steps[set].equal_work()) return {};  // what follows would only say so again
    if (judge.strict_training && set == "probe1")
      player.evidence.precision =
          proof::gradient_precision(*judge.strict_training, reference, set, step->after.tensors);
  }
  if (auto done = prove_losses(player, session, reference); !done) return done;
  if (!player.training.losses->equal_work()) return {};
  if (core::is_light(reference.bundle())) return {};  // the step after timing shows the optimiser (check_last_step)
  if (!judge.strict_training)
    if (auto done = prove_rules(player, session, reference); !done) return done;
  if (reference.has_dropout() && !interrupted()) return prove_dropout(player, session, reference);
  return {};
}

Try<void> probe_restart(Player& player, Session& session, const TrainReference& reference) {
  auto step = probe_step(session, "probe1");
  if (!step) return tl::unexpected(step.error());
  const auto verdict = proof::check_gradients(reference, "probe1", step->loss, step->after.tensors, player.tolerance());
  if (!verdict.equal_work()) return tl::unexpected(unequal(verdict, "after a restart"));
  return start_training(session, reference);
}

Try<void> start_training(Session& session, const TrainReference& reference) {
  if (auto done = begin(session, "timed", true, reference.optimiser()); !done) return done;
  // Switching dropout may have made a compiling level compile again.
  if (auto done = session.warm_up(3, std::chrono::nanoseconds(0)); !done) return tl::unexpected(done.error());
  return {};
}

namespace {

// Parameters whose step is judged: all, or in a light proof a drawn quarter of them, at least eight. Reading and
// judging a state takes longer than the step itself, and each restart draws anew.
std::vector<std::string> judged_parameters(const TrainReference& reference, stats::Random& random) {
  auto parameters = reference.parameters();
  if (!core::is_light(reference.bundle())) return parameters;
  random.shuffle(parameters);
  parameters.resize(std::min(parameters.size(), std::max<std::size_t>(8, parameters.size() / 4)));
  return parameters;
}

// What a state has of these parameters, the optimiser's buffers among it.
std::vector<std::string> names_of(const SafeTensors& state, const std::vector<std::string>& parameters) {
  const std::set<std::string> wanted(parameters.begin(), parameters.end());
  std::vector<std::string> names;
  for (const auto& name : state.names())
    if (const auto colon = name.find(':'); colon != std::string::npos && wanted.contains(name.substr(colon + 1)))
      names.push_back(name);
  return names;
}

std::vector<std::string> gradients_of(const std::vector<std::string>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back("momentum:" + parameter);
  return names;
}

// The check of the last step; nullopt: its loss is not finite.
Try<std::optional<proof::UpdateVerdict>> last_step(Player& player, Session& session, const TrainReference& reference,
                                                   int index, const std::vector<std::string>& parameters) {
  // Masks cannot be drawn twice alike, so the steps that are compared go without.
  if (reference.has_dropout())
    if (auto done = session.set_mode("train", false); !done) return tl::unexpected(done.error());
  auto before = session.state();
  if (!before) return tl::unexpected(before.error());
  check_counts(player, session, *before, reference.optimiser());
  const auto steps = session.steps();
  const double lr = core::learning_rate(reference.optimiser(), steps);
  // On the very input of the gradient below: one that is rounding alone would differ for another last bit.
  if (auto timed = session.measure({.indices = {index}, .fresh = false}); !timed) return tl::unexpected(timed.error());
  const auto timed_loss = session.checked_output();
  if (!timed_loss) return tl::unexpected(timed_loss.error());
  if (!std::isfinite(loss_in(*timed_loss, index))) return std::nullopt;
  auto after = session.state(names_of(before->tensors, parameters));
  if (!after) return tl::unexpected(after.error());
  const OwnState weights(session, weights_in(before->tensors));
  if (weights.error()) return tl::unexpected(*weights.error());
  std::vector<SafeTensors> gradients;
  std::optional<SafeTensors> loss;
  proof::UpdateVerdict update;
  // A second gradient, only where the first does not explain the step, shows whether the level repeats itself at all.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (auto done = session.set_optimiser(proof::probe_optimiser()); !done) return tl::unexpected(done.error());
    if (auto done = session.load_state(weights.path(), 0); !done) return tl::unexpected(done.error());
    auto proven = session.prove({index});
    if (!proven) return tl::unexpected(proven.error());
    loss = std::move(*proven);
    auto state = session.state(gradients_of(parameters));
    if (!state) return tl::unexpected(state.error());
    gradients.push_back(state->tensors);
    const double spread = std::max(player.evidence.own_spread, proof::gradient_spread(reference, "timed", gradients));
    update = proof::check_update(parameters, before->tensors, gradients.front(), after->tensors, reference.optimiser(),
                                 lr, spread, steps);
    if (update.verdict.equal_work()) break;
  }
  const double timed = loss_in(*timed_loss, index), again = loss_in(*loss, index),
               spread = 4 * player.evidence.own_spread;
  if (update.verdict.equal_work() && !(std::abs(timed - again) <= (1e-4 + spread) * std::abs(again) + 1e-5)) {
    update.verdict = proof::not_equal(fmt::format("the timed loss of input {} is {:.7g}, and {:.7g} from the same "
                                                  "weights when it is proven: inputs or labels are not those given",
                                                  index, timed, again),
                                      "timed loss follows other data", "loss");
    update.verdict.kind = OutputVerdict::Kind::mistrusted;
  }
  return update;
}

}  // namespace

Try<void> check_last_step(Player& player, Session& session, const TrainReference& reference, stats::Random& random) {
  const auto parameters = judged_parameters(reference, random);
  const int index = static_cast<int>(random.below(static_cast<std::uint64_t>(std::max(1, reference.ring()))));
  auto found = last_step(player, session, reference, index, parameters);
  if (found && !*found) {  // the training diverged after the last block that was looked at
    ++player.training.begun_again;
    if (auto done = start_training(session, reference); !done) return done;
    found = last_step(player, session, reference, index, parameters);
  }
  if (!found) return tl::unexpected(found.error());
  const auto update = *found ? **found : proof::UpdateVerdict{diverged(index)};
  player.training.add_update(update);
  if (!update.verdict.equal_work()) return tl::unexpected(unequal(update.verdict, "a step after timing"));
  return {};
}

void profile_phases(Player& player, Session& session, const TrainReference& reference) {
  if (core::is_light(reference.bundle())) {
    player.phases_note = "looked at in the corners of the sweep";
    return;
  }
  if (!session.offers("profile")) {
    player.phases_note = "the level has no operation profile";
    return;
  }
  const auto give_up = [&](const Failure& why) { player.phases_note = why.what; };
  if (auto done = start_training(session, reference); !done) return give_up(done.error());
  // About half a second, whatever the step takes.
  const int count = std::clamp(static_cast<int>(0.5e9 / std::max(1.0, player.iteration_ns)), 5, 50);
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) indices.push_back(i % std::max(1, reference.ring()));
  auto found = session.profile(indices);
  if (!found) return give_up(found.error());
  for (const auto& [phase, times] : found->phases)
    for (const auto ns : times) player.phases[phase].push_back(static_cast<double>(ns) * 1e-6);
  player.joined = found->joined;
}

OutputVerdict check_loss(const SafeTensors& output, int index) {
  const TensorView* loss = output.find(fmt::format("{}/loss", index));
  if (!loss || loss->elements() != 1)
    return proof::not_equal(fmt::format("the loss of input {} was not given", index), "no loss was given", "loss");
  return std::isfinite(value_at(*loss, 0)) ? OutputVerdict{} : diverged(index);
}

}  // namespace strata::measure
