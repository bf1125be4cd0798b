// SPDX-License-Identifier: Apache-2.0
#include "suite/suite.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "data_files.hpp"

namespace strata::suite {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Suite, that_strata_ships_is_what_its_name_means_whatever_lies_here) {
  const data::testing::Place place;
  const auto before = fs::current_path();
  for (const char* folder : {"root/suites", "here/digits"}) fs::create_directories(place.folder / folder);
  std::ofstream(place.folder / "root/suites/digits.toml") << "title = 'x'";
  std::ofstream(place.folder / "here/own.toml") << "title = 'x'";
  fs::current_path(place.folder / "here");
  const auto shipped = find("digits", place.folder / "root"), own = find("own.toml", place.folder / "root"),
             none = find("./digits", place.folder / "root");
  fs::current_path(before);
  ASSERT_TRUE(shipped && own);
  EXPECT_EQ(*shipped, place.folder / "root/suites/digits.toml");
  EXPECT_EQ(*own, "own.toml");
  EXPECT_FALSE(none);
}

TEST(Suite, that_is_a_pipe_or_nests_tables_without_end_is_refused) {
  const data::testing::Place place;
  const auto pipe = place.folder / "pipe.toml", deep = place.folder / "deep.toml";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read(pipe).error().what, HasSubstr("cannot be read"));
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  std::ofstream(deep) << "title = 'x'\n" << key << " = 1\n";
  EXPECT_THAT(read(deep).error().what, HasSubstr("deep.toml:2: 200000 dots in one line"));
}

}  // namespace
}  // namespace strata::suite
