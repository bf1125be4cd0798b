// SPDX-License-Identifier: Apache-2.0
// Every rule of the output check both ways: the fault is seen and named, and no faultless level is accused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "proof/outputs.hpp"
#include "unit/proof_bundle.hpp"

namespace strata::proof {
namespace {

using testing::all;
using testing::Bundle;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Output;
using testing::Tensors;
using testing::two;
using Kind = OutputVerdict::Kind;
using Values = Bundle::Values;

class Outputs : public ::testing::Test {
 protected:
  void make(std::uint64_t seed = 1) {
    bundle = std::make_unique<Bundle>(seed);
    if (prepare) prepare(*bundle);
    bundle->draw();
    if (adjust) adjust(*bundle);
    bundle->write();
    auto opened = Reference::open(bundle->path);
    ASSERT_TRUE(opened) << opened.error().what;
    reference = std::make_unique<Reference>(std::move(*opened));
  }
  OutputVerdict check(const std::string& set, const std::vector<int>& indices,
                      const std::function<Values(int, const Output&, Values)>& change = {},
                      const std::function<void(Tensors&)>& also = {}, Tolerance tolerance = {}) {
    return check_outputs(*reference, set, bundle->level(set, indices, change, also), indices, tolerance);
  }
  const Values& exact(const std::string& set, int index) { return bundle->exact.at(Bundle::key(set, index, "output")); }

  std::function<void(Bundle&)> prepare, adjust;
  std::unique_ptr<Bundle> bundle;
  std::unique_ptr<Reference> reference;
};

TEST_F(Outputs, accepts_legitimate_runs_of_20_seeds) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    make(seed);
    for (const char* set : {"timed", "generic1", "generic2"}) {
      const OutputVerdict v = check(set, bundle->indices(set));
      EXPECT_EQ(v.kind, Kind::equal) << v.reason;
      EXPECT_LT(v.worst_ratio, 3);
      EXPECT_TRUE(v.follows_inputs);
      EXPECT_EQ(v.reason, "");
      EXPECT_EQ(v.first_difference, "");
    }
  }
}

TEST_F(Outputs, accepts_one_output_of_a_timed_block) {
  make();
  const OutputVerdict v = check("timed", {2});
  EXPECT_EQ(v.kind, Kind::equal) << v.reason;
  EXPECT_TRUE(v.follows_inputs) << "it matches input 2 and the references of the others differ";
}

TEST_F(Outputs, accepts_up_to_8_envelopes_and_refuses_beyond) {
  make();
  const double e0 = reference->envelope("generic1", "output").error;
  const auto off_by = [&](double envelopes) {
    return check("generic1", two, [=](int, const Output&, Values v) {
      for (double& x : v) x *= 1 + envelopes * e0;
      return v;
    });
  };
  EXPECT_EQ(off_by(6).kind, Kind::equal);
  const OutputVerdict v = off_by(11);
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("(allowed 8)"));
  EXPECT_THAT(v.reason_short, HasSubstr("times the envelope"));
  EXPECT_EQ(v.first_difference, "output");
  for (const double envelopes : {110.0, 2500.0})
    EXPECT_THAT(off_by(envelopes).reason_short, ::testing::Not(HasSubstr("e+")));
}

TEST_F(Outputs, a_level_that_declares_reassociation_is_allowed_64_and_shown_as_looser) {
  make();
  const double e0 = reference->envelope("generic1", "output").error;
  const auto off_by = [&](double envelopes) {
    const auto change = [=](int, const Output&, Values v) {
      for (double& x : v) x *= 1 + envelopes * e0;
      return v;
    };
    return check("generic1", two, change, {}, {.reassociates = true});
  };
  EXPECT_EQ(off_by(3).kind, Kind::equal);
  EXPECT_EQ(off_by(40).kind, Kind::equal_looser);
  EXPECT_TRUE(off_by(40).equal_work());
  EXPECT_EQ(off_by(80).kind, Kind::unequal);
}

TEST_F(Outputs, one_wrong_element_is_not_averaged_away) {
  prepare = [](Bundle& b) { b.outputs = {{"output", "float32", "F32", {2, 100000}}}; };
  make();
  const double e0 = reference->envelope("generic1", "output").error;
  const OutputVerdict v = check("generic1", two, [&](int, const Output&, Values values) {
    values[77] += 5 * e0 * std::sqrt(200000.0);  // 5 envelopes by the norm
    return values;
  });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("one element off"));
  EXPECT_THAT(v.reason, HasSubstr("(allowed 16)"));
}

