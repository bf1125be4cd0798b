// SPDX-License-Identifier: Apache-2.0
// The reference's own faults, its power, and the certificate: what is counted, what fails, what is only assumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/hash.hpp"
#include "proof/certificate.hpp"
#include "unit/proof_bundle.hpp"

namespace strata::proof {
namespace {

using testing::Bundle;
namespace fs = std::filesystem;
using testing::all;
using ::testing::HasSubstr;
using testing::Output;
using testing::two;
using Kind = OutputVerdict::Kind;
using Values = Bundle::Values;

std::unique_ptr<Reference> open(const Bundle& bundle) {
  auto opened = Reference::open(bundle.path);
  if (!opened) throw std::runtime_error(opened.error().what);
  return std::make_unique<Reference>(std::move(*opened));
}

class Certified : public ::testing::Test {
 protected:
  void make(const std::function<void(Bundle&)>& adjust = {}) {
    bundle = std::make_unique<Bundle>();
    bundle->draw();
    if (adjust) adjust(*bundle);
    bundle->write();
    reference = open(*bundle);
    strength = power(*reference);
    for (const char* set : {"generic1", "generic2", "timed"}) evidence.sets[set] = check(set);
    for (int i = 0; i < 40; ++i)
      evidence.add_block(check_outputs(*reference, "timed", bundle->level("timed", {i % 4}), std::vector<int>{i % 4}));
    evidence.flops = 2e6;
    evidence.load = {
        {"parameters", 100},
        {"settings", {{"threads", 2}, {"precision", "fp32"}, {"layout", "contiguous"}, {"inference_mode", true}}}};
  }
  OutputVerdict check(const std::string& set, const std::function<Values(int, const Output&, Values)>& change = {}) {
    return check_outputs(*reference, set, bundle->level(set, bundle->indices(set), change), bundle->indices(set));
  }
  Certificate certify() const { return certificate(*reference, strength, evidence); }
  static store::ProofLine line(const Certificate& c, const std::string& check) {
    for (const auto& l : c.proof.lines)
      if (l.check == check) return l;
    ADD_FAILURE() << "no line '" << check << "'";
    return {};
  }

