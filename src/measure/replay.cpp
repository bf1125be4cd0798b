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
// What is drawn more than once: states of small networks, whose files take little. A training that has converged hardly
// moves its weights any more, so that rounding is a large part of what it does.
constexpr std::size_t kMostDrawn = 4;
constexpr std::uintmax_t kSmallBytes = 16 << 20;

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
  const bool affordable = drawn_.empty() || reads_ns_ <= kReadShare * told_ns_;
  return random.below(kReadOneIn) == 0 && affordable;
}

Try<void> Replay::read_state(Session& session, stats::Random& random) {
  auto state = STRATA_TRY(session.state());
  reads_ns_ += session.state_ns();
  reads_.push_back({session.state_ns(), std::exchange(told_since_ns_, 0)});
  state.tensors = {};  // its file stays
  if (since_ && !since_->indices.empty() && since_->indices.size() <= most_steps_) {
    comparable_ += static_cast<std::int64_t>(since_->indices.size());
    since_->after = state;
    draw(*std::move(since_), random);
  }
  since_ = Interval{.before = std::move(state), .after = {}, .indices = {}, .losses = {}};
  return {};
}

void Replay::draw(Interval interval, stats::Random& random) {
  std::error_code ignored;
  const bool small = std::filesystem::file_size(*interval.before.file, ignored) <= kSmallBytes;
  const std::size_t most = small ? kMostDrawn : 1;
  const auto place = static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(++eligible_)));
  if (drawn_.size() < most)
    drawn_.insert(drawn_.begin() + static_cast<std::ptrdiff_t>(std::min(place, drawn_.size())), std::move(interval));
  else if (place < most)
    drawn_[place] = std::move(interval);
}

Try<std::optional<proof::OutputVerdict>> Replay::verdict_of(Session& session, const proof::TrainReference& reference,
                                                            double spread, const Interval& drawn) const {
  const auto after = SafeTensors::open(*drawn.after.file);
  if (!after) return tl::unexpected(worker::failed_by(after.error()));
  const auto repeat = [&](const std::filesystem::path& state) {
    return steps_from(session, state, drawn.before.step, drawn.indices);
  };
  const CompletedSteps completed{.before = &drawn.before, .after = &*after, .losses = drawn.losses};
  return judge_steps(session.new_file(), reference, completed, spread, repeat);
}

Try<void> Replay::judge(Session& session, const proof::TrainReference& reference, double spread,
                        proof::TrainEvidence& evidence) const {
  evidence.timed_steps += steps_;
  evidence.comparable_steps += comparable_;
  if (drawn_.empty()) return {};
  STRATA_TRY(session.set_mode("train", true));
  STRATA_TRY(session.set_optimiser(reference.optimiser()));
  std::optional<proof::OutputVerdict> verdict;
  auto drawn = drawn_.begin();
  for (; drawn != drawn_.end(); ++drawn)
    if (verdict = STRATA_TRY(verdict_of(session, reference, spread, *drawn)); verdict) break;
  if (!verdict) {
    ++evidence.rough_replays;
    return {};
  }
  evidence.replayed_steps += static_cast<std::int64_t>(drawn->indices.size());
  if (verdict->equal_work() || evidence.replay_failure) return {};
  verdict->reason = fmt::format(
      "{} timed steps led elsewhere than the same steps from the same state, one at a time: {:.3g} times as far as "
      "rounding allows",
      drawn->indices.size(), verdict->worst_ratio);
  verdict->reason_short = "timed steps are others";
  evidence.replay_failure = std::move(*verdict);
  return {};
}

}  // namespace strata::measure
