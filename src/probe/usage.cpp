// SPDX-License-Identifier: Apache-2.0
#include "probe/usage.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "common/process_begin.hpp"
#include "probe/memory.hpp"

namespace strata::probe {
namespace fs = std::filesystem;
namespace {

template <class T>
std::optional<T> first_of(const fs::path& path) {
  std::ifstream file(path);
  T value{};
  if (!(file >> value)) return std::nullopt;
  return value;
}

// Fields 10, 12, 16 and 17 of /proc/PID/stat.
void add_faults_and_children(pid_t pid, Usage& sum) {
  auto rest = stat_fields(std::to_string(pid));
  std::string skip;
  for (int field = 3; field < 10; ++field) rest >> skip;
  double minor = 0, major = 0, of_children = 0, user = 0, system = 0, children_user = 0, children_system = 0;
  rest >> minor >> of_children >> major >> of_children >> user >> system >> children_user >> children_system;
  sum.minor_faults += minor;
  sum.major_faults += major;
  sum.cpu_s += (children_user + children_system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void add_threads(pid_t pid, Usage& sum) {
  std::error_code ec;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid), ec)) {
    std::ifstream schedule(task.path() / "schedstat");
    double ran_ns = 0, waited_ns = 0;
    if (schedule >> ran_ns >> waited_ns) sum.run_queue_wait_s += 1e-9 * waited_ns;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("nonvoluntary_ctxt_switches:")) sum.switched_out += std::stod(line.substr(27));
  }
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  cpu_s += other.cpu_s;
#define METER(member, metric, units) member += other.member;
#include "core/meter.def"
#undef METER
  return *this;
}

// A thread or a process that ended takes its counts with it: what would be below nothing is nothing.
Usage operator-(const Usage& later, const Usage& earlier) {
  const auto left = [](double a, double b) { return std::max(0.0, a - b); };
  Usage between{.cpu_s = left(later.cpu_s, earlier.cpu_s)};
#define METER(member, metric, units) between.member = left(later.member, earlier.member);
#include "core/meter.def"
#undef METER
  return between;
}

std::optional<Usage> process_usage(pid_t pid) {
  Usage sum;
  bool any = false;
  for (const pid_t process : process_tree(pid)) {
    clockid_t clock = 0;
    timespec used{};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) continue;
    any = true;
    sum.cpu_s += static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
    add_faults_and_children(process, sum);
    add_threads(process, sum);
  }
  return any ? std::optional(sum) : std::nullopt;
}

bool can_have_worked(double cpu_s, double elapsed_s) {
  constexpr double slack_s = 0.05;  // children's times are counted in ticks
  return cpu_s >= 0 && cpu_s <= static_cast<double>(sysconf(_SC_NPROCESSORS_CONF)) * elapsed_s + slack_s;
}

Result<EnergyMeter> EnergyMeter::open(const fs::path& zones) {
  EnergyMeter meter;
  std::error_code ec;
  bool hidden = false;
  for (const auto& entry : fs::directory_iterator(zones, ec)) {
    const auto name = entry.path().filename().string();
    // intel-rapl:0 is a package, intel-rapl:0:1 a part of it; AMD's packages have the same names.
    if (!name.starts_with("intel-rapl:") || std::count(name.begin(), name.end(), ':') != 1) continue;
    const auto now = first_of<double>(entry.path() / "energy_uj"),
               range = first_of<double>(entry.path() / "max_energy_range_uj");
    if (now && range)
      meter.packages_.push_back({entry.path() / "energy_uj", *range, *now});
    else
      hidden = true;
  }
  if (hidden)
    return fail("the energy counters of the processor may be read by root alone",
                fmt::format("chmod a+r {}/intel-rapl:*/energy_uj shows them", zones.string()));
  if (meter.packages_.empty())
    return fail("the kernel shows no energy counters (virtual machines have none)",
                "on a machine of your own: modprobe intel_rapl_msr");
  return meter;
}

std::optional<double> EnergyMeter::lap() {
  double sum_uj = 0;
  for (auto& zone : packages_) {
    const auto now = first_of<double>(zone.counter);
    if (!now) return std::nullopt;
    sum_uj += *now >= zone.last_uj ? *now - zone.last_uj : *now - zone.last_uj + zone.range_uj;
    zone.last_uj = *now;
  }
  return 1e-6 * sum_uj;
}

}  // namespace strata::probe
