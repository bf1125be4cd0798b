// SPDX-License-Identifier: Apache-2.0
// What a training needs before a level runs: the order of an epoch's images, images in the network's size, what is
// kept, which steps are proven.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "analysis/layer_sizes.hpp"
#include "analysis/learning.hpp"
#include "common/safetensors.hpp"
#include "data/resize.hpp"
#include "training/order.hpp"
#include "training/prepared_data.hpp"
#include "training/proof_plan.hpp"

namespace strata::training {
namespace {
namespace fs = std::filesystem;

struct Walked {
  std::vector<NextRequest> requests;
  std::int64_t steps = 0, in_windows = 0;
  int judged = 0;
};

// All requests of a repeat, whose windows cost as much as `share` steps.
Walked walked(ProofPlan plan, const RepeatShape& shape, double share, std::int64_t longest = kLongestWindow) {
  Walked out;
  for (int epoch = 0; epoch < shape.epochs; ++epoch)
    for (std::int64_t next = 0; next < shape.steps;) {
      const auto request = plan.next(epoch, next, shape.steps, longest, 200, share);
      out.requests.push_back(request);
      next += request.steps;
      EXPECT_LE(next, shape.steps);
      EXPECT_TRUE(!request.window || request.steps <= longest);
      out.steps += request.steps;
      out.in_windows += request.window ? request.steps : 0;
      out.judged += request.judged ? 1 : 0;
    }
  return out;
}

TEST(ProofPlan, judges_as_many_windows_as_asked_for_whatever_the_training_and_the_last_step_among_them) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const RepeatShape& shape : {RepeatShape{1, 4, 3}, RepeatShape{2, 10, 3}, RepeatShape{3, 44, 3},
                                     RepeatShape{5, 900, 7}, RepeatShape{1, 1, 3}, RepeatShape{2, 44, 0}})
      for (const double share : {0.01, 1.0, 30.0, std::numeric_limits<double>::infinity()})
        for (const std::int64_t longest : {std::int64_t{1}, std::int64_t{3}, std::int64_t{kLongestWindow}}) {
          const auto all = walked(ProofPlan(seed, shape), shape, share, longest);
          EXPECT_EQ(all.judged, std::min<std::int64_t>(shape.proofs + 1, shape.epochs * shape.steps))
              << seed << " " << shape.epochs << "x" << shape.steps << " " << share << " " << longest;
          EXPECT_TRUE(all.requests.back().judged);
        }
}

TEST(ProofPlan, has_every_step_in_a_window_where_reading_states_costs_little_and_as_many_as_pay_else) {
  const RepeatShape shape{3, 1000, 3};
  const auto cheap = walked(ProofPlan(1, shape), shape, 0.2);
  EXPECT_EQ(cheap.in_windows, cheap.steps);
  const auto dear = walked(ProofPlan(1, shape), shape, 4);  // 4 steps of 100 are 4%
  EXPECT_NEAR(static_cast<double>(dear.in_windows) / static_cast<double>(dear.steps), 0.06, 0.04);
  EXPECT_LT(walked(ProofPlan(1, shape), shape, 1e9).in_windows, 40);
}

TEST(ProofPlan, makes_judged_windows_as_long_as_the_others) {
  const RepeatShape shape{4, 1000, 200};
  const auto all = walked(ProofPlan(3, shape), shape, 0.1);
  double judged = 0, others = 0, of_judged = 0, of_others = 0;
  for (const auto& request : all.requests) {
    (request.judged ? judged : others) += static_cast<double>(request.steps);
    (request.judged ? of_judged : of_others) += 1;
  }
  EXPECT_NEAR(judged / of_judged, others / of_others, 1);
}

TEST(ProofPlan, tries_again_later_in_the_epoch_where_a_window_was_too_rough) {
  const RepeatShape shape{1, 100, 0};
  ProofPlan plan(1, shape);
  EXPECT_TRUE(plan.retry(0, 50));
  EXPECT_GE(plan.planned().front().first, 50);
  EXPECT_EQ(plan.planned().size(), 2u);
  EXPECT_FALSE(plan.retry(0, 100));
}

