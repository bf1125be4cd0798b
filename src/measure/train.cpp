// SPDX-License-Identifier: Apache-2.0
#include "measure/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/interrupt.hpp"
#include "core/bundle_info.hpp"
#include "measure/train_steps.hpp"
#include "stats/sample.hpp"

namespace strata::measure {
using proof::OutputVerdict;
using proof::TrainReference;
namespace {

constexpr int kRepeats = 8;  // of a level that is not deterministic (docs/proof_of_training.md)
constexpr int kDropoutSteps = 64;
constexpr double kTinyMomentum = 0x1p-40;  // so that a buffer is kept, and is the last gradient

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
    const auto loss = STRATA_TRY(session.prove({0}));
    if (i < kDropoutSteps) out.losses.push_back(loss_in(loss, 0));
    if (i >= watched) continue;
    const auto state = STRATA_TRY(session.state(names));
    scatter.add(state, reference.dropout_variances());
    if (scatter.steps() == reference.dropout_group()) scatter.end_group(out.variances);
  }
  return out;
}

// Losses and gradients with dropout as given, then two runs in eval mode.
Try<void> prove_dropout(Participant& participant, Session& session, const TrainReference& reference) {
  STRATA_TRY(begin(session, "timed", true, with(proof::still_optimiser(), &core::Sgd::momentum, kTinyMomentum)));
  const auto steps = STRATA_TRY(dropout_steps(session, reference));
  const auto& losses = steps.losses;
  participant.training.variances = proof::check_variances(reference.dropout_variances(), steps.variances);
  const TensorView* loss = reference.expected("timed", "loss");
  const double rounding =
      loss == nullptr ? 0 : proof::strict_limit * reference.envelope("timed", "loss") * std::abs(value_at(*loss, 0));
  participant.training.dropout = proof::check_dropout(reference.dropout_losses(), losses, rounding);
  if (!participant.training.dropout)
    participant.training.dropout_note = "eager's losses with dropout differ by rounding alone";
  if (!session.loaded().value("deterministic", true)) {
    participant.training.evaluation_note = "the level is not deterministic";
    return {};
  }
  STRATA_TRY(session.set_mode("eval", true));
  const auto read = [&]() -> Try<std::vector<std::vector<double>>> {
    const auto outputs = STRATA_TRY(session.prove({0}));
    std::vector<std::vector<double>> values;
    for (const auto& name : outputs.names()) values.push_back(to_doubles(*outputs.find(name)));
    return values;
  };
  const auto first = STRATA_TRY(read());
  const auto second = STRATA_TRY(read());
  participant.training.evaluation = first == second && !first.empty()
                                        ? OutputVerdict{}
                                        : proof::not_equal("two runs in eval mode differ: dropout is still applied",
                                                           "dropout in eval mode", "dropout");
  return {};
}

// The losses of the whole ring from the same weights: gradients are compared on input 0 alone.
Try<void> prove_losses(Participant& participant, Session& session, const TrainReference& reference) {
  STRATA_TRY(begin(session, "probe1", false, proof::still_optimiser()));
  std::vector<int> all(static_cast<std::size_t>(reference.ring()));
  std::iota(all.begin(), all.end(), 0);
  const auto losses = STRATA_TRY(session.prove(all));
  participant.training.losses = proof::check_losses(reference, losses, participant.tolerance());
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
  return {.state = state_of(verdict), .what = fmt::format("{}: {}", when, verdict.reason)};
}

}  // namespace

