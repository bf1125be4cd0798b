// SPDX-License-Identifier: Apache-2.0
// The loader of graph.json: what a good one becomes, and that every kind of damage is refused with its place named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "graph/load.hpp"

namespace strata::graph {
namespace {
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// relu(conv2d(x, weight)) + x, in two nodes and an addition.
json small() {
  return json::parse(R"({"graph":1,"mode":"infer",
    "values":[{"name":"x","dtype":"float32","shape":[1,4,8,8]},{"name":"conv.weight","dtype":"float32","shape":[4,4,1,1]},
              {"name":"conv2d","dtype":"float32","shape":[1,4,8,8]},{"name":"relu","dtype":"float32","shape":[1,4,8,8]},
              {"name":"add","dtype":"float32","shape":[1,4,8,8]}],
    "inputs":[{"value":0,"name":"arg0"}],"parameters":[{"value":1,"name":"conv.weight"}],"buffers":[],"constants":[],
    "nodes":[{"op":"aten.conv2d.default","name":"conv2d","args":{"input":{"value":0},"weight":{"value":1},"bias":null,"stride":[1,1],
              "padding":[0,0],"dilation":[1,1],"groups":1},"outputs":[2],"module":"conv","module_type":"Conv2d","source":"net.py:7"},
             {"op":"aten.relu.default","name":"relu","args":{"self":{"value":2}},"outputs":[3],"module":"","module_type":"Net","source":""},
             {"op":"aten.add.Tensor","name":"add","args":{"self":{"value":3},"other":{"value":0},"alpha":1},"outputs":[4],"module":"","module_type":"Net","source":""}],
    "outputs":[{"name":"output","value":4}],"updates":[]})");
}

Result<Graph> parsed(const json& all) {
  return parse(all.dump(), "graph.json");
}

// The error of a graph that must be refused; empty when it was not.
std::string refusal(const json& all) {
  const auto graph = parsed(all);
  return graph ? std::string() : graph.error().what;
}

TEST(GraphLoad, reads_values_nodes_and_who_uses_what) {
  const auto graph = parsed(small());
  ASSERT_TRUE(graph) << graph.error().what;
  EXPECT_EQ(graph->mode, Mode::infer);
  ASSERT_EQ(graph->values.size(), 5u);
  EXPECT_EQ(graph->value(0).origin, Origin::input);
  EXPECT_EQ(graph->value(1).origin, Origin::parameter);
  EXPECT_EQ(graph->value(2).producer, 0);
  EXPECT_EQ(graph->value(2).bytes(), 1024);
  EXPECT_THAT(graph->value(0).consumers, ElementsAre(0, 2));
  EXPECT_EQ(graph->nodes[0].where(), "node 'conv2d' (conv2d) in conv (Conv2d), net.py:7");
  EXPECT_EQ(graph->nodes[2].where(), "node 'add' (add) in the network itself (Net)");
  EXPECT_EQ(graph->nodes[2].overload(), "Tensor");
  EXPECT_EQ(graph->outputs.front().name, "output");
}

TEST(GraphLoad, gives_arguments_by_the_schemas_names_and_types) {
  const auto graph = parsed(small());
  ASSERT_TRUE(graph);
  const auto& conv = graph->nodes[0];
  EXPECT_EQ(conv.tensor("weight"), 1);
  EXPECT_EQ(conv.maybe_tensor("bias"), std::nullopt);
  EXPECT_THAT(conv.ints("stride"), ElementsAre(1, 1));
  EXPECT_EQ(conv.integer("groups"), 1);
  EXPECT_EQ(conv.number("groups"), 1.0);
  EXPECT_TRUE(conv.is_null("bias"));
  EXPECT_FALSE(conv.is_tensor("stride"));
}

TEST(GraphLoad, names_the_argument_the_node_and_its_place_when_the_type_is_another) {
  const auto graph = parsed(small());
  ASSERT_TRUE(graph);
  const auto& conv = graph->nodes[0];
  const auto message = [&](const auto& ask) -> std::string {
    try {
      ask();
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(message([&] { conv.integer("stride"); }),
            "node 'conv2d' (conv2d) in conv (Conv2d), net.py:7: argument 'stride' is [1,1], expected an integer");
  EXPECT_THAT(message([&] { conv.ints("input"); }),
              HasSubstr("argument 'input' is a tensor, expected a list of integers"));
  EXPECT_THAT(message([&] { conv.tensor("bias"); }), HasSubstr("argument 'bias' is null, expected a tensor"));
  EXPECT_THAT(message([&] { conv.flag("training"); }), HasSubstr("has no argument 'training'; it has: bias, dilation"));
}

TEST(GraphLoad, reads_infinities_that_json_has_no_numbers_for) {
  auto all = small();
  all["nodes"][1]["args"]["low"] = "-inf";
  all["nodes"][1]["args"]["high"] = "inf";
  const auto graph = parsed(all);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->nodes[1].number("low"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(graph->nodes[1].number("high"), std::numeric_limits<double>::infinity());
  EXPECT_THROW(graph->nodes[1].integer("low"), ArgumentError);
}

TEST(GraphLoad, reads_a_list_of_tensors_with_one_left_out) {
  auto all = small();
  all["nodes"][2]["args"]["more"] = json::parse(R"({"values":[3,null,0]})");
  const auto graph = parsed(all);
  ASSERT_TRUE(graph);
  EXPECT_THAT(graph->nodes[2].tensors("more"), ElementsAre(3, -1, 0));
}

struct Damaged {
  const char* name;
  std::function<void(json&)> damage;
  const char* message;
};

class GraphDamage : public testing::TestWithParam<Damaged> {};

TEST_P(GraphDamage, is_refused_with_its_place) {
  auto all = small();
  GetParam().damage(all);
  EXPECT_THAT(refusal(all), HasSubstr(GetParam().message));
}

const std::vector<Damaged> damages{
    {"another_version", [](json& g) { g["graph"] = 2; }, "'graph' is 2, this strata reads version 1"},
    {"another_mode", [](json& g) { g["mode"] = "test"; }, "'mode' is 'test'"},
    {"no_nodes", [](json& g) { g.erase("nodes"); }, "the graph has no field 'nodes'"},
    {"values_no_list", [](json& g) { g["values"] = 3; }, "the graph: 'values' is number, not a list"},
    {"a_value_without_dtype", [](json& g) { g["values"][3].erase("dtype"); }, "value 3 has no field 'dtype'"},
    {"an_unknown_dtype", [](json& g) { g["values"][3]["dtype"] = "float99"; },
     "value 3 ('relu') has the unknown dtype 'float99'"},
    {"a_negative_extent", [](json& g) { g["values"][3]["shape"][1] = -4; }, "value 3 ('relu'): -4 is no extent"},
    {"a_fractional_extent", [](json& g) { g["values"][3]["shape"][1] = 4.5; }, "value 3 ('relu'): 4.5 is no extent"},
    {"a_huge_extent", [](json& g) { g["values"][3]["shape"][1] = 18446744073709551615u; },
     "value 3 ('relu'): 18446744073709551615 is no extent"},
    {"an_overflowing_shape",
     [](json& g) {
       g["values"][3]["shape"] = {3037000500, 3037000500};
     },
     "value 3 ('relu'): the shape [3037000500, 3037000500] has more bytes than"},
    {"bytes_that_overflow", [](json& g) { g["values"][3]["shape"] = {4611686018427387904}; }, "has more bytes than"},
    {"a_node_without_op", [](json& g) { g["nodes"][1].erase("op"); }, "node 1 has no field 'op'"},
    {"an_op_without_overload", [](json& g) { g["nodes"][1]["op"] = "aten.relu"; },
     "node 1 'relu' (aten.relu): 'op' is not of the form"},
    {"arguments_no_object", [](json& g) { g["nodes"][1]["args"] = json::array(); },
     "node 1 'relu' (aten.relu.default): 'args' is array"},
    {"an_argument_out_of_range", [](json& g) { g["nodes"][1]["args"]["self"]["value"] = 5; },
     "node 1 'relu' (aten.relu.default), argument 'self': there is no value 5; the graph has 5"},
    {"an_argument_far_out_of_range", [](json& g) { g["nodes"][1]["args"]["self"]["value"] = 4294967296; },
     "there is no value 4294967296"},
    {"an_argument_beyond_64_bits", [](json& g) { g["nodes"][1]["args"]["self"]["value"] = 18446744073709551615u; },
     "there is no value 18446744073709551615"},
    {"a_negative_index", [](json& g) { g["nodes"][1]["args"]["self"]["value"] = -1; }, "there is no value -1"},
    {"an_index_no_number", [](json& g) { g["nodes"][1]["args"]["self"]["value"] = "2"; },
     "argument 'self': \"2\" is no index"},
    {"an_argument_of_no_kind",
     [](json& g) {
       g["nodes"][1]["args"]["self"] = {{"tensor", 2}};
     },
     "is neither {\"value\":n}"},
    {"a_node_without_outputs", [](json& g) { g["nodes"][1]["outputs"] = json::array(); },
     "node 1 'relu' (aten.relu.default) has no outputs"},
    {"a_value_defined_twice", [](json& g) { g["nodes"][2]["outputs"] = {3}; },
     "node 'add' defines value 3 ('relu'), which node 'relu' has defined before"},
    {"an_input_defined_again", [](json& g) { g["nodes"][1]["outputs"] = {0}; },
     "node 'relu' defines value 0 ('x'), which an input has defined before"},
    {"a_value_nothing_defines", [](json& g) { g["values"].push_back(g["values"][0]); },
     "nothing defines value 5 ('x')"},
    {"a_value_used_too_early", [](json& g) { g["nodes"][0]["args"]["input"]["value"] = 4; },
     "argument 'input' is value 4 ('add'), which node 'add' defines only later"},
    {"a_node_that_uses_itself", [](json& g) { g["nodes"][1]["args"]["self"]["value"] = 3; },
     "argument 'self' is value 3 ('relu'), which is its own output: a cycle"},
    {"two_nodes_of_one_name", [](json& g) { g["nodes"][1]["name"] = "add"; }, "two nodes are called 'add'"},
    {"an_output_out_of_range", [](json& g) { g["outputs"][0]["value"] = 99; }, "outputs[0]: there is no value 99"},
    {"an_output_listed_twice", [](json& g) { g["outputs"].push_back(g["outputs"][0]); },
     "outputs[1]: 'output' is listed twice"},
    {"no_outputs", [](json& g) { g["outputs"] = json::array(); }, "the graph has no outputs"},
    {"an_update_in_inference",
     [](json& g) {
       g["updates"].push_back({{"buffer", "mean"}, {"value", 3}});
     },
     "mode is infer, and buffer 'mean' is updated"},
    {"an_update_of_another_shape",
     [](json& g) {
       g["mode"] = "train";
       g["values"].push_back({{"name", "mean"}, {"dtype", "float32"}, {"shape", {4}}});
       g["buffers"].push_back({{"name", "mean"}, {"value", 5}});
       g["updates"].push_back({{"buffer", "mean"}, {"value", 3}});
     },
     "the update of buffer 'mean' is float32 [1, 4, 8, 8], the buffer is float32 [4]"},
};

INSTANTIATE_TEST_SUITE_P(GraphLoad, GraphDamage, testing::ValuesIn(damages),
                         [](const auto& one) { return one.param.name; });

TEST(GraphLoad, refuses_what_is_no_json_and_says_what_to_do) {
  const auto graph = parse("{\"graph\":1,", "some/graph.json");
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().what, testing::StartsWith("some/graph.json is not JSON"));
  EXPECT_THAT(graph.error().hint, HasSubstr("made again"));
  EXPECT_FALSE(parse("[]", "x"));
  EXPECT_FALSE(parse("", "x"));
}

TEST(GraphLoad, counts_an_empty_tensor_as_no_elements) {
  EXPECT_EQ(elements_of({0, 4611686018427387904, 8}), 0);
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(elements_of({4611686018427387904, 4}), std::nullopt);
}

class GraphFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("strata_graph_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::filesystem::path folder_;
};

TEST_F(GraphFolder, says_why_capture_made_no_graph) {
  write("bundle.json", R"({"bundle":2,"graph":{"ok":false,"what":"torch.export: cannot trace","where":"net.py:12"}})");
  const auto graph = load(folder_);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().what, "the network has no captured graph: torch.export: cannot trace, at net.py:12");
  EXPECT_EQ(graph.error().exit, Exit::environment);
  EXPECT_NE(graph.error().hint.find("eager, compile"), std::string::npos);
}

TEST_F(GraphFolder, checks_weights_against_the_graph_by_name_type_and_shape) {
  const auto graph = parsed(small());
  ASSERT_TRUE(graph);
  std::vector<float> data(16, 1.0f);
  const auto write_weight = [&](const std::string& name, std::vector<std::int64_t> shape, const char* dtype = "F32") {
    TensorView view{dtype, std::move(shape), reinterpret_cast<const std::byte*>(data.data()), 64};
    ASSERT_TRUE(write_safetensors(folder_ / "w.safetensors", {{name, view}}));
  };
  const auto message = [&]() -> std::string {
    const auto file = SafeTensors::open(folder_ / "w.safetensors");
    const auto fits = check_tensors(*graph, graph->parameters, *file);
    return fits ? "" : fits.error().what + " / " + fits.error().hint;
  };
  write_weight("conv.weight", {4, 4, 1, 1});
  EXPECT_EQ(message(), "");
  write_weight("conv.weights", {4, 4, 1, 1});
  EXPECT_THAT(message(), HasSubstr("has no tensor 'conv.weight', which the graph needs as float32 [4, 4, 1, 1] / the "
                                   "nearest name in it is 'conv.weights'"));
  write_weight("conv.weight", {16});
  EXPECT_THAT(message(), HasSubstr("'conv.weight' is F32 [16], the graph needs F32 [4, 4, 1, 1]"));
  write_weight("conv.weight", {4, 4, 1, 1}, "I32");
  EXPECT_THAT(message(), HasSubstr("'conv.weight' is I32 [4, 4, 1, 1], the graph needs F32"));
}

TEST_F(GraphFolder, needs_the_constants_that_the_graph_names) {
  auto all = small();
  all["values"].push_back({{"name", "mask"}, {"dtype", "bool"}, {"shape", {4}}});
  all["constants"].push_back({{"name", "mask"}, {"value", 5}});
  const auto graph = parsed(all);
  ASSERT_TRUE(graph) << graph.error().what;
  EXPECT_FALSE(open_constants(*graph, folder_));
  const unsigned char bytes[4] = {1, 0, 1, 1};
  TensorView view{"BOOL", {4}, reinterpret_cast<const std::byte*>(bytes), 4};
  ASSERT_TRUE(write_safetensors(folder_ / "graph_constants.safetensors", {{"mask", view}}));
  const auto constants = open_constants(*graph, folder_);
  ASSERT_TRUE(constants) << constants.error().what;
  EXPECT_NE(constants->find("mask"), nullptr);
}

}  // namespace
}  // namespace strata::graph
