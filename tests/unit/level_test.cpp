// SPDX-License-Identifier: Apache-2.0
#include "level/level.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/jobs.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

class LevelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "strata_level_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  static Json good(const std::string& id, int rank = 1) {
    return {{"id", id},
            {"title", "A level"},
            {"rank", rank},
            {"language", "c++"},
            {"api", 2},
            {"devices", {"cpu"}},
            {"modes", {"infer"}},
            {"precisions", {"fp32"}},
            {"start", {"{build}/level_x", "{level}/file", "{root}", "{python}", "{tools_python}"}}};
  }
  fs::path write(const std::string& folder, const Json& content) const { return write_text(folder, content.dump()); }
  fs::path write_text(const std::string& folder, const std::string& text) const {
    fs::create_directories(root_ / folder);
    std::ofstream(root_ / folder / "level.json") << text;
    return root_ / folder;
  }
  // Reads `good("x")` with one field replaced, and expects a complaint that names the field and the file.
  void expect_refused(const char* field, const Json& value, const std::string& says) const {
    Json content = good("x");
    content[field] = value;
    const auto level = read(write("x", content));
    ASSERT_FALSE(level) << field << " = " << value;
    EXPECT_THAT(level.error().what, HasSubstr(says));
    EXPECT_THAT(level.error().what, HasSubstr("level.json"));
  }

  fs::path root_;
};

TEST_F(LevelTest, reads_every_field) {
  Json content = good("libtorch", 4);
  content.update({{"models", {"resnet18"}},
                  {"prepare", {"{python}", "{level}/prepare.py"}},
                  {"environment", false},
                  {"needs", {"torch"}},
                  {"peer", true},
                  {"harness", true},
                  {"reassociates", true},
                  {"bakes_weights", true},
                  {"from", "eager"},
                  {"changes", "Python removed"},
                  {"default", "as it is"},
                  {"generate", {{"cpu", "onednn"}}},
                  {"variants",
                   {{"plain", {{"title", "plain"}, {"on_data", true}, {"reassociates", false}}},
                    {"tuned", {{"title", "tuned"}, {"generate", "--tune"}}}}},
                  {"operations", {"conv2d", "relu", "add"}}});
  const auto level = read(write("libtorch", content));
  ASSERT_TRUE(level) << level.error().what;
  EXPECT_EQ(level->id, "libtorch");
  EXPECT_EQ(level->rank, 4);
  EXPECT_EQ(level->models, std::vector<std::string>{"resnet18"});
  EXPECT_EQ(level->prepare.size(), 2U);
  EXPECT_EQ(level->needs, std::vector<std::string>{"torch"});
  EXPECT_FALSE(level->environment);
  EXPECT_TRUE(level->peer && level->harness && level->reassociates && level->bakes_weights);
  EXPECT_EQ(level->from, "eager");
  EXPECT_EQ(level->changes, "Python removed");
  EXPECT_EQ(level->default_text, "as it is");
  EXPECT_EQ(level->operations, (std::vector<std::string>{"conv2d", "relu", "add"}));
  EXPECT_EQ(level->generate, (std::map<std::string, std::string>{{"cpu", "onednn"}}));
  ASSERT_EQ(level->variants.size(), 2U) << "a harness gets none of strata's own";
  EXPECT_TRUE(as_variant(*level, level->variants[0]).generate.empty()) << "`generate` does not write that variant";
  EXPECT_EQ(as_variant(*level, level->variants[1]).generate_options, "--tune");
  EXPECT_TRUE(as_variant(*level, level->variants[0]).on_data && !as_variant(*level, level->variants[1]).on_data);
  EXPECT_TRUE(!as_variant(*level, level->variants[0]).reassociates &&
              as_variant(*level, level->variants[1]).reassociates);
  EXPECT_EQ(level->folder, root_ / "libtorch");
}

TEST_F(LevelTest, has_no_more_variants_than_anybody_reads) {
  Json many = Json::object();
  for (int i = 0; i < 201; ++i) many["v" + std::to_string(i)] = {{"title", "t"}};
  expect_refused("variants", many, "has 201 of them; allowed are 200");
}

TEST_F(LevelTest, sorts_by_rank_then_id_and_searches_below) {
  write("b", good("b", 2));
  write("deep/er/a", good("a", 2));
  write("c", good("c", 1));
  write("c/inner", good("hidden_in_a_level", 1));
  write(".git/x", good("hidden", 1));
  const DiscoveredLevels found = discover({root_});
  EXPECT_TRUE(found.problems.empty());
  ASSERT_EQ(found.levels.size(), 3U);
  EXPECT_EQ(found.levels[0].id, "c");
  EXPECT_EQ(found.levels[1].id, "a");
  EXPECT_EQ(found.levels[2].id, "b");
}