TEST_F(Outputs, a_lucky_envelope_accuses_nobody) {
  prepare = [](Bundle& b) { b.rounding = 0; };  // all legitimate runs agree with float64 to the last bit
  make();
  bundle->rounding = 4e-7;
  const OutputVerdict v = check("timed", all);
  EXPECT_EQ(v.kind, Kind::equal) << v.reason;
}

TEST_F(Outputs, a_tiny_output_beside_large_ones_is_judged_by_the_floor) {
  prepare = [](Bundle& b) { b.outputs = {{"output"}, {"zero"}}; };
  adjust = [](Bundle& b) {
    for (auto& [key, values] : b.exact)
      if (key.ends_with("zero"))
        for (double& x : values) x = 0;
  };
  make();
  const auto with = [&](double value) {
    return check("timed", all,
                 [=](int, const Output& o, Values v) { return o.name == "zero" ? Values(v.size(), value) : v; })
        .kind;
  };
  EXPECT_EQ(with(0), Kind::equal);
  EXPECT_EQ(with(1e-15), Kind::equal) << "far below a float32 rounding of the other output";
  EXPECT_EQ(with(1e-3), Kind::unequal);
}

TEST_F(Outputs, names_the_type_that_is_wrong) {
  make();
  const OutputVerdict v = check(
      "timed", {0}, [](int, const Output&, Values) { return Values(); },
      [&](Tensors& t) {
        t.add_as("0/output", "F64", {2, 10}, exact("timed", 0));
      });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("type F64, where F32 is declared"));
}

TEST_F(Outputs, names_the_shape_that_is_wrong) {
  make();
  const OutputVerdict v = check(
      "timed", {0}, [](int, const Output&, Values) { return Values(); },
      [&](Tensors& t) { t.add_as("0/output", "F32", {20}, exact("timed", 0)); });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("shape 20, where 2x10 is declared"));
}

TEST_F(Outputs, names_the_output_that_is_missing) {
  make();
  const OutputVerdict v =
      check("timed", two, [](int index, const Output&, Values values) { return index == 1 ? Values() : values; });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("output 'output' of input 1 is missing"));
}

TEST_F(Outputs, refuses_an_output_that_nobody_asked_for) {
  make();
  const OutputVerdict v = check("timed", two, {}, [&](Tensors& t) {
    t.add_as("0/extra", "F32", {2, 10}, exact("timed", 0));
  });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("'0/extra' was not asked for"));
}

TEST_F(Outputs, refuses_what_it_has_no_reference_for) {
  make();
  EXPECT_EQ(check_outputs(*reference, "generic9", bundle->level("timed", all), all).kind, Kind::unequal);
  EXPECT_EQ(check_outputs(*reference, "timed", bundle->level("timed", all), std::vector<int>{7}).kind, Kind::unequal);
  EXPECT_EQ(check_outputs(*reference, "timed", bundle->level("timed", all), {}).kind, Kind::unequal)
      << "nothing checked is no proof";
}

TEST_F(Outputs, nan_is_refused_where_the_reference_has_none_and_accepted_where_it_has) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  adjust = [=](Bundle& b) { b.exact["timed/0/output"][3] = nan, b.exact["timed/0/output"][4] = inf; };
  make();
  EXPECT_EQ(check("timed", all).kind, Kind::equal);
  const auto with = [&](std::size_t place, double value) {
    return check("timed", all, [=](int index, const Output&, Values v) {
      if (index == 0) v[place] = value;
      return v;
    });
  };
  EXPECT_EQ(with(5, nan).kind, Kind::unequal);
  EXPECT_THAT(with(5, nan).reason, HasSubstr("NaN or Inf at 1 places"));
  EXPECT_EQ(with(3, 1.0).kind, Kind::unequal) << "a NaN that should be there is missing";
  EXPECT_EQ(with(4, -inf).kind, Kind::unequal) << "the sign of Inf counts";
}

TEST_F(Outputs, an_overflow_that_legitimate_runs_share_is_no_fault) {
  adjust = [](Bundle& b) { b.exact["timed/0/output"][3] = 1e300; };  // finite in float64, Inf in float32
  make();
  EXPECT_EQ(check("timed", {0}).kind, Kind::equal) << check("timed", {0}).reason;
}

TEST_F(Outputs, another_winner_is_refused_unless_the_margin_is_small) {
  prepare = [](Bundle& b) { b.outputs = {{"output", "float32", "F32", {1, 4}}}, b.batch = 1; };
  const double e = 3e-5;
  adjust = [=](Bundle& b) {
    b.rounding = 1e-5;
    b.exact["timed/0/output"] = {1, 1 + 0.1 * e, -1, -1};
    b.exact["timed/1/output"] = {1, 1.01, -1, -1};
  };
  make();
  const auto swap = [&](int which) {
    return check("timed", {which}, [](int, const Output&, Values v) {
      std::swap(v[0], v[1]);
      return v;
    });
  };
  EXPECT_EQ(swap(0).kind, Kind::equal) << swap(0).reason;
  EXPECT_EQ(swap(1).kind, Kind::unequal);
}

