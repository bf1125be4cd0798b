// SPDX-License-Identifier: Apache-2.0
#include "training/judged_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/interrupt.hpp"

namespace strata::training {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostBytes = 256e6;  // of a state that is read more often than it is judged
constexpr double kNewest = 0.2;       // of what windows cost, in its mean

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

WindowCounts& WindowCounts::operator+=(const WindowCounts& other) {
  steps += other.steps;
  in_windows += other.in_windows;
  rough += other.rough;
  return *this;
}

Try<std::shared_ptr<const session::TrainState>> JudgedTurns::read_state(Learner& learner) {
  auto& session = learner.session();
  if (stored_ && stored_->step == session.steps()) return stored_;
  auto state = STRATA_TRY(session.state());
  if (state.step != session.steps())
    return tl::unexpected(measure::Failure{
        .state = State::unequal,
        .what = fmt::format("its optimiser has made {} steps, {} were asked for", state.step, session.steps())});
  std::error_code ec;
  small_ = static_cast<double>(std::filesystem::file_size(*state.file, ec)) <= kMostBytes;
  return std::make_shared<const session::TrainState>(std::move(state));
}

Try<void> JudgedTurns::window(Learner& learner, const Turn& turn, const NextRequest& request) {
  const auto begin = Clock::now();
  stored_ = STRATA_TRY(read_state(learner));
  const auto before = stored_;
  const auto first = learner.next_step();
  const auto answer = STRATA_TRY(learner.request(turn.order, request.steps));
  const double told_ns = learner.session().last_timed().reported_ns;
  if (learner.diverged()) return {};
  counts_.in_windows += request.steps;
  stored_ = STRATA_TRY(read_state(learner));
  if (request.judged) done_.push_back({.before = before, .after = stored_, .losses = answer.losses, .first = first});
  cost_ns_ += kNewest * (std::max(0.0, 1e9 * seconds_since(begin) - told_ns) - cost_ns_);
  return {};
}

Try<void> JudgedTurns::request(Learner& learner, Referee* referee, const Turn& turn, double left_s,
                               std::int64_t longest) {
  const bool often = referee != nullptr && !referee->beside() && small_ && learner.step_ns() > 0;
  const auto at = learner.next_step();
  const auto next = plan_.next(turn.epoch, at, turn.end, longest, learner.fitting(left_s),
                               often ? cost_ns_ / learner.step_ns() : std::numeric_limits<double>::infinity());
  counts_.steps += next.steps;
  if (referee != nullptr && next.window && !referee->beside()) return window(learner, turn, next);
  if (referee != nullptr && next.judged) {
    auto judgement = STRATA_TRY(referee->check_beside(learner, turn.order, next.steps));
    beside_.push_back({std::move(judgement), {turn.epoch, at, next.steps}});
  }
  STRATA_TRY(learner.request(turn.order, next.steps));
  return {};
}

Try<std::vector<JudgedSteps>> JudgedTurns::take(Learner& learner, Referee* referee, const Turn& turn,
                                                std::int64_t& longest) {
  const auto begin = Clock::now();
  for (double spent = 0; spent < turn.seconds && learner.next_step() < turn.end; spent = seconds_since(begin)) {
    if (interrupted() || learner.diverged()) break;
    STRATA_TRY(request(learner, referee, turn, turn.seconds - spent, longest));
  }
  std::vector<std::pair<Judgement, Window>> judged = std::move(beside_);
  beside_.clear();
  for (const auto& done : std::exchange(done_, {}))
    judged.push_back({STRATA_TRY(referee->check_window(done, turn.order, learner.participant().evidence.own_spread)),
                      {turn.epoch, done.first, static_cast<std::int64_t>(done.losses.size())}});
  std::vector<JudgedSteps> out;
  for (auto& [judgement, steps] : judged) {
    if (judgement.verdict)
      out.push_back({std::move(*judgement.verdict), steps.first, steps.first + steps.steps - 1});
    else if (judgement.rough)
      longest = std::min(longest, std::max<std::int64_t>(1, steps.steps / 2));
    if (judgement.rough && !plan_.retry(turn.epoch, learner.next_step())) ++counts_.rough;
  }
  return out;
}

}  // namespace strata::training