Try<void> prove_training(Participant& participant, Session& session, const ProofReferences& judge) {
  const TrainReference& reference = *judge.training;
  for (const auto& set : reference.sets()) {
    if (interrupted()) return {};
    std::vector<SafeTensors> repeats;
    const bool repeat = set == "probe1" && !session.loaded().value("deterministic", true);
    for (int i = 0; repeat && i < kRepeats; ++i) {
      auto step = STRATA_TRY(probe_step(session, set));
      repeats.push_back(step.after.tensors);
    }
    if (repeat) participant.evidence.own_spread = proof::gradient_spread(reference, set, repeats);
    auto step = STRATA_TRY(probe_step(session, set));
    check_counts(participant, session, step.after, proof::probe_optimiser());
    participant.training.steps[set] =
        proof::check_gradients(reference, set, step.loss, step.after.tensors, participant.tolerance());
    if (!participant.training.steps[set].equal_work()) return {};  // what follows would only say so again
    if (judge.strict_training && set == "probe1")
      participant.evidence.precision =
          proof::gradient_precision(*judge.strict_training, reference, set, step.after.tensors);
  }
  STRATA_TRY(prove_losses(participant, session, reference));
  if (!participant.training.losses->equal_work()) return {};
  if (core::is_light(reference.bundle())) return {};  // the step after timing shows the optimiser (check_last_step)
  if (!judge.strict_training) STRATA_TRY(prove_rules(participant, session, reference));
  if (reference.has_dropout() && !interrupted()) return prove_dropout(participant, session, reference);
  return {};
}

Try<void> probe_restart(Participant& participant, Session& session, const TrainReference& reference) {
  auto step = STRATA_TRY(probe_step(session, "probe1"));
  const auto verdict =
      proof::check_gradients(reference, "probe1", step.loss, step.after.tensors, participant.tolerance());
  if (!verdict.equal_work()) return tl::unexpected(unequal(verdict, "after a restart"));
  return start_training(session, reference);
}

Try<void> start_training(Session& session, const TrainReference& reference) {
  STRATA_TRY(begin(session, "timed", true, reference.optimiser()));
  // Switching dropout may have made a compiling level compile again; else the first step makes the optimiser's buffers.
  STRATA_TRY(session.warm_up(reference.has_dropout() ? 3 : 1, std::chrono::nanoseconds(0)));
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
  const std::set<std::string> trained(parameters.begin(), parameters.end());
  std::vector<std::string> names;
  for (const auto& name : state.names())
    if (const auto colon = name.find(':'); colon != std::string::npos && trained.contains(name.substr(colon + 1)))
      names.push_back(name);
  return names;
}

std::vector<std::string> gradients_of(const std::vector<std::string>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back("momentum:" + parameter);
  return names;
}

