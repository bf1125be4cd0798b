// SPDX-License-Identifier: Apache-2.0
// A worker that hides the references, and what its libraries make beside these on their first start.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/confine.hpp"
#include "common/scratch_folder.hpp"
#include "session/session.hpp"

namespace strata::session {
namespace {
namespace fs = std::filesystem;

// Counts its starts, does what the test says in the folder $0, and greets.
constexpr const char* kWorker = R"(
printf x >> "$0/starts"
cd "$0/home" && eval "$1" || exit 9
read -r request
echo '{"id": 1, "ok": true, "api": 2, "level": "x", "language": "sh", "versions": {"x": "1"},
  "build": {"type": "release", "flags": ""}, "devices": ["cpu"], "modes": ["infer"], "precisions": ["fp32"],
  "ops": [], "library_ns": 1}' | tr -d '\n'
echo
)";

class SessionStart : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(references());
    std::ofstream(references() / "answers") << "42\n";
    std::ofstream(folder_.path() / "starts");
    if (const auto why = why_not_hidden(references()); !why.empty()) GTEST_SKIP() << why;
  }
  fs::path references() const { return folder_.path() / "home/.cache/references"; }
  Try<std::unique_ptr<Session>> open(const std::string& commands, const fs::path& hidden) {
    job_.launch.argv = {"/bin/sh", "-c", kWorker, folder_.path().string(), commands};
    job_.launch.env = {{"LC_ALL", "C"}};
    job_.launch.hidden = hidden.string();
    job_.launch.log_path = (folder_.path() / "log").string();
    job_.timeout = std::chrono::seconds(20);
    return Session::open(job_, {});
  }
  std::size_t starts() const {
    std::ifstream file(folder_.path() / "starts");
    return std::string(std::istreambuf_iterator<char>(file), {}).size();
  }
  const ScratchFolder folder_{"session_start"};
  Job job_;
};

TEST_F(SessionStart, a_library_reads_what_it_made_on_its_first_start) {
  const auto session = open("mkdir -p own && : >> own/id && cat own/id", references());
  ASSERT_TRUE(session) << session.error().what << session.error().log_tail;
  EXPECT_EQ(starts(), 2U);
}

TEST_F(SessionStart, a_level_that_reads_the_references_fails_the_second_time_too) {
  const auto session = open("cat .cache/references/answers", references());
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().log_tail.find("Permission denied"), std::string::npos) << session.error().log_tail;
  EXPECT_EQ(starts(), 2U);
}

TEST_F(SessionStart, a_level_that_fails_for_another_reason_is_started_once) {
  EXPECT_FALSE(open("echo broken >&2; false", references()));
  EXPECT_EQ(starts(), 1U);
}

TEST_F(SessionStart, a_level_that_may_read_everything_is_started_once) {
  EXPECT_FALSE(open("echo Permission denied >&2; false", {}));
  EXPECT_EQ(starts(), 1U);
}

TEST_F(SessionStart, a_prepare_command_reads_what_its_library_made_the_first_time) {
  const plan::Bundle bundle;
  job_.bundle = &bundle;
  job_.cache = folder_.path() / "cache";
  fs::create_directories(job_.cache);
  job_.launch.hidden = references().string();
  job_.launch.log_path = (folder_.path() / "log").string();
  job_.launch.env = {{"LC_ALL", "C"}};
  const std::string commands =
      "cd \"$0\" && printf x >> starts && mkdir -p home/own && : >> home/own/id && "
      "cat home/own/id && echo '{\"ok\": true}'";
  const auto ms = prepare(job_, {"/bin/sh", "-c", commands, folder_.path().string()});
  ASSERT_TRUE(ms) << ms.error().what << ms.error().log_tail;
  EXPECT_EQ(starts(), 2U);
}

}  // namespace
}  // namespace strata::session
