// SPDX-License-Identifier: Apache-2.0
#include "common/confine.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

namespace strata {
namespace {
namespace fs = std::filesystem;

class Confine : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto have = landlock(); have.version == 0) GTEST_SKIP() << have.why_not;
    std::string pattern = (fs::temp_directory_path() / "strata_confine_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "own");
    std::ofstream(root_ / "there") << "as it was";
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }
  // What `act` gives in a confined child that may write below root_/own.
  int confined(const std::function<int()>& act) const {
    return confined(act,
                    {.writable = std::vector{(root_ / "own").string(), (root_ / "nowhere").string()}, .hidden = {}});
  }
  static int confined(const std::function<int()>& act, const Confinement& how) {
    const auto rules = make_confinement(how);
    EXPECT_TRUE(rules && *rules >= 0);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(enter_confinement(*rules) ? act() : 99);
    ::close(*rules);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
  }
  static int open_errno(const fs::path& path, int flags) { return ::open(path.c_str(), flags, 0600) >= 0 ? 0 : errno; }
  fs::path root_;
};

// A folder that is hidden from a process which may do all else.
class Hidden : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(root_ / "hidden/deeper");
    for (const char* name : {"hidden/answers", "hidden/deeper/answers", "own/neighbour"})
      std::ofstream(root_ / name) << "text";
    fs::create_directory_symlink("../hidden", root_ / "own/link");
    if (const auto why = why_not_hidden(root_ / "hidden"); !why.empty()) GTEST_SKIP() << why;
  }
  int blinded(const std::function<int()>& act) const {
    return confined(act, {.writable = {}, .hidden = root_ / "hidden"});
  }
};

TEST_F(Confine, a_confined_process_writes_below_its_own_folders_only) {
  EXPECT_EQ(confined([&] { return open_errno(root_ / "own/new", O_WRONLY | O_CREAT); }), 0);
  EXPECT_EQ(confined([&] { return open_errno(root_ / "new", O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(confined([&] { return open_errno(root_ / "there", O_WRONLY | O_APPEND); }), EACCES);
  EXPECT_EQ(confined([&] { return ::unlink((root_ / "there").c_str()) == 0 ? 0 : errno; }), EACCES);
  EXPECT_EQ(confined([&] { return ::symlink("/etc", (root_ / "own/link").c_str()) == 0 ? 0 : errno; }), 0);
  EXPECT_EQ(confined([&] { return ::rename((root_ / "own/new").c_str(), (root_ / "out").c_str()) == 0 ? 0 : errno; }),
            EACCES);
}

TEST_F(Confine, a_confined_process_reads_and_writes_to_devices) {
  EXPECT_EQ(confined([&] { return open_errno(root_ / "there", O_RDONLY); }), 0);
  EXPECT_EQ(confined([&] { return open_errno("/dev/null", O_WRONLY); }), 0);
  EXPECT_EQ(confined([&] {
              const auto path = fs::path("/dev/shm") / ("strata_confine_" + std::to_string(::getpid()));
              const int error = open_errno(path, O_RDWR | O_CREAT | O_EXCL);
              ::unlink(path.c_str());
              return error;
            }),
            0);
}

TEST_F(Confine, what_a_confined_process_starts_is_confined_too) {
  EXPECT_EQ(confined([&] {
              ::execl("/bin/sh", "sh", "-c", ("echo x >" + (root_ / "there").string()).c_str(), nullptr);
              return 98;
            }),
            2);
  std::string text;
  std::getline(std::ifstream(root_ / "there"), text);
  EXPECT_EQ(text, "as it was");
}

TEST_F(Confine, a_confined_process_reaches_no_network) {
  if (landlock().version < 4) GTEST_SKIP() << "this kernel's Landlock knows no network";
  EXPECT_EQ(confined([] {
              const int line = ::socket(AF_INET, SOCK_STREAM, 0);
              sockaddr_in place = {};
              place.sin_family = AF_INET;
              place.sin_port = htons(9);
              place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
              return ::connect(line, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0 ? 0 : errno;
            }),
            EACCES);
}

TEST_F(Confine, a_confined_process_cannot_kill_who_started_it) {
  if (landlock().version < 6) GTEST_SKIP() << "this kernel's Landlock knows no signals";
  const pid_t driver = ::getpid();
  EXPECT_EQ(confined([&] { return ::kill(driver, 0) == 0 ? 0 : errno; }), EPERM);
}

TEST_F(Hidden, files_of_a_hidden_folder_cannot_be_read_by_whatever_name) {
  for (const char* name : {"hidden/answers", "hidden/deeper/answers", "own/link/answers", "own/../hidden/answers"})
    EXPECT_EQ(blinded([&] { return open_errno(root_ / name, O_RDONLY); }), EACCES) << name;
  EXPECT_EQ(blinded([&] { return open_errno("/proc/self/root" + (root_ / "hidden/answers").string(), O_RDONLY); }),
            EACCES);
}

TEST_F(Hidden, what_lies_beside_it_is_read_and_written_as_ever) {
  EXPECT_EQ(blinded([&] { return open_errno(root_ / "own/neighbour", O_RDONLY); }), 0);
  EXPECT_EQ(blinded([&] { return open_errno(root_ / "there", O_RDWR); }), 0);
  EXPECT_EQ(blinded([&] { return open_errno(root_ / "own/new", O_RDWR | O_CREAT | O_EXCL); }), 0);
  EXPECT_EQ(blinded([&] { return open_errno("/proc/self/status", O_RDONLY); }), 0);
  EXPECT_EQ(blinded([&] {
              fs::create_directory(root_ / "own/folder");
              return ::rename((root_ / "own/new").c_str(), (root_ / "own/folder/moved").c_str()) == 0 ? 0 : errno;
            }),
            0);
}

TEST_F(Hidden, hidden_files_cannot_be_moved_or_linked_to_where_they_could_be_read) {
  EXPECT_NE(blinded([&] {
              return ::link((root_ / "hidden/answers").c_str(), (root_ / "own/answers").c_str()) == 0 ? 0 : errno;
            }),
            0);
  EXPECT_NE(blinded([&] {
              return ::rename((root_ / "hidden/answers").c_str(), (root_ / "own/answers").c_str()) == 0 ? 0 : errno;
            }),
            0);
  EXPECT_FALSE(fs::exists(root_ / "own/answers"));
}

TEST_F(Hidden, a_process_that_is_kept_from_a_folder_reads_no_memory_of_who_started_it) {
  const pid_t driver = ::getpid();
  EXPECT_EQ(blinded([&] { return open_errno("/proc/" + std::to_string(driver) + "/mem", O_RDONLY); }), EACCES);
}

TEST_F(Hidden, a_folder_that_is_not_there_cannot_be_hidden) {
  EXPECT_NE(why_not_hidden(root_ / "nowhere"), "");
}

}  // namespace
}  // namespace strata
