// SPDX-License-Identifier: Apache-2.0
// The first sentences of a training: whether it came to its end, and how fast its levels went where times say
// something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/reliability.hpp"
#include "report/training_sections.hpp"

namespace strata::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// eager and static, with steps of 4 and 1 ms; eager uses ten times the processor time.
class TrainingSummary : public ::testing::Test {
 protected:
  TrainingSummary() {
    run_.run_id = "r";
    run_.finished = "2026-01-01";
    run_.settings = {.verb = "train", .training = {.repeats = 2}};
    run_.machine = {{"physical_cores", 2}, {"logical_processors", 2}};
    case_.question = {.model = "m", .mode = core::Mode::train, .threads = 2, .data = "digits"};
    case_.question.recipe.emplace();
    case_.question.recipe->training = core::Training{.epochs = 12};
    case_.reference_level = "eager";
    case_.finished = true;
    case_.rows.resize(2);
    case_.rows[0].level = "eager";
    case_.rows[1].level = "static";
  }

  void others_had(double share) { case_.trust.load = {.begin = share, .others = share, .steal = 0}; }

  // Of each repeat so many epochs.
  std::vector<TrainedLevel> levels(const std::vector<int>& epochs_of) const {
    std::vector<TrainedLevel> all;
    for (std::size_t i = 0; i < case_.rows.size(); ++i) {
      std::vector<store::Series> series;
      for (std::size_t repeat = 0; repeat < epochs_of.size(); ++repeat) {
        const auto add = [&](const char* name, double value) {
          store::Series one{name, "", "epoch", {}, {}, static_cast<int>(repeat)};
          for (int epoch = 1; epoch <= epochs_of[repeat]; ++epoch) {
            one.positions.push_back(epoch);
            one.values.push_back(value);
          }
          series.push_back(std::move(one));
        };
        add("step_time", i == 0 ? 4 : 1);
        add("step_seconds", i == 0 ? 4 : 1);
        add("run_queue_wait_seconds", 0.001);
        add("cpu_seconds", i == 0 ? 10 : 1);
        add("test_accuracy", 0.9);
      }
      all.push_back({&case_.rows[i], analysis::Learning(series), State::measured, "", series});
    }
    return all;
  }

  std::string summary(const std::vector<int>& epochs_of) const {
    const auto all = levels(epochs_of);
    return cut_off_words(all, case_, run_) + training_summary(all, case_, run_);
  }

  store::Run run_;
  store::Case case_;
};

TEST_F(TrainingSummary, of_a_whole_training_has_its_epochs_and_the_fastest_level) {
  EXPECT_EQ(summary({12, 12}),
            "After 12 epochs on digits the levels end at a test accuracy of 90.00%; static took its steps 4.00 times "
            "as fast as eager (4.00 to 4.00 in 2 repeats).");
}

TEST_F(TrainingSummary, of_one_that_was_killed_says_so_first_and_promises_no_epoch_that_did_not_run) {
  case_.finished = false;
  run_.finished.clear();
  const auto words = summary({1});
  EXPECT_THAT(words, ::testing::StartsWith("Interrupted in repeat 1 of 2 after epoch 1 of 12; ./strata resume r goes "
                                           "on. So far, on digits, the levels are at a test accuracy of 90.00%"));
  EXPECT_THAT(words, Not(HasSubstr("After")));
  EXPECT_EQ(epochs_done(levels({1})), 1);
  EXPECT_THAT(summary({12, 3}), ::testing::StartsWith("Interrupted in repeat 2 of 2 after epoch 3 of 12"));
}

TEST_F(TrainingSummary, says_that_equivalent_means_nothing_where_no_level_is_above_chance) {
  case_.trust.commonest_class = 0.9;
  case_.trust.test_images = 1000;
  EXPECT_THAT(chance_words(levels({12}), case_),
              HasSubstr("No level learned anything: none is above the 92.85% that naming the commonest class alone"));
  case_.trust.commonest_class = 0.1;
  EXPECT_EQ(chance_words(levels({12}), case_), "");
  case_.trust = {};
  EXPECT_EQ(chance_words(levels({12}), case_), "") << "not known";
}

TEST_F(TrainingSummary, on_a_busy_machine_tells_no_speedup_but_that_of_processor_time) {
  others_had(0.9);
  const auto words = summary({12, 12});
  EXPECT_THAT(words, Not(HasSubstr("4.00 times")));
  EXPECT_THAT(words, HasSubstr(". Times are not reliable: other programs use 90% of this machine; by processor time "
                               "static took its steps 10.00 times as fast as eager (10.00 to 10.00 in 2 repeats)."));
}

TEST_F(TrainingSummary, of_one_thread_that_had_its_core_is_reliable_beside_others) {
  others_had(0.9);
  case_.question.threads = 1;
  EXPECT_THAT(summary({12, 12}), HasSubstr("static took its steps 4.00 times as fast"));
}

}  // namespace
}  // namespace strata::report
