// SPDX-License-Identifier: Apache-2.0
// What a run knows of its machine is taken once a run, not once a case.
#include "measure/machine_facts.hpp"

#include <gtest/gtest.h>

namespace strata::measure {
namespace {

class MachineFactsTest : public ::testing::Test {
 protected:
  static core::Case of(int threads, std::int64_t batch) {
    core::Case question;
    question.threads = threads;
    question.batch = batch;
    return question;
  }
  int measured_ = 0, looked_up_ = 0;
  bool fails_ = false;
  MachineFacts facts_{[this](const core::Case& question) -> Result<store::Limits> {
                        ++measured_;
                        if (fails_) return fail("the store is full");
                        return store::Limits{.gflops = 100.0 * question.threads};
                      },
                      [this](int threads) -> Result<ProcessSigma> {
                        ++looked_up_;
                        return ProcessSigma{0.01 * threads, "assumed"};
                      }};
};

TEST_F(MachineFactsTest, are_taken_once_for_all_cases_of_a_number_of_threads) {
  for (const int batch : {1, 8, 32})
    for (const int threads : {1, 2}) {
      EXPECT_EQ(facts_.limits(of(threads, batch))->gflops, 100.0 * threads);
      EXPECT_EQ(facts_.process_sigma(threads)->value, 0.01 * threads);
    }
  EXPECT_EQ(measured_, 2);
  EXPECT_EQ(looked_up_, 2);
}

TEST_F(MachineFactsTest, of_another_precision_or_device_are_others) {
  auto question = of(1, 1);
  ASSERT_TRUE(facts_.limits(question));
  question.precision = core::Precision::bf16;
  ASSERT_TRUE(facts_.limits(question));
  question.device = core::Device::cuda;
  ASSERT_TRUE(facts_.limits(question));
  EXPECT_EQ(measured_, 3);
}

TEST_F(MachineFactsTest, that_could_not_be_taken_are_tried_again) {
  fails_ = true;
  EXPECT_EQ(facts_.limits(of(1, 1)).error().what, "the store is full");
  fails_ = false;
  EXPECT_TRUE(facts_.limits(of(1, 1)));
}

}  // namespace
}  // namespace strata::measure
