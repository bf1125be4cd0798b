// SPDX-License-Identifier: Apache-2.0
// Turns without a process: who has its turn when, who leaves, when it is enough, and how it goes on later.
#include "run/interleaver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>

#include "common/interrupt.hpp"
#include "run/criteria.hpp"

namespace strata::run {
namespace {
using ::testing::AllOf;
using testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

struct Done {
  std::string name;
  int restart, round, position;
  bool operator==(const Done&) const = default;
};

// Time passes only in turns.
struct World {
  double now = 0;
  std::vector<std::string> events;    // "start a", "a", "stop a"
  std::set<std::string> up, running;  // not stopped; not paused
  bool alone = true;                  // whoever had its turn was the only one that was not paused
  Clock clock = [this] { return now; };
};

// Of those that load side by side: one waits for another, so that it shows whether another one may.
struct Loading {
  std::mutex mutex;
  std::condition_variable changed;
  int now = 0, most = 0, all = 0;
};

class FakeExecutor : public Executor {
 public:
  FakeExecutor(World& world, std::string name) : world_(world), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  bool active() const override { return is_active && (!only_with || only_with->active()); }
  Result<void> start(int restart) override {
    world_.events.push_back("start " + name_);
    is_active = restart != fails_in_start;
    if (is_active) {
      world_.up.insert(name_);
      world_.running.insert(name_);
    }
    return {};
  }
  void launch(int /*restart*/) override { world_.events.push_back("launch " + name_); }
  void load() override {
    if (loading == nullptr) return;
    std::unique_lock lock(loading->mutex);
    ++loading->all;
    loading->most = std::max(loading->most, ++loading->now);
    loading->changed.notify_all();
    loading->changed.wait_for(lock, std::chrono::seconds(30), [this] { return loading->most >= 2; });
    --loading->now;
  }
  Result<TurnOutcome> measure(const Turn& turn) override {
    world_.events.push_back(name_);
    world_.alone = world_.alone && world_.running == std::set<std::string>{name_};
    world_.now += seconds;
    draws.push_back(turn.random.below(1000));
    if (breaks_at == turns) return fail("the disk is full");
    is_active = turns++ != fails_at;
    if (turns == interrupts_at) interrupted() = true;
    return is_active ? TurnOutcome::block : TurnOutcome::failure;
  }
  Result<void> finish(int restart, stats::Random& /*random*/) override {
    world_.events.push_back("finish " + name_);
    world_.alone = world_.alone && world_.running == std::set<std::string>{name_};
    is_active = restart != fails_in_finish;
    return {};
  }
  void pause() override { world_.running.erase(name_); }
  void resume() override { world_.running.insert(name_); }
  void stop() override {
    world_.events.push_back("stop " + name_);
    world_.up.erase(name_);
    world_.running.erase(name_);
  }

  double seconds = 1;
  int fails_in_start = -1, fails_at = -1, fails_in_finish = -1, breaks_at = -1, interrupts_at = -1;
  int turns = 0;
  bool is_active = true;
  const Executor* only_with = nullptr;
  Loading* loading = nullptr;
  std::vector<std::uint64_t> draws;

 private:
  World& world_;
  std::string name_;
};

struct Record : Sink {
  Result<void> block(Executor& executor, const FinishedTurn& turn) override {
    blocks.push_back({executor.name(), turn.restart, turn.round, turn.position});
    return {};
  }
  Result<void> dropped(Executor& executor) override {
    left.push_back(executor.name());
    return {};
  }
  Result<void> round_ended(int /*restart*/, int /*round*/) override {
    ++rounds;
    return {};
  }
  Result<void> restart_ended(int restart) override {
    restarts.push_back(restart);
    if (restart == full_at) return fail("the disk is full");
    return {};
  }
  std::vector<Done> blocks;
  std::vector<std::string> left;
  std::vector<int> restarts;
  int rounds = 0, full_at = -1;
};

class InterleaverTest : public ::testing::Test {
 protected:
  InterleaverTest() { interrupted() = false; }
  ~InterleaverTest() override { interrupted() = false; }

