// SPDX-License-Identifier: Apache-2.0
#include "training/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "analysis/layer_sizes.hpp"
#include "analysis/load_facts.hpp"
#include "analysis/warnings.hpp"
#include "common/interrupt.hpp"
#include "measure/measuring_mark.hpp"
#include "measure/passes/pass.hpp"
#include "measure/train.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"
#include "run/criteria.hpp"
#include "run/interleaver.hpp"
#include "training/checkpoint.hpp"
#include "training/judged_turns.hpp"

namespace strata::training {
namespace fs = std::filesystem;
using measure::Failure;
using measure::Participant;
namespace {

const char* const kClockHint =
    "the level's clock is not the driver's (CLOCK_MONOTONIC), or it reports other times than it measured";

std::uint64_t turn_seed(std::uint64_t seed, int repeat, std::size_t level) {
  return seed ^ (0x9e3779b97f4a7c15ULL * (1 + level + 1000 * static_cast<std::uint64_t>(repeat)));
}

std::vector<int> repeats_of(const Plan& plan) {
  if (!plan.own_repeats.empty()) return plan.own_repeats;
  std::vector<int> all;
  for (int repeat = 0; repeat < plan.repeats; ++repeat) all.push_back(repeat);
  return all;
}

class CaseTraining {
 public:
  CaseTraining(measure::CaseRun& point, const Plan& plan, const std::vector<fs::path>& initial)
      : point_(point), plan_(plan), initial_(initial) {}

  // After CaseRun::begin() and the proof of every level's step.
  Result<void> train();
  Result<measure::Outcome> finish();

 private:
  struct Trainee {
    std::size_t level;
    Learner learner;
    JudgedTurns turns;
    int first_epoch = 0;          // that is not stored yet
    bool out = false;             // diverged in this repeat, or its level is gone
    std::int64_t looked_at = -1;  // the step of the training at which its layers were looked at last
  };

  void leave(Trainee& trainee, const Failure& why);
  Owner owner_of(const Participant& participant, int repeat) const;
  void tell_damage(const Participant& participant, int repeat, int first, const std::string& damage);
  void open_referee();
  Result<void> run_repeat(int repeat, const std::vector<std::size_t>& group);
  Result<fs::path> new_order(int repeat, int epoch) const;
  Result<void> check_clocks(std::vector<Trainee>& trainees, int repeat);
  std::vector<Trainee> start_levels(int repeat, const std::vector<std::size_t>& group);
  Result<void> run_epoch(std::vector<Trainee>& trainees, int repeat, int epoch);
  bool learns(const Trainee& trainee, int epoch) const;  // has steps of it left
  Result<void> run_interleaved(std::vector<Trainee>& trainees, const fs::path& order, int repeat, int epoch);
  void turn(Trainee& trainee, const fs::path& order, int epoch);
  std::int64_t next_look(std::int64_t step) const;
  void look_at_layers(Trainee& trainee, const fs::path& order, std::int64_t step);
  Result<void> end_epoch(Trainee& trainee, int repeat, int epoch);
  void prove_score(Trainee& trainee, const fs::path& state, int epoch, const session::SplitScore& told);
  void prove_best(Trainee& trainee);
  void judge(Trainee& trainee, const proof::OutputVerdict& verdict, const std::string& when);
  std::vector<std::vector<std::size_t>> groups() const;
  void tell_progress(const std::vector<Trainee>& trainees, int repeat, int epoch);

  const core::Case& question() const { return point_.record.question; }
  const proof::TrainReference& reference() const { return *point_.references.judge().training; }

