// SPDX-License-Identifier: Apache-2.0
// How busy the machine is, from the kernel's tick counters (10 ms): windows under about 200 ms say little.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "probe/machine.hpp"
#include "probe/memory.hpp"

namespace strata::probe {
namespace {

struct Ticks {
  double total = 0, busy = 0, steal = 0;
};

Ticks machine_ticks() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
  file >> name >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal;
  const double busy = user + nice + system + irq + soft_irq;
  return {busy + idle + io_wait + steal, busy, steal};
}

// User and system ticks of this process and its living descendants, and of their children that ended and were waited
// for.
double own_ticks() {
  double sum = 0;
  for (const pid_t pid : process_tree(getpid())) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto end = line.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream rest(line.substr(end + 1));
    std::string skip;
    for (int field = 3; field < 14; ++field) rest >> skip;
    double user = 0, system = 0, children_user = 0, children_system = 0;
    rest >> user >> system >> children_user >> children_system;
    sum += user + system + children_user + children_system;
  }
  return sum;
}

}  // namespace

double other_load(std::chrono::milliseconds window) {
  const auto before = machine_ticks();
  const double own_before = own_ticks();
  std::this_thread::sleep_for(window);
  const auto after = machine_ticks();
  const double own = std::max(0.0, own_ticks() - own_before), total = after.total - before.total;
  return total > 0 ? std::clamp((after.busy - before.busy - own) / total, 0.0, 1.0) : 0.0;
}

double steal_share(std::chrono::milliseconds window) {
  const auto before = machine_ticks();
  std::this_thread::sleep_for(window);
  const auto after = machine_ticks();
  const double total = after.total - before.total;
  return total > 0 ? std::clamp((after.steal - before.steal) / total, 0.0, 1.0) : 0.0;
}

}  // namespace strata::probe
