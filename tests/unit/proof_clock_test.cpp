// SPDX-License-Identifier: Apache-2.0
// A worker's times against the driver's clock: what cannot be, a clock that runs slowly, in requests and in turns of a
// training, and what honest levels do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "proof/clock.hpp"
#include "proof/turn_clock.hpp"
#include "stats/schedule.hpp"

namespace strata::proof {
namespace {

using ::testing::HasSubstr;

constexpr double ns_per_ms = 1e6;

TEST(TimesOfAWorker, cannot_be_longer_than_the_driver_waited) {
  const std::vector<std::int64_t> walls{5'000'000, 5'000'000}, latencies{4'000'000, 4'000'000};
  EXPECT_EQ(impossible_times(walls, latencies, 11 * ns_per_ms), "");
  const auto complaint = impossible_times(walls, latencies, 9 * ns_per_ms);
  EXPECT_THAT(complaint, HasSubstr("2 iterations took 10 ms"));
  EXPECT_THAT(complaint, HasSubstr("waited 9 ms"));
  const std::vector<std::int64_t> years{4'000'000'000'000'000'000, 4'000'000'000'000'000'000,
                                        4'000'000'000'000'000'000};
  EXPECT_THAT(impossible_times(years, {}, 10 * ns_per_ms), HasSubstr("where the driver waited"));
}

TEST(TimesOfAWorker, cannot_have_a_latency_above_the_whole) {
  const std::vector<std::int64_t> walls{100, 100}, latencies{90, 101};
  EXPECT_THAT(impossible_times(walls, latencies, 10 * ns_per_ms), HasSubstr("iteration 1"));
}

// What a worker whose clock runs at `rate` of the true one tells of iterations of `true_ns`.
// Between two of them `gap_ns` pass; `queued` is the share of each request that its processes waited for a core.
ClockEvidence seen(double rate, double true_ns, double overhead_ns, const std::vector<double>& disturbances,
                   double gap_ns = 1000, double queued = 0) {
  ClockEvidence evidence;
  const int few = std::max(1, static_cast<int>(10 * ns_per_ms / (rate * true_ns))), more = 3 * few;
  for (const double disturbance : disturbances)
    for (const bool is_long : {false, true}) {
      const int n = is_long ? more : few;
      const double ran_ns = n * (true_ns + gap_ns) + overhead_ns + disturbance;
      evidence.add({n, rate * n * true_ns, ran_ns, ran_ns * queued / (1 - queued)}, is_long);
    }
  return evidence;
}

TEST(ClockEvidence, accuses_a_clock_that_runs_at_half_or_two_thirds_of_the_speed) {
  for (const double true_ns : {100e3, 1 * ns_per_ms, 20 * ns_per_ms, 80 * ns_per_ms})
    for (const double rate : {0.1, 0.5, 0.66}) {
      const auto evidence = seen(rate, true_ns, 2 * ns_per_ms, {0, 0, 0});
      EXPECT_THAT(evidence.complaint(), HasSubstr("longer by the driver's clock")) << rate << " " << true_ns;
    }
}

TEST(ClockEvidence, accuses_a_clock_that_is_slow_by_a_fifth_where_nobody_waits_for_a_core) {
  for (const double true_ns : {0.5 * ns_per_ms, 1 * ns_per_ms, 20 * ns_per_ms}) {
    EXPECT_THAT(seen(0.8, true_ns, 2 * ns_per_ms, {0, 0, 0}, 1000, 0.01).complaint(), HasSubstr("longer by the driver"))
        << true_ns;
    EXPECT_EQ(seen(0.95, true_ns, 2 * ns_per_ms, {0, 0, 0}).complaint(), "") << true_ns;
  }
}

TEST(ClockEvidence, allows_longer_gaps_between_iterations_beside_busy_processes) {
  for (const double true_ns : {0.1 * ns_per_ms, 0.3 * ns_per_ms, 1 * ns_per_ms})
    for (const double queued : {0.5, 0.66}) {
      EXPECT_EQ(seen(1, true_ns, 2 * ns_per_ms, {0, 0, 0}, 0.6 * true_ns, queued).complaint(), "") << true_ns;
      EXPECT_NE(seen(1, true_ns, 2 * ns_per_ms, {0, 0, 0}, 0.6 * true_ns).complaint(), "") << true_ns;
      EXPECT_NE(seen(0.1, true_ns, 2 * ns_per_ms, {0, 0, 0}, 1000, queued).complaint(), "") << "a tenth is no gap";
    }
}

TEST(ClockEvidence, allows_what_freeing_a_large_result_takes) {
  ClockEvidence evidence;
  for (const int n : {2, 6}) evidence.add({n, n * 12 * ns_per_ms, n * 16 * ns_per_ms}, n == 6, 100e6);
  EXPECT_EQ(evidence.complaint(), "");
}

TEST(ClockEvidence, accuses_no_honest_level_for_transfer_large_files_or_a_busy_machine) {
  for (const double true_ns : {2e3, 100e3, 1 * ns_per_ms, 80 * ns_per_ms})
    for (const double overhead : {0.1 * ns_per_ms, 5 * ns_per_ms, 200 * ns_per_ms}) {
      EXPECT_EQ(seen(1, true_ns, overhead, {0, 0, 0}).complaint(), "") << true_ns << " " << overhead;
      EXPECT_EQ(seen(1, true_ns, overhead, {30 * ns_per_ms, 0.5 * ns_per_ms, 90 * ns_per_ms}).complaint(), "");
      EXPECT_EQ(seen(1, true_ns, overhead, {0, 0, 0}, 4000).complaint(), "");
    }
}

// A request costs 6 ms beside its two iterations of 5.8 ms; as much was waited within these, which is told.
TEST(ClockEvidence, accuses_nobody_by_short_requests_that_waited_within_their_iterations) {
  ClockEvidence evidence;
  for (int look = 0; look < 3; ++look) {
    evidence.add({2, (2 * 5.8 + 6) * ns_per_ms, 17.6 * ns_per_ms, 6 * ns_per_ms}, false);
    evidence.add({2, 2 * 5.8 * ns_per_ms, 17.6 * ns_per_ms, 0}, false);
    evidence.add({6, 6 * 5.8 * ns_per_ms, (6 * 5.8 + 6) * ns_per_ms, 0}, true);
  }
  EXPECT_EQ(evidence.complaint(), "");
}

TEST(ClockEvidence, accuses_results_that_are_made_when_they_are_copied) {
  ClockEvidence lazy, honest;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lazy.complaint(), "");
    lazy.add_copies(30 * ns_per_ms, 0.1 * ns_per_ms, 4e3);
    honest.add_copies(i == 1 ? 400 * ns_per_ms : 0.2 * ns_per_ms, 0.1 * ns_per_ms, 4e3);  // once it waited for a core
  }
  EXPECT_NE(lazy.complaint().find("to copy a result took 30 ms"), std::string::npos) << lazy.complaint();
  EXPECT_EQ(honest.complaint(), "");
}

