// SPDX-License-Identifier: Apache-2.0
// Judging Adam's step between two states: right ones pass from every state, and each fault is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "proof/adam_update.hpp"
#include "proof/late_step.hpp"
#include "unit/train_bundle.hpp"

namespace strata::proof {
namespace {

using ::testing::HasSubstr;
using testing::State;
using testing::TrainBundle;
using testing::Values;

float narrow(double value) {
  return static_cast<float>(value);
}

// Adam's step in float32, as PyTorch takes it, and what faulty ones do otherwise.
struct Rule {
  double lr = 0.1, decay = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double t = 10;
  bool decoupled = false, corrects_mean = true, corrects_square = true;
  enum class Eps { after, before_correction, in_root } place = Eps::after;
  bool flips_sign = false;  // of a tenth of the gradient

  State step(const State& before, const State& gradient, const std::vector<std::string>& names) const {
    State out = before;
    for (const auto& name : names) {
      const auto &w = before.at("weight:" + name), &g = gradient.at("momentum:" + name);
      const Values zeros(w.size(), 0.0);
      const auto held = [&](const char* prefix) {
        return before.contains(prefix + name) ? before.at(prefix + name) : zeros;
      };
      auto m = held("exp_avg:"), v = held("exp_avg_sq:"), next = w;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const float sign = flips_sign && i % 10 == 0 ? -1.0F : 1.0F;
        const float d = narrow(sign * g[i]) + (decoupled ? 0.0F : narrow(narrow(decay) * narrow(w[i])));
        m[i] = narrow(beta1) * narrow(m[i]) + narrow(1 - beta1) * d;
        v[i] = narrow(beta2) * narrow(v[i]) + narrow(1 - beta2) * d * d;
        next[i] = moved(narrow(w[i]), narrow(m[i]), narrow(v[i]));
      }
      out["exp_avg:" + name] = m;
      out["exp_avg_sq:" + name] = v;
      out["weight:" + name] = next;
    }
    return out;
  }

 private:
  double moved(float w, float m, float v) const {
    const double of_mean = corrects_mean ? 1 - std::pow(beta1, t) : 1,
                 of_square = corrects_square ? 1 - std::pow(beta2, t) : 1;
    const float root = narrow(std::sqrt(of_square));
    float divisor = std::sqrt(v) / root + narrow(eps);
    if (place == Eps::before_correction) divisor = (std::sqrt(v) + narrow(eps)) / root;
    if (place == Eps::in_root) divisor = std::sqrt(v / (root * root) + narrow(eps));
    if (decoupled) w *= narrow(1 - lr * decay);
    return w - narrow(lr / of_mean) * m / divisor;
  }
};

core::Optimiser optimiser_of(const Rule& rule) {
  return {
      .lr = rule.lr, .weight_decay = rule.decay, .rule = core::Adam{rule.beta1, rule.beta2, rule.eps, rule.decoupled}};
}

struct AdamUpdate : ::testing::Test {
  TrainBundle bundle;
  State before, gradient;

