// SPDX-License-Identifier: Apache-2.0
#include "measure/peaks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/outside.hpp"
#include "measure/calibrate.hpp"
#include "measure/interleave.hpp"
#include "probe/limits.hpp"
#include "probe/load.hpp"

namespace strata::measure {
namespace {

// Trials last 5 ms; the least is what the kernel's ticks need to tell whether others were busy.
std::chrono::milliseconds time_for(double budget_s) {
  return std::chrono::milliseconds(std::lround(std::clamp(100 * budget_s, 200.0, 1000.0)));
}

}  // namespace

Result<Json> limits_of(const core::Case& question, const Json& machine, double budget_s, store::Store& store) {
  Json limits{{"gflops", 0.0}, {"gbytes_per_s", 0.0}, {"instruction_set", ""}, {"quiet", false}};
  if (question.device != core::Device::cpu || question.precision != core::Precision::fp32) return limits;
  const auto room = room_of(question, machine);
  probe::LoadMeter meter;
  const auto seen = probe::measure_limits(room.threads, time_for(budget_s));
  const auto load = meter.lap();
  const bool quiet = load && !stats::crowded(room, load->taken());
  const auto best = STRATA_TRY(store.save_peak({.machine = machine_key(machine),
                                                .instruction_set = seen.instruction_set,
                                                .threads = seen.threads,
                                                .gflops = seen.gflops,
                                                .gbytes_per_s = seen.gbytes_per_s,
                                                .quiet = quiet}));
  limits["gflops"] = best.gflops;
  limits["gbytes_per_s"] = best.gbytes_per_s;
  limits["instruction_set"] = best.instruction_set;
  limits["quiet"] = best.quiet;
  limits["seen_gflops"] = seen.gflops;
  limits["seen_gbytes_per_s"] = seen.gbytes_per_s;
  return limits;
}

std::optional<double> flops_of(const Json& bundle) {
  const auto it = bundle.find("flops");
  if (it == bundle.end() || !it->is_number() || it->get<double>() <= 0) return std::nullopt;
  return it->get<double>();
}

std::vector<std::string> uncounted_of(const Json& bundle) {
  std::vector<std::string> names;
  for (const auto& name : outside::field(bundle, "flops_uncounted"))
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

std::string why_no_limit(const Json& bundle, const Json& limits) {
  if (const auto names = uncounted_of(bundle); !names.empty())
    return fmt::format("the work of {} is not counted", fmt::join(names, ", "));
  if (!flops_of(bundle)) return "the network's work is not counted";
  if (outside::number_or(limits, "gflops") <= 0) return "the machine's peak was not measured in this mode";
  if (!outside::flag_or(limits, "quiet", false))
    return "the machine's peak was only measured while others used its cores, so it may be too low";
  return "";
}

}  // namespace strata::measure
