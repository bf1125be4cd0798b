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
#include "proof/turn_clock.hpp"
#include "training/turn_meter.hpp"

namespace strata::training {

using session::Try;

// What an epoch gave, by name (docs/store.md, "Series of a training"), and whether the loss stayed finite.
struct EpochResult {
  std::map<std::string, double> values;
  bool diverged = false;
  std::int64_t diverged_at = 0;  // step of the epoch, where it did
};

// As the store has it, an entry each; `epoch` from 0.
std::vector<store::Series> series_of(const EpochResult& result, int repeat, int epoch);

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
  Try<void> start(const session::SplitFiles& files, const Start& from, const std::vector<int>& cpus);

  // The next `count` steps of the order.
  Try<session::StepsAnswer> request(const std::filesystem::path& order, std::int64_t count);
  std::int64_t fitting(double seconds) const;       // steps, about
  double step_ns() const { return step_ns_; }       // the median of the last request, as it tells them; 0: not known
  std::int64_t next_step() const { return next_; }  // of the epoch
  bool diverged() const { return diverged_; }
  std::optional<double> last_loss() const { return losses_.empty() ? std::nullopt : std::optional(losses_.back()); }
  void rest() { session_->process().pause(); }

  // Accuracy and mean loss of the first images of a split, in eval mode; back in train mode afterwards.
  Try<session::SplitScore> score(const std::string& split, std::int64_t images);
  // What the epoch gave, with `train` and `test` scores, and begins the next.
  EpochResult end_epoch(const session::SplitScore& train, const session::SplitScore& test, std::int64_t batch);
  // What speaks against the times that it told, by the driver's clock; empty: nothing. After the last epoch: where its
  // turns were too few to say, or are in doubt, it makes more on an order of `steps`, which count for nothing.
  Try<std::string> doubt_of_clock(const std::filesystem::path& order, std::int64_t steps);

  // Weights, momentum and statistics, as `load_state` takes them.
  Try<void> write_state(const std::filesystem::path& path);
  session::Session& session() { return *session_; }
  measure::Participant& participant() const { return participant_; }
  int repeat() const { return repeat_; }
  void end() { session_->end(); }

 private:
  void count(const session::StepsAnswer& answer);
  double waited_s() const;  // of this epoch
  measure::Participant& participant_;
  int repeat_;
  std::unique_ptr<session::Session> session_;
  std::optional<TurnMeter> meter_;  // of the running session
  std::int64_t next_ = 0;
  bool diverged_ = false;
  double step_ns_ = 0;                     // median of the last turn
  proof::TurnClock clock_;                 // of its turns
  proof::ClockEvidence evaluation_clock_;  // of the requests in which it was scored
  // Of this epoch.
  std::vector<double> losses_, wall_ms_;
  double gathered_s_ = 0, scored_s_ = 0;
  // Waiting for batches: of the first steps of requests, which nobody could gather ahead, and of all others.
  double waited_first_s_ = 0, waited_s_ = 0;
  std::int64_t firsts_ = 0;
};

}  // namespace strata::training
