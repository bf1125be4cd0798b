// SPDX-License-Identifier: Apache-2.0
#include "measure/turns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "common/interrupt.hpp"
#include "measure/train.hpp"
#include "probe/machine.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kBlockNs = 10e6;  // a block lasts about this long (docs/method.md: 5 to 20 ms), at least one iteration
constexpr int kMostIterations = 1000;        // a block of a level that does next to nothing
constexpr std::int64_t kSlowNs = 500000000;  // an iteration that is warm after three
constexpr int kFewestRounds = 3;             // per restart, however slow the levels are
// Others' load is read between rounds: over less than a fifth of a second the kernel's ticks say little, and reading it
// more often than this would cost time.
constexpr double kLoadWindowS = 0.5, kLeastWindowS = 0.2;
constexpr double kSlowestClockNs = 60e6;  // slower ones are checked by their blocks alone
constexpr int kClockLooks = 3, kMostClockLooks = 12;
const char* const kClockHint =
    "the level's clock is not the driver's (CLOCK_MONOTONIC), or it tells other times than it measured";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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
    if (auto block = session.measure(plan); !block) return tl::unexpected(block.error());
    evidence.add(session.last_timed(), is_long);
    return {};
  };
  for (int look = 0; look < kMostClockLooks && !interrupted(); ++look) {
    if (look >= kClockLooks && evidence.complaint().empty()) break;
    for (const bool is_long : {false, true})
      if (auto done = request(kBlockNs, is_long); !done) return tl::unexpected(done.error());
  }
  return evidence;
}

// One worker of one player in one restart.
struct Seat {
  Player* player;
  int instance;
  std::unique_ptr<Session> session;
  proof::ClockEvidence clock;
  bool began = true;  // in mode train: no block yet since the case's weights were loaded
};

class Restart {
 public:
  Restart(std::vector<Player>& players, const Judge& judge, store::Store& store, const TurnsPlan& plan,
          const Progress& progress, int number)
      : players_(players),
        judge_(judge),
        store_(store),
        plan_(plan),
        progress_(progress),
        number_(number),
        random_(plan.seed + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(number + 1)) {}

  void start_workers(const std::vector<std::size_t>& who);
  Result<void> run(double seconds, double seconds_after);
  const probe::Load& load() const { return load_; }  // of others, over all rounds

 private:
  std::optional<Failure> seat(Player& player, int instance, const std::vector<int>& cpus);
  BlockPlan block_plan(const Player& player);
  Result<void> play(Seat& seat, int round, int position);
  Result<void> play_rounds(double seconds, double seconds_after);
  Result<void> close_window(int last);
  void begin_again(Seat& seat);
  void leave(Player& player, const Failure& why);
  void finish_training();

  std::vector<Player>& players_;
  const Judge& judge_;
  store::Store& store_;
  const TurnsPlan& plan_;
  const Progress& progress_;
  int number_;
  stats::Random random_;
  std::vector<Seat> seats_;
  std::optional<probe::LoadMeter> meter_;  // from the first round on
  int window_ = 0;                         // the first round that it has not judged yet
  probe::Load load_;
  double lost_s_ = 0;  // in requests that failed
};

std::optional<Failure> Restart::seat(Player& player, int instance, const std::vector<int>& cpus) {
  auto session = Session::open(player.job, cpus);
  if (!session) return session.error();
  if (auto done = (*session)->load("timed"); !done) return done.error();
  auto walls = warm_up(**session);
  if (!walls) return walls.error();
  std::vector<double> warm(walls->begin() + static_cast<std::ptrdiff_t>(walls->size() / 2), walls->end());
  player.iteration_ns = std::max(1.0, stats::median(warm));
  proof::ClockEvidence clock;
  if (!player.job.level.harness) {
    auto checked = check_clock(**session, player.iteration_ns, player.job.bundle->info.value("ring", 1));
    if (!checked) return checked.error();
    clock = *checked;
    if (const auto why = player.evidence.note_clock(clock); !why.empty())
      return Failure{State::mistrusted, fmt::format("restart {}: {}", number_ + 1, why), kClockHint, ""};
  }
  if (!player.job.level.harness && judge_.training) {
    if (auto done = probe_restart(player, **session, *judge_.training); !done) return done.error();
  } else if (!player.job.level.harness) {  // a harness level has nothing to prove
    auto proven = (*session)->prove({0, 1});
    if (!proven) return proven.error();
    const auto verdict =
        proof::check_outputs(*judge_.outputs, "timed", *proven, std::vector<int>{0, 1}, player.tolerance());
    if (!verdict.equal_work())
      return Failure{state_of(verdict), fmt::format("restart {}: {}", number_ + 1, verdict.reason), "", ""};
  }
  (*session)->process().pause();
  player.add_start((*session)->start_up(), number_);
  seats_.push_back({&player, instance, std::move(*session), clock, true});
  return std::nullopt;
}

