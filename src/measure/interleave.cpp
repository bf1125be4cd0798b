// SPDX-License-Identifier: Apache-2.0
#include "measure/interleave.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numbers>
#include <set>
#include <utility>

#include "analysis/blocks.hpp"
#include "analysis/learn.hpp"
#include "common/interrupt.hpp"
#include "measure/level_executor.hpp"
#include "run/criteria.hpp"
#include "run/interleaver.hpp"

namespace strata::measure {
namespace {

constexpr int kFewestRounds = 3;  // per restart, however slow the levels are
// Others' load is read between rounds: over less than a fifth of a second the kernel's ticks say little, and reading it
// more often than this would cost time.
constexpr double kLoadWindowS = 0.5, kLeastWindowS = 0.2;
// A level is unsteady whose restarts part by so many times what is assumed of processes; it is said how many would
// bring the half width of its interval to this, unless --ci-width asks for another.
constexpr double kUnsteady = 2, kTellingWidth = 0.05;

// Each measured level against the reference, in the order of the participants.
struct Compared {
  const Participant* participant;
  stats::Comparison comparison;
};

std::vector<Compared> compare_with_reference(const std::vector<Participant>& participants, const InterleavePlan& plan) {
  std::vector<const Participant*> who;
  std::vector<const store::Row*> rows;
  std::optional<std::size_t> reference;
  for (std::size_t i = 0; i < participants.size(); ++i)
    if (participants[i].active && !participants[i].job.level.harness) {
      if (i == plan.reference) reference = rows.size();
      who.push_back(&participants[i]);
      rows.push_back(&participants[i].row);
    }
  std::vector<Compared> all;
  if (!reference) return all;
  const auto blocks = analysis::medians(rows, plan.room, 0);
  for (std::size_t level = 0; level < rows.size(); ++level) {
    if (level == *reference) continue;
    const auto learned = plan.trust && plan.together
                             ? analysis::learned_of(*plan.trust, rows[*reference]->name(), rows[level]->name())
                             : stats::LearnedSpread{};
    all.push_back(
        {who[level], stats::compare(stats::log_differences(blocks, *reference, level), plan.process_sigma, learned)});
  }
  return all;
}

double disturbed_share(const store::Row& row, const stats::CoreBudget& room) {
  const auto why = analysis::disturbances(row, room);
  return why.empty() ? 0
                     : static_cast<double>(
                           std::count_if(why.begin(), why.end(), [](const auto& text) { return !text.empty(); })) /
                           static_cast<double>(why.size());
}

// What this restart alone gave, so that one that differs from the others shows.
void note_results(const std::vector<Participant>& participants, int restart, int restarts, const Progress& progress) {
  std::string line = fmt::format("restart {} of {}:", restart + 1, restarts);
  for (const auto& participant : participants) {
    if (!participant.active || participant.job.level.harness) continue;
    std::vector<double> values;
    for (const auto& block : participant.row.blocks)
      if (block.restart == restart)
        for (const auto ns : block.wall_ns) values.push_back(static_cast<double>(ns) * 1e-6);
    if (!values.empty()) line += fmt::format(" {} {:.3g} ms", participant.job.level.name(), stats::median(values));
  }
  progress.note(line);
}

// Levels whose processes part so much that the restarts of this run cannot tell much of them, as soon as two restarts
// show it: how many it would take.
void note_unsteady(const std::vector<Participant>& participants, const InterleavePlan& plan, const Progress& progress) {
  const double width = plan.effort.ci_width > 0 ? plan.effort.ci_width : kTellingWidth;
  for (const auto& [participant, comparison] : compare_with_reference(participants, plan)) {
    const double between = comparison.learned.known() ? stats::expected_between(comparison) : comparison.scatter;
    if (!(between > kUnsteady * std::numbers::sqrt2 * plan.process_sigma) || std::isnan(comparison.within_se)) continue;
    const auto needed = stats::restarts_to_reach(comparison, width);
    if (needed && *needed <= plan.effort.restarts) continue;
    progress.note(fmt::format("{}: {:.1f}% between {}: {} restarts would give an interval of +-{:.2g}%",
                              participant->job.level.name(), 100 * between,
                              comparison.learned.known() ? "restarts of earlier runs" : "its first restarts",
                              needed ? fmt::format("about {}", *needed) : "over 10,000", 100 * width));
  }
}

// What the turns of levels come to: progress for people, blocks in the store, and in every block what others had of the
// processors around it. In a trial nothing is stored.
class InterleaveSink : public run::Sink {
 public:
  InterleaveSink(std::vector<Participant>& participants, const ProofReferences& judge, const InterleavePlan& plan,
                 const run::StopByTime& rounds, const Progress& progress)
      : participants_(participants), judge_(judge), plan_(plan), rounds_(rounds), progress_(progress) {}

