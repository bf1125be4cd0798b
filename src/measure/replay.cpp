// SPDX-License-Identifier: Apache-2.0
#include "measure/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/train_steps.hpp"

namespace strata::measure {
namespace {

constexpr double kReplayNs = 0.33e9;
constexpr double kFewestSteps = 2, kMostSteps = 64;
constexpr int kReadOneIn = 4;
constexpr double kReadShare = 0.1;  // of the told times

Try<RepeatedSteps> steps_from(Session& session, const std::filesystem::path& state, std::int64_t done,
                              const std::vector<int>& indices) {
  STRATA_TRY(session.load_state(state, done));
  RepeatedSteps steps;
  for (const int index : indices) {
    const auto output = STRATA_TRY(session.prove({index}));
    steps.losses.push_back(loss_in(output, index));
  }
  steps.after = STRATA_TRY(session.state());
  return steps;
}

}  // namespace

Replay::Replay(double iteration_ns)
    : most_steps_(
          static_cast<std::size_t>(std::clamp(kReplayNs / std::max(1.0, iteration_ns), kFewestSteps, kMostSteps))) {}

void Replay::add_turn(const std::vector<int>& indices, double told_ns, std::size_t checked, double loss) {
  steps_ += static_cast<std::int64_t>(indices.size());
  told_ns_ += told_ns;
  told_since_ns_ += told_ns;
  if (!since_) return;
  since_->losses.push_back({since_->indices.size() + checked, loss});
  since_->indices.insert(since_->indices.end(), indices.begin(), indices.end());
}

bool Replay::wants_state(stats::Random& random) const {
  const bool affordable = !drawn_ || reads_ns_ <= kReadShare * told_ns_;
  return random.below(kReadOneIn) == 0 && affordable;
}

Try<void> Replay::read_state(Session& session, stats::Random& random) {
  auto state = STRATA_TRY(session.state());
  reads_ns_ += session.state_ns();
  reads_.push_back({session.state_ns(), std::exchange(told_since_ns_, 0)});
  state.tensors = {};  // its file stays
  if (since_ && !since_->indices.empty() && since_->indices.size() <= most_steps_) {
    comparable_ += static_cast<std::int64_t>(since_->indices.size());
    if (random.below(static_cast<std::uint64_t>(++eligible_)) == 0) {
      drawn_ = std::move(since_);
      drawn_->after = state;
    }
  }
  since_ = Interval{.before = std::move(state), .after = {}, .indices = {}, .losses = {}};
  return {};
}

Try<void> Replay::judge(Session& session, const proof::TrainReference& reference, double spread,
                        proof::TrainEvidence& evidence) const {
  evidence.timed_steps += steps_;
  evidence.comparable_steps += comparable_;
  if (!drawn_) return {};
  STRATA_TRY(session.set_mode("train", true));
  STRATA_TRY(session.set_optimiser(reference.optimiser()));
  const auto after = SafeTensors::open(*drawn_->after.file);
  if (!after) return tl::unexpected(worker::failed_by(after.error()));
  const auto repeat = [&](const std::filesystem::path& state) {
    return steps_from(session, state, drawn_->before.step, drawn_->indices);
  };
  const CompletedSteps completed{.before = &drawn_->before, .after = &*after, .losses = drawn_->losses};
  auto verdict = STRATA_TRY(judge_steps(session.new_file(), reference, completed, spread, repeat));
  if (!verdict) {
    ++evidence.rough_replays;
    return {};
  }
  evidence.replayed_steps += static_cast<std::int64_t>(drawn_->indices.size());
  if (verdict->equal_work() || evidence.replay_failure) return {};
  verdict->reason = fmt::format(
      "{} timed steps led elsewhere than the same steps from the same state, one at a time: {:.3g} times as far as "
      "rounding allows",
      drawn_->indices.size(), verdict->worst_ratio);
  verdict->reason_short = "timed steps are others";
  evidence.replay_failure = std::move(*verdict);
  return {};
}

}  // namespace strata::measure
