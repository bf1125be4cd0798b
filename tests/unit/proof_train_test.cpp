// SPDX-License-Identifier: Apache-2.0
// Judging training steps: gradients, statistics, the optimiser's step and its parts, dropout; each both ways, faults by
// their names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proof/train_certificate.hpp"
#include "unit/train_bundle.hpp"

namespace strata::proof {
namespace {

using ::testing::HasSubstr;
using testing::in_float32;
using testing::State;
using testing::TrainBundle;
using testing::Values;
using Kind = OutputVerdict::Kind;
using nlohmann::json;
namespace fs = std::filesystem;

struct Probe : ::testing::Test {
  TrainBundle bundle;
  std::unique_ptr<TrainReference> reference = bundle.open();
  OutputVerdict check(const State& after, double loss = 1.5, Tolerance tolerance = {}) {
    return check_gradients(*reference, "probe1", bundle.loss(loss), bundle.file(after), tolerance);
  }
};

TEST_F(Probe, gradients_within_the_envelope_are_equal) {
  const auto verdict = check(bundle.after_probe("probe1", 2e-5));
  EXPECT_TRUE(verdict.equal_work()) << verdict.reason;
  EXPECT_GT(verdict.worst_ratio, 1);
  EXPECT_LT(verdict.worst_ratio, 8);
}

TEST_F(Probe, gradients_beyond_eight_envelopes_differ_unless_the_level_reassociates_or_is_not_deterministic) {
  const auto after = bundle.after_probe("probe1", 2e-4);
  EXPECT_EQ(check(after).kind, Kind::unequal);
  EXPECT_EQ(check(after, 1.5, {true, 0}).kind, Kind::equal_looser);
  EXPECT_TRUE(check(after, 1.5, {false, 5e-5}).equal_work());
  EXPECT_EQ(check(bundle.after_probe("probe1", 2e-3), 1.5, {false, 1.0}).kind, Kind::unequal)
      << "randomness buys at most eight envelopes";
}

TEST_F(Probe, a_tensor_whose_true_gradient_is_zero_is_judged_by_the_floor) {
  for (double& g : bundle.gradients["probe1"]["conv.bias"]) g = 0;
  reference = bundle.open();
  auto after = bundle.after_probe("probe1");
  for (double& v : after["momentum:conv.bias"]) v = 1e-9;
  for (std::size_t i = 0; i < 40; ++i)
    after["weight:conv.bias"][i] = static_cast<float>(bundle.weights["probe1"]["conv.bias"][i] - 1e-9);
  EXPECT_TRUE(check(after).equal_work()) << check(after).reason;
}

TEST_F(Probe, names_the_loss_that_differs) {
  EXPECT_THAT(check(bundle.after_probe("probe1"), 1.6).reason, HasSubstr("loss"));
  EXPECT_EQ(check(bundle.after_probe("probe1"), 1.6).first_difference, "loss");
  EXPECT_EQ(check(bundle.after_probe("probe1"), std::nan("")).kind, Kind::unequal);
}

TEST_F(Probe, names_the_failing_gradient_that_is_nearest_to_the_loss) {
  auto after = bundle.after_probe("probe1");
  for (const char* name : {"conv.weight", "fc.weight"}) {
    after[std::string("momentum:") + name][3] += 0.25;
    after[std::string("weight:") + name][3] -= 0.25;
  }
  EXPECT_EQ(check(after).first_difference, "grad:fc.weight");
}

TEST_F(Probe, refuses_losses_of_other_data_than_the_rings) {
  const auto judge = [&](const State& losses) { return check_losses(*reference, bundle.file(losses)); };
  EXPECT_TRUE(judge({{"0/loss", {1.5}}, {"1/loss", {2.5 * (1 + 40 * bundle.envelope)}}}).equal_work());
  const auto stale = judge({{"0/loss", {1.5}}, {"1/loss", {1.5}}});
  EXPECT_FALSE(stale.equal_work());
  EXPECT_THAT(stale.reason, HasSubstr("the loss of input 1 is 1.5 where 2.5 is due"));
  EXPECT_FALSE(judge({{"0/loss", {1.5}}}).equal_work());
  EXPECT_FALSE(judge({{"0/loss", {1.5}}, {"1/loss", {std::nan("")}}}).equal_work());
}

TEST_F(Probe, names_biases_that_are_not_trained) {
  for (const bool gradient_too : {true, false}) {
    auto after = bundle.after_probe("probe1");
    for (const char* name : {"conv.bias", "fc.bias"}) {
      if (gradient_too) after[std::string("momentum:") + name].assign(bundle.weights["probe1"][name].size(), 0.0);
      after[std::string("weight:") + name] = bundle.weights["probe1"][name];
    }
    EXPECT_EQ(check(after).reason_short, "biases are not trained") << check(after).reason;
  }
}

TEST_F(Probe, names_a_loss_that_is_summed) {
  auto after = bundle.after_probe("probe1");
  for (const auto& name : bundle.order)
    for (std::size_t i = 0; i < bundle.weights["probe1"][name].size(); ++i) {
      after["momentum:" + name][i] *= 8;
      after["weight:" + name][i] = static_cast<float>(bundle.weights["probe1"][name][i] - after["momentum:" + name][i]);
    }
  const auto verdict = check(after, 12);
  EXPECT_EQ(verdict.reason_short, "loss is summed, not averaged");
  EXPECT_THAT(verdict.reason, HasSubstr("and so is the loss"));
}

TEST_F(Probe, names_weight_decay_that_nobody_asked_for) {
  auto after = bundle.after_probe("probe1");
  for (const auto& name : bundle.order)
    for (std::size_t i = 0; i < bundle.weights["probe1"][name].size(); ++i) {
      after["momentum:" + name][i] += 0.01 * bundle.weights["probe1"][name][i];
      after["weight:" + name][i] = static_cast<float>(bundle.weights["probe1"][name][i] - after["momentum:" + name][i]);
    }
  EXPECT_EQ(check(after).reason_short, "weight decay is baked in") << check(after).reason;
}

TEST_F(Probe, names_labels_that_are_moved) {
  const auto moved_to = [&](auto other) {
    auto after = bundle.after_probe("probe1");
    for (std::size_t i = 0; i < bundle.labels[0].size(); ++i) {
      after["momentum:fc.bias"][static_cast<std::size_t>(bundle.labels[0][i])] += 0.125;
      after["momentum:fc.bias"][static_cast<std::size_t>(other(i))] -= 0.125;
    }
    for (std::size_t i = 0; i < 5; ++i)
      after["weight:fc.bias"][i] =
          static_cast<float>(bundle.weights["probe1"]["fc.bias"][i] - after["momentum:fc.bias"][i]);
    return check(after, 1.9);
  };
  EXPECT_EQ(moved_to([&](std::size_t i) { return std::fmod(bundle.labels[0][i] + 1, 5); }).reason_short,
            "labels are off by one");
  EXPECT_EQ(moved_to([&](std::size_t i) { return bundle.labels[1][i]; }).reason_short,
            "labels belong to another input");
}

TEST_F(Probe, names_what_is_wrong_with_statistics) {
  const auto old = bundle.weights["probe1"], right = bundle.moved["probe1"];
  auto eager = bundle.after_probe("probe1"), biased = eager, of_many = eager, faster = eager;
  for (const auto& name : bundle.statistics) eager["weight:" + name] = old.at(name);
  EXPECT_EQ(check(eager).reason_short, "BatchNorm runs in eval mode");
  for (std::size_t i = 0; i < 40; ++i) {
    const double before = old.at("bn.running_var")[i], after = right.at("bn.running_var")[i];
    biased["weight:bn.running_var"][i] = 0.9 * before + (after - 0.9 * before) * 7 / 8;
    of_many["weight:bn.running_var"][i] = 0.9 * before + (after - 0.9 * before) * 299 / 300;
    faster["weight:bn.running_var"][i] = before + 1.5 * (after - before);
  }
  EXPECT_EQ(check(biased).reason_short, "BatchNorm variance is biased") << check(biased).reason;
  EXPECT_THAT(check(biased).reason, HasSubstr("n = 8"));
  EXPECT_EQ(check(of_many).reason_short, "BatchNorm variance is biased") << check(of_many).reason;
  EXPECT_EQ(check(faster).reason_short, "BatchNorm momentum differs") << check(faster).reason;
}

TEST_F(Probe, names_a_learning_rate_that_is_not_one) {
  auto after = bundle.after_probe("probe1");
  for (const auto& name : bundle.order)
    for (std::size_t i = 0; i < bundle.weights["probe1"][name].size(); ++i)
      after["weight:" + name][i] =
          static_cast<float>(bundle.weights["probe1"][name][i] - 0.999 * after["momentum:" + name][i]);
  EXPECT_THAT(check(after).reason, HasSubstr("move by 0.999 times"));
}

TEST_F(Probe, names_a_level_without_momentum_and_one_in_reduced_precision) {
  auto after = bundle.after_probe("probe1"), rounded = after;
  std::erase_if(after, [](const auto& entry) { return entry.first.starts_with("momentum:"); });
  EXPECT_EQ(check(after).reason_short, "momentum is not applied");
  for (const auto& name : bundle.order)
    for (std::size_t i = 0; i < rounded["momentum:" + name].size(); ++i) {
      std::uint32_t bits = 0;
      const float value = static_cast<float>(rounded["momentum:" + name][i]);
      std::memcpy(&bits, &value, 4);
      bits &= 0xffff0000U;
      float cut = 0;
      std::memcpy(&cut, &bits, 4);
      rounded["momentum:" + name][i] = cut;
      rounded["weight:" + name][i] = static_cast<float>(bundle.weights["probe1"][name][i] - cut);
    }
  EXPECT_EQ(check(rounded).reason_short, "computes in reduced precision (bfloat16)");
}

// One step between two states, by the case's optimiser or another.
struct Update : Probe {
  State before, gradient;
  void SetUp() override {
    for (const auto& name : bundle.order) {
      before["weight:" + name] = bundle.draw(name, 0.3);
      before["momentum:" + name] = bundle.draw(name, 0.2);
      gradient["momentum:" + name] = bundle.draw(name, 0.05);
      gradient["weight:" + name] = before["weight:" + name];
    }
  }
  UpdateVerdict check_step(const core::Optimiser& due, const core::Optimiser& done, double factor = 1,
                           double spread = 0) {
    const auto after = TrainBundle::step(before, gradient, bundle.order, done, factor * 0.01);
    return check_update(bundle.order, bundle.file(before), bundle.file(gradient), bundle.file(after), due, 0.01, spread,
                        0);
  }
  static core::Optimiser changed(const core::Optimiser& optimiser, const json& by) {
    auto fields = to_json(optimiser);
    fields.update(by);
    return *core::read_optimiser(fields, "optimiser");
  }
};

TEST_F(Update, a_step_of_the_optimiser_passes_whatever_its_hyperparameters) {
  for (const json& change : {json::object(), json{{"nesterov", true}}, json{{"dampening", 0.3}},
                             json{{"momentum", 0.0}}, json{{"weight_decay", 0.0}}}) {
    const auto rule = changed(bundle.optimiser, change);
    if (rule.sgd()->momentum == 0)
      std::erase_if(before, [](const auto& entry) { return entry.first.starts_with("momentum:"); });
    const auto update = check_step(rule, rule);
    EXPECT_TRUE(update.verdict.equal_work()) << change << ": " << update.verdict.reason;
    EXPECT_NEAR(update.rate, 0.01, 6 * update.rate_error * 0.01);
    EXPECT_LT(update.rate_error, 1e-4);
    SetUp();
  }
}

TEST_F(Update, the_first_step_needs_no_buffer) {
  std::erase_if(before, [](const auto& entry) { return entry.first.starts_with("momentum:"); });
  const auto rule = changed(bundle.optimiser, {{"dampening", 0.3}});
  EXPECT_TRUE(check_step(rule, rule).verdict.equal_work()) << check_step(rule, rule).verdict.reason;
}

TEST_F(Update, is_not_accused_by_chance) {
  for (std::uint64_t seed = 2; seed < 102; ++seed) {
    bundle.random = stats::Random(seed);
    SetUp();
    const auto update = check_step(bundle.optimiser, bundle.optimiser);
    ASSERT_TRUE(update.verdict.equal_work()) << seed << ": " << update.verdict.reason;
  }
}

TEST_F(Update, names_what_the_optimiser_left_out) {
  const auto reason = [&](const json& change, const json& due_change = json::object()) {
    const auto due = changed(bundle.optimiser, due_change);
    return check_step(due, changed(due, change)).verdict;
  };
  EXPECT_EQ(reason({{"weight_decay", 0.0}}).reason_short, "weight decay is not applied");
  EXPECT_EQ(reason({{"dampening", 0.0}}, {{"dampening", 0.3}}).reason_short, "dampening is not applied");
  EXPECT_EQ(reason({{"nesterov", false}}, {{"nesterov", true}}).reason_short, "Nesterov's momentum is wrong");
  EXPECT_EQ(reason({{"momentum", 0.0}}).kind, Kind::unequal);
  auto without =
      TrainBundle::step(before, gradient, bundle.order, changed(bundle.optimiser, {{"momentum", 0.0}}), 0.01);
  for (const auto& name : bundle.order) without["momentum:" + name] = gradient["momentum:" + name];
  const auto verdict = check_update(bundle.order, bundle.file(before), bundle.file(gradient), bundle.file(without),
                                    changed(bundle.optimiser, {{"weight_decay", 0.0}}), 0.01, 0, 0)
                           .verdict;
  EXPECT_EQ(verdict.kind, Kind::unequal);
}

TEST_F(Update, of_clipped_gradients_goes_by_the_norm_of_all_and_names_a_clip_that_was_left_out) {
  const double size = gradient_norm(bundle.file(gradient));
  auto clipped = gradient;
  for (auto& [name, values] : clipped)
    for (double& g : values) g = static_cast<float>(g * (0.5 * size / (size + 1e-6)));
  const auto half = changed(bundle.optimiser, {{"clip_norm", 0.5 * size}});
  const auto judged = [&](const State& done_by, const core::Optimiser& due, const std::vector<std::string>& names) {
    const auto after = TrainBundle::step(before, done_by, bundle.order, bundle.optimiser, 0.01);
    return check_update(names, bundle.file(before), bundle.file(gradient), bundle.file(after), due, 0.01, 0, 0).verdict;
  };
  EXPECT_TRUE(judged(clipped, half, bundle.order).equal_work()) << judged(clipped, half, bundle.order).reason;
  EXPECT_TRUE(judged(clipped, half, {bundle.order.front()}).equal_work()) << "of a part of the parameters";
  EXPECT_EQ(judged(gradient, half, bundle.order).reason_short, "gradients are not clipped");
  EXPECT_TRUE(judged(gradient, changed(bundle.optimiser, {{"clip_norm", 2 * size}}), bundle.order).equal_work());
  EXPECT_EQ(judged(clipped, bundle.optimiser, bundle.order).kind, Kind::unequal) << "a clip that nobody asked for";
}

TEST_F(Update, sees_a_learning_rate_that_is_a_thousandth_too_small_and_a_step_that_was_not_taken) {
  const auto small = check_step(bundle.optimiser, bundle.optimiser, 0.999);
  EXPECT_EQ(small.verdict.reason_short, "another learning rate is in use") << small.verdict.reason;
  EXPECT_THAT(small.verdict.reason, HasSubstr("0.999 times"));
  EXPECT_EQ(check_step(bundle.optimiser, bundle.optimiser, 0).verdict.kind, Kind::unequal);
}

TEST_F(Update, weights_that_hardly_move_hide_the_rate_and_say_so) {
  for (auto& [name, values] : before)
    if (name.starts_with("weight:"))
      for (double& w : values) w = static_cast<float>(w * 1e6);
  const auto rule = changed(bundle.optimiser, {{"weight_decay", 0.0}});
  const auto update = check_step(rule, rule);
  EXPECT_TRUE(update.verdict.equal_work()) << update.verdict.reason;
  EXPECT_TRUE(std::isinf(update.rate_error) || update.rate_error > 1e-4);
}

TEST_F(Update, a_state_without_a_parameter_is_not_complete) {
  auto lacking = before;
  lacking.erase("weight:fc.bias");
  const auto after = bundle.file(TrainBundle::step(before, gradient, bundle.order, bundle.optimiser, 0.01));
  EXPECT_THAT(
      check_update(bundle.order, bundle.file(lacking), bundle.file(gradient), after, bundle.optimiser, 0.01, 0, 0)
          .verdict.reason,
      HasSubstr("fc.bias"));
}

TEST_F(Update, pairs_of_steps_show_each_hyperparameter_without_knowing_the_gradient) {
  State base;
  for (const auto& name : bundle.order) base["weight:" + name] = before["weight:" + name];
  const auto plain = changed(bundle.optimiser, {{"weight_decay", 0.0}}),
             decay = changed(plain, {{"weight_decay", 0.1}});
  const auto at = [&](const State& from, const core::Optimiser& rule, double lr = 0.1) {
    return bundle.file(TrainBundle::step(from, gradient, bundle.order, rule, lr));
  };
  const auto start = bundle.file(base), buffers = bundle.file(before);
  const auto first = at(base, plain), decayed = at(base, decay), pushed = at(before, plain), slow = at(before, decay),
             fast = at(before, decay, 0.2), fault = at(base, plain, 0.0999);
  const auto pair = [&](const Pair& p) { return check_pair(bundle.order, p, 0, "fault"); };
  EXPECT_TRUE(pair({&start, &first, &decayed, 1, &start, "weight:", 0.01}).equal_work());
  EXPECT_TRUE(pair({&start, &first, &pushed, 1, &buffers, "momentum:", 0.09}).equal_work());
  EXPECT_TRUE(pair({&start, &slow, &fast, 2, nullptr, "", 0}).equal_work());
  EXPECT_EQ(pair({&start, &first, &first, 1, &start, "weight:", 0.01}).kind, Kind::unequal) << "no weight decay";
  EXPECT_EQ(pair({&start, &first, &first, 1, &buffers, "momentum:", 0.09}).kind, Kind::unequal) << "no momentum";
  EXPECT_EQ(pair({&start, &slow, &slow, 2, nullptr, "", 0}).kind, Kind::unequal) << "the rate is ignored";
  EXPECT_EQ(pair({&start, &fault, &decayed, 1, &start, "weight:", 0.01}).kind, Kind::unequal)
      << "one of the rates is 0.999 of what it should be";
  EXPECT_EQ(pair({&start, &first, &decayed, 1, &start, "weight:", 0.01001}).kind, Kind::unequal)
      << "a decay that is 1.001 of what it should be";
}

struct TrainCertificate : Probe {
  Evidence evidence;
  TrainEvidence training;
  void SetUp() override {
    for (const char* set : {"probe1", "probe2", "timed"}) training.steps[set] = OutputVerdict{};
    training.losses = OutputVerdict{};
    training.rules.push_back({"momentum", OutputVerdict{}, ""});
    training.add_update({OutputVerdict{}, 0.01, 1e-6});
    training.counts_checked = 3;
    evidence.add_block(OutputVerdict{});
    evidence.load = {{"parameters", 1445}, {"settings", {{"threads", 2}, {"precision", "fp32"}}}};
    evidence.flops = 2e6;
  }
  Certificate certify() { return train_certificate(*reference, evidence, training); }
};

TEST_F(TrainCertificate, a_faultless_level_may_have_numbers) {
  const auto c = certify();
  EXPECT_TRUE(c.may_have_numbers());
  EXPECT_EQ(c.proof.weak, false);
  EXPECT_EQ(c.proof.observed, 7);  // three sets, losses of the ring, momentum, the step after timing, losses
  EXPECT_EQ(c.proof.reported, 4);  // steps, parameters, threads, precision
  EXPECT_EQ(c.proof.assumed, 1);   // operations
}

TEST_F(TrainCertificate, each_part_that_fails_takes_the_numbers_away) {
  const auto fails = [&](const std::function<void()>& spoil, const std::string& word) {
    const auto good = std::pair(evidence, training);
    spoil();
    const auto c = certify();
    EXPECT_FALSE(c.may_have_numbers());
    EXPECT_THAT(c.reason, HasSubstr(word));
    std::tie(evidence, training) = good;
  };
  fails([&] { training.steps["probe2"] = not_equal("wrong", "wrong", "grad:fc.bias"); }, "probe weights 2: wrong");
  fails([&] { training.losses = not_equal("wrong", "wrong", "loss"); }, "losses follow inputs and labels: wrong");
  fails([&] { training.rules.front().verdict = not_equal("wrong", "wrong"); }, "optimiser: momentum");
  fails([&] { training.add_update({not_equal("wrong", "wrong"), 0, 1}); }, "a step after timing");
  fails([&] { evidence.add_block(not_equal("not finite", "wrong")); }, "in a timed block");
  fails([&] { training.counts_wrong = "another count"; }, "another count");
  fails([&] { training.steps.clear(); }, "");
}

TEST_F(TrainCertificate, is_weak_by_the_capture_by_blunt_gradients_or_by_faults_that_hide) {
  bundle.weak = "no ReLU could be kept off its kink";
  reference = bundle.open();
  EXPECT_EQ(certify().proof.weak, true);
  EXPECT_EQ(train_power(*reference).reason, "no ReLU could be kept off its kink");
  bundle.weak = "";
  bundle.envelope = 2e-3;
  reference = bundle.open();
  EXPECT_THAT(train_power(*reference).reason, HasSubstr("weak gradient proof"));
  bundle.envelope = 1e-5;
  bundle.faults["label_smoothing"] = {{"times_bound", 4.0}, {"sentence", "labels smoothed"}};
  reference = bundle.open();
  EXPECT_THAT(train_power(*reference).reason, HasSubstr("label_smoothing"));
  EXPECT_TRUE(certify().may_have_numbers()) << "a weak proof is shown, and not refused";
}

// Of a case in bfloat16: the strict bundle and that of the mode, which has wider envelopes.
struct TrainMode : TrainCertificate {
  std::unique_ptr<TrainReference> in_mode;
  TrainEvidence strict;
  void SetUp() override {
    TrainCertificate::SetUp();
    strict = training;
    bundle.precision = "amp-bf16";
    in_mode = bundle.open();
    training.rules.clear();  // they are proven in float32
    evidence.load["settings"]["precision"] = "amp-bf16";
    evidence.precision = PrecisionShare{1.1, 1e4};
  }
  Certificate certify() {
    const StrictTraining of_float32{*reference, strict};
    return train_certificate(*in_mode, evidence, training, &of_float32);
  }
  SafeTensors rounded(double noise) { return bundle.file(bundle.after_probe("probe1", noise)); }
};

TEST_F(TrainMode, a_step_is_judged_by_what_eager_errs_in_the_mode) {
  const auto after = rounded(0.02);
  EXPECT_FALSE(check_gradients(*reference, "probe1", bundle.loss(), after).equal_work());
  const auto verdict = check_gradients(*in_mode, "probe1", bundle.loss(), after);
  EXPECT_TRUE(verdict.equal_work()) << verdict.reason;
  EXPECT_FALSE(check_gradients(*in_mode, "probe1", bundle.loss(), rounded(0.5)).equal_work());
}

TEST_F(TrainMode, gradients_in_float32_show_that_a_level_does_not_compute_in_the_mode) {
  const auto share = [&](double noise) { return gradient_precision(*reference, *in_mode, "probe1", rounded(noise)); };
  EXPECT_GE(share(0).contrast, least_contrast);
  EXPECT_GE(share(0.01).of_eager, least_share);
  EXPECT_LT(share(1e-6).of_eager, least_share);
  bundle.least = 1e-4;  // hardly more than in float32
  in_mode = bundle.open();
  EXPECT_LT(share(0.01).contrast, least_contrast);
}

TEST_F(TrainMode, what_was_proven_in_float32_and_in_the_mode_stands_in_lines_of_their_own) {
  const auto c = certify();
  EXPECT_TRUE(c.may_have_numbers()) << c.reason;
  std::map<std::string, std::string> results;
  for (const auto& line : c.proof.lines) results[line.check] = line.result;
  for (const char* check :
       {"loss, gradients and statistics, probe weights 1, strict float32", "computes in amp-bf16",
        "loss, gradients and statistics, timed weights, amp-bf16", "losses follow inputs and labels, strict float32",
        "losses follow inputs and labels, amp-bf16", "optimiser: momentum", "a step after timing", "precision"})
    EXPECT_EQ(results[check], "pass") << check;
}

TEST_F(TrainMode, each_of_both_parts_takes_the_numbers_away) {
  const auto fails = [&](const std::function<void()>& spoil, const std::string& word) {
    const auto good = std::tuple(evidence, training, strict);
    spoil();
    const auto c = certify();
    EXPECT_FALSE(c.may_have_numbers()) << word;
    EXPECT_THAT(c.reason, HasSubstr(word));
    std::tie(evidence, training, strict) = good;
  };
  fails([&] { strict.steps["timed"] = not_equal("wrong", "wrong", "loss"); }, "timed weights, strict float32: wrong");
  fails([&] { strict.rules.front().verdict = not_equal("wrong", "wrong"); }, "optimiser: momentum");
  fails([&] { strict.counts_wrong = "another count"; }, "another count");
  fails([&] { training.steps["probe2"] = not_equal("wrong", "wrong", "loss"); }, "probe weights 2, amp-bf16: wrong");
  fails([&] { evidence.precision = PrecisionShare{1e-3, 1e4}; }, "higher precision");
  fails([&] { evidence.load["settings"]["precision"] = "fp32"; }, "precision fp32, the case says amp-bf16");
  fails([&] { training.steps.clear(); }, "");
}

TEST(TrainFolder, a_damaged_folder_is_refused_by_name) {
  TrainBundle bundle;
  bundle.open();
  fs::remove(bundle.path / "labels.safetensors");
  EXPECT_FALSE(TrainReference::open(bundle.path));
  bundle.open();
  std::ofstream(bundle.path / "reference" / "train.json") << "{\"timed\":{}}";
  const auto opened = TrainReference::open(bundle.path);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().what, HasSubstr("train.json"));
  bundle.precision = "amp-bf16";
  bundle.open();
  std::ofstream(bundle.path / "reference" / "train.amp-bf16.json") << "{\"timed\":{}}";
  const auto in_mode = TrainReference::open(bundle.path);
  ASSERT_FALSE(in_mode);
  EXPECT_THAT(in_mode.error().what, HasSubstr("train.amp-bf16.json"));
}

}  // namespace
}  // namespace strata::proof
