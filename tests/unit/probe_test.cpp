// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "probe/checks.hpp"
#include "probe/gpu.hpp"
#include "probe/huge_pages.hpp"
#include "probe/limits.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"
#include "probe/usage.hpp"

namespace strata::probe {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
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
  const bool given = mode == "always" || mode == "madvise";
  Child asks([] {
    auto* memory = mmap(nullptr, 64 * mebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, 64 * mebibyte, MADV_HUGEPAGE);
    std::memset(memory, 1, 64 * mebibyte);
  });
  const auto found = process_memory(asks.pid());
  ASSERT_TRUE(found);
  EXPECT_LE(found->huge_page_bytes, found->private_bytes);
  if (given) {
    EXPECT_GE(found->huge_page_bytes, 2 * mebibyte);
  } else {
    EXPECT_EQ(found->huge_page_bytes, 0U);
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
    const auto found = why_no_huge_pages({mode, glibc});
    return found ? found->what : std::string();
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
  const auto found = process_memory(child.pid()), without = process_memory(plain.pid());
  ASSERT_TRUE(found && without);
  EXPECT_LT(found->private_bytes, without->private_bytes + 16 * mebibyte);
  EXPECT_GE(found->shared_file_bytes, 32 * mebibyte);
  EXPECT_GE(found->pss_bytes, 32 * mebibyte);
}

TEST(ProcessMemory, adds_up_descendants) {
  const Child child([] {
    if (fork() == 0) {
      touched(48 * mebibyte);
      for (;;) pause();
    }
    usleep(1000);
  });
  Result<ProcessMemory> found = process_memory(child.pid());
  for (int i = 0; i < 200 && found && found->private_bytes < 48 * mebibyte; ++i) {  // the grandchild needs a moment
    usleep(10'000);
    found = process_memory(child.pid());
  }
  ASSERT_TRUE(found);
  EXPECT_GE(found->private_bytes, 48 * mebibyte);
  EXPECT_EQ(process_tree(child.pid()).size(), 2u);
}

TEST(ProcessMemory, says_which_process_cannot_be_read) {
  Child child([] {});
  const pid_t pid = child.pid();
  child.end();
  const auto found = process_memory(pid);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find(std::to_string(pid)), std::string::npos);
  EXPECT_FALSE(found.error().hint.empty());
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

TEST(Machine, counts_no_more_cores_than_processors) {
  const auto found = cpu();
  EXPECT_GE(found.physical, 1);
  EXPECT_LE(found.physical, found.logical);
  EXPECT_LE(found.logical, found.online);
  EXPECT_EQ(found.smt, found.logical > found.physical);
  EXPECT_EQ(found.one_per_core.size(), static_cast<std::size_t>(found.physical));
  EXPECT_GE(physical_cores(), 1);
  EXPECT_LE(physical_cores(), found.physical);
}

TEST(Machine, is_described_flat) {
  const auto found = machine();
  ASSERT_TRUE(found.is_object());
  for (const auto& [key, value] : found.items()) EXPECT_TRUE(value.is_primitive()) << key;
  EXPECT_GT(found.at("memory_bytes").get<std::uint64_t>(), 0u);
  EXPECT_GE(found.at("cores").get<int>(), 1);
  EXPECT_TRUE(found.contains("gpu") && found.contains("kernel") && found.contains("cpu"));
}

TEST(Load, does_not_count_this_process_as_others) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
    }
  });
  const auto own_before = std::clock();
  const double others = other_load(400ms);
  const double own = static_cast<double>(std::clock() - own_before) / CLOCKS_PER_SEC / 0.4 / cpu().online;
  stop = true;
  busy.join();
  EXPECT_GE(others, 0.0);
  EXPECT_LE(others, 1.0 - 0.8 * own + 0.05);  // whatever others do, our share is not theirs; ticks are coarse
}

TEST(Load, counts_a_process_of_another_parent_as_others) {
  // a grandchild whose parent has ended belongs to init: not ours any more
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t busy = fork();
    if (busy == 0) {
      alarm(20);
      for (volatile int i = 0;;) i = i + 1;
    }
    (void)!write(report[1], &busy, sizeof busy);
    _exit(0);
  }
  waitpid(middle, nullptr, 0);
  pid_t busy = 0;
  ASSERT_EQ(read(report[0], &busy, sizeof busy), static_cast<ssize_t>(sizeof busy));
  const double load = other_load(400ms);
  kill(busy, SIGKILL);
  close(report[0]);
  close(report[1]);
  EXPECT_GT(load, 0.1 / cpu().online);
}

TEST(Load, steal_is_a_share) {
  const double share = steal_share(20ms);
  EXPECT_GE(share, 0.0);
  EXPECT_LE(share, 1.0);
}

TEST(Limits, finds_more_operations_than_one_core_of_the_last_century) {
  const auto found = measure_limits(1, 40ms);
  EXPECT_EQ(found.threads, 1);
  EXPECT_GT(found.gflops, 0.05);  // also under a sanitizer on a loaded machine
  EXPECT_LT(found.gflops, 1e4);
  EXPECT_GT(found.gbytes_per_s, 0.01);
  EXPECT_LT(found.gbytes_per_s, 1e4);
  EXPECT_FALSE(found.instruction_set.empty());
}

TEST(Limits, takes_no_thread_as_one) {
  EXPECT_EQ(measure_limits(0, 1ms).threads, 1);
}