TEST_F(LevelTest, takes_a_levels_own_folder_as_a_root) {
  write("mine", good("mine"));
  EXPECT_EQ(discover({root_ / "mine"}).levels.size(), 1U);
  const DiscoveredLevels twice = discover({root_ / "mine", root_});
  EXPECT_EQ(twice.levels.size(), 1U);
  EXPECT_TRUE(twice.problems.empty());
}

TEST_F(LevelTest, lets_a_broken_level_hide_no_other) {
  write("good", good("good"));
  write_text("broken", "{\"id\": ");
  write_text("list", "[]");
  const DiscoveredLevels found = discover({root_, root_ / "nowhere"});
  ASSERT_EQ(found.levels.size(), 1U);
  ASSERT_EQ(found.problems.size(), 3U);
  EXPECT_THAT(found.problems[0].error.what, HasSubstr("JSON"));
  EXPECT_THAT(found.problems[1].error.what, HasSubstr("array"));
  EXPECT_THAT(found.problems[2].error.what, HasSubstr("not a folder"));
}

TEST_F(LevelTest, keeps_the_first_of_two_levels_with_one_id) {
  write("a/same", good("same", 5));
  write("b/same", good("same", 1));
  const DiscoveredLevels found = discover({root_ / "a", root_ / "b"});
  ASSERT_EQ(found.levels.size(), 1U);
  EXPECT_EQ(found.levels[0].rank, 5);
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_THAT(found.problems[0].error.what, HasSubstr("taken by " + (root_ / "a" / "same").string()));
}

TEST_F(LevelTest, names_the_field_that_is_wrong) {
  expect_refused("rank", "high", "\"rank\" is \"high\"");
  expect_refused("rank", -1, "\"rank\" is -1");
  expect_refused("rank", 1e300, "\"rank\"");
  expect_refused("peer", 1, "\"peer\" is 1; allowed is true or false");
  expect_refused("devices", {"gpu"}, "\"devices\" holds \"gpu\"; allowed are cpu, cuda");
  expect_refused("modes", Json::array(), "\"modes\" is []");
  expect_refused("generate", "onednn", "\"generate\" is \"onednn\"");
  expect_refused("generate", {{"tpu", "x"}}, "allowed is an object of strings by cpu and cuda");
  expect_refused("start", "python x", "\"start\"");
  expect_refused("start", {"{pyhton}"}, "{pyhton}");
  expect_refused("start", {"{level"}, "{level}");
  expect_refused("id", "Bad-Id@x", "\"id\"");
  expect_refused("title", nullptr, "\"title\" is null");
  expect_refused("api", 1, "\"api\" is 1; this strata speaks 2");
  expect_refused("api", 3, "this strata speaks 2");
  Json missing = good("x");
  missing.erase("language");
  EXPECT_THAT(read(write("x", missing)).error().what, HasSubstr("\"language\" is missing"));
  EXPECT_FALSE(read(root_ / "nowhere"));
}

TEST_F(LevelTest, refuses_a_misspelt_field_and_remembers_an_unknown_one) {
  Json content = good("x");
  content["reasociates"] = true;
  const auto slip = read(write("x", content));
  ASSERT_FALSE(slip);
  EXPECT_THAT(slip.error().hint, HasSubstr("reassociates"));
  Json later = good("x");
  later["energy_counters"] = 1;
  const auto level = read(write("x", later));
  ASSERT_TRUE(level) << level.error().what;
  EXPECT_EQ(level->ignored, std::vector<std::string>{"energy_counters"});
}

TEST_F(LevelTest, expands_placeholders_once) {
  const auto level = read(write("{root}", good("x")));
  ASSERT_TRUE(level) << level.error().what;
  const Places places{"/py/{build}", "/tools", "/b", "/r"};
  const auto command =
      expand({"{build}/a", "{level}/f", "-I{root}/sdk:{root}", "{python}", "{tools_python}", "plain"}, *level, places);
  EXPECT_THAT(command, testing::ElementsAre("/b/a", (root_ / "{root}").string() + "/f", "-I/r/sdk:/r", "/py/{build}",
                                            "/tools", "plain"));
}

TEST_F(LevelTest, a_command_of_python_starts_it_by_the_file_that_cleans_the_search_path) {
  const auto level = read(write("x", good("x")));
  const Places places{"/py", "/tools", "/b", "/r"};
  const std::string start = "/r/sdk/python/start_python.py";
  EXPECT_THAT(expand({"{python}", "-m", "strata_sdk", "{level}"}, *level, places),
              testing::ElementsAre("/py", start, "-m", "strata_sdk", (root_ / "x").string()));
  EXPECT_THAT(expand({"{tools_python}", "{level}/a.py", "--other", "{python}"}, *level, places),
              testing::ElementsAre("/tools", start, (root_ / "x/a.py").string(), "--other", "/py"));
  EXPECT_THAT(expand({"/usr/bin/env", "A=1", "{python}", "-c", "pass"}, *level, places),
              testing::ElementsAre("/usr/bin/env", "A=1", "/py", start, "-c", "pass"));
  EXPECT_THAT(expand({"{build}/x", "{python}", "-c"}, *level, places), testing::ElementsAre("/b/x", "/py", "-c"));
}