TEST(ClockEvidence, says_that_work_is_put_off_where_that_makes_blocks_too_long_as_well) {
  ClockEvidence lazy;
  for (int i = 0; i < 3; ++i) {
    lazy.add_block({10, 10 * ns_per_ms, 80 * ns_per_ms}, 2, 4e3);
    lazy.add_copies(50 * ns_per_ms, 1 * ns_per_ms, 4e3);
  }
  EXPECT_THAT(lazy.complaint(), HasSubstr("the work is put off"));
}

// Blocks of 10 iterations and of 3, all with two unrecorded ones; of an iteration of `true_ns` the level tells
// `told_ns`, and in the unrecorded ones it works `moved_ns` for each of the others.
ClockEvidence turns_of(int count, double true_ns, double told_ns, double moved_ns = 0) {
  ClockEvidence evidence;
  for (int i = 0; i < count; ++i)
    for (const int n : {3, 10}) {
      const double waiting = i % 4 == 0 ? 20 * ns_per_ms : 0;  // some blocks are disturbed
      evidence.add_turn({n, n * told_ns, (n + 2) * true_ns + n * moved_ns + 1 * ns_per_ms + waiting}, n == 10);
    }
  EXPECT_EQ(evidence.complaint(), "") << "before all are seen";
  evidence.end_turns();
  return evidence;
}

TEST(ClockEvidence, accuses_a_clock_that_is_slow_in_timed_blocks_alone) {
  EXPECT_THAT(turns_of(40, 1 * ns_per_ms, 0.8 * ns_per_ms).complaint(), HasSubstr("of its timed blocks"));
  EXPECT_EQ(turns_of(40, 1 * ns_per_ms, 1 * ns_per_ms).complaint(), "");
  EXPECT_EQ(turns_of(5, 1 * ns_per_ms, 0.1 * ns_per_ms).complaint(), "") << "too few";
}

TEST(ClockEvidence, accuses_nobody_by_blocks_that_are_slow_at_random) {
  stats::Random random(7);
  for (int draw = 0; draw < 2000; ++draw) {  // the iterations after another process ran take 0 to 20 ms more
    ClockEvidence evidence;
    for (int i = 0; i < 6 + draw % 20; ++i) {
      const int n = i % 4 == 0 ? 3 : 10;
      const double cold_ns = static_cast<double>(random.below(1000)) / 1000 * 20 * ns_per_ms;
      evidence.add_turn({n, n * ns_per_ms, (n + 2) * ns_per_ms + cold_ns}, n == 10);
    }
    evidence.end_turns();
    EXPECT_EQ(evidence.complaint(), "") << draw;
  }
}

TEST(ClockEvidence, accuses_nobody_by_blocks_that_waited_for_a_core) {
  ClockEvidence evidence;
  for (int i = 0; i < 20; ++i) {  // what waiting takes is left out of a time of which it is a part
    evidence.add_turn({3, 6 * ns_per_ms, 6 * ns_per_ms, 3 * ns_per_ms}, false);
    evidence.add_turn({10, 10 * ns_per_ms, 13 * ns_per_ms}, true);
  }
  evidence.end_turns();
  EXPECT_EQ(evidence.complaint(), "");
}

