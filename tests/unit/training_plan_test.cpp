// SPDX-License-Identifier: Apache-2.0
// What the request of a training comes to, and what is refused of it before a level is looked at.
#include "engine/training_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/run_request.hpp"
#include "requests/codec.hpp"

namespace strata::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainRequest digits() {
  TrainRequest request;
  request.options.model = "mnist_convnet";
  request.dataset = "digits";
  return request;
}

TEST(TrainingPlan, has_the_options_that_levels_and_cases_are_prepared_from) {
  auto request = digits();
  request.batch = 32;
  request.threads = 2;
  const auto plan = plan_training(request, {});
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(plan->options.mode, "train");
  EXPECT_THAT(plan->options.batches, ElementsAre(32));
  EXPECT_THAT(plan->options.thread_counts, ElementsAre(2));
  ASSERT_EQ(plan->initials.size(), 1U);
  EXPECT_EQ(plan->initials.front().name, "torch");
  EXPECT_EQ(plan->scaled, "");
}

TEST(TrainingPlan, is_cut_by_its_scale_and_by_the_images_that_it_may_take_once_they_are_counted) {
  auto request = digits();
  request.epochs = 10;
  request.repeats = 4;
  request.scale = "epochs=0.5,repeats=0.5,images=0.1";
  auto plan = plan_training(request, {});
  ASSERT_TRUE(plan) << plan.error().what;
  EXPECT_EQ(plan->epochs, 5);
  EXPECT_EQ(plan->repeats, 2);
  const auto work = work_of(*plan, plan->repeats, 1000, 300);
  EXPECT_EQ(work.train, 100);
  EXPECT_EQ(work.test, 100);
  EXPECT_EQ(work.repeats, 2);
  EXPECT_EQ(plan->images, 100) << "what the case names";
  EXPECT_EQ(plan->scaled, "scaled: 5 of 10 epochs, 2 of 4 repeats, 100 of 1000 images");

  request.scale.clear();
  request.images = 200;
  request.sweep_init = true;
  auto whole = plan_training(request, {});
  ASSERT_TRUE(whole) << whole.error().what;
  const auto all = work_of(*whole, whole->repeats, 1000, 150);
  EXPECT_EQ(all.train, 200);
  EXPECT_EQ(all.test, 150);
  EXPECT_EQ(all.repeats, 4 * 6) << "from each of the usual initialisations";
  EXPECT_EQ(whole->scaled, "");
}

TEST(TrainingPlan, is_refused_where_one_of_its_members_means_nothing_the_first_of_several) {
  TrainRequest request;
  request.dataset = "no_such_set";
  const auto refused = [&](std::vector<int> own_repeats = {}) {
    const auto plan = plan_training(request, {}, std::move(own_repeats));
    const auto error = plan ? Error{} : plan.error();
    EXPECT_EQ(error.exit, Exit::usage) << error.what;
    return error.what;
  };
  EXPECT_THAT(refused(), HasSubstr("no_such_set"));
  request.rule = "mlperf";
  EXPECT_THAT(refused(), HasSubstr("--rule mlperf counts the epochs to a target, and none is given"));
  request.target = 0.9;
  EXPECT_THAT(refused(), HasSubstr("--rule mlperf: 1 evaluations a repeat"));
  request.init = "torch;torch";
  EXPECT_EQ(refused(), "--init torch;torch: torch is named twice");
  request.sweep_init = true;
  EXPECT_EQ(refused(), "--init and --sweep-init exclude each other");
  request.init = "torch";
  EXPECT_EQ(refused({0}), "several initialisations are not split over shards");
  request.scale = "2";
  EXPECT_THAT(refused(), HasSubstr("--scale"));
}

TEST(TrainingPlan, of_a_run_that_goes_on_leaves_what_it_is_judged_by_as_it_began) {
  auto plan = plan_training(digits(), {});
  ASSERT_TRUE(plan) << plan.error().what;
  plan->target = 0.9;
  OwnShard shard;
  shard.facts.shard = "1/2";
  const auto begun = training(*plan, {}, shard);
  EXPECT_EQ(begun.verb, "train");
  const auto request = requests::to_json(digits());
  const store::TrainingFacts facts{.dataset = "digits",
                                   .rule = "margin",
                                   .epochs = 1,
                                   .repeats = 1,
                                   .margin = 0.01,
                                   .loss_margin = 0.05,
                                   .target = 0.9};
  EXPECT_EQ(begun.training, facts);
  RunContext context;
  context.resumed.emplace();
  const auto gone_on = training(*plan, context, shard);
  EXPECT_EQ(gone_on.training, std::nullopt);
  EXPECT_EQ(gone_on.shard, shard.facts);
  EXPECT_EQ(gone_on.request, request);
}

}  // namespace
}  // namespace strata::engine
