// SPDX-License-Identifier: Apache-2.0
#include "measure/train_steps.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <deque>

#include "proof/train_checks.hpp"
#include "stats/schedule.hpp"

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

Result<void> write_moved(const std::filesystem::path& path, const SafeTensors& state) {
  stats::Random random(1);
  std::deque<std::vector<float>> held;
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& name : state.names()) {
    const TensorView& tensor = *state.find(name);
    if (!name.starts_with("weight:") || tensor.dtype != "F32") {
      tensors.emplace_back(name, tensor);
      continue;
    }
    auto& values = held.emplace_back(static_cast<std::size_t>(tensor.elements()));
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    for (float& value : values) value *= random.below(2) == 0 ? 1 + 0x1p-23F : 1 - 0x1p-23F;
    tensors.emplace_back(name, TensorView{.dtype = "F32",
                                          .shape = tensor.shape,
                                          .data = reinterpret_cast<const std::byte*>(values.data()),
                                          .bytes = tensor.bytes});
  }
  return write_safetensors(path, tensors);
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

Try<TrainState> step_from(Session& session, const OwnState& base, const core::Optimiser& optimiser, std::int64_t done,
                          const std::vector<std::string>& names) {
  STRATA_TRY(session.set_optimiser(optimiser));
  STRATA_TRY(session.load_state(base.path(), done));
  STRATA_TRY(session.prove({0}));
  return session.state(names);
}

}  // namespace strata::measure