// The check of the last step; nullopt: its loss is not finite.
Try<std::optional<proof::UpdateVerdict>> last_step(Participant& participant, Session& session,
                                                   const TrainReference& reference, int index,
                                                   const std::vector<std::string>& parameters, const Replay* replay) {
  auto before = STRATA_TRY(session.state());  // the first request after the blocks, so that work put off shows in it
  const double first_ns = session.state_ns();
  // Masks cannot be drawn twice alike, so the steps that are compared go without.
  if (reference.has_dropout()) STRATA_TRY(session.set_mode("train", false));
  check_counts(participant, session, before, reference.optimiser());
  const auto steps = session.steps();
  const double lr = core::learning_rate(reference.optimiser(), steps);
  // On the very input of the gradient below: one that is rounding alone would differ for another last bit.
  if (auto timed = session.measure({.indices = {index}, .retain = {0}, .fresh = false}); !timed)
    return tl::unexpected(timed.error());
  const auto timed_loss = STRATA_TRY(session.result(0)).output;
  if (!std::isfinite(loss_in(timed_loss, index))) return std::nullopt;
  auto after = STRATA_TRY(session.state(names_of(before.tensors, parameters)));
  if (replay != nullptr && !core::is_light(reference.bundle())) {  // which reads a part of it the second time
    auto reads = replay->reads();
    reads.push_back({first_ns, replay->told_since_ns()});
    participant.evidence.conduct.add_states(reads, session.state_ns());
  }
  const StateFile weights(session, weights_in(before.tensors));
  if (weights.error()) return tl::unexpected(*weights.error());
  std::vector<SafeTensors> gradients;
  std::optional<SafeTensors> loss;
  proof::UpdateVerdict update;
  // A second gradient, only where the first does not explain the step, shows whether the level repeats itself at all.
  for (int attempt = 0; attempt < 2; ++attempt) {
    STRATA_TRY(session.set_optimiser(proof::probe_optimiser()));
    STRATA_TRY(session.load_state(weights.path(), 0));
    loss = STRATA_TRY(session.prove({index}));
    // clipping is by the norm of all
    const bool clips = reference.optimiser().clip_norm > 0;
    auto state = STRATA_TRY(session.state(gradients_of(clips ? reference.parameters() : parameters)));
    gradients.push_back(state.tensors);
    const double spread =
        std::max(participant.evidence.own_spread, proof::gradient_spread(reference, "timed", gradients));
    update = proof::check_update(parameters, before.tensors, gradients.front(), after.tensors, reference.optimiser(),
                                 lr, spread, steps, reference.norm_error("timed"));
    if (update.verdict.equal_work()) break;
  }
  const double timed = loss_in(timed_loss, index), again = loss_in(*loss, index),
               spread = 4 * participant.evidence.own_spread;
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

Try<void> check_last_step(Participant& participant, Session& session, const TrainReference& reference,
                          stats::Random& random, const Replay& replay) {
  const auto parameters = judged_parameters(reference, random);
  const int index = static_cast<int>(random.below(static_cast<std::uint64_t>(std::max(1, reference.ring()))));
  auto step = last_step(participant, session, reference, index, parameters, &replay);
  if (step && !*step) {  // the training diverged after the last block that was looked at
    ++participant.training.begun_again;
    STRATA_TRY(start_training(session, reference));
    step = last_step(participant, session, reference, index, parameters, nullptr);
  }
  if (!step) return tl::unexpected(step.error());
  const auto update = *step ? **step : proof::UpdateVerdict{diverged(index)};
  participant.training.add_update(update);
  if (!update.verdict.equal_work()) return tl::unexpected(unequal(update.verdict, "a step after timing"));
  return {};
}

Try<void> repeat_timed_steps(Participant& participant, Session& session, const TrainReference& reference,
                             const Replay& replay) {
  STRATA_TRY(replay.judge(session, reference, participant.evidence.own_spread, participant.training));
  if (const auto& wrong = participant.training.replay_failure) return tl::unexpected(unequal(*wrong, "while timing"));
  return {};
}

Try<void> profile_phases(Participant& participant, Session& session, const TrainReference& reference) {
  if (core::is_light(reference.bundle())) {
    participant.phases_note = "looked at in the corners of the sweep";
    return {};
  }
  if (!session.offers("profile")) {
    participant.phases_note = "the level has no operation profile";
    return {};
  }
  STRATA_TRY(start_training(session, reference));
  // About half a second, whatever the step takes.
  const int count = std::clamp(static_cast<int>(0.5e9 / std::max(1.0, participant.iteration_ns)), 5, 50);
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) indices.push_back(i % std::max(1, reference.ring()));
  const auto profiled = STRATA_TRY(session.profile(indices));
  participant.phases_note = profiled.refusal;
  for (const auto& [phase, times] : profiled.phases)
    for (const auto ns : times) participant.phases[phase].push_back(static_cast<double>(ns) * 1e-6);
  participant.joined = profiled.joined;
  return {};
}

OutputVerdict check_loss(const SafeTensors& output, int index) {
  const TensorView* loss = output.find(fmt::format("{}/loss", index));
  if (!loss || loss->elements() != 1)
    return proof::not_equal(fmt::format("the loss of input {} was not given", index), "no loss was given", "loss");
  return std::isfinite(value_at(*loss, 0)) ? OutputVerdict{} : diverged(index);
}

}  // namespace strata::measure
