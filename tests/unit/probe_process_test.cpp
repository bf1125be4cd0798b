// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "probe/huge_pages.hpp"
#include "probe/memory.hpp"
#include "probe/usage.hpp"

namespace strata::probe {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t mebibyte = 1 << 20;

// A child that runs `body`, says that it is done with one byte, and then waits to be ended.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      body();
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    setpgid(pid_, pid_);
    char byte = 0;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

char* touched(std::size_t bytes) {
  auto* memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(memory, 1, bytes);
  return memory;
}

// A file's pages, each read.
char* mapped_file(std::size_t bytes) {
  char name[] = "/tmp/strata_probe_XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  (void)!ftruncate(file, static_cast<off_t>(bytes));
  auto* memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0));
  close(file);
  for (std::size_t i = 0; i < bytes; i += 4096) (void)static_cast<volatile char*>(memory)[i];
  return memory;
}

TEST(ProcessMemory, counts_anonymous_pages_as_private) {
  Child small([] {});
  Child large([] { touched(64 * mebibyte); });
  const auto without = process_memory(small.pid()), with = process_memory(large.pid());
  ASSERT_TRUE(without && with);
  EXPECT_GE(with->private_bytes, without->private_bytes + 63 * mebibyte);
  EXPECT_LE(with->private_bytes, without->private_bytes + 70 * mebibyte);
  EXPECT_GE(with->pss_bytes, with->private_bytes);
  EXPECT_GE(with->rss_bytes, with->private_bytes);
}

TEST(ProcessMemory, counts_huge_pages_where_the_kernel_gives_them) {
  const auto mode = huge_pages().mode;
  const bool available = mode == "always" || mode == "madvise";
  Child asks([] {
    auto* memory = mmap(nullptr, 64 * mebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, 64 * mebibyte, MADV_HUGEPAGE);
    std::memset(memory, 1, 64 * mebibyte);
  });
  const auto memory = process_memory(asks.pid());
  ASSERT_TRUE(memory);
  EXPECT_LE(memory->huge_page_bytes, memory->private_bytes);
  if (available) {
    EXPECT_GE(memory->huge_page_bytes, 2 * mebibyte);
  } else {
    EXPECT_EQ(memory->huge_page_bytes, 0U);
  }
}

TEST(HugePages, the_mode_is_the_one_in_brackets) {
  EXPECT_EQ(chosen_mode("always [madvise] never"), "madvise");
  EXPECT_EQ(chosen_mode("[always] madvise never\n"), "always");
  EXPECT_EQ(chosen_mode(""), "");
  EXPECT_EQ(chosen_mode("]["), "");
}

TEST(HugePages, are_refused_with_a_reason_where_the_kernel_or_glibc_has_none) {
  const auto why = [](const char* mode, const char* glibc) {
    const auto refusal = why_no_huge_pages({mode, glibc});
    return refusal ? refusal->what : std::string();
  };
  EXPECT_EQ(why("madvise", "2.35"), "");
  EXPECT_EQ(why("always", "2.36"), "");
  EXPECT_EQ(why("madvise", "3.0"), "");
  EXPECT_EQ(why("never", "2.36"), "this kernel gives no huge pages (transparent_hugepage is never)");
  EXPECT_EQ(why("", "2.36"), "this kernel has no transparent huge pages");
  EXPECT_EQ(why("madvise", "2.34"), "glibc 2.34 cannot ask for huge pages; 2.35 and newer can");
  EXPECT_EQ(why("madvise", ""), "this C library is not glibc, whose malloc can ask for huge pages");
  EXPECT_EQ(why_no_huge_pages({"never", "2.36"})->exit, Exit::environment);
}

