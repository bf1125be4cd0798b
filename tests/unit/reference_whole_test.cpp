// SPDX-License-Identifier: Apache-2.0
// A reference that lacks what the capture made, or that can accuse nobody, is refused.
#include <gtest/gtest.h>

#include "proof/reference.hpp"
#include "proof_bundle.hpp"

namespace strata::proof {
namespace {

using testing::Bundle;
namespace fs = std::filesystem;

void add_to_description(const Bundle& bundle, const nlohmann::json& more) {
  nlohmann::json about;
  std::ifstream(bundle.path / "bundle.json") >> about;
  about.merge_patch(more);
  std::ofstream(bundle.path / "bundle.json") << about;
}

void expect_refused(const Bundle& bundle, const std::string& words) {
  const auto opened = Reference::open(bundle.path);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find(words), std::string::npos) << opened.error().what;
}

TEST(ReferenceWhole, is_taken_with_all_its_parts) {
  Bundle bundle;
  bundle.draw();
  bundle.write();
  add_to_description(bundle, {{"case", {{"generic_sets", 2}}}, {"faults", {"relu_dropped"}}});
  EXPECT_TRUE(Reference::open(bundle.path));
}

TEST(ReferenceWhole, is_refused_without_a_generic_set_that_was_asked_for) {
  Bundle bundle;
  bundle.draw();
  bundle.write();
  add_to_description(bundle, {{"case", {{"generic_sets", 2}}}});
  fs::remove(bundle.path / "reference" / "generic2.safetensors");
  expect_refused(bundle, "generic2.safetensors: is missing");
}

TEST(ReferenceWhole, is_refused_without_the_faults_that_were_planted) {
  Bundle bundle;
  bundle.draw();
  bundle.write();
  add_to_description(bundle, {{"faults", {"relu_dropped"}}});
  fs::remove(bundle.path / "reference" / "faults.safetensors");
  expect_refused(bundle, "faults.safetensors: is missing");
}

TEST(ReferenceWhole, is_refused_with_an_envelope_that_would_let_everything_pass) {
  Bundle bundle;
  bundle.rounding = 1e3;
  bundle.draw();
  bundle.write();
  expect_refused(bundle, "eager's own runs are off the reference by");
  add_to_description(bundle, {{"unproven", "the answer jumps at gt at net.py:9"}});
  EXPECT_TRUE(Reference::open(bundle.path)) << "the rows say why";
}

}  // namespace
}  // namespace strata::proof