  FakeExecutor& add(const std::string& name) { return executors_.emplace_back(world_, name); }
  void add_all(int number) {
    for (int i = 0; i < number; ++i) add(std::string(1, static_cast<char>('a' + i)));
  }
  // Rounds of everybody, in each restart.
  Result<InterleaverResult> run(const Order& order, int rounds, StoppingCriterion* restarts = nullptr) {
    StopByTime by_rounds(0, rounds, world_.clock);
    return run_until(by_rounds, order, restarts);
  }
  Result<InterleaverResult> run_until(StoppingCriterion& rounds, const Order& order,
                                      StoppingCriterion* restarts = nullptr) {
    std::vector<std::vector<Executor*>> groups(apart_ ? executors_.size() : 1);
    for (std::size_t i = 0; i < executors_.size(); ++i) groups[apart_ ? i : 0].push_back(&executors_[i]);
    return Interleaver(order, rounds, restarts, record_, world_.clock).run(groups);
  }
  std::vector<std::string> names(int restart) const {
    std::vector<std::string> all;
    for (const auto& block : record_.blocks)
      if (block.restart == restart) all.push_back(block.name);
    return all;
  }

  World world_;
  std::deque<FakeExecutor> executors_;
  Record record_;
  bool apart_ = false;  // each in a group of its own
};

class Balance : public InterleaverTest, public ::testing::WithParamInterface<int> {};

TEST_P(Balance, each_follows_each_other_and_has_each_position_equally_often) {
  const int levels = GetParam();
  const int rounds = levels % 2 ? 2 * levels : levels;  // of a whole Williams design
  add_all(levels);
  ASSERT_TRUE(run({.seed = 7}, rounds));
  std::map<std::pair<std::string, std::string>, int> follows;
  std::map<std::pair<std::string, int>, int> positions;
  for (std::size_t i = 0; i < record_.blocks.size(); ++i) {
    const auto& block = record_.blocks[i];
    EXPECT_EQ(block.position, static_cast<int>(i) % levels);
    EXPECT_EQ(block.round, static_cast<int>(i) / levels);
    ++positions[{block.name, block.position}];
    if (block.position > 0) ++follows[{record_.blocks[i - 1].name, block.name}];
  }
  EXPECT_EQ(follows.size(), static_cast<std::size_t>(levels * (levels - 1)));
  for (const auto& [pair, times] : follows) EXPECT_EQ(times, rounds / levels) << pair.first << pair.second;
  EXPECT_EQ(positions.size(), static_cast<std::size_t>(levels * levels));
  for (const auto& [place, times] : positions) EXPECT_EQ(times, rounds / levels) << place.first;
}
INSTANTIATE_TEST_SUITE_P(Levels, Balance, ::testing::Values(3, 4, 5, 8));

TEST_F(InterleaverTest, two_take_strict_turns) {
  add_all(2);
  ASSERT_TRUE(run({.seed = 3}, 10));
  const auto order = names(0);
  for (std::size_t i = 2; i < order.size(); ++i) EXPECT_EQ(order[i], order[i - 2]);
}

TEST_F(InterleaverTest, the_order_and_what_else_is_drawn_follow_the_seed) {
  const auto drawn = [](std::uint64_t seed) {
    World world;
    std::deque<FakeExecutor> executors;
    std::vector<Executor*> group;
    for (const char* name : {"a", "b", "c", "d"}) group.push_back(&executors.emplace_back(world, name));
    Record record;
    StopByTime rounds(0, 8, world.clock);
    (void)Interleaver({.seed = seed, .restarts = 2}, rounds, nullptr, record, world.clock).run({group});
    return std::pair(world.events, executors.front().draws);
  };
  EXPECT_EQ(drawn(5), drawn(5));
  EXPECT_NE(drawn(5).first, drawn(6).first);
  EXPECT_NE(drawn(5).second, drawn(6).second);
}

TEST_F(InterleaverTest, each_restart_starts_everybody_once_in_an_order_of_its_own_and_stops_everybody) {
  add_all(4);
  ASSERT_TRUE(run({.seed = 1, .restarts = 8}, 1));
  std::vector<std::string> started;
  std::set<std::vector<std::string>> orders;
  for (const auto& event : world_.events) {
    if (event.starts_with("start ")) started.push_back(event);
    if (event.starts_with("start ") && started.size() % 4 == 0) orders.insert({started.end() - 4, started.end()});
  }
  EXPECT_EQ(started.size(), 32u);
  for (const auto& order : orders) EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 4u);
  EXPECT_GT(orders.size(), 1u);
  EXPECT_TRUE(world_.up.empty());
}

TEST_F(InterleaverTest, after_the_first_restart_as_many_load_side_by_side_as_may_and_each_starts_alone) {
  add_all(5);
  Loading loading;
  for (auto& executor : executors_) executor.loading = &loading;
  ASSERT_TRUE(run({.seed = 1, .restarts = 3, .side_by_side = 2}, 1));
  EXPECT_EQ(loading.all, 2 * 5);
  EXPECT_EQ(loading.most, 2);
  EXPECT_EQ(loading.now, 0);
  std::string kinds;  // of each restart, which ends with five that stop
  for (const auto& event : world_.events) kinds += event.find(' ') == std::string::npos ? '.' : event[2];
  EXPECT_EQ(kinds, "aaaaa.....nnnnnooooouuuuuaaaaa.....nnnnnooooouuuuuaaaaa.....nnnnnooooo");
  EXPECT_TRUE(world_.alone);
}

TEST_F(InterleaverTest, one_that_has_left_is_not_loaded_with_the_others) {
  add_all(3);
  executors_[1].fails_at = 0;
  ASSERT_TRUE(run({.seed = 1, .restarts = 2, .side_by_side = 2}, 1));
  EXPECT_THAT(world_.events, AllOf(Contains("launch a").Times(1), Not(Contains("launch b"))));
}

TEST_F(InterleaverTest, one_that_loaded_and_does_not_start_is_stopped_whoever_was_first) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    executors_.clear();
    world_.events.clear();
    add_all(3);
    executors_[0].fails_in_start = 1;
    executors_[1].only_with = &executors_[0];
    ASSERT_TRUE(run({.seed = seed, .restarts = 2, .side_by_side = 2}, 1));
    EXPECT_THAT(world_.events, AllOf(Contains("launch b").Times(1), Contains("stop b").Times(2))) << seed;
  }
}

