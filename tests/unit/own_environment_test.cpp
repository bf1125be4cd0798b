// SPDX-License-Identifier: Apache-2.0
#include "level/own_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan/availability.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

class OwnEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "strata_own_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    put(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
    put("setup/environment.sh", "");
    places_ = {"/py", (root_ / ".venv/bin/python").string(), "/b", root_.string()};
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  Result<Level> read_level(const std::string& python, const std::string& requirements) const {
    const Json about = {{"id", "own"},
                        {"title", "A level"},
                        {"rank", 1},
                        {"language", "python"},
                        {"api", 2},
                        {"devices", {"cpu"}},
                        {"modes", {"infer"}},
                        {"precisions", {"fp32"}},
                        {"start", {python, "{level}/level.py"}},
                        {"environment", false},
                        {"needs", {"nowhere"}}};
    put("levels/own/level.json", about.dump());
    fs::remove(root_ / "levels/own/requirements.txt");
    if (!requirements.empty()) put("levels/own/requirements.txt", requirements);
    return read(root_ / "levels/own");
  }
  Level own(const std::string& requirements = "numpy==1\n") const {
    return read_level("{level_python}", requirements).value();
  }

  fs::path root_;
  Places places_;
};

TEST_F(OwnEnvironmentTest, a_list_of_packages_and_its_python_in_a_command_are_an_environment) {
  EXPECT_TRUE(has_own_environment(own()));
  EXPECT_FALSE(has_own_environment(*read_level("{tools_python}", "numpy==1\n"))) << "a list that no command uses";
  EXPECT_FALSE(has_own_environment(*read_level("{tools_python}", "")));
}

TEST_F(OwnEnvironmentTest, the_python_of_an_environment_without_a_list_is_refused_with_the_file_that_is_wanted) {
  const auto level = read_level("{level_python}", "");
  ASSERT_FALSE(level);
  EXPECT_THAT(level.error().what, HasSubstr("{level_python}"));
  EXPECT_THAT(level.error().what, HasSubstr((root_ / "levels/own/requirements.txt").string()));
}

TEST_F(OwnEnvironmentTest, another_list_or_another_python_is_another_environment) {
  const auto folder = own_environment(own(), places_);
  EXPECT_EQ(folder.parent_path(), root_ / "build/environments");
  EXPECT_THAT(folder.filename().string(), testing::MatchesRegex("own-[0-9a-f]+"));
  EXPECT_NE(own_environment(own("numpy==2\n"), places_), folder);
  EXPECT_EQ(own_environment(own(), places_), folder);
  put(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.9\n");
  EXPECT_EQ(own_environment(own(), places_), folder) << "a later 3.11 runs what was compiled for 3.11";
  put(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.0\n");
  EXPECT_NE(own_environment(own(), places_), folder);
}

TEST_F(OwnEnvironmentTest, its_python_starts_as_every_python_does) {
  const auto level = own();
  EXPECT_THAT(
      expand(level.start, level, places_),
      testing::ElementsAre((own_environment(level, places_) / "bin/python").string(),
                           (root_ / "sdk/python/start_python.py").string(), (root_ / "levels/own/level.py").string()));
}

TEST_F(OwnEnvironmentTest, what_is_missing_is_said_with_the_command_and_the_size) {
  const auto level = own("# made by somebody\n# 54 MB to download, 171 MB on disk\nnumpy==1\n");
  const auto folder = own_environment(level, places_).string();
  const auto missing = own_environment_missing(level, places_);
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->what, HasSubstr("not installed"));
  EXPECT_THAT(missing->hint, HasSubstr("./strata level install own"));
  EXPECT_THAT(missing->hint, HasSubstr("54 MB to download, 171 MB on disk"));
  fs::create_directories(folder + ".part/bin");
  EXPECT_THAT(own_environment_missing(level, places_)->what, HasSubstr("is not complete"));
  std::ofstream(folder + ".failed") << "the disk is full\nfree some space\n";
  EXPECT_THAT(own_environment_missing(level, places_)->what, HasSubstr("the disk is full"));
  EXPECT_THAT(own_environment_missing(level, places_)->hint, HasSubstr("free some space"));
  fs::create_directories(folder + "/bin");
  std::ofstream(folder + "/bin/python") << "";
  EXPECT_FALSE(own_environment_missing(level, places_));
}

TEST_F(OwnEnvironmentTest, where_strata_cannot_install_one_no_command_is_named_that_would) {
  fs::remove_all(root_ / "setup");
  const auto missing = own_environment_missing(own(), places_);
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->what, HasSubstr("that pip installed"));
  EXPECT_THAT(missing->hint, HasSubstr("in a clone"));
  EXPECT_EQ(missing->hint.find("level install"), std::string::npos);
}

TEST_F(OwnEnvironmentTest, a_list_may_be_strange_and_is_neither_waited_for_nor_overflows) {
  const auto long_line = "# 5 MB to download, 6 MB on disk" + std::string(400'000, ' ') + "\n";
  EXPECT_EQ(own_environment_size(own(long_line)), "5 MB to download, 6 MB on disk");
  EXPECT_EQ(own_environment_size(own("# " + std::string(400'000, '1') + "\n# x MB on disk\n")), "");
  EXPECT_THAT(read_level("{level_python}", std::string(2 << 20, 'x')).error().what, HasSubstr("allowed are 1048576"));
  const auto list = root_ / "levels/own/requirements.txt";
  fs::remove(list);
  ASSERT_EQ(mkfifo(list.c_str(), 0600), 0);
  EXPECT_THAT(read(root_ / "levels/own").error().what, HasSubstr(list.string()));
}

TEST_F(OwnEnvironmentTest, whether_a_level_can_be_started_hangs_on_its_environment_and_on_no_other_interpreter) {
  Installation place;
  place.root = root_;
  place.tools_python = places_.tools_python;
  plan::Interpreter broken;
  broken.why_not = "it does not work";
  const auto level = own();
  const auto lacks = plan::why_unavailable(level, broken, broken, place);
  ASSERT_TRUE(lacks);
  EXPECT_EQ(lacks->reason, plan::UnavailableReason::environment);
  put(fs::relative(own_environment(level, places_) / "bin/python", root_), "");
  EXPECT_FALSE(plan::why_unavailable(level, broken, broken, place));
  const auto other = plan::why_unavailable(*read_level("{tools_python}", ""), broken, broken, place);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->what, "it does not work");
}

}  // namespace
}  // namespace strata::level
