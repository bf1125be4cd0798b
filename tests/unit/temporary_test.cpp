// SPDX-License-Identifier: Apache-2.0
#include "common/temporary.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace strata {
namespace {
namespace fs = std::filesystem;

class Temporary : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "strata_temporary_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    cache_ = pattern;
  }
  void TearDown() override { fs::remove_all(cache_); }
  static mode_t mode_of(const fs::path& path) {
    struct stat about = {};
    return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 0777 : 0;
  }
  // What a process of its own makes; it is killed, or ends by itself.
  fs::path made_elsewhere(bool killed) const {
    int line[2];
    EXPECT_EQ(::pipe(line), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto folder = temporary_folder(cache_);
      [[maybe_unused]] const auto sent = ::write(line[1], folder->data(), folder->size());
      killed ? std::abort() : std::exit(0);
    }
    char text[4096];
    const auto got = ::read(line[0], text, sizeof text);
    ::waitpid(child, nullptr, 0);
    return std::string(text, static_cast<std::size_t>(got));
  }
  fs::path cache_;
};

TEST_F(Temporary, is_the_users_alone_and_the_same_throughout) {
  const auto folder = temporary_folder(cache_);
  ASSERT_TRUE(folder) << folder.error().what;
  EXPECT_EQ(mode_of(*folder), 0700U);
  EXPECT_EQ(*temporary_folder(cache_), *folder);
}

TEST_F(Temporary, keeps_what_pytorch_precompiles_in_the_cache) {
  ::setenv("LOGNAME", "DOMAIN\\me", 1);
  const auto folder = temporary_folder(cache_);
  ::unsetenv("LOGNAME");
  EXPECT_EQ(fs::canonical(fs::path(*folder) / "torchinductor_DOMAIN_me"), fs::canonical(cache_ / "headers"));
  EXPECT_EQ(mode_of(cache_ / "headers"), 0700U);
}

TEST_F(Temporary, is_removed_at_the_end_and_what_is_kept_stays) {
  const auto folder = made_elsewhere(false);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(cache_ / "headers"));
}

TEST_F(Temporary, what_a_killed_run_left_is_removed_by_the_next_and_nothing_else) {
  const auto left = made_elsewhere(true);
  ASSERT_TRUE(fs::exists(left));
  const auto folder = temporary_folder(cache_);
  EXPECT_FALSE(fs::exists(left));
  made_elsewhere(false);
  EXPECT_TRUE(fs::exists(*folder)) << "in use by this process";
}

TEST_F(Temporary, says_where_it_cannot_be_made) {
  const auto folder = temporary_folder("/proc/nothing");
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().what.find("/proc/nothing/tmp"), std::string::npos);
}

}  // namespace
}  // namespace strata