TEST(ProofPlan, scores_the_first_epoch_the_last_and_others_that_differ_by_seed) {
  std::set<std::set<int>> drawn;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    stats::Random random(seed);
    const auto scored = epochs_to_score(random, 30);
    EXPECT_EQ(scored.size(), 4u);
    EXPECT_TRUE(scored.contains(0) && scored.contains(29));
    drawn.insert(scored);
  }
  EXPECT_GT(drawn.size(), 10u);
  for (const int epochs : {1, 2, 3, 4}) {
    stats::Random random(1);
    EXPECT_EQ(epochs_to_score(random, epochs).size(), static_cast<std::size_t>(epochs));
  }
}

TEST(Order, of_an_epoch_has_every_image_once_but_for_what_fills_no_batch) {
  const auto order = draw_order(103, 10, {}, 7, 0, 0);
  EXPECT_EQ(order.steps, 10);
  ASSERT_EQ(order.samples.size(), 100u);
  const std::set<std::int64_t> different(order.samples.begin(), order.samples.end());
  EXPECT_EQ(different.size(), 100u);
  EXPECT_GE(*different.begin(), 0);
  EXPECT_LT(*different.rbegin(), 103);
  EXPECT_FALSE(std::is_sorted(order.samples.begin(), order.samples.end()));
  EXPECT_TRUE(order.flip.empty());
  EXPECT_TRUE(order.shift.empty());
}

TEST(Order, is_the_same_for_the_same_seeds_and_another_for_any_other) {
  const Augment augment{true, 4};
  const auto first = draw_order(100, 10, augment, 7, 1, 2);
  const auto again = draw_order(100, 10, augment, 7, 1, 2);
  EXPECT_EQ(first.samples, again.samples);
  EXPECT_EQ(first.flip, again.flip);
  EXPECT_EQ(first.shift, again.shift);
  for (const auto& other : {draw_order(100, 10, augment, 8, 1, 2), draw_order(100, 10, augment, 7, 2, 2),
                            draw_order(100, 10, augment, 7, 1, 3), draw_order(100, 10, augment, 7, 2, 1)}) {
    EXPECT_NE(first.samples, other.samples);
    EXPECT_NE(first.flip, other.flip);
    EXPECT_NE(first.shift, other.shift);
  }
}

TEST(Order, moves_images_by_no_more_than_asked_and_mirrors_about_half) {
  const auto order = draw_order(2000, 10, {true, 3}, 1, 0, 0);
  const auto [low, high] = std::minmax_element(order.shift.begin(), order.shift.end());
  EXPECT_EQ(*low, -3);
  EXPECT_EQ(*high, 3);
  EXPECT_EQ(order.shift.size(), 4000u);
  const auto mirrored = std::accumulate(order.flip.begin(), order.flip.end(), 0);
  EXPECT_NEAR(mirrored, 1000, 100);
}

// Two splits of images of one value each.
class DataTest : public ::testing::Test {
 protected:
  DataTest() : folder_(fs::temp_directory_path() / ("strata_training_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    for (int i = 0; i < 8; ++i) {
      labels_.push_back(i % 3);
      for (int k = 0; k < 16; ++k) images_.push_back(static_cast<std::uint8_t>(2 * i + (k < 8 ? 0 : 1)));
    }
    set_.name = "made";
    set_.shape = {1, 4, 4};
    set_.highest_value = 16;
    set_.train = {"", 8, images_, labels_, {}};
    set_.test = {"", 8, images_, labels_, {}};
  }
  ~DataTest() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::vector<std::uint8_t> images_;
  std::vector<std::int64_t> labels_;
  data::Dataset set_;
};

