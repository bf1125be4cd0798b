// SPDX-License-Identifier: Apache-2.0
// What a run knows of other programs: the mark of a measuring run, and what others used meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "analysis/limit.hpp"
#include "analysis/load_facts.hpp"
#include "analysis/warnings.hpp"
#include "measure/measuring_mark.hpp"

namespace strata::measure {
namespace {
using namespace analysis;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class MarkTest : public ::testing::Test {
 protected:
  MarkTest() : folder_(fs::temp_directory_path() / ("strata_mark_" + std::to_string(getpid()))) {}
  ~MarkTest() override { fs::remove_all(folder_); }
  fs::path folder_;
  fs::path file_ = folder_ / "new folder" / "measuring";
};

TEST_F(MarkTest, names_the_run_that_measures_until_it_ends) {
  {
    const MeasuringMark first(file_);
    EXPECT_FALSE(first.other());
    const MeasuringMark second(file_), third(file_);
    EXPECT_EQ(second.other(), getpid());
    EXPECT_EQ(third.other(), getpid());
  }
  EXPECT_FALSE(MeasuringMark(file_).other());
}

TEST_F(MarkTest, a_killed_run_leaves_nothing_that_means_anything) {
  const pid_t child = fork();
  if (child == 0) {
    const MeasuringMark mark(file_);
    _exit(0);  // no destructor: the file stays with a number in it
  }
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(file_));
  EXPECT_FALSE(MeasuringMark(file_).other());
}

TEST_F(MarkTest, what_cannot_be_read_or_made_stops_nobody) {
  EXPECT_FALSE(MeasuringMark("/proc/nowhere/measuring").other());
  const MeasuringMark first(file_);
  std::ofstream(file_, std::ios::trunc) << "no number";
  EXPECT_EQ(MeasuringMark(file_).other(), 0);
}

LoadFacts facts() {
  LoadFacts load;
  load.begin = 0.98;
  add_restarts(load, {{0.40, 0.02, 10}, {0.0, 0.0, 0}, {0.60, 0.0, 30}});
  load.other_run = 77;
  return load;
}

TEST(LoadFacts, weighs_restarts_by_how_long_they_were_watched) {
  const auto load = facts();
  EXPECT_NEAR(load.others.value(), 0.55, 1e-12);
  EXPECT_NEAR(load.steal.value(), 0.005, 1e-12);
  EXPECT_EQ(load.restarts.size(), 2U);
  EXPECT_NEAR(load.taken(), 0.555, 1e-12);
}

TEST(LoadFacts, unknown_is_not_busy_and_a_load_that_begins_later_is) {
  EXPECT_FALSE(LoadFacts{}.busy());
  LoadFacts later;
  later.begin = 0.0;
  EXPECT_FALSE(later.busy());
  add_restarts(later, {{0.45, 0, 5}});
  EXPECT_TRUE(later.busy());
  LoadFacts other;
  other.other_run = 0;
  EXPECT_TRUE(other.busy());
}

TEST(LoadFacts, the_warning_says_when_how_much_and_who) {
  const auto warning = warnings::busy("mnist/infer", facts());
  EXPECT_EQ(warning.id, "W002");
  EXPECT_THAT(warning.what,
              HasSubstr("mnist/infer: other programs used 98% of the machine when measuring began and 55% "
                        "while it ran"));
  EXPECT_THAT(warning.what, HasSubstr("another strata run is measuring (pid 77)"));
}

TEST(Peaks, accuse_nobody_unless_the_work_is_counted_and_the_peak_was_seen_undisturbed) {
  const Json counted{{"flops", 1e9}};
  const store::Limits quiet{.gflops = 100, .quiet = true};
  EXPECT_EQ(why_no_limit(counted, quiet), "");
  EXPECT_THAT(why_no_limit(counted, store::Limits{.gflops = 17}), HasSubstr("may be too low"));
  EXPECT_THAT(why_no_limit(counted, store::Limits{}), HasSubstr("not measured"));
  EXPECT_THAT(why_no_limit({{"flops", 0}}, quiet), HasSubstr("not counted"));
  EXPECT_THAT(why_no_limit({{"flops", nullptr}}, quiet), HasSubstr("not counted"));
  EXPECT_EQ(why_no_limit({{"flops", 1e9}, {"flops_uncounted", {"lstm", "gru"}}}, quiet),
            "the work of lstm, gru is not counted");
}

}  // namespace
}  // namespace strata::measure
