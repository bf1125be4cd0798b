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

Try<void> begin(Session& session, const std::string& set, bool dropout, const core::Optimiser& optimiser) {
  if (auto done = session.weights(set); !done) return done;
  if (auto done = session.set_mode("train", dropout); !done) return done;
  return session.set_optimiser(optimiser);
}

Try<ProbeStep> probe_step(Session& session, const std::string& set) {
  if (auto done = begin(session, set, false, proof::probe_optimiser()); !done) return tl::unexpected(done.error());
  auto loss = session.prove({0});
  if (!loss) return tl::unexpected(loss.error());
  auto after = session.state();
  if (!after) return tl::unexpected(after.error());
  return ProbeStep{std::move(*loss), std::move(*after)};
}

void check_counts(Player& player, const Session& session, const TrainState& state, const core::Optimiser& optimiser) {
  const double due = core::learning_rate(optimiser, session.steps());
  ++player.training.counts_checked;
  if (!player.training.counts_wrong.empty()) return;
  if (state.step != session.steps())
    player.training.counts_wrong =
        fmt::format("the level counts {} optimiser steps where {} were asked for", state.step, session.steps());
  else if (std::abs(state.lr - due) > 1e-6 * std::abs(due) + 1e-12 * optimiser.lr)
    player.training.counts_wrong = fmt::format("after {} steps the level's learning rate is {:.8g} where {:.8g} is due",
                                               state.step, state.lr, due);
}

Try<TrainState> step_from(Session& session, const OwnState& base, const core::Optimiser& optimiser, std::int64_t done) {
  if (auto set = session.set_optimiser(optimiser); !set) return tl::unexpected(set.error());
  if (auto loaded = session.load_state(base.path(), done); !loaded) return tl::unexpected(loaded.error());
  if (auto proven = session.prove({0}); !proven) return tl::unexpected(proven.error());
  return session.state();
}

}  // namespace strata::measure