void Restart::start_workers(const std::vector<std::size_t>& who) {
  // One thread: every worker on the same core, another one in each restart (docs/method.md).
  std::vector<int> cpus;
  if (plan_.room.threads == 1) cpus = {number_ % std::max(1, probe::physical_cores())};
  std::vector<std::pair<std::size_t, int>> order;
  for (const auto i : who)
    for (int instance = 0; instance < (plan_.twice ? 2 : 1); ++instance) order.emplace_back(i, instance);
  random_.shuffle(order);
  for (const auto& [index, instance] : order) {
    Player& player = players_[index];
    if (!player.playing || interrupted()) continue;
    progress_.status(fmt::format("{} {} of {}: starting {}", plan_.trial ? "trial" : "restart", number_ + 1,
                                 plan_.effort.restarts, player.job.level.name()),
                     -1);
    if (const auto why = seat(player, instance, cpus); why && !interrupted()) leave(player, *why);
  }
}

void Restart::leave(Player& player, const Failure& why) {
  player.drop(why);
  progress_.note(fmt::format("{}: {}: {}", player.job.level.name(), player.row.state, why.what));
  // At once, so that no number is shown of it if the run is killed. A store that fails here fails again at the end.
  if (!plan_.trial) (void)store_.update_row(player.row);
  std::erase_if(seats_, [&](const Seat& seat) { return seat.player == &player; });
}

BlockPlan Restart::block_plan(const Player& player) {
  BlockPlan plan;
  plan.iterations = std::clamp(static_cast<int>(std::lround(kBlockNs / player.iteration_ns)), 1, kMostIterations);
  // The first iterations after another process ran are slow; a short iteration would carry that into the block.
  plan.head = player.iteration_ns < kBlockNs ? 2 : 0;
  const auto ring = static_cast<std::uint64_t>(player.job.bundle->info.value("ring", 1));
  for (int i = 0; i < plan.iterations; ++i) plan.indices.push_back(static_cast<int>(random_.below(ring)));
  plan.check = static_cast<int>(random_.below(static_cast<std::uint64_t>(plan.iterations)));
  return plan;
}

Result<void> Restart::play(Seat& seat, int round, int position) {
  Player& player = *seat.player;
  const auto plan = block_plan(player);
  const auto asked = Clock::now();
  auto block = seat.session->measure(plan);
  if (!block) {
    lost_s_ += seconds_since(asked);  // one that hangs takes no measuring time from the others
    if (!interrupted()) leave(player, block.error());
    return {};
  }
  seat.session->process().pause();
  seat.clock.add_block(seat.session->last_timed(), plan.head, seat.session->last_bytes());
  block->restart = number_;
  block->round = round;
  block->position = position;
  block->instance = seat.instance;
  std::optional<Failure> wrong;
  if (!player.job.level.harness) {
    if (const auto why = player.evidence.note_clock(seat.clock); !why.empty())
      wrong = Failure{State::mistrusted, "while timing: " + why, kClockHint, ""};
    const auto output = seat.session->checked_output();
    if (!output) {
      wrong = output.error();
    } else if (!wrong) {
      const std::vector<int> index{plan.indices[static_cast<std::size_t>(plan.check)]};
      const auto verdict = judge_.training
                               ? check_loss(*output, index.front())
                               : proof::check_outputs(*judge_.outputs, "timed", *output, index, player.tolerance());
      if (judge_.training && !verdict.equal_work() && !seat.began) {
        begin_again(seat);
        return {};
      }
      seat.began = false;
      player.evidence.add_block(verdict);
      if (!verdict.equal_work())
        wrong = Failure{state_of(verdict), fmt::format("while timing: {}", verdict.reason), "", ""};
    }
  }
  if (wrong) block->check = wrong->what;
  if (!plan_.trial)
    if (auto written = store_.add_block(player.row.row_id, *block); !written) return written;
  player.row.blocks.push_back(std::move(*block));
  if (wrong) leave(player, *wrong);
  return {};
}