  // Chosen buffers, as the proof's own.
  void SetUp() override {
    for (const auto& name : bundle.order) {
      before["weight:" + name] = bundle.draw(name, 0.3);
      before["exp_avg:" + name] = bundle.draw(name, 0.05);
      auto& squares = before["exp_avg_sq:" + name] = bundle.draw(name, 0.01);
      for (double& v : squares) v = narrow(0.01 + std::abs(v));
      gradient["momentum:" + name] = bundle.draw(name, 0.05);
    }
  }
  UpdateVerdict judge(const Rule& due, const Rule& done, double spread = 0) {
    const auto after = done.step(before, gradient, bundle.order);
    return check_update(bundle.order, bundle.file(before), bundle.file(gradient), bundle.file(after), optimiser_of(due),
                        due.lr, spread, static_cast<std::int64_t>(due.t) - 1);
  }
  void drop_buffers() {
    std::erase_if(before, [](const auto& entry) { return entry.first.starts_with("exp_avg"); });
  }
};

TEST_F(AdamUpdate, a_right_step_passes_from_every_state_with_every_setting) {
  for (const bool decoupled : {false, true})
    for (const double t : {1.0, 10.0, 1000.0})
      for (const Rule& rule :
           {Rule{}, Rule{.decay = 0}, Rule{.beta1 = 0.5, .beta2 = 0.9}, Rule{.eps = 0.1}, Rule{.lr = 1e-4}}) {
        Rule due = rule;
        due.t = t, due.decoupled = decoupled;
        SetUp();
        EXPECT_TRUE(judge(due, due).verdict.equal_work()) << t << ' ' << judge(due, due).verdict.reason;
        drop_buffers();
        due.t = 1;
        const auto first = judge(due, due);
        EXPECT_TRUE(first.verdict.equal_work()) << first.verdict.reason;
        EXPECT_GT(first.verdict.worst_ratio, 0);
      }
}

TEST_F(AdamUpdate, of_clipped_gradients_goes_by_the_norm_of_all_and_names_a_clip_that_was_left_out) {
  for (const bool decoupled : {false, true}) {
    const Rule rule{.t = 10, .decoupled = decoupled};
    auto due = optimiser_of(rule);
    const double size = gradient_norm(bundle.file(gradient));
    due.clip_norm = 0.5 * size;
    auto clipped = gradient;
    for (auto& [name, values] : clipped)
      for (double& g : values) g = narrow(g * (0.5 * size / (size + 1e-6)));
    const auto judged = [&](const State& done_by) {
      return check_update(bundle.order, bundle.file(before), bundle.file(gradient),
                          bundle.file(rule.step(before, done_by, bundle.order)), due, rule.lr, 0, 9)
          .verdict;
    };
    EXPECT_TRUE(judged(clipped).equal_work()) << judged(clipped).reason;
    EXPECT_EQ(judged(gradient).reason_short, "gradients are not clipped");
  }
}

TEST_F(AdamUpdate, squares_that_are_tiny_accuse_nobody) {
  for (const auto& name : bundle.order)
    for (double& v : before["exp_avg_sq:" + name]) v = narrow(v * 1e-16);
  for (auto& [name, values] : gradient)
    for (double& g : values) g = narrow(g * 1e-10);
  const auto verdict = judge({.decay = 0}, {.decay = 0}).verdict;
  EXPECT_TRUE(verdict.equal_work()) << verdict.reason;
}

TEST_F(AdamUpdate, is_not_accused_by_chance) {
  for (std::uint64_t seed = 2; seed < 52; ++seed) {
    bundle.random = stats::Random(seed);
    SetUp();
    const Rule due{.t = static_cast<double>(1 + seed * seed), .decoupled = seed % 2 == 0};
    const auto update = judge(due, due);
    ASSERT_TRUE(update.verdict.equal_work()) << seed << ": " << update.verdict.reason;
    EXPECT_NEAR(update.rate, due.lr, 1e-5 * due.lr);
  }
}

TEST_F(AdamUpdate, names_what_a_step_does_otherwise) {
  struct Fault {
    Rule due, done;
    const char *sentence, *brief;
  };
  const Rule adam, adamw{.decoupled = true}, large_eps{.eps = 0.1};
  const auto with = [](Rule rule, auto change) {
    change(rule);
    return rule;
  };
  for (const auto& [due, done, sentence, brief] : std::vector<Fault>{
           {adam, with(adam, [](Rule& r) { r.corrects_mean = r.corrects_square = false; }), "without bias correction",
            "bias correction is missing"},
           {adam, with(adam, [](Rule& r) { r.corrects_mean = false; }), "exp_avg) is not corrected",
            "bias correction is missing"},
           {adam, with(adam, [](Rule& r) { r.corrects_square = false; }), "exp_avg_sq) is not corrected",
            "bias correction is missing"},
           {adam, with(adam, [](Rule& r) { r.t = 1; }), "as of step 1, this is step 10",
            "bias correction counts other steps"},
           {adam, with(adam, [](Rule& r) { r.decoupled = true; }), "weight decay is apart from the gradient",
            "weight decay is AdamW's, not Adam's"},
           {adamw, with(adamw, [](Rule& r) { r.decoupled = false; }), "weight decay goes through the gradient",
            "weight decay is Adam's, not AdamW's"},
           {adam, with(adam, [](Rule& r) { r.decay = 0; }), "without weight decay", "weight decay is not applied"},
           {adamw, with(adamw, [](Rule& r) { r.decay = 0; }), "without weight decay", "weight decay is not applied"},
           {adam, with(adam, [](Rule& r) { r.beta1 = 0.95; }), "beta1 in use is 0.95 where 0.9 is due",
            "another beta1 is in use"},
           {adam, with(adam, [](Rule& r) { r.beta1 = 0; }), "beta1 in use is", "another beta1 is in use"},
           {adam, with(adam, [](Rule& r) { r.beta2 = 0.99; }), "beta2 in use is 0.99 where 0.999 is due",
            "another beta2 is in use"},
           {adam, with(adam, [](Rule& r) { r.lr = 0.0999; }), "the learning rate in use is 0.099",
            "another learning rate is in use"},
           {adam, with(adam, [](Rule& r) { r.eps = 1e-3; }), "eps in use is 0.001", "another eps is in use"},
           {large_eps, with(large_eps, [](Rule& r) { r.eps = 1e-8; }), "eps", "eps is"},
           {large_eps, with(large_eps, [](Rule& r) { r.place = Rule::Eps::in_root; }), "eps is added under the root",
            "eps is in another place"},
           {large_eps, with(large_eps, [](Rule& r) { r.place = Rule::Eps::before_correction; }),
            "eps is added before the bias correction", "eps is in another place"},
           {adam, with(adam, [](Rule& r) { r.flips_sign = true; }), "the first is conv.weight",
            "parameters move otherwise"}}) {
    const auto verdict = judge(due, done).verdict;
    EXPECT_FALSE(verdict.equal_work()) << sentence;
    EXPECT_THAT(verdict.reason, HasSubstr(sentence));
    EXPECT_THAT(verdict.reason_short, HasSubstr(brief)) << verdict.reason;
  }
}

TEST_F(AdamUpdate, the_second_beta_shows_from_no_buffers_whatever_is_beside_it) {
  drop_buffers();
  const auto verdict = judge({.decay = 0, .t = 1}, {.decay = 0, .beta2 = 0.9991, .t = 1}).verdict;
  EXPECT_FALSE(verdict.equal_work());
}

TEST_F(AdamUpdate, a_state_without_a_buffer_is_not_complete) {
  const Rule rule;
  auto after = rule.step(before, gradient, bundle.order);
  after.erase("exp_avg_sq:fc.bias");
  const auto verdict = check_update(bundle.order, bundle.file(before), bundle.file(gradient), bundle.file(after),
                                    optimiser_of(rule), rule.lr, 0, 9)
                           .verdict;
  EXPECT_THAT(verdict.reason, HasSubstr("lacks 'exp_avg_sq:fc.bias'"));
}

// In the middle of a training, of which many gradients are rounding alone.
struct LateAdam : AdamUpdate {
  std::unique_ptr<TrainReference> reference;
  static constexpr double late = 500;