  measure::CaseRun& point_;
  const Plan& plan_;
  const std::vector<fs::path>& initial_;
  const std::vector<int> repeats_ = repeats_of(plan_);
  const int epochs_ = question().recipe->training->epochs;
  const std::int64_t steps_ = plan_.data.train / question().batch;             // of an epoch
  std::vector<int> proofs_ = std::vector<int>(point_.participants.size(), 0);  // steps and scores, by participant
  std::vector<int> epochs_done_ = proofs_;                                     // likewise
  std::optional<Referee> referee_;
  // Of Adam a step's weights follow from its buffers alone.
  std::int64_t longest_window_ = reference().optimiser().adam() != nullptr ? 1 : kLongestWindow;
  std::vector<WindowCounts> windows_ = std::vector<WindowCounts>(point_.participants.size());  // by participant
  // How much was done when this process began to train, as a share, and when.
  std::optional<std::pair<double, std::chrono::steady_clock::time_point>> began_;
};

// Levels that learn at the same time: all, or one by one where memory does not hold them.
std::vector<std::vector<std::size_t>> CaseTraining::groups() const {
  std::vector<std::size_t> active;
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < point_.participants.size(); ++i)
    if (point_.participants[i].active) {
      active.push_back(i);
      needed += point_.participants[i].peak_bytes;
    }
  if (active.empty()) return {};
  if (static_cast<double>(needed) < 0.8 * static_cast<double>(probe::memory().available_bytes)) return {active};
  std::vector<std::vector<std::size_t>> alone;
  for (const auto i : active) alone.push_back({i});
  return alone;
}

// What repeats single steps is eager, whether or not it was asked for.
void CaseTraining::open_referee() {
  for (const auto& participant : point_.participants)
    if (participant.job.level.level_and_variant() == "eager" && !referee_)
      referee_.emplace(participant.job, reference());
  if (referee_) return;
  for (const auto& level : level::discover(level::search_path(point_.setting.place.root)).levels)
    if (level.name() == "eager")
      if (auto participant = point_.make_participant(level)) referee_.emplace(participant->job, reference());
}

Result<void> CaseTraining::train() {
  open_referee();
  const measure::MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  analysis::LoadFacts load;
  load.begin = probe::other_load(std::chrono::milliseconds(300));
  load.other_run = mark.other();
  probe::LoadMeter meter;
  std::vector<probe::Load> loads;  // of each repeat; kept as it goes, so that a killed run has it
  const auto keep_load = [&]() -> Result<void> {
    load.restarts.clear();
    analysis::add_restarts(load, loads);
    point_.record.trust.load = load;
    return point_.sink.of_case(point_.record);
  };
  STRATA_TRY(keep_load());
  for (const int repeat : repeats_) {
    for (const auto& group : groups()) {
      if (interrupted()) break;
      STRATA_TRY(run_repeat(repeat, group));
    }
    if (const auto during = meter.lap()) loads.push_back(*during);
    STRATA_TRY(keep_load());
  }
  if (load.busy()) STRATA_TRY(point_.sink.warning(analysis::warnings::busy(point_.record.id, load)));
  return {};
}

void CaseTraining::leave(Trainee& trainee, const Failure& why) {
  trainee.out = true;
  if (interrupted()) return;
  Participant& participant = trainee.learner.participant();
  participant.drop(why);
  point_.progress.note(fmt::format("{}: {}: {}", participant.name(), to_string(why.state), why.what));
  (void)point_.sink.row(participant.row);  // a store that fails here fails again at the end
}

Owner CaseTraining::owner_of(const Participant& participant, int repeat) const {
  return {.case_key = point_.record.key,
          .data_sha256 = question().recipe->training->data_sha256,
          .level = participant.name(),
          .repeat = repeat};
}

void CaseTraining::tell_damage(const Participant& participant, int repeat, int first, const std::string& damage) {
  auto warning = analysis::warnings::damaged_state(participant.name(), repeat + 1, first, damage);
  point_.progress.note(warning.what);
  (void)point_.sink.warning(std::move(warning));  // a store that fails here fails again at the end
}

std::vector<CaseTraining::Trainee> CaseTraining::start_levels(int repeat, const std::vector<std::size_t>& group) {
  std::vector<int> cpus;
  if (question().threads == 1) cpus = {repeat % std::max(1, probe::physical_cores())};
  std::vector<Trainee> trainees;
  for (const auto i : group) {
    if (interrupted()) break;
    Participant& participant = point_.participants[i];
    const auto [saved, damage] = last_state(plan_.keep, owner_of(participant, repeat));
    const int first = saved ? saved->epochs : 0;
    if (!damage.empty()) tell_damage(participant, repeat, first, damage);
    epochs_done_[i] += first;
    if (first >= epochs_ || (saved && saved->diverged)) continue;
    point_.progress.status(fmt::format("repeat {} of {}: starting {}", repeat + 1, plan_.repeats, participant.name()),
                           -1);
    trainees.push_back({.level = i,
                        .learner = Learner(participant, repeat),
                        .turns = JudgedTurns(turn_seed(point_.setting.order_seed, repeat, i),
                                             {.epochs = epochs_, .steps = steps_, .proofs = plan_.proofs}),
                        .first_epoch = first,
                        .out = false});
    const Start from =
        saved ? Start{.state = saved->path, .step = steps_ * first, .seed = {}}
              : Start{.state = initial_[static_cast<std::size_t>(repeat)], .step = 0, .seed = question().seed + repeat};
    if (auto started = trainees.back().learner.start(plan_.data.files, from, cpus); !started)
      leave(trainees.back(), started.error());
    else
      trainees.back().learner.rest();
  }
  return trainees;
}

Result<void> CaseTraining::run_repeat(int repeat, const std::vector<std::size_t>& group) {
  auto trainees = start_levels(repeat, group);
  if (trainees.empty()) return {};
  if (referee_) {
    point_.progress.status("starting the process that repeats a few steps", -1);
    if (auto started = referee_->start(plan_.data.files, {}); !started) {
      point_.progress.note(fmt::format("no step in the middle can be proven: {}", started.error().what));
      referee_.reset();
    } else {
      referee_->rest();
    }
  }
  for (int epoch = 0; epoch < epochs_ && !interrupted(); ++epoch) STRATA_TRY(run_epoch(trainees, repeat, epoch));
  for (const auto& trainee : trainees) windows_[trainee.level] += trainee.turns.counts();
  STRATA_TRY(check_clocks(trainees, repeat));
  for (auto& trainee : trainees) {
    if (trainee.out || interrupted()) continue;
    auto& participant = trainee.learner.participant();
    if (repeat == repeats_.back()) {
      const auto profiled = measure::profile_phases(participant, trainee.learner.session(), reference());
      if (!profiled) participant.phases_note = profiled.error().what;  // which costs no training that is done
    }
    trainee.learner.end();
  }
  return {};
}

// After the last epoch, whose states are kept: what further steps do to the weights is nobody's.
Result<void> CaseTraining::check_clocks(std::vector<Trainee>& trainees, int repeat) {
  const auto order = STRATA_TRY(new_order(repeat, epochs_));
  for (auto& trainee : trainees) {
    if (trainee.out || interrupted()) continue;
    const auto doubt = trainee.learner.doubt_of_clock(order, steps_);
    if (!doubt)
      leave(trainee, doubt.error());
    else if (!doubt->empty())
      leave(trainee,
            {.state = State::mistrusted, .what = fmt::format("repeat {}: {}", repeat + 1, *doubt), .hint = kClockHint});
    if (!trainee.out) trainee.learner.rest();
  }
  std::error_code ignored;
  fs::remove(order, ignored);
  return {};
}

// Where the slowest is, the losses, and by what is done since the start how long the rest takes.
void CaseTraining::tell_progress(const std::vector<Trainee>& trainees, int repeat, int epoch) {
  std::int64_t least = steps_;
  std::string losses;
  for (const auto& trainee : trainees) {
    if (trainee.out || epoch < trainee.first_epoch) continue;
    least = std::min(least, trainee.learner.next_step());
    if (const auto loss = trainee.learner.last_loss())
      losses +=
          fmt::format("{}{} {:.3g}", losses.empty() ? "; loss: " : ", ", trainee.learner.participant().name(), *loss);
  }
  const auto before = std::count_if(repeats_.begin(), repeats_.end(), [&](int one) { return one < repeat; });
  const double epochs = static_cast<double>(repeats_.size()) * epochs_;
  const double done = (static_cast<double>(before) * epochs_ + epoch +
                       static_cast<double>(least) / static_cast<double>(std::max<std::int64_t>(1, steps_))) /
                      epochs;
  if (!began_) began_ = {done, std::chrono::steady_clock::now()};
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_->second).count();
  const double left = done - began_->first > 0.01 ? passed * (1 - done) / (done - began_->first) : -1;
  point_.progress.status(fmt::format("repeat {} of {}, epoch {} of {}, {}%{}", repeat + 1, plan_.repeats, epoch + 1,
                                     epochs_, 100 * least / std::max<std::int64_t>(1, steps_), losses),
                         left);
}

