// SPDX-License-Identifier: Apache-2.0
// Commands that are run to their end: what they wrote, how they ended, and that they leave nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "processes.hpp"
#include "worker/worker.hpp"

namespace strata::worker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class RunToEnd : public testing::Test {
 protected:
  void TearDown() override { fs::remove(log_); }
  static Launch shell(const std::string& command) { return Launch{{"/bin/sh", "-c", command}, {}, "", {}, {}}; }

  const std::string log_ = fs::temp_directory_path() / ("strata_run_to_end_" + std::to_string(::getpid()));
};

TEST_F(RunToEnd, makes_broken_utf8_in_a_log_harmless) {
  Launch launch = shell("printf 'bad \\377 byte' >&2; exit 1");
  launch.log_path = log_;
  const auto finished = run_to_end(launch, 10s);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->log_tail, "bad \xef\xbf\xbd byte");
}

TEST_F(RunToEnd, adds_to_the_environment_and_replaces_what_is_there) {
  ::setenv("STRATA_TEST_KEPT", "kept", 1);
  ::setenv("STRATA_TEST_REPLACED", "old", 1);
  Launch launch = shell("echo $STRATA_TEST_KEPT $STRATA_TEST_REPLACED $STRATA_TEST_NEW");
  launch.env = {{"STRATA_TEST_REPLACED", "new"}, {"STRATA_TEST_NEW", "added"}};
  const auto finished = run_to_end(launch, 10s);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->stdout_text, "kept new added\n");
}

TEST_F(RunToEnd, runs_a_command_to_its_end_and_tells_its_lines_as_they_come) {
  Launch launch = shell("echo one; echo log >&2; echo two; exit 7");
  launch.log_path = log_;
  std::vector<std::string> lines;
  const auto finished = run_to_end(launch, 10s, [&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->exit_code, 7);
  EXPECT_EQ(finished->signal, std::nullopt);
  EXPECT_FALSE(finished->timed_out);
  EXPECT_EQ(finished->log_tail, "log");
  EXPECT_THAT(lines, testing::ElementsAre("one", "two"));
  EXPECT_EQ(finished->stdout_text, "one\ntwo\n");
}

TEST_F(RunToEnd, ends_a_command_that_takes_too_long_and_its_children) {
  std::string child;
  const auto finished =
      run_to_end(shell("sleep 1000 & echo $!; wait"), 500ms, [&](std::string_view line) { child = line; });
  ASSERT_TRUE(finished);
  EXPECT_TRUE(finished->timed_out);
  EXPECT_TRUE(gone_within(std::stoi(child), 2s));
}

TEST_F(RunToEnd, does_not_wait_for_a_background_child_that_holds_the_output) {
  const auto begin = std::chrono::steady_clock::now();
  const auto finished = run_to_end(shell("sleep 1000 & echo done"), 30s);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->stdout_text, "done\n");
  EXPECT_EQ(finished->exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(RunToEnd, names_the_signal_that_ended_a_command) {
  const auto finished = run_to_end(shell("kill -SEGV $$"), 10s);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->signal, SIGSEGV);
  EXPECT_EQ(describe(ExitStatus{0, finished->signal}), "killed by SIGSEGV (signal 11)");
}

TEST_F(RunToEnd, does_not_let_a_program_inherit_ignored_signals_or_descriptors) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto finished = run_to_end(shell("kill -PIPE $$; echo alive; ls /proc/self/fd | wc -l"), 10s);
  std::signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->signal, SIGPIPE);
  const auto files = run_to_end(shell("ls /proc/self/fd | wc -l"), 10s);
  ASSERT_TRUE(files);
  EXPECT_LE(std::stoi(files->stdout_text), 5);  // 0, 1, 2 and what ls opens
}

}  // namespace
}  // namespace strata::worker