  void SetUp() override {
    AdamUpdate::SetUp();
    bundle.optimiser = optimiser_of({.decoupled = true});
    reference = bundle.open();
    // as of a bias that the next BatchNorm takes away: a gradient that is rounding, and a mean of squares of its size
    for (double& g : gradient["momentum:conv.bias"]) g = narrow(g * 1e-9);
    for (double& v : before["exp_avg_sq:conv.bias"]) v = narrow(v * 1e-19);
    for (double& m : before["exp_avg:conv.bias"]) m = narrow(m * 1e-9);
  }
  OutputVerdict judge_late(const Rule& done, double noise = 1e-5) {
    const Rule due{.t = late, .decoupled = true};
    auto level_gradient = gradient, moved_gradient = gradient;
    for (const auto& name : bundle.order) {
      const auto size = name == "conv.bias" ? 1e-10 : noise * 0.05;
      for (double& g : level_gradient["momentum:" + name]) g += size * testing::normal(bundle.random);
      for (double& g : moved_gradient["momentum:" + name]) g += 0.2 * size * testing::normal(bundle.random);
    }
    const auto start = bundle.file(before), level = bundle.file(done.step(before, level_gradient, bundle.order)),
               eager = bundle.file(due.step(before, gradient, bundle.order)),
               moved = bundle.file(due.step(before, moved_gradient, bundle.order));
    return check_late_step(*reference, {&start, &level, {1.25}}, {&start, &eager, {1.25}},
                           {&start, &moved, {1.2500001}}, 0, static_cast<std::int64_t>(late) - 1);
  }
};

TEST_F(LateAdam, a_step_whose_gradients_are_rounding_is_not_accused) {
  for (int i = 0; i < 20; ++i) {
    const auto verdict = judge_late({.t = late, .decoupled = true});
    ASSERT_TRUE(verdict.equal_work()) << verdict.reason;
  }
}

TEST_F(LateAdam, finds_every_fault_of_a_step) {
  struct Fault {
    const char* words;
    Rule done;
  };
  for (const auto& [words, done] :
       std::vector<Fault>{{"exp_avg of", {.beta1 = 0, .t = late, .decoupled = true}},
                          {"exp_avg_sq of", {.beta2 = 0.99, .t = late, .decoupled = true}},
                          {"learning rate in use is 0.101", {.lr = 0.101, .t = late, .decoupled = true}},
                          {"without weight decay", {.decay = 0, .t = late, .decoupled = true}},
                          {"move otherwise than eager's", {.t = late, .decoupled = false}},
                          {"as of step 1,", {.t = 1, .decoupled = true}}}) {
    const auto verdict = judge_late(done);
    EXPECT_FALSE(verdict.equal_work()) << words;
    EXPECT_THAT(verdict.reason, HasSubstr(words));
  }
}

}  // namespace
}  // namespace strata::proof