void CaseTraining::judge(Trainee& trainee, const proof::OutputVerdict& verdict, const std::string& when) {
  if (verdict.equal_work())
    ++proofs_[trainee.level];
  else
    leave(trainee, {.state = State::unequal, .what = fmt::format("{}: {}", when, verdict.reason)});
}

// The first step of the training from `step` on at which layers are looked at.
std::int64_t CaseTraining::next_look(std::int64_t step) const {
  const auto every = plan_.norms.value_or(steps_);
  if (every == 0 || !referee_) return std::numeric_limits<std::int64_t>::max();
  return (step + every - 1) / every * every;
}

// What comes of it is kept beside the training: a look that fails costs nobody its place.
void CaseTraining::look_at_layers(Trainee& trainee, const fs::path& order, std::int64_t step) {
  trainee.looked_at = step;
  Participant& participant = trainee.learner.participant();
  const auto sizes = referee_->layer_sizes(trainee.learner, order);
  referee_->rest();
  const int repeat = trainee.learner.repeat();
  if (!sizes) {
    point_.progress.note(fmt::format("{}: layers could not be looked at: {}", participant.name(), sizes.error().what));
    return;
  }
  if (sizes->empty()) return;
  auto& layers = participant.row.info.layers;
  layers.clear();
  for (const auto& size : *sizes) layers.push_back(size.layer);
  (void)point_.sink.series(participant.row.row_id, analysis::to_series(*sizes, step + 1, repeat));
  if (const auto why = analysis::signal_fault(*sizes, *question().recipe, step))
    point_.progress.note(
        fmt::format("repeat {}, step {}: {}: {}", repeat + 1, step + 1, participant.name(), why->words));
}

