// SPDX-License-Identifier: Apache-2.0
#include "training/turn_meter.hpp"

#include <algorithm>

#include "probe/memory.hpp"

namespace strata::training {

TurnMeter::TurnMeter(pid_t pid) : pid_(pid) {
  if (auto meter = probe::EnergyMeter::open()) energy_ = std::move(*meter);
  probe::reset_peak(pid);
}

void TurnMeter::begin() {
  before_ = probe::process_usage(pid_);
  if (energy_) (void)energy_->lap();  // what others used since the last turn is not this level's
  began_ = std::chrono::steady_clock::now();
}

void TurnMeter::end() {
  wall_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  if (energy_) {
    if (const auto joules = energy_->lap())
      joules_ += *joules;
    else
      energy_.reset();
  }
  const auto after = probe::process_usage(pid_);
  if (before_ && after)
    used_ += *after - *before_;
  else
    known_ = false;
}

void TurnMeter::take(std::map<std::string, double>& values, int threads) {
  if (known_ && wall_s_ > 0) {
    values["cpu_seconds"] = used_.cpu_s;
    values["cpu_utilisation"] = used_.cpu_s / (wall_s_ * std::max(1, threads));
    values["run_queue_wait_seconds"] = used_.run_queue_wait_s;
    values["major_faults"] = used_.major_faults;
    values["minor_faults"] = used_.minor_faults;
    values["switched_out"] = used_.switched_out;
  }
  if (energy_ && wall_s_ > 0) values["energy_joules"] = joules_;
  if (const auto memory = probe::process_memory(pid_); memory && memory->peak_rss_bytes > 0)
    values["peak_resident_bytes"] = static_cast<double>(memory->peak_rss_bytes);
  probe::reset_peak(pid_);
  used_ = {};
  wall_s_ = joules_ = 0;
  known_ = true;
}

}  // namespace strata::training
