// SPDX-License-Identifier: Apache-2.0
#include "common/python.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace strata {
namespace {

using ::testing::ElementsAre;

const std::string kStart = "/r/sdk/python/start_python.py";

TEST(Python, is_started_by_a_file_that_cleans_the_search_path) {
  EXPECT_THAT(python_command("/py", "/r", {"-m", "capture", "--spec", "s"}),
              ElementsAre("/py", kStart, "-m", "capture", "--spec", "s"));
  EXPECT_THAT(python_command("/py", "/r", {"/l/prepare.py", "-c"}), ElementsAre("/py", kStart, "/l/prepare.py", "-c"));
  EXPECT_THAT(python_command("/py", "/r", {}), ElementsAre("/py"));
}

TEST(Python, keeps_the_interpreters_own_options_in_front) {
  EXPECT_THAT(python_command("/py", "/r", {"-u", "-X", "dev", "-W", "error", "-c", "pass"}),
              ElementsAre("/py", "-u", "-X", "dev", "-W", "error", kStart, "-c", "pass"));
}

TEST(Python, never_searches_the_current_folder) {
  for (const char* before : {"", ":", ".", "::a/b:", "/x::.:/y:", ":/x:/y"}) {
    ::setenv("PYTHONPATH", before, 1);
    const auto variables = python_variables({"/r/src"});
    EXPECT_EQ(variables.at("PYTHONSAFEPATH"), "1");
    EXPECT_EQ(variables.at("PYTHONPATH"),
              std::string(before).find('x') == std::string::npos ? "/r/src" : "/r/src:/x:/y");
    EXPECT_EQ(python_variables({}).at("PYTHONPATH"), std::string(before).find('x') == std::string::npos ? "" : "/x:/y");
  }
  ::unsetenv("PYTHONPATH");
}

}  // namespace
}  // namespace strata
