// SPDX-License-Identifier: Apache-2.0
// How many captures of a changing network stay in the cache.
#include "plan/states.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

namespace strata::plan {
namespace {
namespace fs = std::filesystem;

class states : public testing::Test {
 protected:
  states() : folder_(fs::temp_directory_path() / fmt::format("strata_states_{}", getpid())) {
    fs::create_directories(folder_);
  }
  ~states() override { fs::remove_all(folder_); }

  // A state that was used so many hours ago.
  fs::path state(int number, int hours_ago) const {
    const auto path = folder_ / fmt::format("key.{:016x}", number);
    fs::create_directories(path / "weights");
    std::ofstream(path / "bundle.json") << "{}";
    fs::last_write_time(path / "bundle.json", fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
    return path;
  }
  fs::path out() const { return folder_ / "key"; }

  fs::path folder_;
};

TEST_F(states, the_last_used_ones_are_kept_and_the_others_removed) {
  for (int i = 0; i < 12; ++i) state(i, i);
  const auto used_again = state(11, 11);
  mark_used(used_again);
  EXPECT_EQ(states_of(out()).front(), used_again);
  EXPECT_EQ(prune_states(out()), 12 - kept_states);
  const auto left = states_of(out());
  ASSERT_EQ(left.size(), kept_states);
  EXPECT_EQ(left.front(), used_again);
  EXPECT_TRUE(fs::exists(folder_ / fmt::format("key.{:016x}", 0)));
  EXPECT_FALSE(fs::exists(folder_ / fmt::format("key.{:016x}", 10)));
}

TEST_F(states, nothing_else_in_the_cache_is_one) {
  const auto mine = state(1, 1);
  for (const char* other : {"key", "key-batch1-8.0000000000000001", "key.strict", "key.00000000000000zz", "another"})
    fs::create_directories(folder_ / other);
  EXPECT_EQ(states_of(out()), std::vector{mine});
  EXPECT_EQ(prune_states(out()), 0U);
  EXPECT_EQ(prune_states(folder_ / "nosuch" / "key"), 0U);
}

}  // namespace
}  // namespace strata::plan
