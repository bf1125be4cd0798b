// SPDX-License-Identifier: Apache-2.0
// No process outlives its worker, nor a worker its driver.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "processes.hpp"
#include "worker_fixture.hpp"

namespace strata::worker {
namespace {

using namespace std::chrono_literals;

class LeftBehind : public WorkerTest {};

// The process that left the worker when it was asked `hello`.
pid_t escaped_from(Worker& worker) {
  EXPECT_TRUE(worker.call("hello", hello, 10s));
  const auto log = worker.log_tail();
  const auto at = log.find("escaped ");
  return at == std::string::npos ? -1 : std::atoi(log.c_str() + at + 8);
}

TEST_F(LeftBehind, ends_grandchildren_that_left_its_group_and_its_session) {
  const auto worker = started(in_hello({{"escape", true}}));
  const pid_t escaped = escaped_from(*worker);
  ASSERT_TRUE(process_lives(escaped));
  worker->end();
  EXPECT_TRUE(gone_within(escaped, 2s));
}

TEST_F(LeftBehind, ends_grandchildren_that_nothing_leads_to_when_no_worker_runs_any_more) {
  auto worker = started(in_hello({{"escape", "bare"}}));
  auto other = started(Json::object());
  ASSERT_TRUE(other->call("hello", hello, 10s));
  const pid_t escaped = escaped_from(*worker);
  ASSERT_TRUE(process_lives(escaped));
  worker->end();
  EXPECT_TRUE(other->call("memory", {}, 10s)) << "another worker and what it started live on";
  other->end();
  EXPECT_FALSE(process_lives(escaped));
  EXPECT_NE(::kill(escaped, 0), 0) << "it is reaped, too";
}

TEST_F(LeftBehind, leaves_children_alone_that_are_no_workers) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  const auto worker = started(Json::object());
  ASSERT_TRUE(worker->call("hello", hello, 10s));
  worker->end();
  EXPECT_TRUE(process_lives(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(LeftBehind, kills_one_that_ignores_bye_and_its_helpers_with_it) {
  const auto worker = started(Json{{"helper", true}, {"ops", {{"bye", {{"hang", true}}}}}});
  const auto greeting = worker->call("hello", hello, 10s);
  ASSERT_TRUE(greeting);
  const pid_t helper = (*greeting)["helper_pid"].get<pid_t>();
  ASSERT_TRUE(process_lives(helper));
  worker->end();
  EXPECT_TRUE(gone_within(helper, 2s));
}

TEST_F(LeftBehind, kills_helpers_of_a_worker_that_crashed) {
  const auto worker = started(Json{{"helper", true}, {"ops", {{"memory", {{"signal", SIGSEGV}}}}}});
  const auto greeting = worker->call("hello", hello, 10s);
  ASSERT_TRUE(greeting);
  const auto answer = worker->call("memory", {}, 10s);
  ASSERT_FALSE(answer);  // noticed although the helper still holds the worker's output open
  EXPECT_EQ(answer.error().state, State::crashed);
  EXPECT_TRUE(gone_within((*greeting)["helper_pid"].get<pid_t>(), 2s));
}

// Not a test of its own: the driver that `leaves_no_worker_behind_when_the_driver_is_killed` runs and kills.
TEST_F(LeftBehind, child_driver) {
  const char* out = std::getenv("STRATA_TEST_CHILD_DRIVER");
  if (out == nullptr) {
    GTEST_SKIP() << "only as the child of another test";
  }
  std::vector<std::unique_ptr<Worker>> workers;
  std::string pids;
  for (int i = 0; i < 3; ++i) {
    workers.push_back(started(Json{{"helper", true}}));
    const auto greeting = workers.back()->call("hello", hello, 20s);
    ASSERT_TRUE(greeting);
    pids += std::to_string(workers.back()->pid()) + " " + std::to_string((*greeting)["helper_pid"].get<pid_t>()) + " ";
  }
  workers[0]->pause();
  workers[1]->pause();
  std::ofstream(std::string(out) + ".part") << pids;
  fs::rename(std::string(out) + ".part", out);
  ::pause();
}

TEST_F(LeftBehind, leaves_no_worker_behind_when_the_driver_is_killed) {
  const std::string out = (folder_ / "pids").string();
  ::setenv("STRATA_TEST_CHILD_DRIVER", out.c_str(), 1);
  const pid_t driver = ::fork();
  if (driver == 0) {
    for (const char* shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
      ::unsetenv(shard);  // the child runs this one test whatever its number
    ::execl("/proc/self/exe", "strata_unit", "--gtest_filter=LeftBehind.child_driver", nullptr);
    ::_exit(127);
  }
  ::unsetenv("STRATA_TEST_CHILD_DRIVER");
  for (int i = 0; i < 2000 && !fs::exists(out); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  ASSERT_TRUE(fs::exists(out));
  std::vector<pid_t> pids;
  std::ifstream file(out);
  for (pid_t pid = 0; file >> pid;) {
    pids.push_back(pid);
    EXPECT_TRUE(process_lives(pid));
  }
  ASSERT_EQ(pids.size(), 6U);  // three workers (two of them stopped), and a helper of each
  ::kill(driver, SIGKILL);
  int status = 0;
  ::waitpid(driver, &status, 0);
  for (const pid_t pid : pids) {
    EXPECT_TRUE(gone_within(pid, 5s)) << pid;
  }
}

TEST_F(LeftBehind, ends_its_workers_when_it_is_destroyed) {
  pid_t pid = 0;
  {
    const auto worker = started();
    pid = worker->pid();
  }
  EXPECT_FALSE(process_lives(pid));
}

}  // namespace
}  // namespace strata::worker
