// SPDX-License-Identifier: Apache-2.0
#include "training/learner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/interrupt.hpp"
#include "stats/sample.hpp"

namespace strata::training {
namespace fs = std::filesystem;
using measure::Failure;
using measure::SplitScore;
namespace {

constexpr double kFirstTurnSteps = 4;
constexpr double kScoreSeconds = 2;  // of a request, so that Ctrl-C need not wait long

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double seconds(const std::vector<std::int64_t>& ns) {
  return std::accumulate(ns.begin(), ns.end(), 0.0,
                         [](double all, std::int64_t one) { return all + 1e-9 * static_cast<double>(one); });
}

}  // namespace

Try<void> Learner::start(const measure::SplitFiles& files, const Start& from, const std::vector<int>& cpus) {
  session_ = STRATA_TRY(measure::Session::open(participant_.job, cpus));
  STRATA_TRY(session_->load("timed"));
  // What compiles or allocates at the first step does it now: it is part of the start, not of the first epoch.
  STRATA_TRY(session_->warm_up(2, std::chrono::nanoseconds(0)));
  participant_.add_start(session_->start_up(), repeat_);
  STRATA_TRY(session_->data(files));
  STRATA_TRY(session_->set_optimiser(participant_.job.bundle->question.recipe->optimiser));
  STRATA_TRY(session_->load_state(from.state, from.step, from.seed));
  step_ns_ = participant_.iteration_ns;
  meter_.emplace(session_->process().pid());
  return {};
}

Try<void> Learner::turn(const fs::path& order, std::int64_t end, double seconds_wanted) {
  const double fitting = step_ns_ > 0 ? seconds_wanted * 1e9 / step_ns_ : kFirstTurnSteps;
  const auto count = std::clamp<std::int64_t>(std::llround(fitting), 1, end - next_);
  meter_->begin();
  auto answer = session_->train_steps("train", order, next_, count);
  meter_->end();
  if (!answer) return tl::unexpected(answer.error());
  std::vector<double> walls(answer->wall_ns.begin(), answer->wall_ns.end());
  step_ns_ = stats::median(walls);
  count_step(*answer);
  return {};
}

void Learner::count_step(const measure::StepsAnswer& answer) {
  for (const auto ns : answer.wall_ns) wall_ms_.push_back(1e-6 * static_cast<double>(ns));
  losses_.insert(losses_.end(), answer.losses.begin(), answer.losses.end());
  waited_s_ += seconds(answer.waited_ns);
  gathered_s_ += seconds(answer.gathered_ns);
  next_ += static_cast<std::int64_t>(answer.losses.size());
  diverged_ = !std::isfinite(answer.losses.back());
}

Try<SplitScore> Learner::score(const std::string& split, std::int64_t images) {
  STRATA_TRY(session_->set_mode("eval", true));
  SplitScore all;
  const auto batch = participant_.job.bundle->question.batch;
  std::int64_t next = 0, count = std::min(images, batch);
  while (next < images && !interrupted()) {
    const auto scored = STRATA_TRY(session_->evaluate(split, next, count));
    all.samples += scored.samples;
    all.correct += scored.correct;
    all.loss_sum += scored.loss_sum;
    all.wall_ns += scored.wall_ns;
    next += count;
    const double each = std::max(1.0, static_cast<double>(scored.wall_ns) / static_cast<double>(count));
    const auto fitting = static_cast<std::int64_t>(kScoreSeconds * 1e9 / each) / batch * batch;
    count = std::min(images - next, std::max(batch, fitting));
  }
  scored_s_ += 1e-9 * static_cast<double>(all.wall_ns);
  STRATA_TRY(session_->set_mode("train", true));
  return all;
}

EpochResult Learner::end_epoch(const SplitScore& train, const SplitScore& test, std::int64_t batch) {
  EpochResult result;
  result.diverged = diverged_;
  result.diverged_at = next_ - 1;
  const double stepping_s = 1e-3 * sum(wall_ms_), epoch_s = stepping_s + waited_s_;
  auto& values = result.values;
  std::vector<double> finite;
  std::copy_if(losses_.begin(), losses_.end(), std::back_inserter(finite),
               [](double loss) { return std::isfinite(loss); });
  if (!finite.empty()) values["train_loss"] = sum(finite) / static_cast<double>(finite.size());
  const auto add_score = [&](const char* accuracy, const char* loss, const SplitScore& score) {
    if (score.samples == 0) return;
    values[accuracy] = static_cast<double>(score.correct) / static_cast<double>(score.samples);
    if (std::isfinite(score.loss_sum)) values[loss] = score.loss_sum / static_cast<double>(score.samples);
  };
  add_score("train_accuracy", "train_score_loss", train);
  add_score("test_accuracy", "test_loss", test);
  if (!wall_ms_.empty()) values["step_time"] = stats::median(wall_ms_);
  values["step_seconds"] = stepping_s;
  values["input_wait_seconds"] = waited_s_;
  values["input_seconds"] = gathered_s_;
  values["score_seconds"] = scored_s_;
  values["epoch_seconds"] = epoch_s;
  if (epoch_s > 0)
    values["samples_per_s"] = static_cast<double>(batch * static_cast<std::int64_t>(wall_ms_.size())) / epoch_s;
  meter_->take(values, participant_.job.bundle->question.threads);
  losses_.clear();
  wall_ms_.clear();
  waited_s_ = gathered_s_ = scored_s_ = 0;
  next_ = 0;
  return result;
}

Try<void> Learner::write_state(const fs::path& path) {
  const auto state = STRATA_TRY(session_->state());
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& name : state.tensors.names()) tensors.emplace_back(name, *state.tensors.find(name));
  if (auto written = write_safetensors(path, tensors); !written)
    return tl::unexpected(Failure{.state = State::failed, .what = written.error().what, .hint = written.error().hint});
  return {};
}

}  // namespace strata::training