TEST(ProcessMemory, leaves_pages_of_files_out_of_private) {
  const Child child([] { mapped_file(32 * mebibyte); });
  const Child plain([] {});  // what a child has anyway: a sanitizer's own memory is private too
  const auto memory = process_memory(child.pid()), without = process_memory(plain.pid());
  ASSERT_TRUE(memory && without);
  EXPECT_LT(memory->private_bytes, without->private_bytes + 16 * mebibyte);
  EXPECT_GE(memory->shared_file_bytes, 32 * mebibyte);
  EXPECT_GE(memory->pss_bytes, 32 * mebibyte);
}

TEST(ProcessMemory, adds_up_descendants) {
  const Child child([] {
    if (fork() == 0) {
      touched(48 * mebibyte);
      for (;;) pause();
    }
    usleep(1000);
  });
  Result<ProcessMemory> memory = process_memory(child.pid());
  for (int i = 0; i < 200 && memory && memory->private_bytes < 48 * mebibyte; ++i) {  // the grandchild needs a moment
    usleep(10'000);
    memory = process_memory(child.pid());
  }
  ASSERT_TRUE(memory);
  EXPECT_GE(memory->private_bytes, 48 * mebibyte);
  EXPECT_EQ(process_tree(child.pid()).size(), 2u);
}

TEST(ProcessMemory, says_which_process_cannot_be_read) {
  Child child([] {});
  const pid_t pid = child.pid();
  child.end();
  const auto memory = process_memory(pid);
  ASSERT_FALSE(memory);
  EXPECT_NE(memory.error().what.find(std::to_string(pid)), std::string::npos);
  EXPECT_FALSE(memory.error().hint.empty());
}

// What a child had after `first`, and its peak by a sampler that started then, whose samples are an hour apart, while
// the child did `meanwhile` and, a second later, `then`: time for many looks between samples, on a busy machine too.
std::pair<ProcessMemory, ProcessMemory> peak_between_samples(const std::function<void()>& first,
                                                             const std::function<void()>& meanwhile,
                                                             const std::function<void()>& then) {
  int to_child[2], to_us[2];
  if (pipe(to_child) != 0 || pipe(to_us) != 0) throw std::runtime_error("no pipe");
  char byte = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    for (const auto& part : {first, meanwhile, then}) {
      (void)!read(to_child[0], &byte, 1);
      part();
      (void)!write(to_us[1], "x", 1);
    }
    for (;;) pause();
  }
  const auto next_part = [&] {
    (void)!write(to_child[1], "x", 1);
    (void)!read(to_us[0], &byte, 1);
  };
  next_part();
  const auto before = process_memory(pid);
  PeakSampler sampler(pid, 1h);
  next_part();
  std::this_thread::sleep_for(1s);
  next_part();
  const auto peak = sampler.stop();
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (const int fd : {to_child[0], to_child[1], to_us[0], to_us[1]}) close(fd);
  EXPECT_EQ(sampler.samples(), 2);
  if (!before || !peak) throw std::runtime_error("the child's memory cannot be read");
  return {*before, *peak};
}

TEST(PeakSampler, sees_a_peak_between_two_samples) {
  char* memory = nullptr;
  const auto [before, peak] =
      peak_between_samples([] {}, [&] { memory = touched(64 * mebibyte); }, [&] { munmap(memory, 64 * mebibyte); });
  EXPECT_GE(peak.peak_rss_bytes, before.rss_bytes + 60 * mebibyte);
  EXPECT_GE(peak.private_bytes, before.private_bytes + 60 * mebibyte);
  EXPECT_LT(peak.private_bytes, before.private_bytes + 70 * mebibyte);
}

TEST(PeakSampler, takes_a_file_that_was_mapped_between_two_samples_for_no_memory_of_the_process) {
  char* memory = nullptr;
  const auto [before, peak] =
      peak_between_samples([] {}, [&] { memory = mapped_file(64 * mebibyte); }, [&] { munmap(memory, 64 * mebibyte); });
  EXPECT_GE(peak.peak_rss_bytes, before.rss_bytes + 60 * mebibyte);
  EXPECT_LT(peak.private_bytes, before.private_bytes + 10 * mebibyte);
}