void CaseTraining::turn(Trainee& trainee, const fs::path& order, int epoch) {
  const auto next = trainee.learner.next_step();
  const auto before = epoch * steps_;  // steps of the epochs before
  if (before + next == next_look(before + next) && trainee.looked_at != before + next)
    look_at_layers(trainee, order, before + next);
  const Turn turn{.order = order,
                  .epoch = epoch,
                  .end = std::min(steps_, next_look(before + next + 1) - before),
                  .seconds = plan_.turn_s};
  const auto judged = trainee.turns.take(trainee.learner, referee_ ? &*referee_ : nullptr, turn, longest_window_);
  if (!judged) leave(trainee, judged.error());
  for (const auto& [verdict, first, last] : judged.value_or(std::vector<JudgedSteps>()))
    if (!trainee.out)
      judge(trainee, verdict,
            fmt::format(
                "repeat {}, epoch {}, {}", trainee.learner.repeat() + 1, epoch + 1,
                first == last ? fmt::format("step {}", last + 1) : fmt::format("steps {} to {}", first + 1, last + 1)));
  if (referee_) referee_->rest();
  if (!trainee.out) trainee.learner.rest();
}

bool CaseTraining::learns(const Trainee& trainee, int epoch) const {
  return !trainee.out && epoch >= trainee.first_epoch && !trainee.learner.diverged() &&
         trainee.learner.next_step() < steps_;
}