TEST_F(InterleaverTest, one_place_alone_means_that_nobody_loads_before_its_start) {
  add_all(2);
  ASSERT_TRUE(run({.seed = 1, .restarts = 2}, 1));
  EXPECT_THAT(world_.events, AllOf(Not(Contains("launch a")), Not(Contains("launch b"))));
}

TEST_F(InterleaverTest, never_measures_a_paused_one_nor_beside_one_that_is_not_paused) {
  add_all(5);
  executors_[1].fails_at = 4;
  executors_[3].fails_in_finish = 0;
  ASSERT_TRUE(run({.seed = 2, .restarts = 3}, 10));
  EXPECT_TRUE(world_.alone);
}

TEST_F(InterleaverTest, one_that_fails_in_the_middle_is_stopped_at_once_and_the_others_go_on_in_balance) {
  add_all(4);
  executors_[2].fails_at = 2;
  ASSERT_TRUE(run({.seed = 4, .restarts = 2}, 3 + 6));
  EXPECT_THAT(record_.left, ElementsAre("c"));
  const auto failed = std::find(world_.events.rbegin(), world_.events.rend(), "c").base();
  EXPECT_EQ(*failed, "stop c");
  EXPECT_EQ(std::count(world_.events.begin(), world_.events.end(), "start c"), 1);
  EXPECT_THAT(names(1),
              AllOf(Contains("a").Times(9), Contains("b").Times(9), Contains("d").Times(9), Not(Contains("c"))));
  std::map<std::string, int> follows;  // in the six rounds after it left
  for (std::size_t i = 1; i < record_.blocks.size(); ++i) {
    const auto &before = record_.blocks[i - 1], &block = record_.blocks[i];
    if (block.restart == 0 && block.round >= 3 && block.position > 0) ++follows[before.name + block.name];
  }
  EXPECT_EQ(follows.size(), 6u);
  for (const auto& [pair, times] : follows) EXPECT_EQ(times, 2) << pair;
}

