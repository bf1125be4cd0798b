// SPDX-License-Identifier: Apache-2.0
// How a level behaves while it is timed: harder work where it is looked at, more processors than the case has threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proof/conduct.hpp"
#include "stats/schedule.hpp"

namespace strata::proof {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t ms = 1'000'000;

// So many blocks of `iterations`, the marked one of which takes `marked_ns` and the others `others_ns`.
Conduct blocks_of(int count, std::int64_t marked_ns, std::int64_t others_ns, int iterations = 5, double moved = 0) {
  Conduct conduct;
  for (int block = 0; block < count; ++block) {
    std::vector<std::int64_t> walls(static_cast<std::size_t>(iterations), others_ns);
    const int at = block % iterations;
    walls[static_cast<std::size_t>(at)] = marked_ns;
    conduct.add_block(walls, at, moved);
  }
  return conduct;
}

TEST(ConductWhileTimed, work_that_is_done_where_an_input_changed_places_alone_is_seen) {
  const auto conduct = blocks_of(40, 5 * ms, 3 * ms);
  EXPECT_THAT(conduct.complaint(), HasSubstr("takes 2 ms longer than the 3 ms of the others"));
  EXPECT_TRUE(conduct.exchanges_compared());
}

TEST(ConductWhileTimed, two_iterations_a_block_are_enough_to_compare) {
  EXPECT_NE(blocks_of(40, 5 * ms, 3 * ms, 2).complaint(), "");
  EXPECT_FALSE(blocks_of(40, 5 * ms, 3 * ms, 1).exchanges_compared());
}

TEST(ConductWhileTimed, an_exchanged_input_that_finds_cold_caches_accuses_nobody) {
  EXPECT_EQ(blocks_of(40, 130'000, 100'000).complaint(), "");
  EXPECT_EQ(blocks_of(40, 5 * ms, 3 * ms, 5, 4e6).complaint(), "") << "4 MB of inputs changed places before it";
  EXPECT_EQ(blocks_of(40, 40'000, 2'000).complaint(), "") << "a switch costs more than the iteration";
}

TEST(ConductWhileTimed, a_level_that_works_where_inputs_are_exchanged_and_in_half_of_the_others_is_seen) {
  for (const int iterations : {3, 5, 8}) {
    Conduct conduct;
    for (int block = 0; block < 60; ++block) {
      std::vector<std::int64_t> walls(static_cast<std::size_t>(iterations), 10'000);
      for (int i = 0; i < iterations / 2; ++i) walls[static_cast<std::size_t>((block + i) % iterations)] = 3 * ms;
      conduct.add_block(walls, block % iterations, 0);
    }
    EXPECT_NE(conduct.complaint(), "") << iterations;
  }
}

TEST(ConductWhileTimed, iterations_that_others_hold_up_at_random_accuse_nobody) {
  stats::Random random(3);
  const auto held_up = [&] { return 800'000 + (random.below(3) == 0 ? 3 * ms : 0); };
  for (int draw = 0; draw < 2000; ++draw) {
    Conduct conduct;
    for (int block = 0; block < 24; ++block) {
      std::vector<std::int64_t> walls{held_up(), held_up(), held_up()};
      conduct.add_block(walls, static_cast<int>(random.below(3)), 0, random.below(4) == 0);
    }
    EXPECT_EQ(conduct.complaint(), "") << draw;
  }
}

TEST(ConductWhileTimed, a_few_slow_blocks_or_too_few_of_all_accuse_nobody) {
  EXPECT_EQ(blocks_of(19, 5 * ms, 3 * ms).complaint(), "");
  auto conduct = blocks_of(40, 3 * ms, 3 * ms);
  for (int block = 0; block < 30; ++block) conduct.add_block(std::vector<std::int64_t>{30 * ms, 3 * ms, 3 * ms}, 0, 0);
  EXPECT_EQ(conduct.complaint(), "");
}

// So many inputs that it never saw, among five times as many blocks of those that it knew.
Conduct shown_unseen(int count, std::int64_t unseen_ns, std::int64_t known_ns, int iterations) {
  Conduct conduct;
  for (int block = 0; block < 6 * count; ++block) {
    std::vector<std::int64_t> walls(static_cast<std::size_t>(iterations), known_ns);
    if (block % 6 == 0) walls.back() = unseen_ns;
    conduct.add_block(walls, iterations - 1, 0, block % 6 == 0);
  }
  return conduct;
}

TEST(ConductWhileTimed, a_level_that_remembers_results_is_slower_on_inputs_that_it_never_saw) {
  for (const int iterations : {1, 5}) {
    const int few = iterations == 1 ? 7 : 4;  // beside five times as many iterations on known ones
    EXPECT_THAT(shown_unseen(few, 6 * ms, 3 * ms, iterations).complaint(),
                HasSubstr("inputs that it had never seen took 3 ms longer or more than the 3 ms"));
    EXPECT_NE(shown_unseen(12, 4 * ms, 3 * ms, iterations).complaint(), "") << "many of them tell of less";
    EXPECT_EQ(shown_unseen(few, 4 * ms, 3 * ms, iterations).complaint(), "");
    EXPECT_EQ(shown_unseen(3, 6 * ms, 3 * ms, iterations).complaint(), "") << "too few";
  }
}

TEST(ConductWhileTimed, one_unseen_input_that_took_no_longer_clears_those_that_did) {
  auto conduct = shown_unseen(20, 9 * ms, 3 * ms, 1);
  conduct.add_block(std::vector<std::int64_t>{3 * ms}, 0, 0, true);
  EXPECT_EQ(conduct.complaint(), "");
  EXPECT_TRUE(conduct.unseen_compared());
}

TEST(ConductWhileTimed, steps_that_are_made_when_the_state_is_read_are_seen) {
  Conduct conduct;
  EXPECT_FALSE(conduct.states_read());
  conduct.add_states(std::vector<StateRead>{{900.0 * ms, 1000.0 * ms}}, 20.0 * ms);
  EXPECT_THAT(conduct.complaint(), HasSubstr("of which it told 1e+03 ms, took 900 ms: the work is put off"));
  conduct.add_states(std::vector<StateRead>{{45.0 * ms, 1000.0 * ms}}, 20.0 * ms);
  EXPECT_EQ(conduct.complaint(), "") << "one restart in which nothing was put off clears the other";
}

TEST(ConductWhileTimed, a_state_that_takes_long_to_read_each_time_accuses_nobody) {
  Conduct conduct;
  conduct.add_states(std::vector<StateRead>{{900.0 * ms, 100.0 * ms}}, 500.0 * ms);
  conduct.add_states(std::vector<StateRead>{{90.0 * ms, 50.0 * ms}}, 20.0 * ms);
  EXPECT_EQ(conduct.complaint(), "");
}

TEST(ConductWhileTimed, a_state_that_is_read_often_is_late_each_time_or_not_at_all) {
  Conduct late, held_up;
  const StateRead put_off{80.0 * ms, 60.0 * ms}, prompt{21.0 * ms, 60.0 * ms};
  late.add_states(std::vector<StateRead>(5, put_off), 20.0 * ms);
  EXPECT_THAT(late.complaint(), HasSubstr("of which it told 300 ms, took 400 ms"));
  held_up.add_states(std::vector<StateRead>{put_off, put_off, prompt, put_off, put_off}, 20.0 * ms);
  EXPECT_EQ(held_up.complaint(), "");
}

TEST(ConductWhileTimed, a_second_thread_of_a_case_of_one_is_seen) {
  Conduct conduct;
  conduct.add_restart(1.02, 1.0, 1);
  EXPECT_EQ(conduct.complaint(), "");
  conduct.add_restart(1.9, 1.0, 1);
  conduct.add_restart(0.98, 1.0, 1);
  EXPECT_THAT(conduct.complaint(), HasSubstr("used 1.9 processors where the case has 1 thread:"));
}

TEST(ConductWhileTimed, threads_that_turn_while_they_wait_accuse_nobody) {
  Conduct conduct;
  conduct.add_restart(2.8, 1.0, 2);
  conduct.add_restart(0.06, 0.01, 2);  // waking up
  EXPECT_EQ(conduct.complaint(), "");
  conduct.add_restart(3.9, 1.0, 2);
  EXPECT_THAT(conduct.complaint(), HasSubstr("where the case has 2 threads"));
}

TEST(ConductWhileTimed, a_second_thread_shows_within_the_iterations_where_the_turns_are_mostly_waiting) {
  Conduct honest, helped;
  for (int block = 0; block < 20; ++block) {
    honest.add_iterations(10.3 * ms, 10 * ms, 20, 0, 1);
    helped.add_iterations(15.7 * ms, 10 * ms, 20, 0, 1);
  }
  for (auto* conduct : {&honest, &helped}) conduct->add_restart(0.44, 1.0, 1);
  EXPECT_EQ(honest.complaint(), "");
  EXPECT_THAT(helped.complaint(), HasSubstr("used 1.5 processors where the case has 1 thread:"));
}

TEST(ConductWhileTimed, what_happens_between_short_iterations_accuses_nobody) {
  Conduct conduct;
  for (int block = 0; block < 50; ++block) {
    conduct.add_iterations(9 * ms, 2 * ms, 1000, 0, 1);     // 7 us between two of 2 us
    conduct.add_iterations(12 * ms, 10 * ms, 2, 1.2e6, 1);  // inputs that changed places
  }
  EXPECT_EQ(conduct.complaint(), "");
}

TEST(ConductWhileTimed, what_was_not_seen_is_not_said) {
  Conduct conduct;
  conduct.add_restart(1.0, 0.0, 1);
  EXPECT_FALSE(conduct.restarts_seen());
  conduct.add_block({}, 0, 0);
  conduct.add_block(std::vector<std::int64_t>{1, 2}, -1, 0);
  EXPECT_FALSE(conduct.exchanges_compared());
  EXPECT_EQ(conduct.complaint(), "");
}

}  // namespace
}  // namespace strata::proof
