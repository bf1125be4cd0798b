// SPDX-License-Identifier: Apache-2.0
// Levels that were all refused: when they speak for each other, and when they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proof/agreement.hpp"
#include "unit/proof_bundle.hpp"

namespace strata::proof {
namespace {

using testing::Bundle;
using ::testing::HasSubstr;
using testing::Output;
using ::testing::StartsWith;
using Values = Bundle::Values;

class Agreement : public ::testing::Test {
 protected:
  void SetUp() override {
    bundle.draw();
    bundle.write();
    auto opened = Reference::open(bundle.path);
    ASSERT_TRUE(opened) << opened.error().what;
    reference.emplace(std::move(*opened));
  }
  // A level whose answers are off by `common`, as others' are, and by `own`, relative to their size.
  void add(const std::string& name, const std::string& author, double common, double own = 0) {
    const auto change = [&](int, const Output&, Values values) {
      stats::Random of_all(7), of_it(std::hash<std::string>{}(name));
      for (double& value : values) value += common * testing::normal(of_all) + own * testing::normal(of_it);
      return values;
    };
    verdicts.push_back(check_outputs(*reference, "timed", bundle.level("timed", testing::all, change), testing::all));
    who.emplace_back(name, author);
  }
  std::string doubt() const {
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < who.size(); ++i) answers.push_back({who[i].first, who[i].second, &verdicts[i]});
    return doubt_of(answers);
  }

  Bundle bundle;
  std::optional<Reference> reference;
  std::vector<std::pair<std::string, std::string>> who;
  std::vector<OutputVerdict> verdicts;
};

TEST_F(Agreement, levels_of_other_authors_that_answer_alike_speak_for_each_other) {
  add("eager", "", 0);
  add("openvino", "openvino", 1e-2);
  add("static", "strata", 1e-2, 1e-5);
  EXPECT_THAT(doubt(), StartsWith("openvino, static, which share no kernels with eager, agree with each other"));
  EXPECT_THAT(doubt(), HasSubstr("unless they share a fault"));
}

TEST_F(Agreement, levels_that_are_off_by_as_much_are_told_each_with_its_own_error) {
  add("openvino", "openvino", 0, 1e-4);
  add("onnxruntime", "onnxruntime", 0, 2e-4);
  add("libtorch", "", 0);
  EXPECT_THAT(doubt(), HasSubstr("are all off by about as much"));
}

TEST_F(Agreement, one_that_is_right_or_off_in_its_own_way_leaves_the_others_accused) {
  add("openvino", "openvino", 1e-2);
  EXPECT_EQ(doubt(), "") << "one author speaks for nobody";
  add("openvino@bf16", "openvino", 1e-2);
  EXPECT_EQ(doubt(), "") << "nor do two variants of his";
  add("mnn", "mnn", 0, 1e-1);
  EXPECT_EQ(doubt(), "") << "two that part are two faults";
  add("onnxruntime", "onnxruntime", 0);
  EXPECT_EQ(doubt(), "") << "the reference has a witness";
}

TEST_F(Agreement, a_difference_that_has_a_name_is_no_doubt) {
  for (const char* name : {"openvino", "mnn"}) {
    const auto zeros = [](int, const Output&, Values values) { return Values(values.size(), 0); };
    verdicts.push_back(check_outputs(*reference, "timed", bundle.level("timed", {0}, zeros), std::vector<int>{0}));
    who.emplace_back(name, name);
  }
  EXPECT_EQ(doubt(), "");
}

}  // namespace
}  // namespace strata::proof
