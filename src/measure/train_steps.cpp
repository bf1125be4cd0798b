// SPDX-License-Identifier: Apache-2.0
#include "measure/train_steps.hpp"

#include <fmt/format.h>

#include <cmath>

#include "proof/train_checks.hpp"

namespace strata::measure {

std::vector<std::pair<std::string, TensorView>> weights_in(const SafeTensors& state) {
  std::vector<std::pair<std::string, TensorView>> out;
  for (const auto& name : state.names())
    if (name.starts_with("weight:") || name.starts_with("count:")) out.emplace_back(name, *state.find(name));
  return out;
}

double loss_in(const SafeTensors& outputs, int index) {
  const TensorView* loss = outputs.find(fmt::format("{}/loss", index));
  return loss && loss->elements() == 1 ? value_at(*loss, 0) : std::nan("");
}

Try<void> begin(Session& session, const std::string& set, bool dropout, const core::Optimiser& optimiser) {
  STRATA_TRY(session.weights(set));
  STRATA_TRY(session.set_mode("train", dropout));
  return session.set_optimiser(optimiser);
}

Try<ProbeStep> probe_step(Session& session, const std::string& set) {
  STRATA_TRY(begin(session, set, false, proof::probe_optimiser()));
  auto loss = STRATA_TRY(session.prove({0}));
  auto after = STRATA_TRY(session.state());
  return ProbeStep{std::move(loss), std::move(after)};
}

void check_counts(Participant& participant, const Session& session, const TrainState& state,
                  const core::Optimiser& optimiser) {
  const double due = core::learning_rate(optimiser, session.steps());
  ++participant.training.counts_checked;
  if (!participant.training.counts_wrong.empty()) return;
  if (state.step != session.steps())
    participant.training.counts_wrong =
        fmt::format("the level counts {} optimiser steps where {} were asked for", state.step, session.steps());
  else if (std::abs(state.lr - due) > 1e-6 * std::abs(due) + 1e-12 * optimiser.lr)
    participant.training.counts_wrong = fmt::format(
        "after {} steps the level's learning rate is {:.8g} where {:.8g} is due", state.step, state.lr, due);
}

Try<TrainState> step_from(Session& session, const StateFile& base, const core::Optimiser& optimiser, std::int64_t done,
                          const std::vector<std::string>& names) {
  STRATA_TRY(session.set_optimiser(optimiser));
  STRATA_TRY(session.load_state(base.path(), done));
  STRATA_TRY(session.prove({0}));
  return session.state(names);
}

}  // namespace strata::measure
