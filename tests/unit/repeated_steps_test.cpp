// SPDX-License-Identifier: Apache-2.0
// Steps of a network with a kink, judged by the same steps repeated: rounding may take a value over it, a fault may
// not.
#include "measure/repeated_steps.hpp"

#include <gtest/gtest.h>

#include "unit/train_bundle.hpp"

namespace strata::measure {
namespace {

using proof::testing::in_float32;
using proof::testing::State;
using proof::testing::TrainBundle;

// The values that must all have been rounded up for one to be over the kink: so of one start in 2^n.
constexpr int kRarely = 5, kNever = 1200;

class RepeatedStepsTest : public ::testing::Test {
 protected:
  RepeatedStepsTest() : reference_(bundle_.open()) {
    for (const auto& [name, values] : bundle_.weights["timed"]) before_["weight:" + name] = in_float32(values);
    for (const auto& name : bundle_.order) before_["momentum:" + name] = bundle_.gradients["probe1"][name];
  }

  bool over_the_kink(const State& start, int values) const {
    const auto &w = start.at("weight:conv.weight"), &zero = before_.at("weight:conv.weight");
    for (int i = 0; i < values; ++i)
      if (!(std::abs(w[static_cast<std::size_t>(i)]) > std::abs(zero[static_cast<std::size_t>(i)]))) return false;
    return true;
  }
  // `over`: a channel of the first layer has a gradient that is larger by a fifth, in one of the steps.
  State after(State state, bool over) const {
    for (int step = 0; step < 8; ++step)
      for (const auto& name : bundle_.order) {
        const auto& g = bundle_.gradients.at("timed").at(name);
        auto &v = state["momentum:" + name], &w = state["weight:" + name];
        for (std::size_t i = 0; i < w.size(); ++i) {
          const bool more = over && step == 3 && name == "conv.weight" && i < 30;
          v[i] = 0.9 * v[i] + g[i] * (more ? 1.2 : 1) + 0.01 * w[i];
          w[i] -= 0.05 * v[i];
        }
        v = in_float32(v);
        w = in_float32(w);
      }
    return state;
  }
  TrainState kept(const State& state) {
    auto tensors = bundle_.file(state);
    return {.tensors = std::move(tensors), .file = std::make_shared<const std::filesystem::path>(bundle_.last_file)};
  }
  // Whether the completed steps are judged to be those that are repeated, where a start of the latter is over the kink
  // by so many of its values.
  proof::OutputVerdict judge(const State& completed, int values) {
    const auto start = kept(before_);
    const auto end = bundle_.file(completed);
    const CompletedSteps done{.before = &start, .after = &end, .losses = {}};
    const auto verdict =
        judge_steps(bundle_.path / "scratch", *reference_, done, 0, [&](const auto& path) -> Try<RepeatedSteps> {
          const auto read = SafeTensors::open(path);
          State state;
          for (const auto& name : read->names()) state[name] = to_doubles(*read->find(name));
          return RepeatedSteps{kept(after(state, over_the_kink(state, values))), std::vector<double>(8, 1.25)};
        });
    return **verdict;
  }

  TrainBundle bundle_;
  std::unique_ptr<proof::TrainReference> reference_;
  State before_;
};

TEST_F(RepeatedStepsTest, pass_what_repeats_them_and_what_rounding_took_over_a_kink) {
  EXPECT_TRUE(judge(after(before_, false), kRarely).equal_work());
  const auto verdict = judge(after(before_, true), kRarely);
  EXPECT_TRUE(verdict.equal_work()) << verdict.reason;
}

TEST_F(RepeatedStepsTest, refuse_where_no_rounding_leads) {
  const auto verdict = judge(after(before_, true), kNever);
  EXPECT_FALSE(verdict.equal_work());
  EXPECT_GT(verdict.worst_ratio, 1);
  auto other = after(before_, true);
  other["weight:fc.bias"][0] += 0.01;  // beside what the kink does
  EXPECT_FALSE(judge(other, kRarely).equal_work());
}

}  // namespace
}  // namespace strata::measure