TEST(ClockEvidence, accuses_work_that_is_moved_into_iterations_that_are_not_recorded) {
  EXPECT_NE(turns_of(40, 0.1 * ns_per_ms, 0.1 * ns_per_ms, 0.9 * ns_per_ms).complaint(), "");
}

TEST(ClockEvidence, accuses_blocks_that_the_told_times_do_not_explain) {
  ClockEvidence slow, honest;
  for (int i = 0; i < 5; ++i) {
    slow.add_block({1, 300 * ns_per_ms, 600 * ns_per_ms}, 0, 1e6);
    honest.add_block({1, 300 * ns_per_ms, 305 * ns_per_ms}, 0, 1e6);
    honest.add_block({10, 10 * ns_per_ms, 16 * ns_per_ms}, 2, 1e6);
  }
  EXPECT_THAT(slow.complaint(), HasSubstr("600 ms by the driver's clock, of which the level tells 300 ms"));
  EXPECT_EQ(honest.complaint(), "");
}

struct Turns {
  double rate = 1, step_ns = 2e6, gap_ns = 20e3, overhead_ns = 3e6;
  double queued = 0;          // share of each request that its processes waited for a core
  double disturbed = 0;       // share of the requests that 40 ms more come to
  double honest_share = 0;    // of the requests, in which the clock is right
  int turns = 24, most = 60;  // steps of a turn: from 1 to `most`, or all of as many
  bool one_length = false;
};

TurnClock turns_seen(const Turns& made, std::uint64_t seed = 1) {
  TurnClock clock;
  stats::Random random(seed);
  const auto one_of = [&](double share) { return static_cast<double>(random.below(1000)) < 1000 * share; };
  for (int i = 0; i < made.turns; ++i) {
    const int steps =
        made.one_length ? made.most : 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(made.most)));
    const double ran =
        steps * (made.step_ns + made.gap_ns) + made.overhead_ns + (one_of(made.disturbed) ? 40 * ns_per_ms : 0);
    const double rate = one_of(made.honest_share) ? 1 : made.rate;
    clock.add({steps, rate * steps * made.step_ns, ran, ran * made.queued / (1 - made.queued)});
  }
  return clock;
}

TEST(TurnClock, accuses_a_clock_that_is_slow_by_a_fifth_on_a_quiet_machine_whatever_turns_cost_besides) {
  for (const double rate : {0.1, 0.5, 0.8})
    for (const double step : {0.5 * ns_per_ms, 2 * ns_per_ms, 80 * ns_per_ms})
      for (const double overhead : {0.1 * ns_per_ms, 20 * ns_per_ms})
        EXPECT_THAT(turns_seen({.rate = rate, .step_ns = step, .overhead_ns = overhead}).complaint(),
                    HasSubstr("longer by the driver's clock"))
            << rate << " " << step << " " << overhead;
}

TEST(TurnClock, finds_a_tenth_of_the_time_beside_programs_that_take_most_of_the_cores) {
  EXPECT_NE(turns_seen({.rate = 0.1, .queued = 0.6}).complaint(), "");
}

TEST(TurnClock, accuses_a_clock_that_is_right_in_some_turns_and_slow_in_most) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    found += turns_seen({.rate = 0.5, .honest_share = 0.1, .turns = 60}, seed).complaint().empty() ? 0 : 1;
  EXPECT_GE(found, 19);
}

TEST(TurnClock, accuses_no_honest_level_of_whatever_step_overhead_or_load) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const double step : {0.3 * ns_per_ms, 1 * ns_per_ms, 100 * ns_per_ms})
      for (const double queued : {0.0, 0.3, 0.6})
        for (const double disturbed : {0.0, 0.5}) {
          const Turns made{.step_ns = step, .queued = queued, .disturbed = disturbed};
          EXPECT_EQ(turns_seen(made, seed).complaint(), "") << step << " " << queued << " " << disturbed << " " << seed;
        }
}

TEST(TurnClock, accuses_by_looks_of_two_lengths_where_a_training_had_few_turns) {
  TurnClock clock;
  for (int i = 0; i < 2; ++i) clock.add({2000, 0.5 * 2000 * 1e6, 2000 * 1e6 + 3e6});
  for (int i = 0; i < 12; ++i)
    for (const int steps : {10, 30}) clock.add({steps, 0.5 * steps * 1e6, steps * 1e6 + 3e6});
  EXPECT_NE(clock.complaint(), "");
}

TEST(TurnClock, says_nothing_by_turns_of_one_length_or_by_few) {
  EXPECT_FALSE(turns_seen({.rate = 0.1, .one_length = true}).enough());
  EXPECT_EQ(turns_seen({.rate = 0.1, .one_length = true}).complaint(), "");
  EXPECT_EQ(turns_seen({.rate = 0.1, .turns = 3}).complaint(), "");
  EXPECT_TRUE(turns_seen({}).enough());
}

}  // namespace
}  // namespace strata::proof