// A folder that is removed again with all in it.
struct Folder {
  Folder() {
    char name[] = "/tmp/strata_probe_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  std::filesystem::path path;
};

const Check* find(const Checks& checks, const std::string& name) {
  for (const auto& check : checks)
    if (check.name == name) return &check;
  return nullptr;
}

TEST(Packages, are_read_from_a_virtual_environment_without_starting_it) {
  const Folder venv;
  venv.write("pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
  venv.write("lib/python3.11/site-packages/scikit_learn-1.9.1.dist-info/METADATA", "");
  venv.write("lib/python3.11/site-packages/torch-2.15.0+cu132.dist-info/METADATA", "");
  const auto found = installed_packages(site_packages(venv.path / "bin/python"));
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"scikit-learn", "1.9.1"}, {"torch", "2.15.0+cu132"}}));
  EXPECT_TRUE(site_packages("/usr/bin/python3").empty());
}

TEST(Packages, sizes_of_locks_are_read_and_unknown_ones_are_zero) {
  const Folder folder;
  folder.write("sizes", "# lock, MB to download, MB on disk\nbase 183 619\ntorch 2889 5351\n");
  EXPECT_EQ(lock_size(folder.path / "sizes", "torch").download_mb, 2889);
  EXPECT_EQ(lock_size(folder.path / "sizes", "torch").disk_mb, 5351);
  EXPECT_EQ(lock_size(folder.path / "sizes", "toast").disk_mb, 0);
}

TEST(Checks, every_limit_has_a_reason_and_every_missing_thing_a_remedy) {
  const Folder empty;
  Installation nothing;
  nothing.root = empty.path;
  nothing.tools_python = nothing.python = (empty.path / ".venv/bin/python").string();
  nothing.level_build = empty.path / "build";
  Checks all = machine_checks(20ms);
  for (const auto& more : {software_checks(nothing), set_up_checks(nothing)})
    all.insert(all.end(), more.begin(), more.end());
  for (const auto& check : all) {
    if (check.standing != Standing::ok) {
      EXPECT_FALSE(check.reason.empty()) << check.name;
    }
    if (check.standing == Standing::missing) {
      EXPECT_FALSE(check.remedy.empty()) << check.name;
    }
    if (check.standing == Standing::ok) {
      EXPECT_FALSE(check.found.empty()) << check.name;
    }
  }
  ASSERT_TRUE(find(all, "PyTorch") != nullptr);
  EXPECT_EQ(find(all, "PyTorch")->standing, Standing::missing);
}

TEST(Checks, set_up_left_counts_only_what_is_not_there) {
  const Folder root;
  root.write("requirements/sizes", "base 183 619\ntorch 2889 5351\n");
  root.write("requirements/base.txt", "a");
  root.write("requirements/torch.txt", "b");
  Installation place;
  place.root = root.path;
  place.tools_python = place.python = (root.path / ".venv/bin/python").string();
  place.level_build = root.path / "build/env";
  EXPECT_NE(find(set_up_checks(place), "still to do")->found.find("3072 MB to download"), std::string::npos);
  // SHA-256 of "a", as setup/python.sh writes it
  root.write(".venv/strata-installed", "base=ca978112ca1bbdca\n");
  EXPECT_NE(find(set_up_checks(place), "still to do")->found.find("2889 MB to download"), std::string::npos);
  place.python = "/usr/bin/python3";  // a user's own: no PyTorch of ours
  EXPECT_NE(find(set_up_checks(place), "still to do")->found.find("about 0 MB to download"), std::string::npos);
  root.write("build/env/build.ninja", "");
  EXPECT_EQ(find(set_up_checks(place), "still to do")->found, "nothing");
}

TEST(Gpu, says_why_there_is_none) {
  const auto found = gpus();
  EXPECT_EQ(found.available, !found.devices.empty());
  if (!found.available) {
    EXPECT_FALSE(found.why_not.empty());
  }
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

TEST(Usage, never_goes_below_nothing_when_a_thread_takes_its_counts_with_it) {
  const Usage before{5, 4, 3, 2, 1}, after{6, 1, 4, 5, 0};
  const auto between = after - before;
  EXPECT_EQ(between.cpu_s, 1);
  EXPECT_EQ(between.run_queue_wait_s, 0);
  EXPECT_EQ(between.switched_out, 0);
}

class EnergyTest : public ::testing::Test {
 protected:
  void write(const std::string& zone, double energy_uj) {
    fs::create_directories(root_ / zone);
    std::ofstream(root_ / zone / "energy_uj") << static_cast<std::int64_t>(energy_uj);
    std::ofstream(root_ / zone / "max_energy_range_uj") << 1000000000;
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path root_ = fs::temp_directory_path() / ("strata-energy-" + std::to_string(getpid()));
};

TEST_F(EnergyTest, is_the_sum_of_packages_and_knows_that_counters_wrap) {
  write("intel-rapl:0", 1e6);
  write("intel-rapl:0:0", 5e6);  // the cores of package 0, which are in it
  write("intel-rapl:1", 999e6);
  auto meter = EnergyMeter::open(root_);
  ASSERT_TRUE(meter);
  write("intel-rapl:0", 3e6);
  write("intel-rapl:1", 2e6);
  EXPECT_DOUBLE_EQ(meter->lap().value(), 2 + 3);
  EXPECT_DOUBLE_EQ(meter->lap().value(), 0);
  fs::remove(root_ / "intel-rapl:1" / "energy_uj");
  EXPECT_FALSE(meter->lap());
}

TEST_F(EnergyTest, says_why_there_is_none) {
  const auto meter = EnergyMeter::open(root_);
  ASSERT_FALSE(meter);
  EXPECT_NE(meter.error().what.find("no energy counters"), std::string::npos);
}

}  // namespace
}  // namespace strata::probe