TEST_F(InterleaverTest, the_round_in_which_one_fails_ends_there) {
  add_all(3);
  for (auto& participant : executors_) participant.fails_at = &participant == &executors_[0] ? 0 : -1;
  ASSERT_TRUE(run({.seed = 1}, 2));
  const auto alone = std::find(world_.events.begin(), world_.events.end(), "a");
  int in_first = 0;
  for (const auto& block : record_.blocks) in_first += block.round == 0;
  const auto turns_before = std::count_if(world_.events.begin(), alone, [](const auto& e) { return e.size() == 1; });
  EXPECT_EQ(in_first, turns_before);
  EXPECT_EQ(record_.rounds, 2);
}

TEST_F(InterleaverTest, one_that_does_not_start_has_no_turn) {
  add_all(3);
  executors_[1].fails_in_start = 1;
  ASSERT_TRUE(run({.seed = 1, .restarts = 3}, 2));
  EXPECT_THAT(names(0), Contains("b").Times(2));
  EXPECT_THAT(names(1), AllOf(Not(Contains("b")), Contains("a").Times(2)));
  EXPECT_THAT(names(2), Not(Contains("b")));
  EXPECT_THAT(record_.left, ElementsAre("b"));
}

TEST_F(InterleaverTest, one_that_plays_only_with_another_leaves_with_it) {
  add_all(3);
  executors_[0].fails_at = 1;
  executors_[1].only_with = &executors_[0];
  ASSERT_TRUE(run({.seed = 9}, 8));
  EXPECT_THAT(record_.left, ElementsAre("a"));
  EXPECT_THAT(world_.events, Contains("stop b").Times(1));
  EXPECT_LE(executors_[1].turns, 2);
  EXPECT_GE(executors_[2].turns, 7);
}

TEST_F(InterleaverTest, what_is_wrong_after_the_last_turn_drops_it_too) {
  add_all(2);
  executors_[0].fails_in_finish = 0;
  ASSERT_TRUE(run({.seed = 1, .restarts = 2}, 3));
  EXPECT_THAT(record_.left, ElementsAre("a"));
  EXPECT_THAT(names(0), Contains("a").Times(3));
  EXPECT_THAT(names(1), ElementsAre("b", "b", "b"));
}

TEST_F(InterleaverTest, ends_when_nobody_plays_any_more) {
  add_all(2);
  for (auto& participant : executors_) participant.fails_at = 1;
  const auto ended = run({.seed = 1, .restarts = 5}, 4);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->restarts, 1);
  EXPECT_EQ(record_.left.size(), 2u);
}

TEST_F(InterleaverTest, stops_by_time_after_whole_rounds) {
  add_all(3);
  StopByTime rounds(10, 1, world_.clock);
  ASSERT_TRUE(run_until(rounds, {.seed = 1, .restarts = 2}));
  EXPECT_EQ(record_.blocks.size(), 2u * 12);  // 3 s a round: four of them
  EXPECT_EQ(rounds.left(), 0);
}

TEST_F(InterleaverTest, slow_ones_have_the_fewest_rounds_however_long_they_take) {
  add_all(2);
  executors_[0].seconds = 100;
  StopByTime rounds(10, 3, world_.clock);
  ASSERT_TRUE(run_until(rounds, {.seed = 1}));
  EXPECT_EQ(record_.blocks.size(), 2u * 3);
}

TEST_F(InterleaverTest, one_that_hangs_takes_no_time_from_the_others) {
  add_all(2);
  executors_[0].fails_at = 0;
  executors_[0].seconds = 600;
  StopByTime rounds(20, 1, world_.clock);
  ASSERT_TRUE(run_until(rounds, {.seed = 1}));
  EXPECT_EQ(executors_[1].turns, 20);
}

stats::Comparison of_width(double relative) {
  stats::Comparison comparison;
  comparison.half_width.width = std::log1p(relative);
  return comparison;
}

