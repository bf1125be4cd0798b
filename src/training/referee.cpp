// SPDX-License-Identifier: Apache-2.0
#include "training/referee.hpp"

#include <fmt/format.h>

#include <cmath>

#include "measure/train_steps.hpp"

namespace strata::training {
namespace fs = std::filesystem;
using measure::Failure;
using measure::TrainState;
using proof::OutputVerdict;
namespace {

Failure broken(const Error& error) {
  return {.state = State::failed, .what = error.what, .hint = error.hint};
}

}  // namespace

Try<void> Referee::start(const measure::SplitFiles& files, const std::vector<int>& cpus) {
  session_ = STRATA_TRY(measure::Session::open(job_, cpus));
  STRATA_TRY(session_->load("timed"));
  STRATA_TRY(session_->data(files));
  return session_->set_optimiser(job_.bundle->question.recipe->optimiser);
}

Try<Referee::Step> Referee::step_from(const fs::path& state, std::int64_t done, const fs::path& order,
                                      std::int64_t step) {
  STRATA_TRY(session_->load_state(state, done));
  const auto answer = STRATA_TRY(session_->train_steps("train", order, step, 1));
  auto after = STRATA_TRY(session_->state());
  return Step{std::move(after), answer.losses.front()};
}

Try<std::optional<OutputVerdict>> Referee::check_step(Learner& learner, const fs::path& order, std::int64_t step) {
  auto& session = learner.session();
  const bool beside = reference_.has_dropout();
  for (auto* operand : {&session, session_.get()})
    if (beside) STRATA_TRY(operand->set_mode("train", false));
  auto before = STRATA_TRY(session.state());
  const auto answer = STRATA_TRY(session.train_steps("train", order, step, 1));
  auto after = STRATA_TRY(session.state());
  if (beside) {
    STRATA_TRY(session.set_mode("train", true));
    STRATA_TRY(session.load_state(*before.file, before.step));
  }
  if (!beside) learner.count_step(answer);
  if (!std::isfinite(answer.losses.front())) return std::nullopt;
  const auto eager = STRATA_TRY(step_from(*before.file, before.step, order, step));
  const auto path = session_->new_file();
  if (auto written = measure::write_moved(path, before.tensors); !written)
    return tl::unexpected(broken(written.error()));
  const auto moved_start = SafeTensors::open(path);
  const auto moved = step_from(path, before.step, order, step);
  std::error_code ignored;
  fs::remove(path, ignored);
  if (!moved_start) return tl::unexpected(broken(moved_start.error()));
  if (!moved) return tl::unexpected(moved.error());
  return proof::check_late_step(reference_, {&before.tensors, &after.tensors, {answer.losses.front()}},
                                {&before.tensors, &eager.after.tensors, {eager.loss}},
                                {&*moved_start, &moved->after.tensors, {moved->loss}},
                                learner.participant().evidence.own_spread, before.step);
}

Try<OutputVerdict> Referee::check_score(Learner& learner, const std::string& split,
                                        const measure::SplitScore& reported) {
  const auto state = STRATA_TRY(learner.session().state());
  STRATA_TRY(session_->load_state(*state.file, state.step));
  STRATA_TRY(session_->set_mode("eval", true));
  const auto own = STRATA_TRY(session_->evaluate(split, 0, reported.samples));
  STRATA_TRY(session_->set_mode("train", true));
  const auto mean = [](const measure::SplitScore& score) {
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