TEST(PeakSampler, does_not_add_what_a_process_grows_by_to_memory_of_a_child_that_ended) {
  pid_t grandchild = 0;
  const auto [before, peak] = peak_between_samples(
      [&] {
        int ready[2];
        (void)!pipe(ready);
        grandchild = fork();
        if (grandchild == 0) {
          touched(64 * mebibyte);
          (void)!write(ready[1], "x", 1);
          for (;;) pause();
        }
        char byte = 0;
        (void)!read(ready[0], &byte, 1);
      },
      [&] {
        kill(grandchild, SIGKILL);
        waitpid(grandchild, nullptr, 0);
        touched(64 * mebibyte);
      },
      [] {});
  EXPECT_GE(peak.own_private_bytes, before.own_private_bytes + 60 * mebibyte);
  EXPECT_LT(peak.private_bytes, before.private_bytes + 40 * mebibyte);
}

TEST(PeakSampler, takes_a_small_share_of_a_core_however_large_the_process_is) {
  Child child([] { touched(512 * mebibyte); });
  const auto used_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  };
  PeakSampler sampler(child.pid(), 1ms);
  const auto before = used_ns();
  std::this_thread::sleep_for(1s);
  const auto used = used_ns() - before;
  ASSERT_TRUE(sampler.stop());
  EXPECT_GE(sampler.samples(), 2);
  EXPECT_LT(used, 100'000'000);
}

TEST(PeakSampler, keeps_what_it_saw_of_a_process_that_ended) {
  Child child([] { touched(8 * mebibyte); });
  PeakSampler sampler(child.pid(), 1ms);
  child.end();
  const auto peak = sampler.stop();
  ASSERT_TRUE(peak);
  EXPECT_GE(peak->private_bytes, 8 * mebibyte);
}

TEST(PeakSampler, fails_when_the_process_was_never_there) {
  Child child([] {});
  const pid_t pid = child.pid();
  child.end();
  PeakSampler sampler(pid, 1ms);
  EXPECT_FALSE(sampler.stop());
}

// Burns `seconds` of processor time.
void burn(double seconds) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  for (const double end = used() + seconds; used() < end;) {
  }
}

TEST(Usage, has_the_processor_time_of_a_process_and_of_its_children_and_the_pages_it_was_given) {
  Child child([] {
    burn(0.05);
    if (fork() == 0) {
      burn(0.05);
      std::vector<char> pages(64 * mebibyte, 1);
      for (;;) pause();
    }
    std::this_thread::sleep_for(50ms);
  });
  std::optional<Usage> usage;
  for (int i = 0; i < 500 && !(usage && usage->cpu_s >= 0.1 && usage->minor_faults > 10); ++i) {
    usage = process_usage(child.pid());
    std::this_thread::sleep_for(10ms);
  }
  ASSERT_TRUE(usage);
  EXPECT_GE(usage->cpu_s, 0.1);
  EXPECT_GT(usage->minor_faults, 10);
  const pid_t gone = child.pid();
  child.end();
  EXPECT_FALSE(process_usage(gone));
}

TEST(Usage, more_than_all_processors_can_give_says_that_a_clock_was_set) {
  const auto processors = static_cast<double>(sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_TRUE(can_have_worked(processors * 10, 10));
  EXPECT_FALSE(can_have_worked(365 * 86400.0, 0.4)) << "a year within a turn";
  EXPECT_FALSE(can_have_worked(-365 * 86400.0, 0.4));
}

TEST(Usage, never_goes_below_nothing_when_a_thread_takes_its_counts_with_it) {
  const Usage before{5, 4, 3, 2, 1}, after{6, 1, 4, 5, 0};
  const auto between = after - before;
  EXPECT_EQ(between.cpu_s, 1);
  EXPECT_EQ(between.run_queue_wait_s, 0);
  EXPECT_EQ(between.switched_out, 0);
}

}  // namespace
}  // namespace strata::probe
