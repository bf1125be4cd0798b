// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/option_values.hpp"

namespace strata::plan {
namespace {

using ::testing::HasSubstr;

TEST(OptimiserSpec, fills_what_is_left_out_with_the_defaults) {
  EXPECT_EQ(*parse_optimiser("sgd"), core::Optimiser{});
  EXPECT_EQ(*parse_optimiser("sgd:lr=0.5"), core::Optimiser{.lr = 0.5});
}

TEST(OptimiserSpec, reads_every_field) {
  const auto step =
      *parse_optimiser("sgd:lr=1e-3,momentum=0.8,weight_decay=0.0002,nesterov=true,dampening=0,schedule=step/30/0.1");
  EXPECT_EQ(step, (core::Optimiser{.lr = 0.001,
                                   .weight_decay = 0.0002,
                                   .schedule = core::Schedule{core::Schedule::Kind::step, 30, 0.1},
                                   .rule = core::Sgd{.momentum = 0.8, .nesterov = true}}));
  EXPECT_EQ(*parse_optimiser("sgd:clip_norm=0.5"), core::Optimiser{.clip_norm = 0.5});
  EXPECT_EQ(parse_optimiser("adamw:clip_norm=1")->clip_norm, 1);
  EXPECT_EQ(parse_optimiser("sgd:schedule=cosine/100")->schedule,
            (core::Schedule{core::Schedule::Kind::cosine, 100, 1}));
}

TEST(OptimiserSpec, has_pytorchs_defaults_for_adam_and_adamw) {
  EXPECT_EQ(*parse_optimiser("adam"), (core::Optimiser{.lr = 0.001, .weight_decay = 0, .rule = core::Adam{}}));
  EXPECT_EQ(*parse_optimiser("adamw:beta2=0.98"),
            (core::Optimiser{.lr = 0.001, .weight_decay = 0.01, .rule = core::Adam{.beta2 = 0.98, .decoupled = true}}));
  EXPECT_EQ(parse_optimiser("adam:schedule=cosine/10,eps=1e-6")->adam()->eps, 1e-6);
}

TEST(OptimiserSpec, says_what_is_wrong_and_what_is_allowed) {
  for (const auto& [text, words] : {std::pair{"adan", "did you mean 'adam'?); allowed: sgd, adam, adamw"},
                                    {"rmsprop", "allowed: sgd, adam, adamw"},
                                    {"adam:momentum=0.9", "unknown field 'momentum'"},
                                    {"adam:amsgrad=true", "amsgrad is not offered"},
                                    {"adamw:maximize=true", "maximize is not offered"},
                                    {"adam:beta1=1", "below 1"},
                                    {"adam:eps=0", "numbers above 0"},
                                    {"adam:beta=0.9", "did you mean 'beta"},
                                    {"sgd:lr", "lr has no value"},
                                    {"sgd:lr=", "numbers above 0"},
                                    {"sgd:lr=-1", "numbers above 0"},
                                    {"sgd:lr=inf", "numbers above 0"},
                                    {"sgd:lr=nan", "numbers above 0"},
                                    {"sgd:lr=0.1x", "numbers above 0"},
                                    {"sgd:momentum=1", "below 1"},
                                    {"sgd:weight_decay=-1", "numbers from 0"},
                                    {"sgd:clip_norm=0", "numbers above 0"},
                                    {"sgd:clip=1", "did you mean 'clip_norm'"},
                                    {"sgd:nesterov=yes", "true, false"},
                                    {"sgd:nesterov=true,dampening=0.1", "nesterov needs"},
                                    {"sgd:wight_decay=1", "did you mean 'weight_decay'"},
                                    {"sgd:schedule=step/0/0.1", "whole number from 1"},
                                    {"sgd:schedule=step/10/2", "at most 1"},
                                    {"sgd:schedule=cosine/10/2", "cosine/STEPS"},
                                    {"sgd:schedule=", "step/STEPS/FACTOR"}}) {
    const auto parsed = parse_optimiser(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().what, HasSubstr(words)) << text;
    EXPECT_EQ(parsed.error().exit, Exit::usage);
    EXPECT_THAT(parsed.error().hint, HasSubstr("sgd:lr="));
  }
}

}  // namespace
}  // namespace strata::plan
