// SPDX-License-Identifier: Apache-2.0
#include "core/case_spec.hpp"

#include <gmock/gmock.h>

namespace strata::core {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

CaseSpec whole() {
  return {.model = "/nets/net.py:build",
          .mode = Mode::train,
          .batch = 8,
          .size = std::pair(64, 96),
          .inputs = {{.name = "ids", .dtype = "int64", .shape = {8, 4}, .low = 0, .high = 30521},
                     {.dtype = "float32", .keyword = true, .shape = {8}, .low = -0.5, .high = 1}},
          .precision = Precision::amp_bf16,
          .device = Device::cuda,
          .threads = 3,
          .optimiser = usual_optimiser("adamw"),
          .loss = "nll",
          .weights = "/w.pt",
          .input_from = "/images",
          .input_file = "/own.npz",
          .synthetic = true,
          .seed = 7,
          .ring = 2,
          .generic_sets = 5,
          .deep = true,
          .light = true,
          .all_runs = true,
          .open_batch = OpenBatch{.low = 1, .high = 4, .sizes = {1, 2, 4}}};
}

TEST(CaseSpec, comes_back_from_its_json_with_every_field) {
  for (const auto& spec : {CaseSpec{.model = "resnet50"}, whole()}) {
    const auto read = read_spec(to_json(spec), "spec");
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, spec);
  }
}

TEST(CaseSpec, writes_whole_numbers_as_such_for_inputs_that_hold_them) {
  EXPECT_EQ(to_json(whole())["inputs"][0]["high"].dump(), "30521");
  EXPECT_EQ(to_json(whole())["inputs"][1]["high"].dump(), "1.0");
}

TEST(CaseSpec, says_which_field_is_wrong_and_what_is_allowed) {
  for (const auto& [text, words] : {std::pair{R"({"mode": "run"})", "infer, train"},
                                    {R"({"precision": "fp8"})", "amp-bf16"},
                                    {R"({"batch": 0})", "batch"},
                                    {R"({"size": [64]})", "size"},
                                    {R"({"threads": "two"})", "threads"},
                                    {R"({"inputs": [{"shape": [1.5]}]})", "inputs[0]"},
                                    {R"({"inputs": 3})", "inputs"},
                                    {R"({"inputs": [{"shape": [1], "dtype": "int64", "high": 1e300}]})", "high"},
                                    {R"({"optimiser": {"name": "adan"}})", "optimiser"},
                                    {R"({"dynamic": {"low": 1}})", "high"},
                                    {"[]", "spec"}}) {
    const auto read = read_spec(Json::parse(text), "spec");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().what, HasSubstr(words)) << text;
  }
}

TEST(CaseSpec, asks_for_the_case_of_its_axes) {
  auto spec = whole();
  spec.synthetic = false;
  const auto question = question_of(spec, "net:build");
  EXPECT_EQ(question.model, "net:build");
  EXPECT_EQ(question.weights, "w.pt");
  EXPECT_EQ(question.data, "folder:images");
  EXPECT_EQ(question.recipe->loss, "nll");
  EXPECT_EQ(question_of({.model = "m"}, "m"), Case{.model = "m"});
}

}  // namespace
}  // namespace strata::core
