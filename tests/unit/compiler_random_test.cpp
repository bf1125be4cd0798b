// SPDX-License-Identifier: Apache-2.0
// Random networks through the compiler: after every pass the program is right by verify() and computes what the program
// before all passes does. A failing network is made smaller by dropping nodes, and printed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/compile.hpp"
#include "compiler/lower.hpp"
#include "compiler/pass.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler_graph.hpp"
#include "compiler_interpreter.hpp"

namespace strata::compiler {
namespace {

// The largest difference in units of what may be: 1e-5 of the value, or of 1 where that is more. Infinite for NaN.
double difference(const std::map<std::string, Doubles>& got, const std::map<std::string, Doubles>& expected) {
  double most = got.size() == expected.size() ? 0 : std::numeric_limits<double>::infinity();
  for (const auto& [name, values] : expected)
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(got.at(name)[i] - values[i]) / (1e-5 * std::max(1.0, std::abs(values[i])));
      most = error <= most ? most : std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
  return most;
}

// What is wrong with the compiler on this network; empty: nothing.
std::string fault(const json& document, unsigned seed) {
  auto graph = graph_of(document);
  if (!graph) return "the test's graph: " + graph.error().what;
  auto program = lower(*graph, seed % 2 == 0 ? 8 : 16);
  if (!program) return "lower: " + program.error().what;
  program->target = seed % 3 == 0 ? Target::cuda : Target::cpu;
  program->type = seed % 5 == 0 ? graph::Type::bfloat16 : graph::Type::float32;
  if (const auto right = verify(*program); !right) return "lower: " + right.error().what;
  const auto expected = results_of(*program, seed);
  for (const auto& [name, values] : expected)
    for (const double one : values)
      if (!std::isfinite(one)) return "lower: output " + name + " is not finite";
  for (const auto& pass : passes()) {
    const auto after = [&](const std::string& what) { return fmt::format("{}: {}", pass.name, what); };
    if (const auto done = pass.apply(*program); !done) return after(done.error().what);
    if (const auto right = verify(*program, false); !right) return after(right.error().what);
    Program planned = *program;
    if (const auto done = plan_memory(planned); !done) return after(done.error().what);
    if (const auto right = verify(planned); !right) return after(right.error().what);
    if (const double most = difference(results_of(planned, seed), expected); most > 1)
      return after(fmt::format("results are {:.2g} times further off than allowed", most));
  }
  return "";
}

// The network without node `n`, whose results become inputs.
json without(const json& document, std::size_t n) {
  json smaller = document;
  for (const auto& value : smaller["nodes"][n]["outputs"])
    smaller["inputs"].push_back({{"name", "v" + value.dump()}, {"value", value}});
  smaller["nodes"].erase(n);
  return smaller;
}

// The least network, by dropping nodes and outputs, that still fails.
template <class Fails>
json shrunk(json document, const Fails& fails) {
  for (bool better = true; better;) {
    better = false;
    for (std::size_t n = document["nodes"].size(); n-- > 0;) {
      auto smaller = without(document, n);
      if (!fails(smaller)) continue;
      document = std::move(smaller);
      better = true;
    }
    for (std::size_t o = document["outputs"].size(); o-- > 0 && document["outputs"].size() > 1;) {
      auto smaller = document;
      smaller["outputs"].erase(o);
      if (!fails(smaller)) continue;
      document = std::move(smaller);
      better = true;
    }
  }
  return document;
}

TEST(CompilerRandom, every_pass_keeps_the_results_of_random_networks) {
  for (unsigned seed = 0; seed < random_networks(500); ++seed) {
    const auto document = RandomGraph(seed).make();
    const auto what = fault(document, seed);
    if (what.empty()) continue;
    const auto small = shrunk(document, [&](const json& one) { return !fault(one, seed).empty(); });
    FAIL() << "seed " << seed << ": " << what << "\nsmallest: " << fault(small, seed) << "\n"
           << small["nodes"].dump() << "\n"
           << small["outputs"].dump() << "\n"
           << small["values"].dump();
  }
}

// The networks must exercise the passes: otherwise the test above proves nothing.
TEST(CompilerRandom, the_random_networks_have_what_the_passes_look_for) {
  int load = 0, norms = 0, activations = 0, sums = 0, reorders = 0, in_place = 0, several_outputs = 0;
  for (unsigned seed = 0; seed < random_networks(300); ++seed) {
    const auto program = compile(*graph_of(RandomGraph(seed).make()), {.block = 8});
    ASSERT_TRUE(program) << program.error().what;
    several_outputs += program->graph.outputs.size() > 1;
    for (const auto& step : program->steps) {
      load += step.when == When::load;
      norms += step.node.operation() == "strata.scale_shift";
      reorders += step.node.operation() == "strata.reorder" && !step.view;
      for (const auto& post : step.posts) (post.kind == PostOp::Kind::add ? sums : activations) += 1;
      for (const int operand : operands_of(step))
        in_place += !step.view && program->same_storage(operand, step.node.outputs.front());
    }
  }
  for (const int count : {load, norms, activations, sums, reorders, in_place, several_outputs})
    EXPECT_GT(count, static_cast<int>(random_networks(300) / 15));
}

TEST(CompilerRandom, a_failing_network_is_shrunk_to_the_nodes_that_matter) {
  GraphBuilder b;
  int x = b.input("x", {1, 4, 2, 2});
  for (int i = 0; i < 4; ++i) x = b.act(b.conv(x, 4), i == 2 ? "gelu" : "relu");
  b.output("middle", x);
  b.output("last", b.act(x));
  const auto small =
      shrunk(b.document(), [](const json& one) { return one["nodes"].dump().find("aten.gelu") != std::string::npos; });
  ASSERT_EQ(small["nodes"].size(), 1u);
  EXPECT_EQ(small["nodes"][0]["op"], "aten.gelu.default");
  EXPECT_EQ(small["outputs"].size(), 1u);
  EXPECT_TRUE(graph_of(small)) << "what is left must still be a network";
}

}  // namespace
}  // namespace strata::compiler
