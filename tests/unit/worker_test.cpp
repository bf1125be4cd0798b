// SPDX-License-Identifier: Apache-2.0
// The driver's side of the protocol against a worker that misbehaves on command (tests/fakes/fake_worker.py).
#include "worker/worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/file_lock.hpp"
#include "common/interrupt.hpp"
#include "processes.hpp"
#include "worker/answers.hpp"
#include "worker/log_file.hpp"
#include "worker_fixture.hpp"

namespace strata::worker {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(WorkerTest, answers_requests_in_order) {
  const auto worker = started();
  const auto greeting = worker->call("hello", hello, 10s);
  ASSERT_TRUE(greeting) << greeting.error().what;
  EXPECT_EQ((*greeting)["level"], "fake");
  const auto read = read_hello(*greeting, false);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->build_type, "release");
  const auto memory = worker->call("memory", {}, 10s);
  ASSERT_TRUE(memory) << memory.error().what;
  const pid_t pid = worker->pid();
  worker->end();
  EXPECT_FALSE(process_lives(pid));
  EXPECT_FALSE(worker->alive());
}

TEST_F(WorkerTest, says_which_program_cannot_be_executed) {
  const auto missing = Worker::start(Launch{{"/no/such/level_libtorch"}, {}, "", {}, {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().state, State::unavailable);
  EXPECT_THAT(missing.error().what, HasSubstr("/no/such/level_libtorch"));
  const auto unknown = Worker::start(Launch{{"strata_no_such_program"}, {}, "", {}, {}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().what, HasSubstr("PATH"));
  std::ofstream(folder_ / "script") << "#!/no/such/interpreter\n";
  fs::permissions(folder_ / "script", fs::perms::owner_all);
  const auto script = Worker::start(Launch{{(folder_ / "script").string()}, {}, "", {}, {}});
  ASSERT_FALSE(script);
  EXPECT_THAT(script.error().what, HasSubstr("interpreter"));
  std::ofstream(folder_ / "plain") << "text";
  const auto plain = Worker::start(Launch{{(folder_ / "plain").string()}, {}, "", {}, {}});
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().hint, HasSubstr("chmod"));
}

TEST_F(WorkerTest, refuses_an_empty_command_and_an_unwritable_log) {
  EXPECT_FALSE(Worker::start(Launch{}));
  Launch launch = fake();
  launch.log_path = "/no/such/folder/log";
  const auto worker = Worker::start(launch);
  ASSERT_FALSE(worker);
  EXPECT_THAT(worker.error().what, HasSubstr("/no/such/folder/log"));
}

// One way to misbehave in `hello`, and what must be said of it.
struct Fault {
  const char* name;
  Json script;
  State state;
  const char* says;
  bool ends_it;
};
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

class MisbehavingWorker : public WorkerTest, public testing::WithParamInterface<Fault> {};

TEST_P(MisbehavingWorker, becomes_a_failure_with_its_state_and_reason) {
  const Fault& fault = GetParam();
  const auto worker = started(fault.script);
  const auto answer = worker->call("hello", hello, 20s);
  ASSERT_FALSE(answer) << answer->dump();
  EXPECT_EQ(answer.error().state, fault.state) << answer.error().what;
  EXPECT_THAT(answer.error().what, HasSubstr(fault.says));
  EXPECT_EQ(worker->alive(), !fault.ends_it);
  if (fault.ends_it) {
    EXPECT_FALSE(process_lives(worker->pid()));
    const auto again = worker->call("memory", {}, 1s);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().what, answer.error().what);
  } else {
    EXPECT_TRUE(worker->call("memory", {}, 10s));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, MisbehavingWorker,
    testing::Values(
        Fault{"junk", in_hello({{"junk", "Segmentation fault?"}}), State::failed,
              "not UTF-8 JSON: something else stands at byte 1: \"Segmentation fault?\"", true},
        Fault{"json_but_no_object", in_hello({{"junk", "[1,2]"}}), State::failed, "no JSON object", true},
        Fault{"empty_line", in_hello({{"junk", ""}}), State::failed, "not UTF-8 JSON", true},
        Fault{"wrong_id", in_hello({{"id", 99}}), State::failed, "carries id 99 instead of 1", true},
        Fault{"id_of_another_type", in_hello({{"answer", {{"id", "1"}}}}), State::failed, "instead of 1", true},
        Fault{"ok_of_another_type", in_hello({{"answer", {{"ok", 1}}}}), State::failed, "boolean \"ok\"", true},
        Fault{"segmentation_fault", in_hello({{"signal", SIGSEGV}}), State::crashed, "SIGSEGV", true},
        Fault{"abort", in_hello({{"signal", SIGABRT}}), State::crashed, "SIGABRT", true},
        Fault{"killed", in_hello({{"signal", SIGKILL}}), State::crashed, "SIGKILL", true},
        Fault{"exit_code", in_hello({{"exit", 3}}), State::crashed, "exited with code 3", true},
        Fault{"silent_exit", in_hello({{"exit", 0}}), State::crashed, "exited with code 0 without an answer", true},
        Fault{"out_of_memory_by_the_log", in_hello({{"log", "terminate called: std::bad_alloc"}, {"signal", SIGABRT}}),
              State::out_of_memory, "ran out of memory", true},
        Fault{"closed_output", in_hello({{"close", true}}), State::failed, "closed its output but lives on", true},
        Fault{"too_long_a_line", in_hello({{"huge", (64 << 20) + (1 << 20)}}), State::failed, "more than 64 MiB", true},
        Fault{"unprotected_stream", Json{{"leave_stdout", true}, {"ops", {{"hello", {{"chatty", true}}}}}},
              State::failed, "careless library", true},
        Fault{"says_unsupported", in_hello({{"error", {{"code", "unsupported"}, {"what", "no relu6"}, {"hint", ""}}}}),
              State::unsupported, "no relu6", false},
        Fault{"says_unavailable", in_hello({{"error", {{"code", "unavailable"}, {"what", "no CUDA"}}}}),
              State::unavailable, "no CUDA", false},
        Fault{"says_out_of_memory", in_hello({{"error", {{"code", "out_of_memory"}, {"what", "2 GiB"}}}}),
              State::out_of_memory, "2 GiB", false},
        Fault{"says_failed", in_hello({{"error", {{"code", "failed"}, {"what", "broken"}}}}), State::failed, "broken",
              false},
        Fault{"says_bad_request", in_hello({{"error", {{"code", "bad_request"}, {"what", "no case"}}}}), State::failed,
              "bad request: no case", false},
        Fault{"says_an_unknown_code", in_hello({{"error", {{"code", "sad"}}}}), State::failed, "\"sad\"", false}),
    [](const auto& fault) { return fault.param.name; });

TEST_F(WorkerTest, names_the_kernels_memory_killer_as_a_possible_cause_of_sigkill) {
  const auto worker = started(in_hello({{"signal", SIGKILL}}));
  const auto answer = worker->call("hello", hello, 10s);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().hint, HasSubstr("out-of-memory killer"));
}

TEST_F(WorkerTest, takes_a_chatty_library_for_a_log) {
  const auto worker = started(in_hello({{"chatty", true}}));
  EXPECT_TRUE(worker->call("hello", hello, 10s));
  EXPECT_THAT(worker->log_tail(), HasSubstr("careless library"));
}

TEST_F(WorkerTest, refuses_a_second_answer_to_one_request) {
  const auto worker = started(in_hello({{"twice", true}}));
  ASSERT_TRUE(worker->call("hello", hello, 10s));
  const auto second = worker->call("memory", {}, 10s);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().state, State::failed);
}