TEST_F(InterleaverTest, stops_by_precision_once_every_ratio_is_as_narrow_as_asked_for) {
  add_all(2);
  StopByPrecision precision(0.01, 0, [&] {
    const double width = record_.restarts.size() < 4 ? 0.02 : 0.005;
    return std::vector{of_width(0.001), of_width(width)};
  });
  const auto ended = run({.seed = 1, .restarts = 9}, 1, &precision);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->restarts, 4);
  EXPECT_TRUE(ended->enough);
}

TEST_F(InterleaverTest, no_precision_is_believed_before_restarts_show_their_scatter) {
  add_all(2);
  const auto narrow = [] { return std::vector{of_width(0.0001)}; };
  StopByPrecision precision(0.01, 0, narrow), resumed(0.01, 2, narrow);
  EXPECT_EQ(run({.seed = 1, .restarts = 9}, 1, &precision)->restarts, 3);
  EXPECT_EQ(run({.seed = 1, .restarts = 9, .first = 2}, 1, &resumed)->restarts, 3);
}

TEST_F(InterleaverTest, a_width_that_is_never_reached_takes_all_restarts) {
  add_all(2);
  StopByPrecision precision(0.01, 0, [] { return std::vector{stats::Comparison{}}; });
  const auto ended = run({.seed = 1, .restarts = 5}, 1, &precision);
  EXPECT_EQ(ended->restarts, 5);
  EXPECT_FALSE(ended->enough);
}

TEST_F(InterleaverTest, goes_on_after_the_restarts_that_were_done_as_if_it_had_not_been_cut_off) {
  add_all(4);
  ASSERT_TRUE(run({.seed = 8, .restarts = 4}, 6));
  std::vector<Done> whole;
  for (const auto& block : record_.blocks)
    if (block.restart >= 2) whole.push_back(block);
  record_ = {};
  const auto ended = run({.seed = 8, .restarts = 4, .first = 2}, 6);
  EXPECT_EQ(record_.blocks, whole);
  EXPECT_THAT(record_.restarts, ElementsAre(2, 3));
  EXPECT_EQ(ended->restarts, 4);
}

TEST_F(InterleaverTest, groups_are_up_one_after_the_other_in_an_order_drawn_for_each_restart) {
  add_all(3);
  apart_ = true;
  ASSERT_TRUE(run({.seed = 1, .restarts = 6}, 2));
  std::size_t up = 0;
  std::set<std::vector<std::string>> orders;
  for (const auto& event : world_.events) {
    up += event.starts_with("start ");
    up -= event.starts_with("stop ");
    EXPECT_LE(up, 1u);
  }
  for (int restart = 0; restart < 6; ++restart) {
    const auto order = names(restart);
    ASSERT_EQ(order.size(), 6u);
    EXPECT_EQ(order[0], order[1]);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST_F(InterleaverTest, an_interruption_ends_it_in_the_middle_of_a_round_and_leaves_nobody_up) {
  add_all(3);
  executors_[1].interrupts_at = 3;
  ASSERT_TRUE(run({.seed = 1, .restarts = 4}, 6));
  EXPECT_EQ(executors_[1].turns, 3);
  EXPECT_LE(executors_[0].turns, 3);
  EXPECT_THAT(world_.events, Not(Contains("finish a")));
  EXPECT_TRUE(world_.up.empty());
}

TEST_F(InterleaverTest, an_error_ends_it_and_leaves_nobody_up) {
  add_all(3);
  executors_[0].breaks_at = 1;
  EXPECT_EQ(run({.seed = 1, .restarts = 4}, 6).error().what, "the disk is full");
  EXPECT_TRUE(world_.up.empty());
  EXPECT_LE(executors_[1].turns, 2);
}

TEST_F(InterleaverTest, an_error_of_whom_it_tells_ends_it) {
  add_all(2);
  record_.full_at = 1;
  EXPECT_EQ(run({.seed = 1, .restarts = 4}, 1).error().what, "the disk is full");
  EXPECT_THAT(record_.restarts, ElementsAre(0, 1));
}

}  // namespace
}  // namespace strata::run
