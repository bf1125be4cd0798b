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
using session::SplitScore;
namespace {

constexpr double kFirstTurnSteps = 4;
constexpr std::int64_t kTimesShorter = 3;
constexpr double kLookNs = 30e6, kSlowestLookNs = 1e9;  // of steps in a turn that is made for the clock's sake
constexpr int kMostLooks = 12;
constexpr double kBesidesBatch = 5e3;  // bytes that take as long to hand over as to count a batch's answers
constexpr double kScoreSeconds = 2;    // of a request, so that Ctrl-C need not wait long

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double seconds(const std::vector<std::int64_t>& ns) {
  return std::accumulate(ns.begin(), ns.end(), 0.0,
                         [](double all, std::int64_t one) { return all + 1e-9 * static_cast<double>(one); });
}

std::string unit_of(const std::string& name) {
  if (name == "step_time") return "ms";
  if (name == "samples_per_s") return "1/s";
  if (name == "energy_joules") return "J";
  if (name.ends_with("_bytes")) return "B";
  return name.ends_with("seconds") ? "s" : "1";
}

}  // namespace

std::vector<store::Series> series_of(const EpochResult& result, int repeat, int epoch) {
  std::vector<store::Series> all;
  const auto add = [&](const std::string& name, double value) {
    all.push_back({.name = name,
                   .unit = unit_of(name),
                   .axis = "epoch",
                   .positions = {epoch + 1},
                   .values = {value},
                   .repeat = repeat});
  };
  for (const auto& [name, value] : result.values) add(name, value);
  if (result.diverged) add("diverged_at", static_cast<double>(result.diverged_at + 1));
  return all;
}

Try<void> Learner::start(const session::SplitFiles& files, const Start& from, const std::vector<int>& cpus) {
  session_ = STRATA_TRY(session::Session::open(participant_.job, cpus));
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

std::int64_t Learner::fitting(double seconds) const {
  return std::max<std::int64_t>(1, std::llround(step_ns_ > 0 ? seconds * 1e9 / step_ns_ : kFirstTurnSteps));
}

Try<session::StepsAnswer> Learner::request(const fs::path& order, std::int64_t count_of_steps) {
  meter_->begin();
  auto answer = session_->train_steps("train", order, next_, count_of_steps);
  meter_->end();
  if (!answer) return answer;
  clock_.add(session_->last_timed());
  step_ns_ = stats::median(std::vector<double>(answer->wall_ns.begin(), answer->wall_ns.end()));
  count(*answer);
  return answer;
}

void Learner::count(const session::StepsAnswer& answer) {
  for (const auto ns : answer.wall_ns) wall_ms_.push_back(1e-6 * static_cast<double>(ns));
  losses_.insert(losses_.end(), answer.losses.begin(), answer.losses.end());
  const double first_s = 1e-9 * static_cast<double>(answer.waited_ns.front());
  waited_first_s_ += first_s;
  waited_s_ += seconds(answer.waited_ns) - first_s;
  ++firsts_;
  gathered_s_ += seconds(answer.gathered_ns);
  next_ += static_cast<std::int64_t>(answer.losses.size());
  diverged_ = !std::isfinite(answer.losses.back());
}

// How often a request ends is strata's doing: for its first step stands what the others wait on average.
double Learner::waited_s() const {
  const auto others = static_cast<std::int64_t>(wall_ms_.size()) - firsts_;
  if (others <= 0) return waited_first_s_;
  return waited_s_ * static_cast<double>(wall_ms_.size()) / static_cast<double>(others);
}

Try<std::string> Learner::doubt_of_clock(const fs::path& order, std::int64_t steps) {
  const auto most =
      std::min<std::int64_t>(steps, std::max<std::int64_t>(kTimesShorter, std::llround(kLookNs / step_ns_)));
  const bool can_look = most >= kTimesShorter && static_cast<double>(most) * step_ns_ < kSlowestLookNs && !diverged_;
  for (int look = 0; can_look && look < kMostLooks && !interrupted(); ++look) {
    if (clock_.enough() && clock_.suspicion().empty()) break;
    for (const auto count : {most / kTimesShorter, most}) {
      STRATA_TRY(session_->train_steps("train", order, 0, count));
      clock_.add(session_->last_timed());
    }
  }
  const auto why = clock_.complaint();
  return why.empty() ? evaluation_clock_.complaint() : why;
}

Try<SplitScore> Learner::score(const std::string& split, std::int64_t images) {
  STRATA_TRY(session_->set_mode("eval", true));
  SplitScore all;
  const auto batch = participant_.job.bundle->question.batch;
  const double input_bytes = outside::number_or(participant_.job.bundle->info, "input_bytes");
  std::int64_t next = 0, count = std::min(images, batch);
  while (next < images && !interrupted()) {
    const auto scored = STRATA_TRY(session_->evaluate(split, next, count));
    // Gathering batches and counting answers is no part of what it tells.
    if (const auto& timed = session_->last_timed(); timed.iterations > 1)
      evaluation_clock_.add_block(timed, 0, timed.iterations * (input_bytes + kBesidesBatch));
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
  const double stepping_s = 1e-3 * sum(wall_ms_), waited = waited_s(), epoch_s = stepping_s + waited;
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
  values["input_wait_seconds"] = waited;
  values["input_seconds"] = gathered_s_;
  values["score_seconds"] = scored_s_;
  values["epoch_seconds"] = epoch_s;
  if (epoch_s > 0)
    values["samples_per_s"] = static_cast<double>(batch * static_cast<std::int64_t>(wall_ms_.size())) / epoch_s;
  meter_->take(values, participant_.job.bundle->question.threads);
  losses_.clear();
  wall_ms_.clear();
  waited_first_s_ = waited_s_ = gathered_s_ = scored_s_ = 0;
  firsts_ = 0;
  next_ = 0;
  return result;
}

Try<void> Learner::write_state(const fs::path& path) {
  const auto state = STRATA_TRY(session_->state());
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& name : state.tensors.names()) tensors.emplace_back(name, *state.tensors.find(name));
  if (auto written = write_safetensors(path, tensors); !written)
    return tl::unexpected(worker::failed_by(written.error()));
  return {};
}

}  // namespace strata::training
