// SPDX-License-Identifier: Apache-2.0
// A step in the middle of a training against eager's from the same state: what is equal passes, each fault shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "proof/late_step.hpp"
#include "unit/train_bundle.hpp"

namespace strata::proof {
namespace {

using testing::in_float32;
using testing::State;
using testing::TrainBundle;
using testing::Values;

class LateStepTest : public ::testing::Test {
 protected:
  LateStepTest() : reference_(bundle_.open()) {
    before_ = bundle_.weights["timed"];
    State state;
    for (const auto& [name, values] : before_) state["weight:" + name] = values;
    for (const auto& name : bundle_.order) state["momentum:" + name] = bundle_.gradients["probe1"][name];
    before_ = state;
    moved_ = before_;
    for (auto& [name, values] : moved_)
      if (name.starts_with("weight:"))
        for (std::size_t i = 0; i < values.size(); ++i) values[i] *= i % 2 == 0 ? 1 + 0x1p-23 : 1 - 0x1p-23;
  }

  struct Step {
    double rate = 0.05, momentum = 0.9, decay = 0.01, share = 0.1, noise = 0;
  };
  // SGD's step; statistics go a share of the way.
  State after(const State& before, const Step& step) const {
    State out = before;
    double sign = 1;
    for (const auto& name : bundle_.order) {
      const auto& g = bundle_.gradients.at("timed").at(name);
      auto &v = out["momentum:" + name], &w = out["weight:" + name];
      for (std::size_t i = 0; i < w.size(); ++i, sign = -sign) {
        v[i] = step.momentum * v[i] + g[i] * (1 + sign * step.noise) + step.decay * w[i];
        w[i] -= step.rate * v[i];
      }
      v = in_float32(v);
      w = in_float32(w);
    }
    for (const auto& name : bundle_.statistics) {
      auto& s = out["weight:" + name];
      for (double& value : s) value += step.share * (2 - value);
      s = in_float32(s);
    }
    return out;
  }
  OutputVerdict judge(const State& level, double loss = 1.25) {
    const auto before = bundle_.file(before_), own = bundle_.file(level), eager = bundle_.file(after(before_, {})),
               moved = bundle_.file(moved_), moved_after = bundle_.file(after(moved_, {}));
    return check_late_step(*reference_, {&before, &own, {loss}}, {&before, &eager, {1.25}},
                           {&moved, &moved_after, {1.2500001}}, 0, 0);
  }

  TrainBundle bundle_;
  std::unique_ptr<TrainReference> reference_;
  State before_, moved_;
};

TEST_F(LateStepTest, passes_what_differs_by_rounding) {
  EXPECT_TRUE(judge(after(before_, {})).equal_work());
  const auto noisy = judge(after(before_, {.noise = 2e-5}));
  EXPECT_TRUE(noisy.equal_work()) << noisy.reason;
  EXPECT_GT(noisy.worst_ratio, 0.01);
}

TEST_F(LateStepTest, finds_every_fault_of_a_step) {
  const std::map<std::string, Step> faults{{"no momentum", {.momentum = 0}},
                                           {"another momentum", {.momentum = 0.91}},
                                           {"another rate", {.rate = 0.051}},
                                           {"no decay", {.decay = 0}},
                                           {"statistics of another share", {.share = 0.11}},
                                           {"another gradient", {.noise = 0.01}},
                                           {"no step", {.rate = 0, .momentum = 1, .decay = 0, .share = 0}}};
  for (const auto& [name, fault] : faults) {
    const auto verdict = judge(after(before_, fault));
    EXPECT_FALSE(verdict.equal_work()) << name;
    EXPECT_THAT(verdict.reason, ::testing::HasSubstr("from the same state on the same batch")) << name;
  }
  EXPECT_THAT(judge(after(before_, {}), 1.26).reason, ::testing::HasSubstr("its loss is 1.26"));
}

TEST_F(LateStepTest, finds_a_state_that_is_not_whole) {
  auto level = after(before_, {});
  level.erase("momentum:fc.bias");
  EXPECT_THAT(judge(level).reason, ::testing::HasSubstr("lacks momentum:fc.bias"));
  level = after(before_, {});
  level["weight:more"] = {1, 2};
  bundle_.shapes["more"] = {2};
  EXPECT_THAT(judge(level).reason, ::testing::HasSubstr("weight:more"));
}

TEST_F(LateStepTest, compares_counts_and_leaves_generators_of_masks_alone) {
  before_["count:batches"] = moved_["count:batches"] = {80};
  bundle_.shapes["batches"] = bundle_.shapes["other_kind"] = {1};
  auto level = after(before_, {});
  level["generator:other_kind"] = {3};
  EXPECT_TRUE(judge(level).equal_work()) << judge(level).reason;
  level["count:batches"] = {81};
  EXPECT_THAT(judge(level).reason, ::testing::HasSubstr("most of all count of batches"));
}

TEST(Score, of_the_same_weights_may_differ_in_answers_within_rounding_alone) {
  EXPECT_TRUE(check_score({1000, 902, 0.3001}, {1000, 900, 0.3}).equal_work());
  EXPECT_FALSE(check_score({1000, 903, 0.3}, {1000, 900, 0.3}).equal_work());
  EXPECT_FALSE(check_score({1000, 900, 0.301}, {1000, 900, 0.3}).equal_work());
  EXPECT_TRUE(check_score({10000, 9020, 0.3}, {10000, 9000, 0.3}).equal_work());
  EXPECT_FALSE(check_score({100, 50, std::nan("")}, {100, 50, 0.3}).equal_work());
}

// Of eight steps, as of one: every second left out, half of the network frozen.
TEST_F(LateStepTest, judges_the_change_over_several_steps_and_each_of_their_losses) {
  const auto steps = [&](State state, int count, const Step& step) {
    for (int i = 0; i < count; ++i) state = after(state, step);
    return state;
  };
  const auto before = bundle_.file(before_), eager = bundle_.file(steps(before_, 8, {})), moved = bundle_.file(moved_),
             moved_after = bundle_.file(steps(moved_, 8, {}));
  const std::vector<double> losses{1.25, 1.24, 1.23, 1.22, 1.21, 1.2, 1.19, 1.18};
  const auto judged = [&](const State& state, const std::vector<double>& told) {
    const auto own = bundle_.file(state);
    return check_late_step(*reference_, {&before, &own, told}, {&before, &eager, losses},
                           {&moved, &moved_after, losses}, 0, 0);
  };
  EXPECT_LT(moved_share({&before, &eager, losses}, {&moved, &moved_after, losses}), 1e-2);
  EXPECT_TRUE(judged(steps(before_, 8, {.noise = 1e-5}), losses).equal_work());
  EXPECT_THAT(judged(steps(before_, 4, {}), losses).reason, ::testing::HasSubstr("on the same batches"));
  auto frozen = steps(before_, 8, {});
  for (const char* name : {"weight:conv.weight", "momentum:conv.weight"}) frozen[name] = before_.at(name);
  EXPECT_THAT(judged(frozen, losses).reason, ::testing::HasSubstr("conv.weight"));
  auto other = losses;
  other[6] = 1.2;
  EXPECT_THAT(judged(steps(before_, 8, {}), other).reason, ::testing::HasSubstr("its loss is 1.2"));
}

}  // namespace
}  // namespace strata::proof
