// SPDX-License-Identifier: Apache-2.0
// What the interleaver (interleaver.hpp) needs of the three that it works with: who takes turns, when it is enough, and
// who is told. None of them has to be a process.
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"
#include "stats/schedule.hpp"

namespace strata::run {

// Seconds of a clock that only goes forward; the default is the system's.
using Clock = std::function<double()>;
double steady_seconds();

// A place in the order. What else the seed decides (inputs, checks) is drawn from `random`, in the order of the turns.
struct Turn {
  int restart = 0, round = 0, position = 0;
  stats::Random& random;
};

// What came of a turn. `nothing`: no block, but the time was used. `failure`: its time counts for nobody, as that of a
// request that hung.
enum class TurnOutcome { block, nothing, failure };

// One who takes turns with others: up from `start` to `stop` in each restart, and paused while it is not its turn. A
// turn's block is whatever it does then: timed iterations, or steps of a training. Errors end everything; a failure of
// its own is `active` being false from then on.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string name() const = 0;
  virtual bool active() const = 0;  // false: it takes no further turns, in no restart

  virtual Result<void> start(int restart) = 0;  // afterwards it is warm
  // Before start(), where several may start side by side: `launch` in the caller's thread, then `load` in a thread of
  // its own while others load. What fails there is left to start(), which runs alone.
  virtual void launch(int /*restart*/) {}
  virtual void load() {}
  virtual Result<TurnOutcome> measure(const Turn& turn) = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void stop() = 0;  // also of one that failed, as soon as it did, or that loaded and does not start
  // After its last turn of a restart, the others still paused: what remains to be looked at.
  virtual Result<void> finish(int /*restart*/, stats::Random& /*random*/) { return {}; }
};

// One that holds nothing between its turns, or rests by itself: nothing is to be started or paused.
class OnlyTurns : public Executor {
 public:
  OnlyTurns(std::string name, std::function<bool()> active, std::function<void(const Turn&)> take)
      : name_(std::move(name)), active_(std::move(active)), take_(std::move(take)) {}
  std::string name() const override { return name_; }
  bool active() const override { return active_(); }
  Result<void> start(int /*restart*/) override { return {}; }
  Result<TurnOutcome> measure(const Turn& turn) override {
    take_(turn);
    return TurnOutcome::block;
  }
  void pause() override {}
  void resume() override {}
  void stop() override {}

 private:
  std::string name_;
  std::function<bool()> active_;
  std::function<void(const Turn&)> take_;
};

struct FinishedTurn {
  int restart = 0, round = 0, position = 0;
  double seconds = 0;
  TurnOutcome outcome = TurnOutcome::block;
};

// When it is enough. One is asked after each round and begins with each restart, another after each restart.
class StoppingCriterion {
 public:
  virtual ~StoppingCriterion() = default;
  virtual void begin() = 0;
  virtual void add(const FinishedTurn& turn) = 0;
  virtual bool finished() = 0;
};

// Who is told of what happens, as it happens. An error ends everything.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void starting(const Executor& /*executor*/, int /*restart*/) {}
  virtual void rounds_begin(int /*restart*/) {}  // of those who are up together
  virtual void round_begins(int /*restart*/, int /*round*/) {}
  virtual Result<void> block(Executor& /*executor*/, const FinishedTurn& /*turn*/) { return {}; }
  virtual Result<void> dropped(Executor& /*executor*/) { return {}; }  // by what it did last
  virtual Result<void> round_ended(int /*restart*/, int /*round*/) { return {}; }
  virtual Result<void> rounds_ended(int /*restart*/, int /*rounds*/) { return {}; }
  virtual void finishing(const Executor& /*executor*/, int /*restart*/) {}
  virtual Result<void> restart_ended(int /*restart*/) { return {}; }
};

}  // namespace strata::run
