// SPDX-License-Identifier: Apache-2.0
#include "training/referee.hpp"

#include <fmt/format.h>

#include <cmath>

#include "measure/train_steps.hpp"

namespace strata::training {
namespace fs = std::filesystem;
using proof::OutputVerdict;
using session::TrainState;

Try<void> Referee::start(const session::SplitFiles& files, const std::vector<int>& cpus) {
  session_ = STRATA_TRY(session::Session::open(job_, cpus));
  STRATA_TRY(session_->load("timed"));
  STRATA_TRY(session_->data(files));
  return session_->set_optimiser(job_.bundle->question.recipe->optimiser);
}

Try<measure::RepeatedSteps> Referee::steps_from(const fs::path& state, std::int64_t done, const fs::path& order,
                                                std::int64_t first, std::int64_t count) {
  STRATA_TRY(session_->load_state(state, done));
  auto answer = STRATA_TRY(session_->train_steps("train", order, first, count));
  auto after = STRATA_TRY(session_->state());
  return measure::RepeatedSteps{std::move(after), std::move(answer.losses)};
}

Try<Judgement> Referee::check_window(const DoneWindow& done, const fs::path& order, double spread) {
  if (!std::isfinite(done.losses.back())) return Judgement{};
  const auto count = static_cast<std::int64_t>(done.losses.size());
  const auto repeat = [&](const fs::path& state) {
    return steps_from(state, done.before->step, order, done.first, count);
  };
  measure::CompletedSteps completed{.before = done.before.get(), .after = &done.after->tensors, .losses = {}};
  for (std::size_t i = 0; i < done.losses.size(); ++i) completed.losses.push_back({i, done.losses[i]});
  auto verdict = STRATA_TRY(measure::judge_steps(session_->new_file(), reference_, completed, spread, repeat));
  const bool rough = !verdict;
  return Judgement{.verdict = std::move(verdict), .rough = rough};
}

Try<Judgement> Referee::check_beside(Learner& learner, const fs::path& order, std::int64_t steps) {
  auto& session = learner.session();
  for (auto* operand : {&session, session_.get()}) STRATA_TRY(operand->set_mode("train", false));
  const auto before = std::make_shared<const session::TrainState>(STRATA_TRY(session.state()));
  const auto answer = STRATA_TRY(session.train_steps("train", order, learner.next_step(), steps));
  const auto after = std::make_shared<const session::TrainState>(STRATA_TRY(session.state()));
  STRATA_TRY(session.set_mode("train", true));
  STRATA_TRY(session.load_state(*before->file, before->step));
  return check_window({.before = before, .after = after, .losses = answer.losses, .first = learner.next_step()}, order,
                      learner.participant().evidence.own_spread);
}

Try<OutputVerdict> Referee::check_score(const fs::path& state, std::int64_t step, const std::string& split,
                                        const session::SplitScore& reported) {
  STRATA_TRY(session_->load_state(state, step));
  STRATA_TRY(session_->set_mode("eval", true));
  const auto own = STRATA_TRY(session_->evaluate(split, 0, reported.samples));
  STRATA_TRY(session_->set_mode("train", true));
  const auto mean = [](const session::SplitScore& score) {
    return proof::SplitScore{score.samples, score.correct, score.loss_sum / static_cast<double>(score.samples)};
  };
  return proof::check_score(mean(reported), mean(own));
}

Try<std::vector<core::LayerSize>> Referee::layer_sizes(Learner& learner, const fs::path& order) {
  if (!session_->offers("norms")) return {};
  const auto state = STRATA_TRY(learner.session().state());
  STRATA_TRY(session_->load_state(*state.file, state.step));
  return session_->norms("train", order, learner.next_step());
}

}  // namespace strata::training