TEST_F(Outputs, whole_numbers_must_agree_exactly) {
  prepare = [](Bundle& b) { b.outputs = {{"output"}, {"count", "int64", "I64", {5}}}; };
  make();
  EXPECT_EQ(check("timed", all).kind, Kind::equal) << check("timed", all).reason;
  const OutputVerdict v = check("timed", all, [](int index, const Output& o, Values values) {
    if (o.name == "count" && index == 2) values[1] += 1;
    return values;
  });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("1 of 5 whole numbers wrong, the first at element 1"));
}

TEST_F(Outputs, a_label_may_differ_only_where_its_scores_tie) {
  prepare = [](Bundle& b) { b.outputs = {{"scores", "float32", "F32", {2, 3}}, {"label", "int64", "I64", {2}}}; };
  adjust = [](Bundle& b) {
    for (int i = 0; i < 4; ++i) {
      b.exact[Bundle::key("timed", i, "scores")] = {2.0 + i, 2.0 + i - 1e-7, 0, 0.5, 0.1 * i, 3};
      b.exact[Bundle::key("timed", i, "label")] = {0, 2};
    }
  };
  make();
  const auto labelled = [&](double first, double second) {
    return check("timed", all,
                 [=](int, const Output& o, Values v) {
                   return o.name == "label" ? Values{first, second} : v;
                 })
        .kind;
  };
  EXPECT_EQ(labelled(0, 2), Kind::equal);
  EXPECT_EQ(labelled(1, 2), Kind::equal) << "classes 0 and 1 tie in row 0";
  EXPECT_EQ(labelled(0, 1), Kind::unequal);
  EXPECT_EQ(labelled(2, 2), Kind::unequal);
  EXPECT_EQ(labelled(-1, 2), Kind::unequal);
}

TEST_F(Outputs, a_buffer_that_is_not_refilled_is_mistrusted_and_named) {
  make();
  const OutputVerdict v = check("timed", all, [&](int, const Output&, Values) { return exact("timed", 2); });
  EXPECT_EQ(v.kind, Kind::mistrusted);
  EXPECT_THAT(v.reason, HasSubstr("the output follows input 2 though input 0 was given: a buffer is not refilled"));
  EXPECT_FALSE(v.follows_inputs);
}

TEST_F(Outputs, the_output_before_last_is_mistrusted_in_a_timed_block) {
  make();
  const OutputVerdict v = check("timed", {3}, [&](int, const Output&, Values) { return exact("timed", 1); });
  EXPECT_EQ(v.kind, Kind::mistrusted);
  EXPECT_THAT(v.reason_short, HasSubstr("stale"));
}

TEST_F(Outputs, outputs_that_ignore_their_inputs_are_mistrusted) {
  make();
  bundle->rounding = 0;
  const OutputVerdict v =
      check("timed", all, [](int, const Output&, Values values) { return Values(values.size(), 0.25); });
  EXPECT_EQ(v.kind, Kind::mistrusted);
  EXPECT_THAT(v.reason, HasSubstr("the same bytes"));
}

TEST_F(Outputs, weights_that_are_baked_in_are_named) {
  make();
  const OutputVerdict v =
      check("generic1", two, [&](int index, const Output&, Values) { return exact("timed", index); });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason,
              HasSubstr("the outputs of generic1 weights equal those of timed weights: weights are baked in"));
}

TEST_F(Outputs, a_batch_computed_once_is_named) {
  make();
  const OutputVerdict v = check("timed", all, [](int, const Output&, Values values) {
    std::copy(values.begin(), values.begin() + 10, values.begin() + 10);
    return values;
  });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("the output of batch element 1 is that of element 0"));
}

TEST_F(Outputs, a_batch_half_done_is_named) {
  make();
  const OutputVerdict v = check("timed", all, [this](int, const Output&, Values values) {
    for (std::size_t i = 10; i < 20; ++i) values[i] = testing::normal(bundle->random);
    return values;
  });
  EXPECT_THAT(v.reason, HasSubstr("1 of 2 batch elements are wrong, the first is 1"));
}

TEST_F(Outputs, reduced_precision_is_named) {
  make();
  bundle->rounding = 0;
  const OutputVerdict v = check("timed", all, [](int, const Output&, Values values) {
    for (double& x : values) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0xffff0000u;
      x = static_cast<double>(std::bit_cast<float>(bits));
    }
    return values;
  });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("bfloat16"));
}

