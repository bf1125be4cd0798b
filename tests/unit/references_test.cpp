// SPDX-License-Identifier: Apache-2.0
// References of captured networks apart from their bundles, and hidden from workers.
#include "plan/references.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace strata::plan {
namespace {
namespace fs = std::filesystem;

class References : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "strata_references_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    cache_ = pattern;
    ::unsetenv("STRATA_SHOW_REFERENCES");
  }
  void TearDown() override {
    if (!cache_.empty()) fs::remove_all(cache_);
    ::unsetenv("STRATA_SHOW_REFERENCES");
  }
  fs::path bundle(const std::string& name) const { return cache_ / "bundles" / name; }
  // As a capture makes it, an open batch included.
  void capture(const std::string& name, const std::string& answer) const {
    for (const char* folder : {"reference", "dynamic/sizes/2/reference"}) {
      fs::create_directories(bundle(name) / folder);
      std::ofstream(bundle(name) / folder / "timed.safetensors") << answer;
    }
    fs::create_directory_symlink("../reference", bundle(name) / "dynamic/reference");
  }
  static std::string content(const fs::path& file) {
    std::string text;
    std::getline(std::ifstream(file), text);
    return text;
  }
  fs::path cache_;
};

TEST_F(References, are_found_by_their_old_names_and_lie_apart) {
  capture("net", "right");
  for (int again = 0; again < 2; ++again) {
    const auto apart = set_references_apart(bundle("net"));
    ASSERT_TRUE(apart) << apart.error().what;
    for (const char* folder : {"reference", "dynamic/reference", "dynamic/sizes/2/reference"})
      EXPECT_EQ(content(bundle("net") / folder / "timed.safetensors"), "right") << folder;
    EXPECT_TRUE(fs::is_symlink(bundle("net") / "reference"));
    EXPECT_TRUE(fs::is_regular_file(cache_ / "references/net/reference/timed.safetensors"));
    EXPECT_TRUE(fs::is_regular_file(cache_ / "references/net/dynamic/sizes/2/reference/timed.safetensors"));
  }
}

TEST_F(References, of_a_network_that_is_captured_again_are_the_new_ones) {
  capture("net", "old");
  ASSERT_TRUE(set_references_apart(bundle("net")));
  fs::remove_all(bundle("net"));
  capture("net", "new");
  ASSERT_TRUE(set_references_apart(bundle("net")));
  EXPECT_EQ(content(bundle("net") / "reference/timed.safetensors"), "new");
}

TEST_F(References, of_a_bundle_that_is_gone_go_and_others_stay) {
  for (const char* name : {"gone", "net"}) {
    capture(name, "right");
    ASSERT_TRUE(set_references_apart(bundle(name)));
  }
  fs::remove_all(bundle("gone"));
  remove_lost_references(cache_ / "bundles");
  EXPECT_FALSE(fs::exists(cache_ / "references/gone"));
  EXPECT_TRUE(fs::exists(bundle("net") / "reference/timed.safetensors"));
}

TEST_F(References, a_worker_gets_them_hidden_or_it_is_said_why_not) {
  worker::Launch launch;
  const auto why = hide_references(
      launch, {.root = {}, .python = {}, .tools_python = {}, .level_build = {}, .overlay = {}, .cache = cache_});
  EXPECT_EQ(why.empty(), launch.hidden == (cache_ / "references").string()) << why;
  EXPECT_TRUE(fs::is_directory(cache_ / "artefacts")) << "what a worker may come to need is there before it starts";
}

TEST_F(References, are_shown_if_somebody_asks_for_it) {
  ::setenv("STRATA_SHOW_REFERENCES", "1", 1);
  worker::Launch launch;
  EXPECT_EQ(
      hide_references(
          launch, {.root = {}, .python = {}, .tools_python = {}, .level_build = {}, .overlay = {}, .cache = cache_}),
      "STRATA_SHOW_REFERENCES is set");
  EXPECT_EQ(launch.hidden, "");
}

}  // namespace
}  // namespace strata::plan