  void starting(const run::Executor& executor, int restart) override {
    progress_.status(fmt::format("{}: starting {}", at(restart), executor.name()), -1);
  }
  void rounds_begin(int /*restart*/) override {
    meter_.emplace();
    window_ = 0;
    in_window_.clear();
    load_ = {};
  }
  void round_begins(int restart, int round) override {
    const double after = plan_.effort.budget_s / plan_.effort.restarts * (plan_.effort.restarts - restart - 1);
    progress_.status(fmt::format("{}: measuring, round {}", at(restart), round + 1), rounds_.left() + after);
  }
  Result<void> block(run::Executor& executor, const run::FinishedTurn& turn) override;
  Result<void> dropped(run::Executor& executor) override;
  Result<void> round_ended(int restart, int round) override {
    return meter_->seconds() >= kLoadWindowS ? close_window(restart, round) : Result<void>();
  }
  Result<void> rounds_ended(int restart, int rounds) override;
  void finishing(const run::Executor& executor, int restart) override {
    if (judge_.training)
      progress_.status(fmt::format("{}: checking {} after timing", at(restart), executor.name()), -1);
  }
  Result<void> restart_ended(int restart) override;

  const std::vector<probe::Load>& loads() const { return all_loads_; }  // of each restart that ended

 private:
  std::string at(int restart) const {
    return fmt::format("{} {} of {}", plan_.trial() ? "trial" : "restart", restart + 1, plan_.effort.restarts);
  }
  static Participant& participant_of(run::Executor& executor) {
    return static_cast<LevelExecutor&>(executor).participant();
  }
  Result<void> close_window(int restart, int last);

