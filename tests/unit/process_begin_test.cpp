// SPDX-License-Identifier: Apache-2.0
#include "common/process_begin.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strata {
namespace {

TEST(ProcessBegin, is_the_same_as_long_as_a_process_lives) {
  const auto own = std::to_string(getpid());
  EXPECT_FALSE(process_begin(own).empty());
  EXPECT_EQ(process_begin(own), process_begin("self"));
  EXPECT_TRUE(is_running(getpid()));
}

TEST(ProcessBegin, one_that_ended_does_not_run_even_before_somebody_waited_for_it) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_running(child));
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_running(child));
  EXPECT_EQ(process_begin("no number"), "");
}

TEST(ProcessBegin, is_read_whatever_the_process_calls_itself) {
  char before[16];
  prctl(PR_GET_NAME, before);
  const auto begin = process_begin("self");
  prctl(PR_SET_NAME, ") Z 1 2 (");
  EXPECT_EQ(process_begin("self"), begin);
  prctl(PR_SET_NAME, before);
}

}  // namespace
}  // namespace strata
