// SPDX-License-Identifier: Apache-2.0
#include "measure/restart_meter.hpp"

#include <utility>

#include "common/monotonic.hpp"

namespace strata::measure {

RestartMeter::RestartMeter(pid_t pid, Result<probe::EnergyMeter> energy)
    : pid_(pid), before_(probe::process_usage(pid)), made_ns_(monotonic_ns()) {
  if (energy)
    energy_ = std::move(*energy);
  else
    no_energy_ = energy.error().what;
}

void RestartMeter::turn_begins() {
  turn_began_ns_ = monotonic_ns();
  if (energy_) (void)energy_->lap();  // what others used since the last turn is not this level's
}

void RestartMeter::turn_ended(int iterations) {
  iterations_ += iterations;
  turns_s_ += 1e-9 * static_cast<double>(monotonic_ns() - turn_began_ns_);
  if (!energy_) return;
  if (const auto joules = energy_->lap()) {
    joules_ += *joules;
  } else {
    energy_.reset();
    no_energy_ = "the energy counters of the processor could no longer be read";
  }
}

void RestartMeter::leave_out(const probe::Usage& from, const probe::Usage& until) {
  if (before_) before_ = until - (from - *before_);
}

std::optional<RestartMeter::Work> RestartMeter::work() const {
  const auto after = probe::process_usage(pid_);
  if (!before_ || !after || iterations_ == 0) return std::nullopt;
  const double cpu_s = (*after - *before_).cpu_s;
  if (!probe::can_have_worked(cpu_s, 1e-9 * static_cast<double>(monotonic_ns() - made_ns_))) return std::nullopt;
  return Work{cpu_s, turns_s_};
}

std::optional<store::MeterSums> RestartMeter::sums() const {
  const auto after = probe::process_usage(pid_);
  if (!before_ || !after || iterations_ == 0) return std::nullopt;
  const auto used = *after - *before_;
  store::MeterSums sums{.iterations = iterations_};
#define METER(member, metric, units) sums.member = used.member;
#include "core/meter.def"
#undef METER
  if (energy_)
    sums.energy = joules_;
  else
    sums.no_energy = no_energy_;
  return sums;
}

}  // namespace strata::measure
