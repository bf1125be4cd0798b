// SPDX-License-Identifier: Apache-2.0
// One level in one repeat of a training: a worker that learns a chunk of steps a turn, is scored after each epoch, and
// whose state can be kept and taken up again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/participant.hpp"
#include "training/turn_meter.hpp"

namespace strata::training {

using measure::Try;

// What an epoch gave, by name (docs/store.md, "Series of a training"), and whether the loss stayed finite.
struct EpochResult {
  std::map<std::string, double> values;
  bool diverged = false;
  std::int64_t diverged_at = 0;  // step of the epoch, where it did
};

// What a training begins with: weights, or a state that has `step` steps behind it.
struct Start {
  std::filesystem::path state;
  std::int64_t step = 0;
  std::optional<std::int64_t> seed;  // of dropout's masks; nullopt: they go on as the state says
};

class Learner {
 public:
  Learner(measure::Participant& participant, int repeat) : participant_(participant), repeat_(repeat) {}

  // A fresh worker with the data and the case's optimiser, warm: it took two steps on the ring before.
  Try<void> start(const measure::SplitFiles& files, const Start& from, const std::vector<int>& cpus);

  // About `seconds` of steps, at most up to step `end` of the order.
  Try<void> turn(const std::filesystem::path& order, std::int64_t end, double seconds);
  // A step that was done outside of turn().
  void count_step(const measure::StepsAnswer& answer);
  std::int64_t next_step() const { return next_; }  // of the epoch
  bool diverged() const { return diverged_; }
  std::optional<double> last_loss() const { return losses_.empty() ? std::nullopt : std::optional(losses_.back()); }
  void rest() { session_->process().pause(); }

  // Accuracy and mean loss of the first images of a split, in eval mode; back in train mode afterwards.
  Try<measure::SplitScore> score(const std::string& split, std::int64_t images);
  // What the epoch gave, with `train` and `test` scores, and begins the next.
  EpochResult end_epoch(const measure::SplitScore& train, const measure::SplitScore& test, std::int64_t batch);

  // Weights, momentum and statistics, as `load_state` takes them.
  Try<void> write_state(const std::filesystem::path& path);
  measure::Session& session() { return *session_; }
  measure::Participant& participant() const { return participant_; }
  int repeat() const { return repeat_; }
  void end() { session_->end(); }

 private:
  measure::Participant& participant_;
  int repeat_;
  std::unique_ptr<measure::Session> session_;
  std::optional<TurnMeter> meter_;  // of the running session
  std::int64_t next_ = 0;
  bool diverged_ = false;
  double step_ns_ = 0;  // median of the last turn
  // Of this epoch.
  std::vector<double> losses_, wall_ms_;
  double waited_s_ = 0, gathered_s_ = 0, scored_s_ = 0;
};

}  // namespace strata::training