TEST_F(WorkerTest, ends_a_worker_that_hangs_when_its_time_is_over) {
  const auto worker = started(in_hello({{"hang", true}}));
  const pid_t pid = worker->pid();
  const auto answer = worker->call("hello", hello, 300ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().state, State::timeout);
  EXPECT_THAT(answer.error().what, HasSubstr("hello: no answer within 0.3 s"));
  EXPECT_FALSE(process_lives(pid));
}

TEST_F(WorkerTest, gives_an_answer_that_drips_no_more_time_than_another) {
  const auto worker = started(in_hello({{"drip", 0.05}}));
  const auto answer = worker->call("hello", hello, 1000ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().state, State::timeout);
}

// What `memory` says that it does, half a second apart, before it answers.
Json in_memory(const std::vector<std::string>& says) {
  return {{"ops", {{"memory", {{"progress", says}, {"progress_s", 0.5}}}}}};
}

TEST_F(WorkerTest, hands_on_what_is_being_done_once_and_gives_it_its_time_again) {
  const auto worker = started(in_memory({"one", "two", "two", "three"}));
  ASSERT_TRUE(worker->call("hello", hello, 20s));
  std::vector<std::string> seen;
  const auto answer =
      worker->call("memory", {}, 1500ms, [&](const std::string& doing) { seen.push_back(doing); });  // it takes 2 s
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_TRUE(worker->call("memory", {}, 20s)) << "nobody need look";
}

