// SPDX-License-Identifier: Apache-2.0
#include "probe/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "common/process_begin.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"

namespace strata::probe {
namespace {

// User and system ticks of this process and its living descendants, and of their children that ended and were waited
// for.
double own_ticks() {
  double sum = 0;
  for (const pid_t pid : process_tree(getpid())) {
    auto rest = stat_fields(std::to_string(pid));
    std::string skip;
    for (int field = 3; field < 14; ++field) rest >> skip;
    double user = 0, system = 0, children_user = 0, children_system = 0;
    rest >> user >> system >> children_user >> children_system;
    sum += user + system + children_user + children_system;
  }
  return sum;
}

double ticks_per_second() {
  return static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
}

}  // namespace

// A processor's idle time is exact where the kernel stops its tick; busy time is sampled by the tick, so it is taken as
// what is left of the clock's.
std::optional<LoadMeter::Reading> LoadMeter::read() const {
  Reading reading;
  std::ifstream file("/proc/stat");
  int processes = 0;
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::istringstream in(line.substr(3));
    int number = 0;
    if (line[3] == ' ' || !(in >> number)) continue;  // the sum of all
    if (!processors_.empty() && !std::binary_search(processors_.begin(), processors_.end(), number)) continue;
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
    if (!(in >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq)) continue;
    in >> steal;
    reading.idle += idle + io_wait;
    reading.steal += steal;
    ++processes;
  }
  if (processes == 0) return std::nullopt;
  reading.at = std::chrono::steady_clock::now();
  reading.own = own_ticks();
  reading.processors = processes;
  return reading;
}

LoadMeter::LoadMeter() : processors_(usable_processors()), begin_(read()), began_(std::chrono::steady_clock::now()) {}

double LoadMeter::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

std::optional<Load> LoadMeter::lap() {
  const auto before = begin_;
  begin_ = read();
  began_ = std::chrono::steady_clock::now();
  if (!before || !begin_) return std::nullopt;
  Load load;
  load.seconds = std::chrono::duration<double>(begin_->at - before->at).count();
  const double total = load.seconds * begin_->processors * ticks_per_second();
  if (total <= 0) return std::nullopt;
  load.steal = std::clamp((begin_->steal - before->steal) / total, 0.0, 1.0);
  const double idle = begin_->idle - before->idle, own = std::max(0.0, begin_->own - before->own);
  load.others = std::clamp((total - idle - own) / total - load.steal, 0.0, 1.0 - load.steal);
  return load;
}

double other_load(std::chrono::milliseconds window) {
  LoadMeter meter;
  std::this_thread::sleep_for(window);
  const auto load = meter.lap();
  return load ? load->others : 0.0;
}

}  // namespace strata::probe