  std::unique_ptr<Bundle> bundle;
  std::unique_ptr<Reference> reference;
  Power strength;
  Evidence evidence;
};

TEST_F(Certified, a_faultless_level_passes_every_line) {
  make();
  const Certificate c = certify();
  EXPECT_TRUE(c.may_have_numbers());
  EXPECT_EQ(c.proof.verdict, "equal");
  EXPECT_EQ(c.proof.weak, false);
  EXPECT_TRUE(c.proof.first_difference.empty());
  EXPECT_EQ(c.reason, "");
  for (const auto& l : c.proof.lines) EXPECT_NE(l.result, "fail") << l.check;
  EXPECT_EQ(line(c, "outputs while timing").value, "40 of 40 blocks");
  EXPECT_EQ(line(c, "weights are used").result, "pass");
  EXPECT_THAT(line(c, "outputs, generic weights 1").value, HasSubstr("of eager's envelope"));
}

TEST_F(Certified, counts_what_was_observed_reported_and_assumed) {
  make();
  const Certificate c = certify();
  EXPECT_EQ(c.proof.observed, 6);  // three sets, timed blocks, following, weights used
  EXPECT_EQ(c.proof.reported, 5);  // parameters, threads, precision, layout, inference mode
  EXPECT_EQ(c.proof.assumed, 1);   // operations
  evidence.load = nullptr;
  EXPECT_EQ(certify().proof.reported, 0) << "what the level did not say is not counted";
}

TEST_F(Certified, says_of_each_line_how_it_is_known_and_what_came_of_it) {
  make();
  const auto proof = certify().proof;
  evidence.sets["generic2"].worst_ratio = 3.5;
  EXPECT_EQ(certify().proof.worst_ratio, 3.5) << "the largest of all sets";
  for (const auto& l : proof.lines) {
    EXPECT_FALSE(l.check.empty());
    EXPECT_THAT(l.how, ::testing::AnyOf("observed", "reported", "assumed"));
    EXPECT_THAT(l.result, ::testing::AnyOf("pass", "fail", "not_checked"));
  }
}

TEST_F(Certified, an_unequal_set_makes_the_row_unequal_with_its_reason) {
  make();
  evidence.sets["generic2"] = check("generic2", [](int, const Output&, Values v) {
    v[3] += 0.5;
    return v;
  });
  const Certificate c = certify();
  EXPECT_EQ(c.kind, Kind::unequal);
  EXPECT_FALSE(c.may_have_numbers());
  EXPECT_THAT(c.reason, HasSubstr("outputs, generic weights 2: output 'output' of input 0"));
  EXPECT_EQ(c.proof.first_difference, "output");
  EXPECT_EQ(line(c, "outputs, generic weights 2").result, "fail");
  EXPECT_EQ(line(c, "outputs, generic weights 1").result, "pass");
  EXPECT_EQ(line(c, "weights are used").how, "assumed");
}

TEST_F(Certified, a_failure_in_one_timed_block_is_enough) {
  make();
  const Values other = bundle->exact["timed/1/output"];
  const auto stale = bundle->level("timed", {3}, [&](int, const Output&, Values) { return other; });
  evidence.add_block(check_outputs(*reference, "timed", stale, std::vector<int>{3}));
  const Certificate c = certify();
  EXPECT_EQ(c.kind, Kind::mistrusted);
  EXPECT_EQ(c.proof.verdict, "mistrusted");
  EXPECT_THAT(c.reason, HasSubstr("in a timed block"));
  EXPECT_EQ(line(c, "outputs while timing").value, "40 of 41 blocks");
}

TEST_F(Certified, looser_numerics_are_shown) {
  make();
  evidence.sets["timed"].kind = Kind::equal_looser;
  const Certificate c = certify();
  EXPECT_EQ(c.proof.verdict, "equal_looser");
  EXPECT_TRUE(c.may_have_numbers());
  EXPECT_EQ(line(c, "outputs, timed weights").bound, "64");
}

TEST_F(Certified, nothing_checked_proves_nothing) {
  make();
  evidence = {};
  const Certificate c = certify();
  EXPECT_TRUE(c.none);
  EXPECT_EQ(c.proof.verdict, "none");
  EXPECT_FALSE(c.may_have_numbers());
  EXPECT_EQ(c.proof.observed, 0);
}

TEST_F(Certified, without_generic_sets_the_proof_is_weak_and_weights_are_assumed) {
  make();
  evidence.sets.erase("generic1");
  evidence.sets.erase("generic2");
  const Certificate c = certify();
  EXPECT_EQ(c.proof.weak, true);
  EXPECT_EQ(line(c, "weights are used").how, "assumed");
}

TEST_F(Certified, weights_read_back_are_compared_with_the_file) {
  make();
  const auto hashes = weight_hashes(bundle->path, "timed");
  ASSERT_TRUE(hashes);
  const float one = 4;
  EXPECT_EQ(hashes->at("fc.bias"), sha256_hex({reinterpret_cast<const char*>(&one), 4}));
  evidence.read_back["timed"] = *hashes;
  EXPECT_EQ(line(certify(), "weights read back").value, "2 of 2 tensors");
  EXPECT_EQ(certify().kind, Kind::equal);
  evidence.read_back["timed"].erase("fc.bias");
  EXPECT_EQ(line(certify(), "weights read back").value, "1 of 2 tensors");
  EXPECT_EQ(line(certify(), "weights read back").result, "pass");
  evidence.read_back["timed"]["fc.weight"] = std::string(64, '0');
  EXPECT_EQ(certify().kind, Kind::unequal);
  EXPECT_THAT(certify().reason, HasSubstr("'fc.weight' of the timed weights is not what the file holds"));
}

TEST_F(Certified, settings_that_the_case_fixes_must_match) {
  make();
  evidence.load["settings"]["threads"] = 1;
  EXPECT_EQ(certify().kind, Kind::unequal);
  EXPECT_THAT(certify().reason, HasSubstr("threads 1, the case says 2"));
  evidence.load["settings"]["threads"] = 2;
  evidence.load["settings"]["precision"] = "bf16";
  EXPECT_THAT(certify().reason, HasSubstr("precision bf16, the case says fp32"));
}

TEST_F(Certified, settings_that_the_case_leaves_open_are_only_shown) {
  make();
  evidence.load["settings"]["layout"] = "blocked";
  const Certificate c = certify();
  EXPECT_EQ(c.kind, Kind::equal);
  EXPECT_EQ(line(c, "layout").value, "blocked");
  EXPECT_EQ(line(c, "layout").how, "reported");
}

TEST_F(Certified, more_parameters_than_the_module_has_are_refused_and_fewer_explained) {
  make();
  evidence.load["parameters"] = 90;
  EXPECT_EQ(certify().kind, Kind::equal);
  EXPECT_THAT(line(certify(), "parameter count").detail, HasSubstr("folded"));
  evidence.load["parameters"] = 101;
  EXPECT_EQ(certify().kind, Kind::unequal);
  evidence.load["parameters"] = 0;
  EXPECT_EQ(line(certify(), "parameter count").result, "not_checked");
}

TEST_F(Certified, numbers_where_eager_has_nan_are_told_and_decide_nothing) {
  make();
  const auto before = certify();
  for (const auto& l : before.proof.lines) EXPECT_NE(l.check, "NaN and infinity in an input") << "not asked";
  evidence.specials = "";
  EXPECT_EQ(line(certify(), "NaN and infinity in an input").result, "pass");
  evidence.specials = "drops NaN: 10 of 10 values are numbers where eager's are NaN or infinite";
  const auto c = certify();
  EXPECT_EQ(c.kind, Kind::equal);
  EXPECT_EQ(line(c, "NaN and infinity in an input").result, "fail");
  EXPECT_THAT(line(c, "NaN and infinity in an input").detail, HasSubstr("drops NaN: 10 of 10"));
}

TEST_F(Certified, an_iteration_too_fast_for_the_machine_is_mistrusted) {
  make();
  evidence.iteration_ms = 0.9;
  evidence.limit_ms = 1.0;
  EXPECT_EQ(line(certify(), "time is plausible").result, "pass");
  evidence.iteration_ms = 0.05;
  EXPECT_EQ(certify().kind, Kind::mistrusted);
  EXPECT_THAT(certify().reason, HasSubstr("it was not done"));
}

TEST_F(Certified, a_run_too_fast_for_the_machine_whose_work_is_done_in_another_call_is_mistrusted) {
  make();
  evidence.iteration_ms = 0.9;
  evidence.limit_ms = 1.0;
  evidence.latency_ms = 0.8;
  EXPECT_EQ(line(certify(), "time is plausible").result, "pass");
  evidence.latency_ms = 0.01;
  EXPECT_EQ(certify().kind, Kind::mistrusted);
  EXPECT_THAT(certify().reason, HasSubstr("it is done elsewhere"));
}

TEST_F(Certified, work_that_is_done_where_inputs_change_places_alone_is_mistrusted) {
  make();
  EXPECT_EQ(line(certify(), "exchanged inputs take as long").result, "not_checked");
  const std::vector<std::int64_t> honest{3'000'000, 3'010'000, 3'000'000}, looked_at{5'000'000, 3'000'000, 3'000'000};
  for (int i = 0; i < 20; ++i) evidence.conduct.add_block(honest, 0, 0);
  EXPECT_EQ(line(certify(), "exchanged inputs take as long").result, "pass");
  for (int i = 0; i < 30; ++i) evidence.conduct.add_block(looked_at, 0, 0);
  EXPECT_EQ(certify().kind, Kind::mistrusted);
  EXPECT_THAT(certify().reason, HasSubstr("they do not do the work"));
}

TEST_F(Certified, more_processors_than_threads_are_mistrusted) {
  make();
  EXPECT_EQ(line(certify(), "processors used").result, "not_checked");
  evidence.conduct.add_restart(2.0, 1.0, 2);
  EXPECT_EQ(line(certify(), "processors used").value, "2.00");
  EXPECT_EQ(certify().kind, Kind::equal);
  evidence.conduct.add_restart(3.9, 1.0, 2);
  EXPECT_EQ(certify().kind, Kind::mistrusted);
  EXPECT_THAT(certify().reason, HasSubstr("used 3.9 processors where the case has 2 threads"));
}

TEST_F(Certified, whether_the_references_could_be_read_is_said) {
  make();
  const auto seen = [&] { return line(certify(), "references are out of sight"); };
  EXPECT_EQ(seen().result, "not_checked");
  EXPECT_EQ(seen().detail, "");
  evidence.references_shown = "the kernel has no Landlock";
  EXPECT_EQ(seen().result, "not_checked");
  EXPECT_THAT(seen().detail, HasSubstr("the kernel has no Landlock"));
  evidence.references_shown = "";
  EXPECT_EQ(seen().result, "pass");
  EXPECT_EQ(certify().kind, Kind::equal);
}

TEST_F(Certified, without_a_peak_that_can_be_trusted_no_time_is_implausible_and_the_certificate_says_why) {
  make();
  evidence.iteration_ms = 0.05;
  evidence.limit_note = "the machine's peak was only measured while others used its cores, so it may be too low";
  EXPECT_EQ(certify().kind, Kind::equal);
  EXPECT_EQ(line(certify(), "time is plausible").result, "not_checked");
  EXPECT_EQ(line(certify(), "time is plausible").detail, evidence.limit_note);
}

TEST_F(Certified, what_is_not_in_the_count_of_operations_is_named) {
  make();
  EXPECT_EQ(line(certify(), "floating-point operations").value, "2e+06 of the captured network");
  evidence.uncounted = {"cdist (2 calls)", "linalg_svd"};
  EXPECT_EQ(line(certify(), "floating-point operations").value,
            "2e+06 of the captured network, without cdist (2 calls), linalg_svd");
  evidence.flops.reset();
  evidence.uncounted.clear();
  EXPECT_EQ(certify().proof.assumed, 0) << "nothing is said of what nobody counted";
}

TEST_F(Certified, short_reasons_have_at_most_8_words) {
  make();
  const auto words = [](const std::string& text) { return std::count(text.begin(), text.end(), ' ') + 1; };
  const auto expect_short = [&] {
    const Certificate c = certify();
    EXPECT_FALSE(c.reason_short.empty());
    EXPECT_LE(words(c.reason_short), 8) << c.reason_short;
  };
  evidence.load["settings"]["precision"] = "bf16";
  expect_short();
  evidence.load["settings"]["precision"] = "fp32";
  evidence.load["parameters"] = 101;
  expect_short();
  evidence.load["parameters"] = 100;
  for (double scale : {1e-4, 3.0, 0.0, 1e300}) {
    evidence.sets["timed"] = check("timed", [&](int, const Output&, Values v) {
      for (double& x : v) x = scale < 1 ? x + scale * x * x : x * scale;
      return v;
    });
    if (!evidence.sets["timed"].equal_work()) expect_short();
  }
}

TEST_F(Certified, a_float32_reference_is_shown_as_weaker) {
  make([](Bundle& b) { b.reference = "float32_envelope"; });
  const Certificate c = certify();
  EXPECT_EQ(c.proof.weak, true);
  EXPECT_THAT(line(c, "reference").detail, HasSubstr("no float64 kernel"));
}

TEST_F(Certified, has_power_when_faults_are_large_and_inputs_differ) {
  make();
  EXPECT_FALSE(strength.weak) << strength.reason;
  ASSERT_EQ(strength.faults.size(), 1u);
  EXPECT_GT(strength.faults[0].times_bound, 1000);
  EXPECT_GT(strength.input_spread, 0.5);
}

TEST_F(Certified, is_weak_when_a_planted_fault_hardly_shows) {
  make([](Bundle& b) {
    b.faults["hardly"]["output"] = b.exact["generic1/0/output"];
    for (double& x : b.faults["hardly"]["output"]) x *= 1 + 1e-6;
  });
  EXPECT_TRUE(strength.weak);
  EXPECT_THAT(strength.reason, HasSubstr("'hardly' reaches only"));
  EXPECT_EQ(certify().proof.weak, true);
  EXPECT_EQ(certify().kind, Kind::equal) << "weak is not unequal";
}

TEST_F(Certified, is_weak_when_outputs_hardly_depend_on_inputs) {
  make([](Bundle& b) {
    const Values common = b.exact["generic1/0/output"];
    for (auto& [key, values] : b.exact)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = common[i % 10] + 0.01 * values[i];
  });
  EXPECT_LT(strength.input_spread, 0.05);
  EXPECT_TRUE(strength.weak);
}

TEST_F(Certified, is_weak_when_no_fault_could_be_planted) {
  make([](Bundle& b) { b.faults.clear(); });
  EXPECT_TRUE(strength.weak);
  EXPECT_EQ(line(certify(), "planted faults are seen").result, "not_checked");
}

TEST(opening_a_reference, says_which_file_is_missing_or_damaged) {
  const auto error_after = [](const std::function<void(Bundle&)>& damage) {
    Bundle bundle;
    bundle.draw();
    bundle.write();
    damage(bundle);
    auto opened = Reference::open(bundle.path);
    return opened ? std::string("opened") : opened.error().what;
  };
  const auto rewrite = [](Bundle& b, const std::string& text) { std::ofstream(b.path / "bundle.json") << text; };
  EXPECT_EQ(error_after([](Bundle&) {}), "opened");
  EXPECT_THAT(error_after([](Bundle& b) { fs::remove(b.path / "bundle.json"); }),
              HasSubstr("bundle.json: cannot be read"));
  EXPECT_THAT(error_after([&](Bundle& b) { rewrite(b, "{"); }), HasSubstr("bundle.json: is not what it should be"));
  EXPECT_THAT(error_after([&](Bundle& b) { rewrite(b, R"({"bundle":1})"); }), HasSubstr("version 1"));
  EXPECT_THAT(
      error_after([&](Bundle& b) { rewrite(b, R"({"bundle":2,"outputs":[],"ring":4,"reference":"float64"})"); }),
      HasSubstr("lists no output"));
  EXPECT_THAT(error_after([&](Bundle& b) {
                rewrite(b, R"({"bundle":2,"outputs":[{"name":"output","dtype":"complex64","shape":[2]}]})");
              }),
              HasSubstr("cannot be compared"));
  EXPECT_THAT(error_after([](Bundle& b) { fs::remove(b.path / "reference/timed.safetensors"); }),
              HasSubstr("timed.safetensors: is missing"));
  EXPECT_THAT(error_after([](Bundle& b) { fs::remove(b.path / "reference/timed.envelope.safetensors"); }),
              HasSubstr("timed.envelope.safetensors"));
  EXPECT_THAT(error_after([](Bundle& b) { fs::resize_file(b.path / "reference/generic1.safetensors", 50); }),
              HasSubstr("generic1.safetensors"));
  EXPECT_THAT(error_after([](Bundle& b) {
                auto bundle = nlohmann::json::parse(std::ifstream(b.path / "bundle.json"));
                bundle["outputs"][0]["shape"] = {2, 11};
                std::ofstream(b.path / "bundle.json") << bundle;
              }),
              HasSubstr("another shape"));
}

TEST_F(Certified, goes_on_from_the_certificate_of_an_earlier_process) {
  make();
  const auto whole = certify();
  ASSERT_TRUE(can_be_continued(whole.proof));
  evidence = {};
  for (int i = 0; i < 7; ++i)
    evidence.add_block(check_outputs(*reference, "timed", bundle->level("timed", {i % 4}), std::vector<int>{i % 4}));
  const auto later = continued(whole.proof, certify());
  EXPECT_TRUE(later.may_have_numbers());
  EXPECT_EQ(later.proof.verdict, "equal");
  EXPECT_EQ(line(later, "outputs while timing").value, "7 of 7 blocks") << "as it is now";
  EXPECT_EQ(line(later, "outputs, generic weights 1"), line(whole, "outputs, generic weights 1")) << "as it was";
  EXPECT_EQ(line(later, "threads").value, "2");
  auto of_before = whole.proof;
  of_before.lines = later.proof.lines;
  EXPECT_EQ(later.proof, of_before);
}

TEST_F(Certified, a_fault_seen_now_outweighs_an_earlier_certificate) {
  make();
  const auto whole = certify();
  evidence = {};
  evidence.add_block(check("timed", [](int, const Output&, Values values) {
    values[0] += 1;
    return values;
  }));
  const auto later = continued(whole.proof, certify());
  EXPECT_FALSE(later.may_have_numbers());
  EXPECT_EQ(later.proof.verdict, "unequal");
  EXPECT_FALSE(later.reason.empty());
}

TEST_F(Certified, is_not_continued_where_it_was_not_equal_or_its_level_does_not_repeat_itself) {
  make();
  evidence.own_spread = 1e-6;
  EXPECT_FALSE(can_be_continued(certify().proof));
  evidence.own_spread = 0;
  evidence.sets.at("generic1").kind = Kind::unequal;
  EXPECT_FALSE(can_be_continued(certify().proof));
  EXPECT_FALSE(can_be_continued(store::Proof()));
}

TEST(opening_a_reference, lists_what_the_bundle_has) {
  Bundle bundle;
  bundle.draw();
  bundle.write();
  const auto reference = open(bundle);
  EXPECT_EQ(reference->sets(), (std::vector<std::string>{"generic1", "generic2", "timed"}));
  EXPECT_EQ(reference->indices("timed"), all);
  EXPECT_EQ(reference->indices("generic1"), two);
  EXPECT_EQ(reference->ring(), 4);
  EXPECT_FALSE(reference->weaker());
  EXPECT_EQ(reference->faults(), std::vector<std::string>{"relu_dropped"});
  EXPECT_EQ(reference->legitimate("timed", 3, "output").size(), 5u);
  EXPECT_NEAR(reference->envelope("timed", "output").error, bundle.rounding, bundle.rounding);
  EXPECT_EQ(reference->envelope("timed", "nothing").error, 8 * 0x1p-24);
}

}  // namespace
}  // namespace strata::proof
