// SPDX-License-Identifier: Apache-2.0
#include "measure/level_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "core/bundle_info.hpp"
#include "measure/train.hpp"
#include "measure/train_steps.hpp"
#include "probe/machine.hpp"

namespace strata::measure {
namespace {

constexpr double kBlockNs =
    10e6;  // a block lasts about this long (docs/measuring.md: 5 to 20 ms), at least one iteration
constexpr int kMostIterations = 1000;        // a block of a level that does next to nothing
constexpr std::int64_t kSlowNs = 500000000;  // an iteration that is warm after three
constexpr double kSlowestClockNs = 60e6;     // slower ones are checked by their blocks alone
constexpr int kClockLooks = 3, kMostClockLooks = 12;
constexpr int kBlocksForUnseen = 4;  // one block in so many, drawn, has an input that the process never saw
// One block in four has a third of the iterations; where that is none, one in eight has twice as many.
constexpr int kShorter = 3, kShortOneIn = 4, kLonger = 2, kLongOneIn = 8;
// Results up to this size stay of all iterations, up to so many bytes together; of larger ones those of two.
constexpr double kSmallResultBytes = 64e3, kRetainedBytes = 8e6;
const char* const kConductHint = "what else runs for the level, or when it works, is not the case's (docs/method.md)";
const char* const kClockHint =
    "the level's clock is not the driver's (CLOCK_MONOTONIC), or it reports other times than it measured";

// Ten iterations and 300 ms; three of a slow network, which would spend minutes here in every restart.
Try<std::vector<std::int64_t>> warm_up(Session& session) {
  auto walls = session.warm_up(3, std::chrono::nanoseconds(0));
  if (!walls || walls->empty() || walls->back() > kSlowNs) return walls;
  return session.warm_up(7, std::chrono::milliseconds(300));
}

// Short and long requests without unrecorded iterations, until the told times are explained by the driver's clock or
// were looked at often enough to say that they are not. A slow network's blocks are compared as they are.
Try<proof::ClockEvidence> check_clock(Session& session, double iteration_ns, int ring) {
  proof::ClockEvidence evidence;
  if (iteration_ns > kSlowestClockNs) return evidence;
  const auto request = [&](double ns, bool is_long) -> Try<void> {
    BlockPlan plan;
    plan.iterations = std::clamp(static_cast<int>(std::lround(ns / iteration_ns)), 1, kMostIterations);
    if (is_long) plan.iterations *= 3;
    for (int i = 0; i < plan.iterations; ++i) plan.indices.push_back(i % std::max(1, ring));
    plan.retain = {0};
    STRATA_TRY(session.measure(plan));
    const auto timed = session.last_timed();
    STRATA_TRY(session.result(0));
    evidence.add(timed, is_long, session.result_bytes());
    return {};
  };
  for (int look = 0; look < kMostClockLooks && !interrupted(); ++look) {
    if (look >= kClockLooks && evidence.complaint().empty()) break;
    for (const bool is_long : {false, true}) STRATA_TRY(request(kBlockNs, is_long));
  }
  return evidence;
}

// Of one entry of the ring: two of them change places and back.
double input_bytes_of(const Participant& participant) {
  return outside::number_or(participant.job.bundle->info, "input_bytes");
}

}  // namespace

std::vector<int> cpus_of(int threads, int restart) {
  if (threads != 1) return {};
  return {restart % std::max(1, probe::physical_cores())};
}

void LevelExecutor::launch(int restart) {
  if (warm_ != nullptr) return;  // most of those processes are up
  if (auto session = Session::launch(participant_.job, cpus_of(threads_, restart))) loading_ = std::move(*session);
}

// Its first iteration belongs to it, with which much is made ready; on a GPU it may choose kernels by their times.
void LevelExecutor::load() {
  if (!loading_) return;
  loading_->set_quiet(true);
  loaded_ = loading_->greet() && loading_->load("timed") &&
            (!on_processors() || loading_->warm_up(1, std::chrono::nanoseconds(0)));
  loading_->set_quiet(false);
  loading_->process().pause();
}

// What loaded beside others, or a process that does so now, alone.
Try<std::unique_ptr<Session>> LevelExecutor::loaded_session(int restart) {
  auto ready = std::exchange(loading_, nullptr);
  if (std::exchange(loaded_, false)) {
    ready->process().resume();
    return ready;
  }
  ready.reset();
  auto session = session::open_session(warm_, participant_.job, cpus_of(threads_, restart));
  if (session) STRATA_TRY((*session)->load("timed"));
  return session;
}

std::optional<Failure> LevelExecutor::bring_up(int restart) {
  const bool beside = loaded_;
  auto session = loaded_session(restart);
  if (!session) return session.error();
  auto walls = warm_up(**session);
  if (!walls) return walls.error();
  std::vector<double> warm(walls->begin() + static_cast<std::ptrdiff_t>(walls->size() / 2), walls->end());
  participant_.iteration_ns = std::max(1.0, stats::median(warm));
  clock_ = {};
  if (!participant_.job.level.harness)  // which has nothing to prove
    if (auto why = prove_again(**session, restart)) return why;
  session_ = std::move(*session);
  if (session_->fresh() && !beside) participant_.add_start(session_->start_up(), restart);
  began_ = true;
  if (judge_.training) replay_.emplace(participant_.iteration_ns);
  unseen_ = judge_.outputs ? judge_.outputs->unseen() : std::vector<int>();
  return std::nullopt;
}

std::optional<Failure> LevelExecutor::prove_again(Session& session, int restart) {
  auto checked = check_clock(session, participant_.iteration_ns, participant_.job.bundle->info.value("ring", 1));
  if (!checked) return checked.error();
  clock_ = *checked;
  if (const auto why = participant_.evidence.note_clock(clock_); !why.empty())
    return Failure{
        .state = State::mistrusted, .what = fmt::format("restart {}: {}", restart + 1, why), .hint = kClockHint};
  if (judge_.training) {
    const bool proven = session.take_proven();  // a moment ago, in this process
    auto done =
        proven ? start_training(session, *judge_.training) : probe_restart(participant_, session, *judge_.training);
    if (!done) return done.error();
    return std::nullopt;
  }
  auto proven = session.prove({0, 1});
  if (!proven) return proven.error();
  const auto verdict =
      proof::check_outputs(*judge_.outputs, "timed", *proven, std::vector<int>{0, 1}, participant_.tolerance());
  if (!verdict.equal_work())
    return Failure{.state = state_of(verdict), .what = fmt::format("restart {}: {}", restart + 1, verdict.reason)};
  return std::nullopt;
}

Result<void> LevelExecutor::start(int restart) {
  const auto why = bring_up(restart);
  meter_.reset();
  if (!why && instance_ == 0) meter_.emplace(session_->process().pid());
  if (why && !interrupted()) participant_.drop(*why);
  return {};
}

// A level that knows when it is shown one, and when there are no more, gains: docs/method.md.
void LevelExecutor::show_unseen(BlockPlan& plan, stats::Random& random) {
  if (unseen_.empty() || random.below(kBlocksForUnseen) != 0) return;
  const auto at = unseen_.begin() + static_cast<std::ptrdiff_t>(random.below(unseen_.size()));
  const auto file = session_->new_file();
  if (!judge_.outputs->write_unseen(*at, file)) return;  // no space: an input of the ring serves
  plan.exchange->input = *at;
  plan.exchange->entry = file;
  unseen_.erase(at);
}

// Drawn, so that what an iteration takes besides its told time shows as a difference of blocks (proof::ClockEvidence).
int LevelExecutor::turn_iterations(stats::Random& random) const {
  const int usual = usual_iterations();
  if (usual >= kShorter) return random.below(kShortOneIn) == 0 ? usual / kShorter : usual;
  return random.below(kLongOneIn) == 0 ? usual * kLonger : usual;
}

int LevelExecutor::usual_iterations() const {
  return std::clamp(static_cast<int>(std::lround(kBlockNs / participant_.iteration_ns)), 1, kMostIterations);
}

BlockPlan LevelExecutor::plan_block(stats::Random& random) {
  BlockPlan plan;
  plan.iterations = turn_iterations(random);
  // The first iterations after another process ran are slow; a short iteration would carry that into the block.
  plan.head = participant_.iteration_ns < kBlockNs ? 2 : 0;
  const auto ring = static_cast<std::uint64_t>(participant_.job.bundle->info.value("ring", 1));
  for (int i = 0; i < plan.iterations; ++i) plan.indices.push_back(static_cast<int>(random.below(ring)));
  if (!judge_.training) {
    plan.exchange = {.at = static_cast<int>(random.below(static_cast<std::uint64_t>(plan.iterations))),
                     .input = static_cast<int>(random.below(ring))};
    show_unseen(plan, random);
  }
  retain_results(plan, random);
  return plan;
}

// So many that which is looked at can be drawn after they ran.
void LevelExecutor::retain_results(BlockPlan& plan, stats::Random& random) const {
  if (participant_.job.level.harness) return;
  const double bytes = session_->result_bytes();
  const bool small = bytes > 0 && bytes <= kSmallResultBytes;
  const auto most = small ? static_cast<std::size_t>(kRetainedBytes / bytes) : std::size_t{2};
  std::vector<int> all(static_cast<std::size_t>(plan.iterations));
  std::iota(all.begin(), all.end(), 0);
  if (all.size() > most) {
    random.shuffle(all);
    all.resize(most);
    if (plan.exchange) all.front() = plan.exchange->at;
  }
  plan.retain = std::move(all);
}

// Of those that stay: one that was never seen always, another exchanged one in every second block.
int LevelExecutor::iteration_to_check(const BlockPlan& plan, stats::Random& random) {
  if (plan.exchange && (!plan.exchange->entry.empty() || random.below(2) == 0)) return plan.exchange->at;
  return plan.retain[random.below(plan.retain.size())];
}

Result<run::TurnOutcome> LevelExecutor::measure(const run::Turn& turn) {
  const auto plan = plan_block(turn.random);
  if (meter_) meter_->turn_begins();
  auto block = session_->measure(plan);
  if (std::error_code ec; plan.exchange && !plan.exchange->entry.empty())
    std::filesystem::remove(plan.exchange->entry, ec);
  if (!block) {
    if (!interrupted()) participant_.drop(block.error());
    return run::TurnOutcome::failure;
  }
  const auto timed = session_->last_timed();
  std::optional<Try<Session::Answer>> checked;
  const int iteration = plan.retain.empty() ? 0 : iteration_to_check(plan, turn.random);
  if (!plan.retain.empty()) checked = session_->result(iteration);
  if (meter_) meter_->turn_ended(plan.head + plan.iterations);
  if (replay_ && checked && *checked) {
    const auto& [input, output] = **checked;
    if (const auto why = note_steps(plan, iteration, loss_in(output, input), turn.random)) {
      if (!interrupted()) participant_.drop(*why);
      return run::TurnOutcome::failure;
    }
  }
  if (checked && !*checked && interrupted()) return run::TurnOutcome::failure;
  pause();  // before its output is judged
  note_clock(timed, plan);
  block->restart = turn.restart;
  block->round = turn.round;
  block->position = turn.position;
  block->instance = instance_;
  std::optional<Failure> wrong;
  if (!participant_.job.level.harness) {
    note_conduct(*block, plan);
    if (const auto why = participant_.evidence.note_clock(clock_); !why.empty())
      wrong = Failure{.state = State::mistrusted, .what = "while timing: " + why, .hint = kClockHint};
    if (!*checked) {
      wrong = checked->error();
    } else if (!wrong) {
      const auto& [input, output] = **checked;
      const auto verdict = judge_.training ? check_loss(output, input)
                                           : proof::check_outputs(*judge_.outputs, "timed", output,
                                                                  std::vector<int>{input}, participant_.tolerance());
      if (judge_.training && !verdict.equal_work() && !began_) {
        if (const auto why = begin_again(); why && !interrupted()) participant_.drop(*why);
        return run::TurnOutcome::nothing;
      }
      began_ = false;
      participant_.evidence.add_block(verdict);
      participant_.evidence.note_inputs(session_->had_new_inputs());
      if (!verdict.equal_work())
        wrong = Failure{.state = state_of(verdict), .what = fmt::format("while timing: {}", verdict.reason)};
    }
  }
  if (wrong) block->check = wrong->what;
  participant_.row.blocks.push_back(std::move(*block));
  if (wrong) participant_.drop(*wrong);
  return run::TurnOutcome::block;
}

void LevelExecutor::note_clock(const proof::Timed& timed, const BlockPlan& plan) {
  const double bytes = session_->result_bytes();
  const bool unseen = plan.exchange && !plan.exchange->entry.empty();  // which is read from a file
  clock_.add_copies(session_->copy_ns(), timed.reported_ns / plan.iterations, bytes);
  clock_.add_block(
      timed, plan.head,
      bytes * static_cast<double>(plan.retain.size()) + (plan.exchange ? input_bytes_of(participant_) : 0));
  const int usual = usual_iterations();
  if (!unseen) clock_.add_turn(timed, usual >= kShorter ? plan.iterations == usual : plan.iterations > usual);
}

void LevelExecutor::note_conduct(const store::Block& block, const BlockPlan& plan) {
  auto& conduct = participant_.evidence.conduct;
  const double moved = plan.exchange ? 2 * input_bytes_of(participant_) : 0;
  if (plan.exchange) conduct.add_block(block.wall_ns, plan.exchange->at, moved, !plan.exchange->entry.empty());
  conduct.add_retained(plan.retain.size(), plan.iterations);
  if (block.cpu_ns && on_processors())
    conduct.add_iterations(static_cast<double>(*block.cpu_ns), session_->last_timed().reported_ns, plan.iterations,
                           moved, threads_);
}

bool LevelExecutor::on_processors() const {
  return participant_.job.bundle->question.device == core::Device::cpu;
}

// A long training that diverges says nothing of the work, which is proven step by step: it begins again, and the block
// counts for nothing.
std::optional<Failure> LevelExecutor::begin_again() {
  ++participant_.training.begun_again;
  meter_.reset();  // what loading takes is no iteration's
  if (auto done = start_training(*session_, *judge_.training); !done) return done.error();
  began_ = true;
  replay_.emplace(participant_.iteration_ns);
  return std::nullopt;
}

// The unrecorded steps of a block are steps, too. Reading a state is no part of a turn.
std::optional<Failure> LevelExecutor::note_steps(const BlockPlan& plan, int checked, double loss,
                                                 stats::Random& random) {
  const int ring = participant_.job.bundle->info.value("ring", 1);
  std::vector<int> indices;
  for (int i = 0; i < plan.head; ++i) indices.push_back(i % ring);
  indices.insert(indices.end(), plan.indices.begin(), plan.indices.end());
  replay_->add_turn(indices, session_->last_timed().reported_ns, static_cast<std::size_t>(plan.head + checked), loss);
  if (core::is_light(judge_.training->bundle()) || !replay_->wants_state(random)) return std::nullopt;
  const auto pid = session_->process().pid();
  const auto from = probe::process_usage(pid);
  const auto done = replay_->read_state(*session_, random);
  const auto until = probe::process_usage(pid);
  if (meter_ && from && until) meter_->leave_out(*from, *until);
  if (!done) return done.error();
  return std::nullopt;
}

void LevelExecutor::note_meter(int restart) {
  if (!meter_) return;
  const auto work = meter_->work();
  if (work && on_processors()) participant_.evidence.conduct.add_restart(work->cpu_s, work->turns_s, threads_);
  auto sums = meter_->sums();
  meter_.reset();
  if (!sums) return;
  sums->restart = restart;
  participant_.row.info.meters.push_back(std::move(*sums));
}

Result<void> LevelExecutor::finish(int restart, stats::Random& random) {
  note_meter(restart);
  if (participant_.job.level.harness) return {};
  if (!behaves(restart) || !judge_.training) return {};
  auto checked = check_last_step(participant_, *session_, *judge_.training, random, *replay_);
  if (checked && !behaves(restart)) return {};
  if (checked && !interrupted()) checked = repeat_timed_steps(participant_, *session_, *judge_.training, *replay_);
  if (checked && !interrupted()) checked = profile_phases(participant_, *session_, *judge_.training);
  if (!checked && !interrupted()) participant_.drop(checked.error());
  return {};
}

bool LevelExecutor::behaves(int restart) {
  clock_.end_turns();
  const auto clock = participant_.evidence.note_clock(clock_);
  const auto why = clock.empty() ? participant_.evidence.conduct.complaint() : clock;
  if (!why.empty())
    participant_.drop({.state = State::mistrusted,
                       .what = fmt::format("restart {}: {}", restart + 1, why),
                       .hint = clock.empty() ? kConductHint : kClockHint});
  return why.empty();
}

void LevelExecutor::pause() {
  if (session_) session_->process().pause();
}

void LevelExecutor::resume() {
  if (session_) session_->process().resume();
}

void LevelExecutor::stop() {
  if (session_ && participant_.active && !interrupted()) session::close_session(warm_, std::move(session_));
  session_.reset();
  loading_.reset();
  loaded_ = false;
}

}  // namespace strata::measure
