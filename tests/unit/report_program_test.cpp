// SPDX-License-Identifier: Apache-2.0
// A compiled program as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "compiler/compile.hpp"
#include "compiler_graph.hpp"
#include "report/program.hpp"

namespace strata::report {
namespace {
using ::testing::HasSubstr;

compiler::Program program_after(const std::string& pass) {
  compiler::GraphBuilder b;
  const int x = b.act(b.norm(b.conv(b.input("x", {1, 3, 4, 4}), 8)));
  b.output("out", b.flatten(b.average(b.act(b.add(b.conv(b.act(x), 8), x), "hardtanh"))));
  const auto program = compiler::compile(*compiler::graph_of(b.document()), {8, pass});
  EXPECT_TRUE(program) << program.error().what;
  return *program;
}

TEST(ReportProgram, says_what_each_step_does_and_where_its_result_lies) {
  const auto text = program_text(program_after("plan_memory"), "net/infer/b1", "plan_memory", 120);
  EXPECT_THAT(
      text,
      HasSubstr(
          "net/infer/b1\nafter plan_memory: 4 calls in a run, 0 of them reorders (0 B)\n2 steps at load, 2 views\n"));
  EXPECT_THAT(text, HasSubstr("arena: 1.02 kB (1024 bytes), 0 B above the least possible 1.02 kB\n"));
  EXPECT_THAT(text, HasSubstr("conv2d + add + clamp"));
  EXPECT_THAT(text, HasSubstr("1x8x4x4"));
  EXPECT_THAT(text, HasSubstr("over relu_2\n"));
  EXPECT_THAT(text, HasSubstr("view of "));
}

TEST(ReportProgram, keeps_to_the_width) {
  std::istringstream lines(program_text(program_after("plan_memory"), "net", "plan_memory", 80));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(ReportProgram, writes_every_step_as_json_with_bounds_that_json_cannot_hold) {
  auto program = program_after("plan_memory");
  for (auto& step : program.steps)
    for (auto& post : step.posts)
      if (post.operation == "clamp") post.beta = std::numeric_limits<double>::infinity();
  const auto all = nlohmann::json::parse(program_json(program, "net", "plan_memory").dump());
  EXPECT_EQ(all["arena_bytes"], 1024);
  EXPECT_EQ(all["steps"].size(), program.steps.size());
  EXPECT_EQ(all["steps"][0]["when"], "load");
  const auto& sum = all["steps"][4];
  EXPECT_EQ(sum["posts"][0]["value"], "relu_2");
  EXPECT_EQ(sum["posts"][1]["beta"], "inf");
  EXPECT_EQ(sum["outputs"][0]["layout"], "blocked");
  EXPECT_EQ(sum["outputs"][0]["storage"], sum["inputs"].back());
  EXPECT_TRUE(sum["outputs"][0]["offset"].is_number());
}

}  // namespace
}  // namespace strata::report