TEST_F(LevelTest, searches_the_own_levels_first_and_then_the_level_path) {
  ::setenv("STRATA_LEVEL_PATH", "/one::/two", 1);
  EXPECT_THAT(search_path("/r"), testing::ElementsAre("/r/levels", "/one", "/two"));
  ::unsetenv("STRATA_LEVEL_PATH");
  EXPECT_THAT(search_path("/r"), testing::ElementsAre("/r/levels"));
}

TEST_F(LevelTest, gives_a_worker_the_promised_variables) {
  const auto level = read(write("x", good("x")));
  ASSERT_TRUE(level);
  const auto env = environment(*level, {"", "", "", "/r"}, 2, "/cache");
  EXPECT_EQ(env.at("STRATA_LEVEL_DIR"), (root_ / "x").string());
  EXPECT_EQ(level->told_variant(), "");
  EXPECT_EQ(env.at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(env.at("TRITON_CACHE_DIR"), "/cache/triton");
  EXPECT_THAT(env.at("PYTHONPATH"), testing::StartsWith("/r/sdk/python"));
}

TEST_F(LevelTest, a_level_on_a_processor_has_a_variant_with_huge_pages_that_differs_in_its_workers_environment_alone) {
  Json content = good("x");
  content["generate"] = {{"cpu", "onednn"}};
  const auto level = read(write("x", content));
  ASSERT_TRUE(level);
  ASSERT_EQ(level->variants.size(), 1U);
  const auto variant = as_variant(*level, level->variants[0]);
  EXPECT_EQ(variant.name(), "x@hugepages");
  EXPECT_EQ(variant.generate, level->generate) << "the program is the default's";
  ::unsetenv("GLIBC_TUNABLES");
  auto env = environment(variant, {"", "", "", "/r"}, 2, "/cache");
  EXPECT_EQ(variant.told_variant(), "");
  EXPECT_EQ(env.at("GLIBC_TUNABLES"), "glibc.malloc.hugetlb=1");
  EXPECT_FALSE(environment(*level, {"", "", "", "/r"}, 2, "/cache").contains("GLIBC_TUNABLES"));
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1", 1);
  env = environment(variant, {"", "", "", "/r"}, 2, "/cache");
  EXPECT_EQ(env.at("GLIBC_TUNABLES"), "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1");
  ::unsetenv("GLIBC_TUNABLES");
}

TEST_F(LevelTest, a_level_may_ask_for_huge_pages_in_all_its_variants_and_has_none_of_that_name_then) {
  Json content = good("x");
  content["huge_pages"] = true;
  content["variants"] = {{"other", {{"title", "another"}}}};
  const auto level = read(write("x", content));
  ASSERT_TRUE(level);
  ASSERT_EQ(level->variants.size(), 1U);
  ::unsetenv("GLIBC_TUNABLES");
  for (const auto& one : {*level, as_variant(*level, level->variants[0])})
    EXPECT_EQ(environment(one, {"", "", "", "/r"}, 2, "/cache").at("GLIBC_TUNABLES"), "glibc.malloc.hugetlb=1");
}

TEST_F(LevelTest, a_level_for_gpus_alone_has_no_variant_with_huge_pages_and_none_may_call_its_own_so) {
  Json content = good("x");
  content["devices"] = {"cuda"};
  EXPECT_TRUE(read(write("x", content))->variants.empty());
  expect_refused("variants", {{"hugepages", {{"title", "mine"}}}},
                 "variant \"hugepages\" has a name that is not allowed");
}

TEST_F(LevelTest, a_level_of_another_device_is_left_out_of_a_comparison_unless_it_is_named) {
  Json elsewhere = good("elsewhere", 2);
  elsewhere["devices"] = {"cuda"};
  write("here", good("here"));
  write("elsewhere", elsewhere);
  const auto found = discover({root_});
  const auto ids = [&](const std::vector<std::string>& names, const std::string& device) {
    std::string all;
    const auto chosen = plan::choose_levels(found, names, device);
    for (const auto& level : *chosen) all += level.id + " ";
    return all;
  };
  EXPECT_EQ(ids({}, "cpu"), "here ");
  EXPECT_EQ(ids({}, "cuda"), "elsewhere ");
  EXPECT_EQ(ids({"elsewhere", "here"}, "cpu"), "here elsewhere ");
}

}  // namespace
}  // namespace strata::level
