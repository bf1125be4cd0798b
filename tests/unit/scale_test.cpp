// SPDX-License-Identifier: Apache-2.0
// --scale, and what a training is predicted to take.
#include "plan/scale.hpp"

#include <gtest/gtest.h>

#include "plan/training_time.hpp"

namespace strata::plan {
namespace {

TEST(Scale, SharesAreTakenByName) {
  const auto scale = parse_scale("epochs=0.1,images=0.01,repeats=0.3");
  ASSERT_TRUE(scale);
  const auto left = scaled(*scale, 100, 10);
  EXPECT_EQ(left.epochs, 10);
  EXPECT_EQ(left.repeats, 3);
  EXPECT_DOUBLE_EQ(left.images, 0.01);
  EXPECT_EQ(scaled(*parse_scale("epochs=0.001"), 100, 10).epochs, 1) << "never none";
}

TEST(Scale, OneFactorTakesRepeatsThenImagesThenEpochs) {
  const auto left = [](const char* text, int epochs, int repeats) {
    return scaled(*parse_scale(text), epochs, repeats);
  };
  const auto repeats_alone = left("0.5", 100, 10);
  EXPECT_EQ(repeats_alone.repeats, 5);
  EXPECT_EQ(repeats_alone.epochs, 100);
  EXPECT_DOUBLE_EQ(repeats_alone.images, 1);
  const auto images_too = left("0.01", 100, 10);
  EXPECT_EQ(images_too.repeats, 1);
  EXPECT_DOUBLE_EQ(images_too.images, 0.1);
  EXPECT_EQ(images_too.epochs, 100);
  const auto all = left("0.0001", 100, 10);
  EXPECT_EQ(all.repeats, 1);
  EXPECT_DOUBLE_EQ(all.images, 0.01);
  EXPECT_EQ(all.epochs, 10);
  EXPECT_EQ(left("1", 3, 2).repeats, 2);
}

TEST(Scale, AnotherFormIsRefusedWithWhatIsAllowed) {
  for (const char* text : {"0", "1.5", "-1", "ten", "epochs", "images=2", ""}) {
    const auto scale = parse_scale(text);
    ASSERT_FALSE(scale) << text;
    EXPECT_EQ(scale.error().exit, Exit::usage);
    EXPECT_NE(scale.error().hint.find("epochs=0.1"), std::string::npos) << text;
  }
  EXPECT_NE(parse_scale("epochs=0.1,epochs=0.2").error().what.find("given twice"), std::string::npos);
  const auto misspelt = parse_scale("epoch=0.1");
  ASSERT_FALSE(misspelt);
  EXPECT_NE(misspelt.error().what.find("did you mean 'epochs'"), std::string::npos);
}

TEST(Scale, ABatchOfImagesStays) {
  EXPECT_EQ(scaled_images(0.01, 60000, 64), 600);
  EXPECT_EQ(scaled_images(0.01, 1000, 64), 64);
  EXPECT_EQ(scaled_images(0.01, 40, 64), 40);
}

TEST(TrainingTime, GrowsWithEpochsRepeatsAndSteps) {
  const TrainingWork work{.train = 6400, .test = 640, .batch = 64, .epochs = 10, .repeats = 1};
  const double one = seconds_of_level(work, 0.1);
  EXPECT_GT(one, 10 * 100 * 0.1) << "steps alone";
  EXPECT_LT(one, 1.3 * 10 * 100 * 0.1);
  auto twice = work;
  twice.repeats = 2;
  EXPECT_GT(seconds_of_level(twice, 0.1), 1.8 * one);
  auto proven = work;
  proven.proofs = 100;
  EXPECT_GT(seconds_of_level(proven, 0.1), one + 20);
  EXPECT_DOUBLE_EQ(step_flops(1e9, 8), 24e9);
}

}  // namespace
}  // namespace strata::plan
