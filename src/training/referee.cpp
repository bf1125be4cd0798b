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

Try<Referee::Steps> Referee::steps_from(const fs::path& state, std::int64_t done, const fs::path& order,
                                        std::int64_t first, std::int64_t count) {
  STRATA_TRY(session_->load_state(state, done));
  auto answer = STRATA_TRY(session_->train_steps("train", order, first, count));
  auto after = STRATA_TRY(session_->state());
  return Steps{std::move(after), std::move(answer.losses)};
}

Try<Judgement> Referee::check_window(const DoneWindow& done, const fs::path& order, double spread) {
  if (!std::isfinite(done.losses.back())) return Judgement{};
  const auto& before = *done.before;
  const auto count = static_cast<std::int64_t>(done.losses.size());
  const auto eager = STRATA_TRY(steps_from(*before.file, before.step, order, done.first, count));
  const auto path = session_->new_file();
  if (auto written = measure::write_moved(path, before.tensors); !written)
    return tl::unexpected(broken(written.error()));
  const auto moved_start = SafeTensors::open(path);
  const auto moved = steps_from(path, before.step, order, done.first, count);
  std::error_code ignored;
  fs::remove(path, ignored);
  if (!moved_start) return tl::unexpected(broken(moved_start.error()));
  if (!moved) return tl::unexpected(moved.error());
  const proof::LateStep of_eager{&before.tensors, &eager.after.tensors, eager.losses},
      of_moved{&*moved_start, &moved->after.tensors, moved->losses};
  if (count > 1 && !(proof::moved_share(of_eager, of_moved) <= proof::rough_share)) return Judgement{.rough = true};
  return Judgement{.verdict = proof::check_late_step(reference_, {&before.tensors, &done.after->tensors, done.losses},
                                                     of_eager, of_moved, spread, before.step)};
}

Try<Judgement> Referee::check_beside(Learner& learner, const fs::path& order, std::int64_t steps) {
  auto& session = learner.session();
  for (auto* operand : {&session, session_.get()}) STRATA_TRY(operand->set_mode("train", false));
  const auto before = std::make_shared<const measure::TrainState>(STRATA_TRY(session.state()));
  const auto answer = STRATA_TRY(session.train_steps("train", order, learner.next_step(), steps));
  const auto after = std::make_shared<const measure::TrainState>(STRATA_TRY(session.state()));
  STRATA_TRY(session.set_mode("train", true));
  STRATA_TRY(session.load_state(*before->file, before->step));
  return check_window({.before = before, .after = after, .losses = answer.losses, .first = learner.next_step()}, order,
                      learner.participant().evidence.own_spread);
}

Try<OutputVerdict> Referee::check_score(const fs::path& state, std::int64_t step, const std::string& split,
                                        const measure::SplitScore& reported) {
  STRATA_TRY(session_->load_state(state, step));
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