// Until every level has done the steps of the epoch; a turn is some of them.
Result<void> CaseTraining::run_interleaved(std::vector<Trainee>& trainees, const fs::path& order, int repeat,
                                           int epoch) {
  std::vector<run::OnlyTurns> turns;
  turns.reserve(trainees.size());
  std::vector<run::Executor*> all;
  for (auto& trainee : trainees)
    all.push_back(&turns.emplace_back(
        trainee.learner.participant().name(), [&, this] { return learns(trainee, epoch); },
        [&, this](const run::Turn&) {
          turn(trainee, order, epoch);
          tell_progress(trainees, repeat, epoch);
        }));
  run::StopByTime never(std::numeric_limits<double>::infinity(), 0);
  run::Sink nobody;
  const auto seed = point_.setting.order_seed ^ static_cast<std::uint64_t>(1 + epoch + 10000 * repeat);
  STRATA_TRY(run::Interleaver({.seed = seed}, never, nullptr, nobody).run({all}));
  return {};
}

Result<fs::path> CaseTraining::new_order(int repeat, int epoch) const {
  const auto drawn = draw_order(plan_.data.train, question().batch, plan_.augment,
                                static_cast<std::uint64_t>(question().seed) ^ point_.setting.order_seed, repeat, epoch);
  const auto order = point_.logs() / fmt::format("order-{}-{}.safetensors", repeat, epoch);
  STRATA_TRY(write_order(order, drawn));
  return order;
}

Result<void> CaseTraining::run_epoch(std::vector<Trainee>& trainees, int repeat, int epoch) {
  if (std::all_of(trainees.begin(), trainees.end(),
                  [&](const Trainee& trainee) { return trainee.out || epoch < trainee.first_epoch; }))
    return {};
  const auto order = STRATA_TRY(new_order(repeat, epoch));
  STRATA_TRY(run_interleaved(trainees, order, repeat, epoch));
  for (auto& trainee : trainees) {
    if (trainee.out || epoch < trainee.first_epoch || interrupted()) continue;
    STRATA_TRY(end_epoch(trainee, repeat, epoch));
  }
  std::error_code ignored;
  fs::remove(order, ignored);
  return {};
}

Result<void> CaseTraining::end_epoch(Trainee& trainee, int repeat, int epoch) {
  auto& learner = trainee.learner;
  Participant& participant = learner.participant();
  session::SplitScore train, test;
  const bool diverged = learner.diverged();
  if (!diverged) {
    point_.progress.status(fmt::format("repeat {}, epoch {}: scoring {}", repeat + 1, epoch + 1, participant.name()),
                           -1);
    const auto tested = learner.score("test", plan_.data.test);
    const auto trained = tested ? learner.score("train", std::min(plan_.data.test, plan_.data.train)) : tested;
    if (interrupted()) return {};
    if (!trained) {
      leave(trainee, trained.error());
      return {};
    }
    test = *tested;
    train = *trained;
    if (trainee.turns.plan().scored().contains(epoch)) {
      if (const auto state = learner.session().state())
        prove_score(trainee, *state->file, epoch, test);
      else
        leave(trainee, state.error());
    }
  }
  if (diverged || epoch == epochs_ - 1) prove_best(trainee);
  if (trainee.out) return {};
  const auto result = learner.end_epoch(train, test, question().batch);
  // The store first: a training that is killed before its state is kept learns the epoch again, and replaces it.
  STRATA_TRY(point_.sink.series(participant.row.row_id, series_of(result, repeat, epoch)));
  if (auto stored = keep_epoch(plan_.keep, owner_of(participant, repeat), learner, {epoch + 1, test}, result);
      !stored) {
    leave(trainee, stored.error());
    return {};
  }
  learner.rest();
  ++epochs_done_[trainee.level];
  if (diverged) {
    trainee.out = true;
    point_.progress.note(fmt::format("{}: repeat {}: the loss is not finite from step {} of epoch {} on",
                                     participant.name(), repeat + 1, result.diverged_at + 1, epoch + 1));
    return {};
  }
  const auto value = [&](const char* name) {
    return result.values.contains(name) ? result.values.at(name) : std::nan("");
  };
  point_.progress.note(fmt::format("repeat {}, epoch {} of {}: {}: accuracy {:.2f}%, loss {:.4f}, step {:.3g} ms",
                                   repeat + 1, epoch + 1, epochs_, participant.name(), 100 * value("test_accuracy"),
                                   value("test_loss"), value("step_time")));
  return {};
}