// A long training that diverges says nothing of the work, which is proven step by step: it begins again, and the block
// counts for nothing.
void Restart::begin_again(Seat& seat) {
  ++seat.player->training.begun_again;
  if (auto done = start_training(*seat.session, *judge_.training); !done) {
    if (!interrupted()) leave(*seat.player, done.error());
    return;
  }
  seat.began = true;
  seat.session->process().pause();
}

// What others had of the processors since the window began goes into every block of it. A rest too short to be judged
// counts as what came before it.
Result<void> Restart::close_window(int last) {
  if (!meter_ || last < window_) return {};
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
  if (!taken) return {};
  for (auto& seat : seats_) {
    Player& player = *seat.player;
    bool any = false;
    for (auto block = player.row.blocks.rbegin();
         block != player.row.blocks.rend() && block->restart == number_ && block->round >= first; ++block) {
      block->taken = taken;
      any = true;
    }
    if (any && !plan_.trial)
      if (auto written = store_.set_taken(player.row.row_id, number_, first, last, *taken); !written) return written;
  }
  return {};
}

Result<void> Restart::play_rounds(double seconds, double seconds_after) {
  const auto start = Clock::now();
  stats::Schedule schedule(static_cast<int>(seats_.size()), plan_.seed ^ random_.next());
  std::size_t scheduled = seats_.size();
  int round = 0;
  meter_.emplace();
  for (; !seats_.empty() && !interrupted(); ++round) {
    const double spent = seconds_since(start) - lost_s_;
    if (spent >= seconds && round >= kFewestRounds) break;
    if (seats_.size() != scheduled) {  // somebody left: a balanced order for those who stay
      scheduled = seats_.size();
      schedule = stats::Schedule(static_cast<int>(scheduled), random_.next());
    }
    progress_.status(fmt::format("{} {} of {}: measuring, round {}", plan_.trial ? "trial" : "restart", number_ + 1,
                                 plan_.effort.restarts, round + 1),
                     std::max(0.0, seconds - spent) + seconds_after);
    int position = 0;
    for (const int index : schedule.next()) {
      if (seats_.size() != scheduled || interrupted()) break;  // the rest of this round has lost its pairs
      if (auto played = play(seats_[static_cast<std::size_t>(index)], round, position++); !played) return played;
    }
    if (meter_->seconds() >= kLoadWindowS)
      if (auto closed = close_window(round); !closed) return closed;
  }
  return close_window(round);
}

Result<void> Restart::run(double seconds, double seconds_after) {
  if (auto played = play_rounds(seconds, seconds_after); !played) return played;
  finish_training();
  for (auto& seat : seats_)
    if (!interrupted()) seat.session->end();
  return {};
}

// Each level by itself, the others stopped: is what it does after the timed blocks still the optimiser's step, and what
// are its phases?
void Restart::finish_training() {
  std::vector<Player*> wrong;
  for (auto& seat : seats_) {
    if (!judge_.training || seat.player->job.level.harness || interrupted()) continue;
    if (!seat.player->playing) continue;  // the other worker of an A/A pair was wrong
    progress_.status(fmt::format("restart {} of {}: checking {} after timing", number_ + 1, plan_.effort.restarts,
                                 seat.player->name()),
                     -1);
    const int index = static_cast<int>(random_.below(static_cast<std::uint64_t>(std::max(1, judge_.training->ring()))));
    const auto checked = check_last_step(*seat.player, *seat.session, *judge_.training, index);
    if (!checked && !interrupted()) {
      seat.player->drop(checked.error());
      wrong.push_back(seat.player);
      continue;
    }
    if (checked) profile_phases(*seat.player, *seat.session, *judge_.training);
    seat.session->process().pause();
  }
  for (Player* player : wrong)
    leave(*player, Failure{state_from(player->row.state).value_or(State::failed), player->row.reason, player->row.hint,
                           player->row.log_tail});
}

// Each measured level against the reference, in the order of the players.
struct Compared {
  const Player* player;
  stats::Comparison comparison;
};

std::vector<Compared> compare_with_reference(const std::vector<Player>& players, const TurnsPlan& plan) {
  std::vector<const Player*> who;
  std::vector<const store::Row*> rows;
  std::optional<std::size_t> reference;
  for (std::size_t i = 0; i < players.size(); ++i)
    if (players[i].playing && !players[i].job.level.harness) {
      if (i == plan.reference) reference = rows.size();
      who.push_back(&players[i]);
      rows.push_back(&players[i].row);
    }
  std::vector<Compared> all;
  if (!reference) return all;
  const auto blocks = medians(rows, plan.room, 0);
  for (std::size_t level = 0; level < rows.size(); ++level)
    if (level != *reference)
      all.push_back(
          {who[level], stats::compare(stats::log_differences(blocks, *reference, level), plan.process_sigma)});
  return all;
}

