// SPDX-License-Identifier: Apache-2.0
// The proof in another precision: its bounds, whether a level computes in the mode at all, and how accurate it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/accuracy.hpp"
#include "proof/certificate.hpp"
#include "proof/precision.hpp"
#include "proof_bundle.hpp"
#include "stats/compare.hpp"

namespace strata::proof {
namespace {

using testing::all;
using testing::Bundle;
using ::testing::HasSubstr;
using testing::Output;
using testing::Tensors;
using Values = Bundle::Values;
using Kind = OutputVerdict::Kind;

Reference opened(const Bundle& bundle) {
  auto reference = Reference::open(bundle.path);
  if (!reference) throw std::runtime_error(reference.error().what);
  return std::move(*reference);
}

// A strict bundle, and the same folder with the envelope of a mode whose legitimate runs err by `rounding`.
class InMode : public ::testing::Test {
 protected:
  void make(double rounding, const std::string& precision = "bf16") {
    bundle.draw();
    bundle.write();
    strict = opened(bundle);
    nlohmann::json about = strict->bundle();
    about["case"]["precision"] = precision;
    std::ofstream(bundle.path / "bundle.json") << about;
    for (const char* set : {"timed", "generic1", "generic2"}) {
      Tensors envelope;
      for (int index : bundle.indices(set))
        for (const char* variant : {"default", "one_thread", "input_ulp"})
          envelope.add_as(fmt::format("{}/{}/output", variant, index), "F32", bundle.outputs[0].shape,
                          bundle.rounded(bundle.exact[Bundle::key(set, index, "output")], rounding));
      envelope.write(bundle.path / "reference" / fmt::format("{}.{}.envelope.safetensors", set, precision));
    }
    mode = opened(bundle);
  }
  // What a level whose error is `rounding` answers.
  SafeTensors level(const std::string& set, double rounding) {
    bundle.rounding = rounding;
    return bundle.level(set, bundle.indices(set));
  }
  Evidence evidence(double rounding) {
    Evidence found;
    for (const char* set : {"timed", "generic1", "generic2"}) {
      const auto indices = bundle.indices(set);
      found.sets[set] = check_outputs(*strict, set, level(set, 2e-6), indices);
      found.in_mode[set] = check_outputs(*mode, set, level(set, rounding), indices);
    }
    found.precision = precision_share(*strict, *mode, "timed", level("timed", rounding), all);
    found.load = {{"parameters", 100}, {"settings", {{"threads", 2}, {"precision", mode->precision()}}}};
    found.add_block(found.in_mode["timed"]);
    return found;
  }
  Certificate certify(const Evidence& found) { return certificate(*strict, power(*strict), found, &*mode); }