TEST_F(WorkerTest, gives_no_more_time_for_the_same_words_and_not_without_end_for_others) {
  const std::vector<std::string> other = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"};
  for (const auto& says : {std::vector<std::string>(8, "waiting"), other}) {
    const auto worker = started(in_memory(says));
    ASSERT_TRUE(worker->call("hello", hello, 20s));
    const auto answer = worker->call("memory", {}, 1000ms);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().state, State::timeout);
  }
}

TEST_F(WorkerTest, waits_for_a_worker_that_somebody_else_stopped_only_so_long) {
  const auto worker = started(in_hello({{"signal", SIGSTOP}}));
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = worker->call("hello", hello, 3s);  // a loaded machine starts it later than it looks
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().state, State::timeout);
  EXPECT_THAT(answer.error().what, HasSubstr("stopped by a signal"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST_F(WorkerTest, ends_one_that_stops_at_bye) {
  const auto worker = started(Json{{"ops", {{"bye", {{"signal", SIGSTOP}}}}}});
  ASSERT_TRUE(worker->call("hello", hello, 10s));
  const auto begin = std::chrono::steady_clock::now();
  worker->end();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(WorkerTest, keeps_the_beginning_and_the_end_of_a_log_without_bound) {
  const auto worker = started(in_hello({{"log", "the first line"}, {"log_bytes", 40 << 20}}));
  ASSERT_TRUE(worker->call("hello", hello, 60s));
  worker->end();
  EXPECT_LE(fs::file_size(folder_ / "log"), longest_log_bytes);
  std::ifstream log(folder_ / "log");
  std::string line;
  std::getline(log, line);
  EXPECT_EQ(line, "the first line");
}

TEST_F(WorkerTest, takes_a_crash_near_the_memory_limit_for_a_lack_of_memory) {
  Launch launch = fake(in_hello({{"fill", 60 << 20}, {"signal", SIGSEGV}}));
  launch.data_limit_bytes = 100ULL << 20;
  const auto near = Worker::start(launch);
  ASSERT_TRUE(near);
  const auto answer = (*near)->call("hello", hello, 20s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().state, State::out_of_memory) << answer.error().what;
  EXPECT_THAT(answer.error().what, HasSubstr("limit of 0.098 GiB"));
  launch = fake(in_hello({{"signal", SIGSEGV}}));
  launch.data_limit_bytes = 4ULL << 30;
  const auto far = Worker::start(launch);
  ASSERT_TRUE(far);
  EXPECT_EQ((*far)->call("hello", hello, 20s).error().state, State::crashed);
}

TEST_F(WorkerTest, a_lock_that_another_process_holds_is_waited_for_until_an_interrupt) {
  const int other = ::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  std::thread later([] {
    std::this_thread::sleep_for(300ms);
    interrupted() = true;
  });
  bool waited = false;
  const auto begin = std::chrono::steady_clock::now();
  const FileLock lock(folder_ / "lock", [&] { waited = true; });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_TRUE(waited);
  later.join();
  ::close(other);
}

TEST_F(WorkerTest, keeps_the_end_of_the_log_fit_to_show) {
  const auto worker = started(in_hello({{"log", "first\nsecond \x1b[31mred\x07 \xc3\xa9"}, {"exit", 1}}));
  const auto answer = worker->call("hello", hello, 10s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().log_tail, "first\nsecond  [31mred  \xc3\xa9");
  EXPECT_EQ(worker->log_tail(1), "second  [31mred  \xc3\xa9");
}

TEST_F(WorkerTest, continues_a_stopped_worker_before_a_request) {
  const auto worker = started();
  ASSERT_TRUE(worker->call("hello", hello, 10s));
  worker->pause();
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(worker->alive());
  EXPECT_TRUE(worker->call("memory", {}, 5s));
}

TEST_F(WorkerTest, is_not_taken_for_hanging_while_somebody_else_stopped_it) {
  const auto worker = started(Json{{"ops", {{"memory", {{"hang", 0.2}}}}}});
  ASSERT_TRUE(worker->call("hello", hello, 10s));
  const pid_t pid = worker->pid();
  ::kill(-pid, SIGSTOP);
  std::thread later([pid] {
    std::this_thread::sleep_for(2500ms);
    ::kill(-pid, SIGCONT);
  });
  const auto answer = worker->call("memory", {}, 1500ms);  // stopped for longer than it is allowed to take
  later.join();
  EXPECT_TRUE(answer) << answer.error().what;
}

TEST_F(WorkerTest, can_be_ended_while_it_is_stopped) {
  const auto worker = started();
  ASSERT_TRUE(worker->call("hello", hello, 10s));
  const pid_t pid = worker->pid();
  worker->pause();
  const auto begin = std::chrono::steady_clock::now();
  worker->end();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_FALSE(process_lives(pid));
}

TEST_F(WorkerTest, returns_at_once_when_interrupted) {
  install_interrupt_handler();
  const auto worker = started(in_hello({{"hang", true}}));
  std::thread later([] {
    std::this_thread::sleep_for(200ms);
    ::kill(::getpid(), SIGINT);
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = worker->call("hello", hello, 60s);
  later.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "interrupted");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_FALSE(process_lives(worker->pid()));
  std::signal(SIGINT, SIG_DFL);
}

TEST_F(WorkerTest, refuses_a_request_after_the_interrupt) {
  const auto worker = started();
  interrupted() = true;
  const auto answer = worker->call("hello", hello, 10s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "interrupted");
}

#ifndef STRATA_SANITIZED  // its shadow memory does not matter to the child, but the limit is inherited by the fork
TEST_F(WorkerTest, limits_the_data_segment_of_a_worker) {
  Launch launch = fake(Json{{"ops", {{"hello", {{"allocate", 4LL << 30}}}}}});
  launch.data_limit_bytes = 512ULL << 20;
  const auto worker = Worker::start(launch);
  ASSERT_TRUE(worker) << worker.error().what;
  const auto answer = (*worker)->call("hello", hello, 20s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().state, State::out_of_memory) << answer.error().what;
}
#endif

TEST_F(WorkerTest, sends_long_requests_through_a_worker_that_reads_late) {
  const auto worker = started(Json{{"start_s", 0.3}});
  Json request = hello;
  request["ignored"] = std::string(4 << 20, 'x');
  EXPECT_TRUE(worker->call("hello", request, 20s));
}

TEST_F(WorkerTest, starts_pinned) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) {
    ++cpu;
  }
  Launch launch = fake();
  launch.cpus = {cpu};
  const auto worker = Worker::start(launch);
  ASSERT_TRUE(worker) << worker.error().what;
  cpu_set_t got;
  ASSERT_EQ(::sched_getaffinity((*worker)->pid(), sizeof got, &got), 0);
  EXPECT_EQ(CPU_COUNT(&got), 1);
}

}  // namespace
}  // namespace strata::worker