// Whether every ratio's interval is as narrow as asked for.
bool precise_enough(const std::vector<Player>& players, const TurnsPlan& plan) {
  const auto all = compare_with_reference(players, plan);
  return std::all_of(all.begin(), all.end(), [&](const Compared& one) {
    return one.comparison.half_width.width <= std::log1p(plan.effort.precision);
  });
}

double disturbed_share(const store::Row& row, const stats::Room& room) {
  const auto why = disturbances(row, room);
  return why.empty() ? 0
                     : static_cast<double>(
                           std::count_if(why.begin(), why.end(), [](const auto& text) { return !text.empty(); })) /
                           static_cast<double>(why.size());
}

// What this restart alone gave, so that one that differs from the others shows.
void note_results(const std::vector<Player>& players, int restart, int restarts, const Progress& progress) {
  std::string line = fmt::format("restart {} of {}:", restart + 1, restarts);
  for (const auto& player : players) {
    if (!player.playing || player.job.level.harness) continue;
    std::vector<double> values;
    for (const auto& block : player.row.blocks)
      if (block.restart == restart)
        for (const auto ns : block.wall_ns) values.push_back(static_cast<double>(ns) * 1e-6);
    if (!values.empty()) line += fmt::format(" {} {:.3g} ms", player.job.level.name(), stats::median(values));
  }
  progress.note(line);
}

}  // namespace

Result<TurnsResult> take_turns(std::vector<Player>& players, const Judge& judge, store::Store& store,
                               const TurnsPlan& plan, const Progress& progress) {
  TurnsResult result;
  const double share = plan.effort.budget_s / plan.effort.restarts;
  std::vector<std::vector<std::size_t>> groups;  // that sit together; one player each when memory does not hold all
  std::vector<std::size_t> everybody;
  for (std::size_t i = 0; i < players.size(); ++i)
    if (players[i].playing) everybody.push_back(i);
  if (plan.together)
    groups.push_back(everybody);
  else
    for (const auto i : everybody) groups.push_back({i});
  stats::Random random(plan.seed);
  result.restarts = plan.first;
  result.load = plan.load_before;
  for (int number = plan.first; number < plan.effort.restarts && !interrupted() && !everybody.empty(); ++number) {
    result.restarts = number + 1;
    random.shuffle(groups);
    std::vector<probe::Load> loads;
    for (const auto& group : groups) {
      Restart restart(players, judge, store, plan, progress, number);
      restart.start_workers(group);
      const double own = share / static_cast<double>(groups.size());
      if (auto ran = restart.run(own, share * (plan.effort.restarts - number - 1)); !ran)
        return tl::unexpected(ran.error());
      loads.push_back(restart.load());
    }
    result.load.insert(result.load.end(), loads.begin(), loads.end());
    if (!interrupted() && plan.finished)
      if (auto written = plan.finished(number, loads); !written) return tl::unexpected(written.error());
    if (!interrupted() && !plan.trial) note_results(players, number, plan.effort.restarts, progress);
    if (plan.effort.precision > 0 && plan.together && number + 1 >= stats::fewest_with_scatter &&
        precise_enough(players, plan)) {
      result.precision_reached = true;
      break;
    }
    std::erase_if(everybody, [&](std::size_t i) { return !players[i].playing; });
  }
  if (plan.trial) return result;
  for (const auto& [player, comparison] : compare_with_reference(players, plan)) {
    const double disturbed = disturbed_share(player->row, plan.room);
    if (!stats::too_busy(comparison, disturbed)) continue;
    std::vector<std::string> why;
    if (stats::too_busy(comparison, 0))
      why.push_back(fmt::format("{:.1f}% between restarts, {:.1f}% assumed", 100 * comparison.scatter,
                                100 * std::numbers::sqrt2 * plan.process_sigma));
    if (stats::too_busy({}, disturbed))
      why.push_back(fmt::format("{:.0f}% of its blocks were disturbed", 100 * disturbed));
    result.too_busy.push_back(fmt::format("{}: {}", player->job.level.name(), fmt::join(why, ", ")));
  }
  return result;
}

}  // namespace strata::measure
