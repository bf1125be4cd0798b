// SPDX-License-Identifier: Apache-2.0
// `strata graph` prints counts that sum to the total that it prints, and says what they are without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "graph/load.hpp"
#include "report/graph.hpp"

namespace strata::report {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

// An LSTM of 64 features over 50 steps, a linear layer of 4 classes, and an operation that may multiply matrices.
graph::Graph graph_with(const std::string& third) {
  const std::string text = R"({"graph":1,"mode":"infer","buffers":[],"constants":[],"updates":[],
    "values":[{"name":"x","dtype":"float32","shape":[1,50,64]},{"name":"h","dtype":"float32","shape":[1,1,64]},
      {"name":"wi","dtype":"float32","shape":[256,64]},{"name":"wh","dtype":"float32","shape":[256,64]},
      {"name":"w","dtype":"float32","shape":[4,64]},{"name":"y","dtype":"float32","shape":[1,50,64]},
      {"name":"hn","dtype":"float32","shape":[1,1,64]},{"name":"cn","dtype":"float32","shape":[1,1,64]},
      {"name":"z","dtype":"float32","shape":[1,1,4]},{"name":"d","dtype":"float32","shape":[1,1,4]}],
    "inputs":[{"name":"x","value":0},{"name":"h","value":1}],
    "parameters":[{"name":"wi","value":2},{"name":"wh","value":3},{"name":"w","value":4}],
    "nodes":[{"op":"aten.lstm.input","name":"lstm","args":{"input":{"value":0},"hx":{"values":[1,1]},
              "params":{"values":[2,3]}},"outputs":[5,6,7],"module":"lstm","module_type":"LSTM","source":"n.py:1"},
      {"op":"aten.linear.default","name":"linear","args":{"input":{"value":6},"weight":{"value":4},"bias":null},
       "outputs":[8],"module":"head","module_type":"Linear","source":"n.py:2"},
      {"op":")" + third + R"(","name":"third","args":{"self":{"value":8}},"outputs":[9],"module":"","module_type":"N",
       "source":"n.py:3"}],
    "outputs":[{"name":"output","value":9}]})";
  auto parsed = graph::parse(text, "graph.json");
  if (!parsed) throw std::runtime_error(parsed.error().what);
  return *std::move(parsed);
}

std::string printed(const std::string& third) {
  const auto shown = graph_with(third);
  return graph_text(shown, *graph::check(shown), "net", 100);
}

TEST(report_graph, prints_counts_that_sum_to_its_total) {
  const auto text = printed("aten.relu.default");
  EXPECT_THAT(text, HasSubstr("3 nodes, 33,024 parameters, 3.28 MFLOPs\n"));
  EXPECT_TRUE(std::regex_search(text, std::regex("lstm +lstm +1x50x64 \\+2 +3\\.28 M "))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("linear +head +1x1x4 +512 "))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("third +- +1x1x4 +0 "))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\nall +3 +3\\.28 M "))) << text;
  EXPECT_THAT(text, Not(HasSubstr("not counted")));
  const auto shown = graph_with("aten.relu.default");
  const auto json = graph_json(shown, *graph::check(shown), "net");
  EXPECT_EQ(json["total"]["flops"], 3'277'312);
  EXPECT_EQ(json["nodes"][0]["flops"], 3'276'800);
  EXPECT_EQ(json["flops_uncounted"].size(), 0U);
}

TEST(report_graph, names_what_it_does_not_count) {
  const auto text = printed("aten.linalg_svd.default");
  EXPECT_THAT(text, HasSubstr("3.28 MFLOPs and what is not counted\n"));
  EXPECT_TRUE(std::regex_search(text, std::regex("third +- +1x1x4 +- "))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("linalg_svd +1 +- "))) << text;
  EXPECT_THAT(text, HasSubstr("not counted, and in no sum (-): linalg_svd\n"));
  const auto shown = graph_with("aten.linalg_svd.default");
  const auto json = graph_json(shown, *graph::check(shown), "net");
  EXPECT_TRUE(json["nodes"][2]["flops"].is_null());
  EXPECT_EQ(json["flops_uncounted"], nlohmann::ordered_json({"linalg_svd"}));
  EXPECT_EQ(json["total"]["flops"], 3'277'312);
}

}  // namespace
}  // namespace strata::report