  Bundle bundle;
  std::optional<Reference> strict, mode;
};

TEST_F(InMode, the_envelope_is_the_modes_own_and_at_least_one_of_its_roundings) {
  make(5e-3);
  EXPECT_LT(strict->envelope("timed", "output").error, 1e-5);
  EXPECT_GT(mode->envelope("timed", "output").error, 2e-3);
  EXPECT_EQ(mode->shown_precision(), "bf16");
  EXPECT_DOUBLE_EQ(mode->unit(), 0x1p-9);
  EXPECT_NEAR(mode->least_error("timed", "output"), 5e-3, 2e-3);
}

TEST_F(InMode, a_lucky_run_does_not_narrow_the_envelope_below_one_rounding) {
  make(1e-6, "tf32");
  EXPECT_DOUBLE_EQ(mode->envelope("timed", "output").error, 0x1p-11);
}

TEST_F(InMode, a_level_in_the_mode_is_equal_and_every_line_says_its_mode) {
  make(5e-3);
  const Certificate c = certify(evidence(4e-3));
  EXPECT_TRUE(c.may_have_numbers()) << c.reason;
  std::vector<std::string> checks;
  for (const auto& line : c.proof.lines) checks.push_back(line.check);
  for (const char* check : {"outputs, timed weights, strict float32", "outputs, generic weights 1, bf16",
                            "outputs while timing, bf16", "computes in bf16"})
    EXPECT_THAT(checks, ::testing::Contains(check));
}

TEST_F(InMode, a_level_that_computes_in_float32_is_mistrusted_although_it_lies_within_the_bound) {
  make(5e-3);
  const auto found = evidence(2e-6);
  EXPECT_EQ(found.in_mode.at("timed").kind, Kind::equal);
  const Certificate c = certify(found);
  EXPECT_EQ(c.kind, Kind::mistrusted);
  EXPECT_THAT(c.reason, HasSubstr("computes in a higher precision"));
  EXPECT_EQ(c.reason_short, "does not compute in bf16");
}

TEST_F(InMode, one_thirtieth_of_eagers_error_is_still_the_mode) {
  make(5e-3);
  EXPECT_TRUE(certify(evidence(5e-3 / 30)).may_have_numbers());
}

TEST_F(InMode, where_eager_itself_shows_no_mode_the_line_is_not_checked) {
  make(1e-5);
  const Certificate c = certify(evidence(2e-6));
  EXPECT_TRUE(c.may_have_numbers()) << c.reason;
  for (const auto& line : c.proof.lines)
    if (line.check == "computes in bf16") {
      EXPECT_EQ(line.result, "not_checked");
    }
}

TEST_F(InMode, an_error_beyond_eight_envelopes_of_the_mode_is_unequal) {
  make(5e-3);
  const Certificate c = certify(evidence(0.2));
  EXPECT_EQ(c.kind, Kind::unequal);
  EXPECT_THAT(c.reason, HasSubstr("legitimate bf16 runs"));
}

TEST_F(InMode, a_fault_of_structure_is_seen_in_strict_float32_where_the_mode_would_hide_it) {
  make(5e-3);
  auto found = evidence(4e-3);
  const auto slight = bundle.level("generic1", {0, 1}, [](int, const Output&, Values v) {
    for (double& x : v) x *= 1.001;
    return v;
  });
  found.sets["generic1"] = check_outputs(*strict, "generic1", slight, std::vector<int>{0, 1});
  EXPECT_EQ(check_outputs(*mode, "generic1", slight, std::vector<int>{0, 1}).kind, Kind::equal);
  const Certificate c = certify(found);
  EXPECT_EQ(c.kind, Kind::unequal);
  EXPECT_THAT(c.reason, HasSubstr("strict float32"));
}

TEST_F(InMode, equal_in_float32_alone_is_no_proof_of_the_mode) {
  make(5e-3);
  auto found = evidence(4e-3);
  found.in_mode.clear();
  found.blocks_checked = 0;
  EXPECT_FALSE(certify(found).may_have_numbers());
}

TEST_F(InMode, a_reported_mode_that_is_not_the_cases_is_unequal) {
  make(5e-3);
  auto found = evidence(4e-3);
  found.load["settings"]["precision"] = "fp32";
  EXPECT_THAT(certify(found).reason, HasSubstr("precision fp32, the case says bf16"));
}

TEST_F(InMode, accuracy_counts_rows_with_another_winner) {
  make(5e-3);
  const auto exact = accuracy_of(*mode, "timed", level("timed", 0), all);
  EXPECT_EQ(exact.answers, 8);
  EXPECT_EQ(exact.differ, 0);
  EXPECT_LT(exact.error, 1e-6);
  const auto one = bundle.level("timed", all, [](int index, const Output&, Values v) {
    if (index == 2)
      std::swap(*std::max_element(v.begin(), v.begin() + 10), *std::min_element(v.begin(), v.begin() + 10));
    return v;
  });
  EXPECT_EQ(accuracy_of(*mode, "timed", one, all).differ, 1);
  EXPECT_GT(accuracy_of(*mode, "timed", one, all).error, 0.05);
}

TEST(PairedDifference, is_the_mean_with_students_interval) {
  const auto difference = analysis::paired_difference({1, 2, 3, 4}, {0, 2, 2, 5});  // differences 1, 0, 1, -1
  EXPECT_DOUBLE_EQ(difference.value.value(), 0.25);
  const double half = 5.8409 * std::sqrt(2.75 / 3 / 4);  // t(99.5%, 3)
  EXPECT_NEAR(difference.low.value(), 0.25 - half, 1e-3);
  EXPECT_NEAR(difference.high.value(), 0.25 + half, 1e-3);
  EXPECT_FALSE(analysis::paired_difference({1}, {2}).low);
}

}  // namespace
}  // namespace strata::proof