TEST_F(DataTest, is_brought_to_256_values_and_says_its_mean_and_deviation) {
  const auto ready = prepare_data(set_, {1, 4, 4}, 2, std::nullopt, folder_);
  ASSERT_TRUE(ready) << ready.error().what;
  EXPECT_EQ(ready->train, 8);
  EXPECT_TRUE(ready->change.empty());
  const auto file = SafeTensors::open(ready->files.paths.at("train"));
  ASSERT_TRUE(file);
  const auto* images = file->find("images");
  ASSERT_NE(images, nullptr);
  EXPECT_EQ(images->shape, (std::vector<std::int64_t>{8, 1, 4, 4}));
  EXPECT_EQ(value_at(*images, 127), 239);  // 15 of 16
  double sum = 0, squares = 0;
  for (const double value : to_doubles(*images)) {
    sum += value / 255;
    squares += value * value / 255 / 255;
  }
  ASSERT_EQ(ready->files.mean.size(), 1u);
  EXPECT_NEAR(ready->files.mean[0], sum / 128, 1e-12);
  EXPECT_NEAR(ready->files.deviation[0], std::sqrt(squares / 128 - sum * sum / 128 / 128), 1e-12);
}

TEST_F(DataTest, takes_the_first_images_where_fewer_are_asked_for) {
  const auto ready = prepare_data(set_, {1, 4, 4}, 2, 3, folder_);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->train, 3);
  EXPECT_EQ(ready->test, 3);
  EXPECT_EQ(SafeTensors::open(ready->files.paths.at("test"))->find("labels")->shape, std::vector<std::int64_t>{3});
}

TEST_F(DataTest, of_another_size_is_resized_and_says_so) {
  const auto ready = prepare_data(set_, {1, 8, 6}, 2, std::nullopt, folder_);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->change, "4x4 resized to 8x6");
  EXPECT_EQ(SafeTensors::open(ready->files.paths.at("train"))->find("images")->shape,
            (std::vector<std::int64_t>{8, 1, 8, 6}));
}

TEST_F(DataTest, that_does_not_fit_is_refused) {
  EXPECT_FALSE(prepare_data(set_, {1, 4, 4}, 9, std::nullopt, folder_)) << "a batch of more images than there are";
  set_.shape = {2, 4, 2};
  const auto channels = prepare_data(set_, {3, 4, 2}, 2, std::nullopt, folder_);
  ASSERT_FALSE(channels);
  EXPECT_NE(channels.error().what.find("2 channels"), std::string::npos);
  set_.kind = data::Targets::several_classes;
  EXPECT_FALSE(prepare_data(set_, {2, 4, 2}, 2, std::nullopt, folder_));
}

TEST(Resizing, keeps_an_even_image_and_the_mean_of_a_gradient) {
  const std::vector<std::uint8_t> even(2 * 5 * 7, 77);
  for (const auto value : data::resize_planes(even, {2, 5, 7}, {2, 9, 3})) EXPECT_EQ(value, 77);
  std::vector<std::uint8_t> ramp;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x) ramp.push_back(static_cast<std::uint8_t>(10 * x));
  EXPECT_EQ(data::resize_planes(ramp, {1, 16, 16}, {1, 16, 16}), ramp);
  const auto half = data::resize_planes(ramp, {1, 16, 16}, {1, 8, 8});
  for (int x = 1; x < 7; ++x) EXPECT_EQ(half[static_cast<std::size_t>(x)], 20 * x + 5) << x;
}

TEST(Learning, says_when_the_best_was_reached_and_how_repeats_spread) {
  using analysis::Learning;
  const Learning learning({{"test_accuracy", "1", "epoch", {1, 2, 3}, {0.5, 0.9, 0.8}, 0},
                           {"test_accuracy", "1", "epoch", {1, 2, 3}, {0.4, 0.6, 0.7}, 1},
                           {"epoch_seconds", "s", "epoch", {1, 2, 3}, {1, 1, 1}, 0},
                           {"epoch_seconds", "s", "epoch", {1, 2, 3}, {3, 3, 3}, 1},
                           {"diverged_at", "1", "epoch", {1}, {17}, 2},
                           {"step_time", "ms", "epoch", {1, 2}, {10, 20}, 0},
                           {"other", "1", "step", {1}, {5}, 0}});
  const auto best = learning.best("test_accuracy");
  ASSERT_TRUE(best);
  EXPECT_DOUBLE_EQ(best->value.mean, 0.8);
  EXPECT_DOUBLE_EQ(best->value.low, 0.7);
  EXPECT_DOUBLE_EQ(best->epoch.mean, 2.5);
  EXPECT_DOUBLE_EQ(learning.last("test_accuracy")->high, 0.8);
  EXPECT_DOUBLE_EQ(learning.at("test_accuracy", 2)->mean, 0.75);
  EXPECT_DOUBLE_EQ(*learning.seconds_until(2), 4);
  EXPECT_EQ(learning.diverged(), 1);
  EXPECT_EQ(learning.epochs(), 3);
  EXPECT_FALSE(learning.at("test_accuracy", 4));
  EXPECT_FALSE(learning.best("other"));
  const Learning twice({{"step_time", "ms", "epoch", {1, 2}, {5, 5}, 0}, {"step_time", "ms", "epoch", {1}, {5}, 5}});
  const auto ratio = analysis::speedup(twice, learning);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->count, 1) << "only repeats that both have";
  EXPECT_DOUBLE_EQ(ratio->mean, 3);
}

