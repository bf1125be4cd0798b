// SPDX-License-Identifier: Apache-2.0
// What becomes of a scheme of initialisation, and how a report of several shows it.
#include "analysis/signal_fate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/training_sections.hpp"

namespace strata::analysis {
namespace {

using ::testing::HasSubstr;

core::Recipe sgd() {
  core::Recipe recipe;
  recipe.optimiser.lr = 0.1;
  recipe.training = core::Training{};
  return recipe;
}

store::Series at_epoch(const std::string& name, int epoch, double value, int repeat = 0) {
  return {name, "1", "epoch", {epoch}, {value}, repeat};
}

void add_sizes(std::vector<store::Series>& series, std::int64_t step, const LayerSize& size, int repeat = 0) {
  for (auto& one : to_series({size}, step, repeat)) series.push_back(std::move(one));
}

SignalFate fate(const std::vector<store::Series>& series) {
  const auto found = signal_fate(Learning(series), layer_sizes(series, {}), sgd(), above_chance(0.1, 400));
  EXPECT_TRUE(found);
  return found.value_or(SignalFate{});
}

constexpr double kHealthy = 0.1;

TEST(chance, is_the_commonest_class_and_three_standard_errors_of_its_count) {
  EXPECT_NEAR(above_chance(0.1, 400), 0.145, 1e-12);
  EXPECT_EQ(above_chance(0.1, 0), 0.1);
}

TEST(a_fate, learns_only_if_every_repeat_does) {
  std::vector<store::Series> series{at_epoch("test_accuracy", 1, 0.1), at_epoch("test_accuracy", 2, 0.9),
                                    at_epoch("test_accuracy", 1, 0.2, 1), at_epoch("test_accuracy", 2, 0.8, 1)};
  const auto both = fate(series);
  EXPECT_EQ(both.fate, Fate::learns);
  EXPECT_DOUBLE_EQ(*both.accuracy, 0.85);
  EXPECT_TRUE(both.words.empty());
  series.push_back(at_epoch("test_accuracy", 2, 0.14, 2));
  const auto two_of_three = fate(series);
  EXPECT_EQ(two_of_three.fate, Fate::stays);
  EXPECT_EQ(two_of_three.learned, 2);
  EXPECT_EQ(two_of_three.repeats, 3);
}

TEST(a_fate, is_that_of_the_first_layer_whose_signal_goes_in_the_first_repeat_that_did_not_learn) {
  std::vector<store::Series> series{at_epoch("test_accuracy", 1, 0.9), at_epoch("test_accuracy", 1, 0.1, 1)};
  add_sizes(series, 1, {"first", 1e-9, kHealthy, kHealthy}, 0);  // of the repeat that learned all the same
  add_sizes(series, 1, {"second", 1.0, kHealthy, kHealthy}, 1);
  add_sizes(series, 12, {"second", 1e-9, kHealthy, kHealthy}, 1);
  add_sizes(series, 23, {"second", 1e9, kHealthy, kHealthy}, 1);
  const auto vanished = fate(series);
  EXPECT_EQ(vanished.fate, Fate::vanishes);
  EXPECT_EQ(vanished.layer, "second");
  EXPECT_EQ(vanished.step, 12);
  EXPECT_THAT(vanished.words, HasSubstr("activations vanish at second"));
}

TEST(a_fate, of_a_level_that_learns_says_what_was_seen_all_the_same) {
  std::vector<store::Series> series{at_epoch("test_accuracy", 1, 0.9)};
  add_sizes(series, 1, {"first", 1.0, 1e-12, kHealthy});
  const auto learned = fate(series);
  EXPECT_EQ(learned.fate, Fate::learns);
  EXPECT_THAT(learned.words, HasSubstr("gradients vanish at first"));
}

TEST(a_fate, of_a_loss_that_is_not_finite_is_an_explosion_at_the_layer_if_one_was_seen) {
  std::vector<store::Series> series{at_epoch("diverged_at", 2, 7), at_epoch("test_accuracy", 1, 0.9)};
  const auto unseen = fate(series);
  EXPECT_EQ(unseen.fate, Fate::explodes);
  EXPECT_EQ(unseen.words, "the loss is not finite at step 7 of epoch 2");
  EXPECT_FALSE(unseen.step);
  add_sizes(series, 5, {"first", 1.0, 100.0, kHealthy});
  const auto seen = fate(series);
  EXPECT_EQ(seen.fate, Fate::explodes);
  EXPECT_EQ(seen.layer, "first");
  EXPECT_EQ(seen.step, 5);
}

TEST(a_fate, is_none_without_an_epoch) {
  EXPECT_FALSE(signal_fate(Learning({}), {}, sgd(), 0.1));
}

// Two schemes at two levels; "static" was not measured from the second.
class InitialisationsTest : public ::testing::Test {
 protected:
  InitialisationsTest() {
    for (auto* one : {&torch_, &tiny_}) {
      one->question.recipe = sgd();
      one->trust.commonest_class = 0.1;
      one->trust.test_images = 400;
      one->rows.resize(2);
      one->rows[0].level = "eager";
      one->rows[1].level = "static";
    }
    tiny_.question.recipe->training->init = "normal:1e-6";
    std::vector<store::Series> dead{at_epoch("test_accuracy", 1, 0.1)};
    add_sizes(dead, 1, {"fc", 1e-9, kHealthy, kHealthy});
    trainings_ = {{&torch_,
                   {level(torch_.rows[0], {at_epoch("test_accuracy", 1, 0.9)}),
                    level(torch_.rows[1], {at_epoch("test_accuracy", 1, 0.95)})}},
                  {&tiny_,
                   {level(tiny_.rows[0], dead),
                    report::TrainedLevel{&tiny_.rows[1], Learning({}), State::unequal, "another step", {}}}}};
  }
  static report::TrainedLevel level(const store::Row& row, const std::vector<store::Series>& series) {
    return {&row, Learning(series), State::measured, "", series};
  }
  store::Case torch_, tiny_;
  std::vector<report::SchemeTraining> trainings_;
};

TEST_F(InitialisationsTest, are_a_map_of_scheme_by_level_and_a_list_of_where_signals_go) {
  const auto section = report::initialisations(trainings_);
  ASSERT_EQ(section.items.size(), 2u);
  const auto& map = std::get<document::Table>(section.items[0]);
  ASSERT_EQ(map.columns.size(), 3u);
  EXPECT_EQ(map.columns[2].id, "static");
  EXPECT_EQ(std::get<std::string>(map.rows[0][0]), "torch");
  EXPECT_EQ(std::get<std::string>(map.rows[0][2]), "learns: 95.0%");
  EXPECT_EQ(std::get<std::string>(map.rows[1][1]), "vanishes: 10.0%");
  EXPECT_EQ(std::get<document::Absent>(map.rows[1][2]).reason, "unequal");
  const auto& seen = std::get<document::Table>(section.items[1]);
  ASSERT_EQ(seen.rows.size(), 1u);
  EXPECT_EQ(std::get<document::Number>(seen.rows[0][3]).value, 1);
  EXPECT_EQ(std::get<std::string>(seen.rows[0][4]), "fc");
}

TEST_F(InitialisationsTest, are_told_in_a_sentence) {
  EXPECT_EQ(report::initialisation_words(trainings_),
            "Learns at every level from torch; not everywhere from normal:1e-6 (vanishes at eager).");
}

}  // namespace
}  // namespace strata::analysis