  std::vector<Participant>& participants_;
  const ProofReferences& judge_;
  const InterleavePlan& plan_;
  const run::StopByTime& rounds_;
  const Progress& progress_;
  std::optional<probe::LoadMeter> meter_;
  int window_ = 0;                    // the first round that it has not judged yet
  std::set<Participant*> in_window_;  // who has blocks in it
  probe::Load load_;                  // of others, over all rounds
  std::vector<probe::Load> restart_loads_, all_loads_;
};

Result<void> InterleaveSink::block(run::Executor& executor, const run::FinishedTurn& /*turn*/) {
  Participant& participant = participant_of(executor);
  in_window_.insert(&participant);
  return plan_.sink ? plan_.sink->block(participant.row, participant.row.blocks.back()) : Result<void>();
}

Result<void> InterleaveSink::dropped(run::Executor& executor) {
  Participant& participant = participant_of(executor);
  in_window_.erase(&participant);
  progress_.note(
      fmt::format("{}: {}: {}", participant.name(), to_string(participant.row.state), participant.row.reason));
  // At once, so that no number is shown of it if the run is killed. A store that fails here fails again at the end.
  if (plan_.sink) (void)plan_.sink->row(participant.row);
  return {};
}

// What others had of the processors since the window began goes into every block of it. A rest too short to be judged
// counts as what came before it.
Result<void> InterleaveSink::close_window(int restart, int last) {
  const bool too_short = meter_->seconds() < kLeastWindowS;
  std::optional<double> taken;
  if (!too_short) {
    if (const auto load = meter_->lap()) {
      taken = load->taken();
      const double all = load_.seconds + load->seconds;
      load_.others = (load_.others * load_.seconds + load->others * load->seconds) / all;
      load_.steal = (load_.steal * load_.seconds + load->steal * load->seconds) / all;
      load_.seconds = all;
    }
  } else if (load_.seconds > 0) {
    taken = load_.taken();
  }
  const int first = std::exchange(window_, last + 1);
  const auto participants = std::exchange(in_window_, {});
  if (!taken) return {};
  for (Participant* participant : participants) {
    for (auto block = participant->row.blocks.rbegin();
         block != participant->row.blocks.rend() && block->restart == restart && block->round >= first; ++block)
      block->taken = taken;
    if (plan_.sink) STRATA_TRY(plan_.sink->taken(participant->row, restart, first, last, *taken));
  }
  return {};
}

Result<void> InterleaveSink::rounds_ended(int restart, int rounds) {
  auto closed = close_window(restart, rounds);
  restart_loads_.push_back(load_);
  return closed;
}

Result<void> InterleaveSink::restart_ended(int restart) {
  const auto loads = std::exchange(restart_loads_, {});
  all_loads_.insert(all_loads_.end(), loads.begin(), loads.end());
  if (interrupted()) return {};
  if (plan_.finished) STRATA_TRY(plan_.finished(restart, loads));
  if (plan_.trial()) return {};
  note_results(participants_, restart, plan_.effort.restarts, progress_);
  if (restart == 1) note_unsteady(participants_, plan_, progress_);
  if (progress_.restarted) progress_.restarted(restart + 1, plan_.effort.restarts);
  return {};
}

// All together; by themselves, one level a group, where memory does not hold all.
std::vector<std::vector<run::Executor*>> groups_of(std::vector<LevelExecutor>& executors, bool together) {
  std::vector<std::vector<run::Executor*>> groups;
  for (std::size_t i = 0; i < executors.size(); ++i) {
    if (i == 0 || (!together && &executors[i].participant() != &executors[i - 1].participant())) groups.emplace_back();
    groups.back().push_back(&executors[i]);
  }
  return groups;
}

// Levels whose restarts tell too different things, each with why.
std::vector<std::string> too_busy(const std::vector<Participant>& participants, const InterleavePlan& plan) {
  std::vector<std::string> all;
  for (const auto& [participant, comparison] : compare_with_reference(participants, plan)) {
    const double disturbed = disturbed_share(participant->row, plan.room);
    if (!stats::too_busy(comparison, disturbed)) continue;
    std::vector<std::string> why;
    if (stats::too_busy(comparison, 0))
      why.push_back(fmt::format("{:.1f}% between restarts, {:.1f}% {}", 100 * comparison.scatter,
                                100 * stats::expected_between(comparison),
                                comparison.learned.known() ? "in earlier runs" : "assumed"));
    if (stats::too_busy({}, disturbed))
      why.push_back(fmt::format("{:.0f}% of its blocks were disturbed", 100 * disturbed));
    all.push_back(fmt::format("{}: {}", participant->job.level.name(), fmt::join(why, ", ")));
  }
  return all;
}

}  // namespace

Result<InterleaveResult> run_interleaved(std::vector<Participant>& participants, const ProofReferences& judge,
                                         const InterleavePlan& plan, const Progress& progress) {
  std::vector<LevelExecutor> executors;
  for (auto& participant : participants)
    for (int instance = 0; participant.active && instance < (plan.twice ? 2 : 1); ++instance)
      executors.emplace_back(participant, instance, judge, plan.room.threads, plan.warm);
  auto groups = groups_of(executors, plan.together);
  const double share = plan.effort.budget_s / plan.effort.restarts;
  run::StopByTime rounds(share / static_cast<double>(std::max<std::size_t>(1, groups.size())), kFewestRounds);
  run::StopByPrecision precision(plan.effort.ci_width, plan.first, [&] {
    std::vector<stats::Comparison> all;
    for (auto& compared : compare_with_reference(participants, plan)) all.push_back(std::move(compared.comparison));
    return all;
  });
  InterleaveSink sink(participants, judge, plan, rounds, progress);
  const bool may_stop = plan.effort.ci_width > 0 && plan.together;
  const int side_by_side = plan.room.threads == 1 ? 1 : plan.room.cores;  // one thread: all on the same core
  run::Interleaver interleaver({plan.seed, plan.effort.restarts, plan.first, side_by_side}, rounds,
                               may_stop ? &precision : nullptr, sink);
  const auto ended = STRATA_TRY(interleaver.run(std::move(groups)));
  InterleaveResult result;
  result.restarts = ended.restarts;
  result.precision_reached = ended.enough;
  result.load = plan.load_before;
  result.load.insert(result.load.end(), sink.loads().begin(), sink.loads().end());
  if (!plan.trial()) result.too_busy = too_busy(participants, plan);
  return result;
}

}  // namespace strata::measure