TEST_F(Outputs, a_missing_scale_is_named) {
  make();
  const OutputVerdict v = check("timed", all, [](int, const Output&, Values values) {
    for (double& x : values) x *= 255;
    return values;
  });
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_THAT(v.reason, HasSubstr("255 times the reference"));
}

TEST_F(Outputs, subnormal_numbers_that_are_flushed_are_named) {
  adjust = [](Bundle& made) {
    Tensors flushed;
    flushed.add_as("0/output", "F32", {2, 10}, Values(20, 0.5));
    flushed.write(made.path / "reference" / "timed.flushed.safetensors");
  };
  make();
  const auto constant = [](double value) {
    return [value](int, const Output&, Values values) { return Values(values.size(), value); };
  };
  const OutputVerdict v = check("timed", all, constant(0.5));
  EXPECT_EQ(v.kind, Kind::unequal) << "not mistrusted, although no output follows its input";
  EXPECT_EQ(v.reason_short, "subnormal numbers are flushed to zero");
  EXPECT_THAT(check("timed", all, constant(0.25)).reason, Not(HasSubstr("subnormal")));
}

TEST_F(Outputs, outputs_of_zeros_are_named) {
  make();
  bundle->rounding = 0;
  EXPECT_THAT(check("timed", all, [](int, const Output&, Values v) { return Values(v.size(), 0); }).reason,
              HasSubstr("every value is 0"));
}

TEST_F(Outputs, inputs_too_alike_are_not_said_to_be_followed) {
  adjust = [](Bundle& b) {
    for (int i = 1; i < 4; ++i) b.exact[Bundle::key("timed", i, "output")] = b.exact["timed/0/output"];
  };
  make();
  const OutputVerdict v = check("timed", all);
  EXPECT_EQ(v.kind, Kind::equal) << "it is not accused either: " << v.reason;
  EXPECT_FALSE(v.follows_inputs);
}

TEST_F(Outputs, deep_bundles_say_which_layer_differs_first) {
  prepare = [](Bundle& b) {
    b.outputs = {{"output"}};
    for (const char* tap : {"conv1", "bn1", "layer1.0", "fc"})
      b.outputs.push_back({std::string("tap:") + tap, "float32", "F32", {2, 6}});
  };
  make();
  const std::set<std::string> wrong{"output", "tap:layer1.0", "tap:fc"};
  const auto broken = [&](int, const Output& o, Values v) {
    if (wrong.contains(o.name))
      for (double& x : v) x = 0.3 * x + 0.1 * x * x;
    return v;
  };
  const OutputVerdict v = check("generic1", two, broken);
  EXPECT_EQ(v.kind, Kind::unequal);
  EXPECT_EQ(v.first_difference, "layer1.0");
  EXPECT_THAT(v.reason, HasSubstr("the first layer that differs is layer1.0"));
  EXPECT_EQ(check("generic1", two).kind, Kind::equal);
}

TEST_F(Outputs, taps_are_neither_required_nor_judged_when_the_outputs_are_right) {
  prepare = [](Bundle& b) { b.outputs = {{"output"}, {"tap:relu", "float32", "F32", {2, 6}}}; };
  make();
  EXPECT_EQ(check("timed", all, [](int, const Output& o, Values v) { return o.name == "output" ? v : Values(); }).kind,
            Kind::equal);
  EXPECT_EQ(
      check("timed", all, [](int, const Output& o, Values v) { return o.name == "output" ? v : Values(v.size(), 9); })
          .kind,
      Kind::equal);
  EXPECT_EQ(check("timed", all, {}, [](Tensors& t) { t.add_as("0/tap:fused", "F32", {1}, {1}); }).kind, Kind::equal);
}

TEST_F(Outputs, a_random_level_is_judged_with_its_own_spread_which_buys_no_more_than_the_bound) {
  make();
  const double e0 = reference->envelope("timed", "output").error;
  std::vector<SafeTensors> runs;
  bundle->rounding = 20 * e0;
  for (int i = 0; i < 8; ++i) runs.push_back(bundle->level("timed", all));
  const double spread = spread_of(*reference, runs, all);
  EXPECT_GT(spread, 20 * e0);
  const auto with = [&](double own) {
    return check_outputs(*reference, "timed", runs[0], all, {.own_spread = own}).kind;
  };
  EXPECT_EQ(with(0), Kind::unequal);
  EXPECT_EQ(with(spread), Kind::equal);
  bundle->rounding = 0.5;  // a level of pure chance
  runs = {bundle->level("timed", all), bundle->level("timed", all)};
  EXPECT_EQ(check_outputs(*reference, "timed", runs[0], all, {.own_spread = spread_of(*reference, runs, all)}).kind,
            Kind::unequal);
}

}  // namespace
}  // namespace strata::proof
