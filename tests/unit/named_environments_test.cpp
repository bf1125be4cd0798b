// SPDX-License-Identifier: Apache-2.0
// --env NAME=PATH: names, interpreters, and which levels take part more than once.
#include "plan/named_environments.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace strata::plan {
namespace {
namespace fs = std::filesystem;

class NamedEnvironmentsTest : public testing::Test {
 protected:
  NamedEnvironmentsTest() {
    folder_ = fs::temp_directory_path() / ("strata-environments-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    for (const char* name : {"old", "new"}) program(folder_ / name / "bin" / "python");
    fs::create_symlink("python", folder_ / "old/bin/python3");
  }
  ~NamedEnvironmentsTest() override { fs::remove_all(folder_); }

  static void program(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  std::string at(const char* path) const { return (folder_ / path).string(); }
  static std::string refused(const std::vector<std::string>& texts) {
    const auto parsed = parse_environments(texts);
    if (parsed) return "";
    EXPECT_EQ(parsed.error().exit, Exit::usage);
    EXPECT_FALSE(parsed.error().hint.empty());
    return parsed.error().what;
  }
  fs::path folder_;
};

TEST_F(NamedEnvironmentsTest, are_named_by_an_interpreter_or_its_folder_in_the_order_given) {
  const auto parsed = parse_environments({"new=" + at("new"), "torch-2.14_x=" + at("old/bin/python")});
  ASSERT_TRUE(parsed) << parsed.error().what;
  EXPECT_EQ(*parsed, (std::vector<NamedPython>{{"new", at("new/bin/python")}, {"torch-2.14_x", at("old/bin/python")}}));
  EXPECT_EQ(environment_words(*parsed),
            " --env new=" + at("new/bin/python") + " --env torch-2.14_x=" + at("old/bin/python"));
}

TEST_F(NamedEnvironmentsTest, keep_an_equals_sign_of_the_path) {
  program(folder_ / "a=b/bin/python");
  const auto parsed = parse_environments({"x=" + at("a=b")});
  ASSERT_TRUE(parsed) << parsed.error().what;
  EXPECT_EQ(parsed->front().python, at("a=b/bin/python"));
}

TEST_F(NamedEnvironmentsTest, without_a_good_name_or_a_path_are_refused) {
  EXPECT_NE(refused({at("old")}).find("the name is missing"), std::string::npos);
  EXPECT_NE(refused({"old="}).find("the path is missing"), std::string::npos);
  for (const char* name : {"", "Old", "a b", "a/b", "a[b]", "\xc3\xa9"})
    EXPECT_NE(refused({std::string(name) + "=" + at("old")}).find("a-z, 0-9"), std::string::npos) << name;
  EXPECT_NE(refused({std::string(41, 'a') + "=" + at("old")}).find("1 to 40"), std::string::npos);
}

TEST_F(NamedEnvironmentsTest, that_lead_to_no_interpreter_are_refused_with_why) {
  std::ofstream(folder_ / "text") << "no program";
  EXPECT_NE(refused({"a=" + at("nothing")}).find("there is no such file"), std::string::npos);
  EXPECT_NE(refused({"a=" + at("text")}).find("it cannot be run"), std::string::npos);
}

TEST_F(NamedEnvironmentsTest, of_one_name_or_one_interpreter_are_refused) {
  EXPECT_NE(refused({"a=" + at("old"), "a=" + at("new")}).find("given twice"), std::string::npos);
  for (const char* again : {"old", "old/bin/python", "old/bin/python3", "new/../old"})
    EXPECT_NE(refused({"a=" + at("old"), "b=" + at(again)}).find("the same interpreter"), std::string::npos) << again;
}

TEST_F(NamedEnvironmentsTest, whose_interpreters_are_links_to_one_program_are_two_environments) {
  fs::create_directories(folder_ / "linked/bin");
  fs::create_symlink(folder_ / "old/bin/python", folder_ / "linked/bin/python");
  EXPECT_TRUE(parse_environments({"a=" + at("old"), "b=" + at("linked")}));
}

TEST_F(NamedEnvironmentsTest, have_the_level_binaries_that_were_set_up_for_them_and_never_those_of_another) {
  for (const char* name : {"old", "new"})
    std::ofstream(folder_ / name / "bin/python")
        << "#!/bin/sh\necho '{\"python\":\"3.12.1\",\"torch\":\"2.14.1\",\"missing\":[],\"packages\":{\"a\":\"1\"}}'\n";
  const auto named = parse_environments({"old=" + at("old"), "new=" + at("new")});
  ASSERT_TRUE(named) << named.error().what;
  Installation place;
  place.root = "/r";
  place.python = at("old/bin/python3");
  place.level_build = "/build-of-old";
  unsetenv("STRATA_ENVIRONMENTS");
  const auto bare = ask_named_environments(*named, place, {});
  ASSERT_TRUE(bare) << bare.error().what;
  EXPECT_EQ(bare->at(0).place.level_build, "/build-of-old");
  EXPECT_EQ(bare->at(1).place.level_build, "/r/build/not-set-up-for-new");
  EXPECT_EQ(bare->at(1).place.python, at("new/bin/python"));
  EXPECT_EQ(bare->at(1).environment.to_json().at("packages"), (nlohmann::json{{"a", "1"}}));
  const auto lines = "new\t" + at("new/bin/python") + "\t/b2\t/o2\nold\t" + at("new/bin/python") + "\t/wrong\t\n";
  setenv("STRATA_ENVIRONMENTS", lines.c_str(), 1);
  const auto launched = ask_named_environments(*named, place, {});
  unsetenv("STRATA_ENVIRONMENTS");
  ASSERT_TRUE(launched) << launched.error().what;
  EXPECT_EQ(launched->at(0).place.level_build, "/build-of-old");
  EXPECT_EQ(launched->at(1).place.level_build, "/b2");
  EXPECT_EQ(launched->at(1).place.overlay, "/o2");
}

TEST_F(NamedEnvironmentsTest, get_each_level_that_uses_pytorch_once_and_the_others_stay_as_they_are) {
  level::Level eager, compiled, null;
  eager.id = "eager";
  compiled.id = "compile";
  compiled.variant = "freezing";
  null.id = "null_cpp";
  null.environment = false;
  const auto names = [&](const std::vector<NamedPython>& named) {
    std::string all;
    for (const auto& level : in_each_environment({eager, compiled, null}, named)) all += level.name() + " ";
    return all;
  };
  EXPECT_EQ(names({{"old", "/a"}, {"new", "/b"}}),
            "eager[old] eager[new] compile@freezing[old] compile@freezing[new] null_cpp ");
  EXPECT_EQ(names({{"old", "/a"}}), "eager compile@freezing null_cpp ");
  EXPECT_EQ(names({}), "eager compile@freezing null_cpp ");
}

}  // namespace
}  // namespace strata::plan
