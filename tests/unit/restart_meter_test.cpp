// SPDX-License-Identifier: Apache-2.0
// What a level's turns of a restart took beside time, of this process and of made-up energy counters.
#include "measure/restart_meter.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace strata::measure {
namespace {

namespace fs = std::filesystem;

class Zones {  // one package, as the kernel's powercap shows it
 public:
  Zones() : root_(fs::path(testing::TempDir()) / ("zones-" + std::to_string(getpid()))) {
    fs::create_directories(root_ / "intel-rapl:0");
    std::ofstream(root_ / "intel-rapl:0/max_energy_range_uj") << 1'000'000'000;
    set(0);
  }
  ~Zones() { fs::remove_all(root_); }
  void set(std::int64_t microjoules) const { std::ofstream(root_ / "intel-rapl:0/energy_uj") << microjoules; }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(RestartMeter, counts_the_pages_that_its_process_was_given_meanwhile) {
  RestartMeter meter(getpid(), fail("no counters"));
  meter.turn_begins();
  constexpr std::size_t pages = 500;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* memory =
      static_cast<char*>(mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, pages * page, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < pages; ++i) memory[i * page] = 1;
  munmap(memory, pages * page);
  meter.turn_ended(12);
  const auto sums = meter.sums();
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->iterations, 12);
  EXPECT_GE(sums->minor_faults, static_cast<double>(pages));
  EXPECT_EQ(sums->no_energy, "no counters");
  EXPECT_FALSE(sums->energy);
}

TEST(RestartMeter, processor_time_is_that_of_all_it_started_and_of_its_turns_the_time) {
  RestartMeter meter(getpid(), fail("no counters"));
  const auto spin = [](double seconds) {
    timespec now{};
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) < seconds);
  };
  timespec before{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  meter.turn_begins();
  const pid_t child = fork();
  if (child == 0) {
    spin(0.15);
    _exit(0);
  }
  waitpid(child, nullptr, 0);  // it is gone when the meter is read
  spin(static_cast<double>(before.tv_sec) + 1e-9 * static_cast<double>(before.tv_nsec) + 0.05);
  meter.turn_ended(1);
  const auto work = meter.work();
  ASSERT_TRUE(work);
  EXPECT_GE(work->cpu_s, 0.17);
  EXPECT_GE(work->turns_s, 0.19);
}

TEST(RestartMeter, energy_is_that_of_its_turns_alone) {
  const Zones zones;
  RestartMeter meter(getpid(), probe::EnergyMeter::open(zones.root()));
  for (const int other : {1, 2}) {
    zones.set(other * 100'000'000);  // of others, between its turns
    meter.turn_begins();
    zones.set(other * 100'000'000 + 3'000'000);
    meter.turn_ended(5);
  }
  const auto sums = meter.sums();
  ASSERT_TRUE(sums);
  EXPECT_DOUBLE_EQ(sums->energy.value_or(0), 6);
  EXPECT_EQ(sums->iterations, 10);
  EXPECT_FALSE(sums->no_energy);
}

TEST(RestartMeter, of_a_counter_that_went_away_says_so_and_gives_no_energy) {
  RestartMeter meter = [] {
    const Zones zones;
    return RestartMeter(getpid(), probe::EnergyMeter::open(zones.root()));
  }();
  meter.turn_begins();
  meter.turn_ended(1);
  EXPECT_FALSE(meter.sums()->energy);
  EXPECT_NE(meter.sums()->no_energy.value_or(""), "");
}

TEST(RestartMeter, without_a_turn_or_a_process_has_nothing_to_say) {
  EXPECT_FALSE(RestartMeter(getpid(), fail("no counters")).sums());
  RestartMeter gone(1 << 28, fail("no counters"));
  gone.turn_ended(1);
  EXPECT_FALSE(gone.sums());
  EXPECT_FALSE(gone.work());
}

}  // namespace
}  // namespace strata::measure