void CaseTraining::prove_score(Trainee& trainee, const fs::path& state, int epoch, const session::SplitScore& told) {
  if (!referee_) return;
  const auto verdict = referee_->check_score(state, steps_ * (epoch + 1), "test", told);
  referee_->rest();
  if (!verdict)
    leave(trainee, verdict.error());
  else
    judge(trainee, *verdict,
          fmt::format("repeat {}, the score after epoch {}", trainee.learner.repeat() + 1, epoch + 1));
}

// Only when no epoch is to come it is known which is the best; its state was kept.
void CaseTraining::prove_best(Trainee& trainee) {
  const auto best = best_state(plan_.keep, owner_of(trainee.learner.participant(), trainee.learner.repeat()));
  if (best && !trainee.out && !trainee.turns.plan().scored().contains(best->epochs - 1))
    prove_score(trainee, best->path, best->epochs - 1, best->told);
}

Result<measure::Outcome> CaseTraining::finish() {
  measure::Outcome outcome;
  for (std::size_t i = 0; i < point_.participants.size(); ++i) {
    Participant& participant = point_.participants[i];
    if (participant.active && epochs_done_[i] > 0) {
      participant.row.state = State::measured;
      participant.row.reason.clear();
      participant.row.judged = true;
    } else if (participant.active) {
      participant.drop(
          {.state = State::failed,
           .what = interrupted() ? "interrupted before its first epoch ended" : "no epoch of it came to its end",
           .hint = "./strata resume " + point_.setting.run_id + " continues"});
    }
    if (!participant.row.proof) participant.row.proof.emplace();
    participant.row.proof->in_the_middle = store::ProofWhileTraining{.steps_and_scores = proofs_[i],
                                                                     .steps = windows_[i].steps,
                                                                     .steps_in_windows = windows_[i].in_windows,
                                                                     .longest_window = longest_window_,
                                                                     .windows_too_rough = windows_[i].rough,
                                                                     .by = referee_ ? "eager" : ""};
    point_.store_phases(participant);
    measure::add_outcome(outcome, participant.row, point_.setting.options.levels);
    STRATA_TRY(point_.sink.row(participant.row));
  }
  if (!interrupted()) STRATA_TRY(point_.sink.finished());
  return outcome;
}

}  // namespace

Result<measure::Outcome> train_case(const measure::Setting& setting, const plan::Bundle& bundle,
                                    const core::Case& question, const std::vector<level::Level>& levels,
                                    const Plan& plan, const std::vector<fs::path>& initial,
                                    measure::MachineFacts& facts, store::Store& store,
                                    const measure::Progress& progress) {
  const measure::CaseExtras extras;
  measure::CaseRun point(setting, bundle, extras, facts, store, progress);
  STRATA_TRY(point.begin(levels, question));
  point.record.trust.data = plan.data_note;
  point.record.trust.test_images = plan.data.test;
  point.record.trust.commonest_class = plan.data.commonest;
  STRATA_TRY(measure::prove_levels(point));
  CaseTraining training(point, plan, initial);
  if (!interrupted()) STRATA_TRY(training.train());
  return training.finish();
}

}  // namespace strata::training