using core::LayerSize;

TEST(LayerSizes, come_back_from_their_series_in_the_order_in_which_layers_run) {
  const std::vector<LayerSize> first{{"z", 1.0, 2.0, 3.0}, {"a", 4.0, std::nullopt, 6.0}}, second{{"z", 7.0, 8.0, 9.0}};
  auto series = analysis::to_series(first, 1, 0);
  for (auto& one : analysis::to_series(second, 23, 1)) series.push_back(one);
  series.push_back({"test_accuracy", "1", "epoch", {1}, {0.5}, 0});
  const auto sizes = analysis::layer_sizes(series, {"z", "a"});
  ASSERT_EQ(sizes.size(), 2u);
  const auto& layers = sizes.at(0).at(1);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].layer, "z");
  EXPECT_EQ(layers[0].gradient, 2.0);
  EXPECT_EQ(layers[1].layer, "a");
  EXPECT_EQ(layers[1].weight, 6.0);
  EXPECT_FALSE(layers[1].gradient);
  EXPECT_EQ(sizes.at(1).at(23)[0].activation, 7.0);
}

class TroubleTest : public ::testing::Test {
 protected:
  TroubleTest() { recipe_.optimiser.lr = 0.1; }
  std::string message(const LayerSize& changed) const {
    const auto found = analysis::signal_fault({{"first", 1.0, 0.1, 0.1}, changed, {"last", 1.0, 0.1, 0.1}}, recipe_, 0);
    if (!found) return "";
    EXPECT_EQ(found->layer, changed.layer);
    EXPECT_EQ(found->explodes, found->words.find("explode") != std::string::npos);
    return found->words;
  }
  core::Recipe recipe_;
};

TEST_F(TroubleTest, is_not_seen_in_a_network_that_learns) {
  EXPECT_EQ(message({"layer", 1e-3, 1e-6, 0.01}), "");
  EXPECT_EQ(message({"called otherwise", std::nullopt, 0.1, 0.1}), "");
  EXPECT_EQ(message({"still at zero", 1.0, 0.1, 0.0}), "");
}

TEST_F(TroubleTest, names_the_layer_whose_signal_vanishes_or_explodes) {
  EXPECT_NE(message({"layer", 1e-9, 0.1, 0.1}).find("activations vanish at layer"), std::string::npos);
  EXPECT_NE(message({"layer", 1e9, 0.1, 0.1}).find("activations explode at layer"), std::string::npos);
  EXPECT_NE(message({"layer", 1.0, 1e-10, 0.1}).find("gradients vanish at layer"), std::string::npos);
  EXPECT_NE(message({"layer", 1.0, 2.0, 0.1}).find("gradients explode at layer"), std::string::npos);
  EXPECT_NE(message({"layer", 1.0, std::nullopt, 0.1}).find("not finite"), std::string::npos);
}

TEST_F(TroubleTest, is_judged_by_the_rate_of_the_step_which_a_schedule_changes) {
  recipe_.optimiser.schedule = core::Schedule{core::Schedule::Kind::step, 10, 1e-6};
  const LayerSize small{"layer", 1.0, 1e-4, 0.1};
  EXPECT_FALSE(analysis::signal_fault({small}, recipe_, 9));
  EXPECT_TRUE(analysis::signal_fault({small}, recipe_, 10));
}

}  // namespace
}  // namespace strata::training
