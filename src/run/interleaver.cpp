// SPDX-License-Identifier: Apache-2.0
#include "run/interleaver.hpp"

#include <algorithm>
#include <chrono>
#include <semaphore>
#include <thread>

#include "common/interrupt.hpp"

namespace strata::run {
namespace {

bool any_active(const std::vector<std::vector<Executor*>>& groups) {
  return std::any_of(groups.begin(), groups.end(), [](const auto& group) {
    return std::any_of(group.begin(), group.end(), [](const Executor* executor) { return executor->active(); });
  });
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<InterleaverResult> Interleaver::run(std::vector<std::vector<Executor*>> groups) {
  InterleaverResult result{order_.first, false};
  stats::Random random(order_.seed);
  if (restarts_) restarts_->begin();
  for (int number = order_.first; number < order_.restarts && !interrupted() && any_active(groups); ++number) {
    result.restarts = number + 1;
    random.shuffle(groups);
    for (const auto& group : groups) STRATA_TRY(restart(group, number));
    STRATA_TRY(sink_.restart_ended(number));
    if (restarts_ && restarts_->finished()) {
      result.enough = true;
      break;
    }
  }
  return result;
}

Result<void> Interleaver::restart(const std::vector<Executor*>& group, int number) {
  stats::Random random(order_.seed + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(number + 1));
  up_.clear();
  auto done = start(group, number, random);
  if (done) done = run_rounds(number, random);
  if (done) done = finish(number, random);
  for (Executor* executor : up_) executor->stop();
  up_.clear();
  return done;
}

Result<void> Interleaver::start(const std::vector<Executor*>& group, int number, stats::Random& random) {
  auto order = group;
  random.shuffle(order);
  const bool beside = number > 0 && order_.side_by_side > 1;
  if (beside) load_side_by_side(order, number);
  for (Executor* executor : order) {
    if (!executor->active() || interrupted()) {
      if (beside) executor->stop();  // it may have loaded before the one left with which alone it is active
      continue;
    }
    sink_.starting(*executor, number);
    auto started = executor->start(number);
    if (!started) return started;
    if (executor->active()) {
      executor->pause();
      up_.push_back(executor);
    } else if (auto handled = sink_.dropped(*executor); !handled) {
      return handled;
    }
    stop_inactive();
  }
  return {};
}

// Nothing is timed meanwhile. Processes begin in this thread, since it outlives them (worker/worker.hpp).
void Interleaver::load_side_by_side(const std::vector<Executor*>& group, int number) {
  std::counting_semaphore<> places(order_.side_by_side);
  std::vector<std::jthread> loading;
  for (Executor* executor : group) {
    places.acquire();
    if (interrupted()) break;
    if (executor->active()) {
      sink_.starting(*executor, number);
      executor->launch(number);
    }
    loading.emplace_back([executor, &places] {
      if (executor->active()) executor->load();
      places.release();
    });
  }
}

// Who failed, and who is active only together with it.
void Interleaver::stop_inactive() {
  std::erase_if(up_, [](Executor* executor) {
    if (executor->active()) return false;
    executor->stop();
    return true;
  });
}

Result<void> Interleaver::take_turn(Executor& executor, const Turn& turn) {
  executor.resume();
  const double begun = clock_();
  const auto outcome = STRATA_TRY(executor.measure(turn));
  const FinishedTurn finished{.restart = turn.restart,
                              .round = turn.round,
                              .position = turn.position,
                              .seconds = clock_() - begun,
                              .outcome = outcome};
  if (executor.active()) executor.pause();
  if (outcome == TurnOutcome::block) STRATA_TRY(sink_.block(executor, finished));
  rounds_.add(finished);
  if (restarts_) restarts_->add(finished);
  if (executor.active()) return {};
  auto handled = sink_.dropped(executor);
  stop_inactive();
  return handled;
}

Result<void> Interleaver::run_rounds(int number, stats::Random& random) {
  rounds_.begin();
  sink_.rounds_begin(number);
  stats::Schedule schedule(static_cast<int>(up_.size()), order_.seed ^ random.next());
  std::size_t scheduled = up_.size();
  int round = 0;
  for (; !up_.empty() && !interrupted() && !rounds_.finished(); ++round) {
    if (up_.size() != scheduled) {  // somebody left: a balanced order for those who stay
      scheduled = up_.size();
      schedule = stats::Schedule(static_cast<int>(scheduled), random.next());
    }
    sink_.round_begins(number, round);
    int position = 0;
    for (const int index : schedule.next()) {
      if (up_.size() != scheduled || interrupted()) break;  // the rest of this round has lost its pairs
      const Turn turn{.restart = number, .round = round, .position = position++, .random = random};
      STRATA_TRY(take_turn(*up_[static_cast<std::size_t>(index)], turn));
    }
    STRATA_TRY(sink_.round_ended(number, round));
  }
  return sink_.rounds_ended(number, round);
}

Result<void> Interleaver::finish(int number, stats::Random& random) {
  for (Executor* executor : up_) {
    if (interrupted()) break;
    if (!executor->active()) continue;  // it is active only together with one that has failed
    sink_.finishing(*executor, number);
    executor->resume();
    STRATA_TRY(executor->finish(number, random));
    if (executor->active())
      executor->pause();
    else
      STRATA_TRY(sink_.dropped(*executor));
  }
  stop_inactive();
  return {};
}

}  // namespace strata::run
