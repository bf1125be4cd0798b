// SPDX-License-Identifier: Apache-2.0
// Folders whose files are believed: nobody else may write there (common/places.hpp).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "common/places.hpp"

namespace strata {
namespace {
namespace fs = std::filesystem;

class PrivateFolder : public ::testing::Test {
 protected:
  PrivateFolder() : place_(fs::temp_directory_path() / ("strata_private_" + std::to_string(getpid()))) {
    fs::create_directories(place_);
    chmod(place_.c_str(), 0755);
  }
  ~PrivateFolder() override { fs::remove_all(place_); }
  fs::path place_;
};

TEST_F(PrivateFolder, makes_a_missing_folder_for_its_owner_alone) {
  ASSERT_TRUE(private_folder(place_ / "a" / "b", "name another"));
  struct stat found {};
  ASSERT_EQ(stat((place_ / "a" / "b").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
}

TEST_F(PrivateFolder, takes_one_that_others_may_read) {
  fs::create_directories(place_ / "a");
  chmod((place_ / "a").c_str(), 0755);
  EXPECT_TRUE(private_folder(place_ / "a", "name another"));
}

TEST_F(PrivateFolder, refuses_one_that_others_may_write_and_one_below_it) {
  fs::create_directories(place_ / "a" / "b");
  chmod((place_ / "a").c_str(), 0777);
  for (const auto& folder : {place_ / "a", place_ / "a" / "b"}) {
    const auto refused = private_folder(folder, "name another");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("can be written by everybody"), std::string::npos) << refused.error().what;
    EXPECT_NE(refused.error().hint.find("name another"), std::string::npos);
    EXPECT_EQ(refused.error().exit, Exit::environment);
  }
}

TEST_F(PrivateFolder, takes_one_below_a_folder_in_which_nobody_may_rename_what_is_not_theirs) {
  fs::create_directories(place_ / "a" / "b");
  chmod((place_ / "a").c_str(), 01777);
  EXPECT_TRUE(private_folder(place_ / "a" / "b", "name another"));
}

TEST_F(PrivateFolder, looks_behind_links) {
  fs::create_directories(place_ / "open" / "b");
  chmod((place_ / "open").c_str(), 0777);
  fs::create_directory_symlink(place_ / "open" / "b", place_ / "link");
  EXPECT_FALSE(private_folder(place_ / "link", "name another"));
}

TEST_F(PrivateFolder, refuses_a_tree_with_a_file_that_others_may_write) {
  fs::create_directories(place_ / "a" / "b");
  std::ofstream(place_ / "a" / "b" / "network.so") << "code";
  EXPECT_TRUE(private_tree(place_ / "a", "name another"));
  chmod((place_ / "a" / "b" / "network.so").c_str(), 0666);
  const auto refused = private_tree(place_ / "a", "name another");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("network.so"), std::string::npos);
}

TEST_F(PrivateFolder, refuses_what_belongs_to_somebody_else) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  fs::create_directories(place_ / "a" / "b");
  ASSERT_EQ(chown((place_ / "a").c_str(), 65534, 65534), 0);
  const auto refused = private_folder(place_ / "a" / "b", "name another");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("belongs to"), std::string::npos);
}

TEST_F(PrivateFolder, has_an_answer_where_there_is_no_home) {
  const auto refused = private_folder({}, "set STRATA_CACHE");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("STRATA_CACHE"), std::string::npos);
}

}  // namespace
}  // namespace strata
