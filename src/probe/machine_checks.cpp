// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "common/confine.hpp"
#include "probe/checks.hpp"
#include "probe/gpu.hpp"
#include "probe/load.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"
#include "stats/disturbed.hpp"

namespace strata::probe {
namespace {

constexpr const char* group = "machine";
constexpr double gib = 1024.0 * 1024 * 1024;

std::string size_text(std::uint64_t bytes) {
  if (bytes == 0) return "unknown";
  if (bytes >= 1ull << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / gib);
  if (bytes >= 1ull << 20) return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / 1024);
}

Check good(std::string name, std::string found) {
  return {.group = group, .name = std::move(name), .standing = Standing::ok, .found = std::move(found)};
}

Check limited(std::string name, std::string found, std::string reason, std::string remedy) {
  return {group, std::move(name), Standing::limited, std::move(found), std::move(reason), std::move(remedy)};
}

Check missing(std::string name, std::string reason, std::string remedy) {
  return {group, std::move(name), Standing::missing, "", std::move(reason), std::move(remedy)};
}

Check cores_check(const Cpu& cpu, const CgroupLimits& limits) {
  Check check{.group = group, .name = "cores"};
  check.found = fmt::format("{} cores, {} processors usable ({})", cpu.physical, cpu.logical,
                            cpu.model.empty() ? "unknown model" : cpu.model);
  if (limits.cpus && *limits.cpus < cpu.physical) {
    check.standing = Standing::limited;
    check.reason =
        fmt::format("the container may use {:.2f} processors' time; over it, it is stopped for milliseconds at a time",
                    *limits.cpus);
    check.remedy = "raise or lift the container's CPU quota, and give it whole processors instead (cpuset)";
  } else if (cpu.logical < cpu.online) {
    check.standing = Standing::limited;
    check.reason = fmt::format("the machine has {} processors, this process may use {}", cpu.online, cpu.logical);
    check.remedy = "fine if the others are not this machine's noise; otherwise lift the affinity (taskset, cpuset)";
  }
  return check;
}

Check smt_check(const Cpu& cpu) {
  if (!cpu.smt) return good("SMT", "off: one processor a core");
  return limited("SMT", fmt::format("on: {} processors on {} cores", cpu.logical, cpu.physical),
                 "two threads on one core slow each other down",
                 "nothing needed: the default number of threads is that of the cores");
}

Check instruction_check(const Cpu& cpu) {
  Check check{.group = group, .name = "instruction sets"};
  for (const auto& name : cpu.instruction_sets) check.found += (check.found.empty() ? "" : " ") + name;
  const auto has = [&](const char* name) {
    return std::find(cpu.instruction_sets.begin(), cpu.instruction_sets.end(), name) != cpu.instruction_sets.end();
  };
  if (!has("avx2") && !has("avx512f") && !has("asimd")) {
    check.standing = Standing::limited;
    check.reason = "neither AVX2 nor AVX-512 nor NEON: frameworks fall back on slow kernels";
    check.remedy = "in a virtual machine, let the hypervisor pass the processor's features on";
  }
  return check;
}

Check bfloat16_check(const Cpu& cpu) {
  if (native_bfloat16(cpu)) return good("bfloat16", "native");
  return limited(
      "bfloat16", "emulated",
      "no AVX512_BF16, AMX or Arm bf16 instructions: bf16 runs by conversion to float32, usually slower than "
      "float32",
      "times of --precision bf16 say nothing about machines that have them");
}

Check governor_check(const Cpu& cpu) {
  if (cpu.governor == "performance") return good("governor", cpu.governor);
  if (!cpu.governor.empty()) {
    return limited("governor", cpu.governor, "the clock follows the load, so times depend on what ran before",
                   "sudo cpupower frequency-set -g performance");
  }
  return limited(
      "governor", "not readable",
      cpu.hypervisor.empty() ? "the kernel shows no cpufreq" : "a virtual machine does not see the clock of its host",
      "nothing can be done from here; levels are interleaved, so that changes affect all equally");
}

Check busy_check(const char* name, double share, double limit, const char* reason, const char* remedy) {
  Check check{.group = group,
              .name = name,
              .standing = Standing::ok,
              .found = fmt::format("{:.1f}% of the machine", share * 100)};
  if (share > limit) {
    check.standing = Standing::limited;
    check.reason = reason;
    check.remedy = remedy;
  }
  return check;
}

Check memory_check(const CgroupLimits& limits) {
  const auto ram = memory();
  Check check{.group = group, .name = "memory"};
  check.found = fmt::format("{} of {} free", size_text(ram.available_bytes), size_text(ram.total_bytes));
  std::uint64_t usable = ram.available_bytes;
  if (limits.memory_bytes) {
    check.found += fmt::format(", at most {} in this container", size_text(*limits.memory_bytes));
    usable = std::min(usable, *limits.memory_bytes);
  }
  if (static_cast<double>(usable) < 4 * gib) {
    check.standing = Standing::limited;
    check.reason =
        "a comparison of all levels of ResNet-50 needs about 4 GiB; with less, levels run one after the other";
    check.remedy = "close other programs, or compare fewer levels at once (--levels)";
  }
  return check;
}

// Memory by smaps_rollup, peak by clear_refs, run-queue wait by schedstat: each is a kernel option that some lack.
Checks process_checks() {
  Checks checks;
  if (const auto own = process_memory(getpid()); own) {
    checks.push_back(good("memory of processes", "private, PSS and file pages"));
  } else {
    checks.push_back(missing("memory of processes", "/proc/PID/smaps_rollup cannot be read",
                             "mount /proc; Linux 4.14 or newer is needed"));
  }
  if (std::ofstream peak("/proc/self/clear_refs"); !(peak << "5" << std::flush)) {
    checks.push_back(limited("peak memory", "sampled",
                             "the kernel's high-water mark cannot be reset (/proc/PID/clear_refs)",
                             "none needed: short peaks may be missed"));
  }
  std::ifstream schedule("/proc/self/schedstat");
  if (double running = 0, waiting = 0; !(schedule >> running >> waiting)) {
    checks.push_back(missing("run-queue wait",
                             "/proc/PID/schedstat is not there, so disturbed blocks are harder to detect",
                             "a kernel with CONFIG_SCHED_INFO"));
  } else {
    checks.push_back(good("run-queue wait", "read per block"));
  }
  return checks;
}

Check confinement_check() {
  const auto have = landlock();
  const char* remedy = "a kernel with Landlock, for model files (.pt2, .pt, .onnx) of other people; none for your own";
  if (have.version == 0) return limited("model files", "checked, not confined", have.why_not, remedy);
  if (have.version < 4)
    return limited("model files", "checked, and confined to folders of their own",
                   "this kernel's Landlock is too old to keep them from the network (Linux 6.7 or newer can)", remedy);
  return good("model files", "checked, confined to folders of their own, no network");
}

Checks gpu_checks() {
  const auto devices = gpus();
  if (!devices.available) {
    return {missing("GPU", devices.why_not,
                    "--device cuda needs an NVIDIA GPU and its driver; --device cpu needs nothing")};
  }
  Checks checks;
  for (const auto& gpu : devices.devices) {
    Check check{.group = group, .name = "GPU"};
    check.found = fmt::format("{}, {} of {} used, driver {}", gpu.name, size_text(gpu.used_bytes),
                              size_text(gpu.memory_bytes), devices.driver);
    if (gpu.busy_percent > 5) {
      check.standing = Standing::limited;
      check.reason = fmt::format("it is {}% busy with other work", gpu.busy_percent);
      check.remedy = "end the other programs on it (nvidia-smi lists them)";
    }
    checks.push_back(check);
  }
  return checks;
}

}  // namespace

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::ok:
      return "ok";
    case Standing::limited:
      return "limited";
    case Standing::missing:
      return "missing";
  }
  return "missing";
}

Checks machine_checks(std::chrono::milliseconds window) {
  LoadMeter meter;
  std::this_thread::sleep_for(window);
  const auto [load, steal, seconds] = meter.lap().value_or(Load{});
  const auto processor = cpu();
  const auto limits = cgroup_limits();
  Checks checks{cores_check(processor, limits), smt_check(processor)};
  checks.push_back({.group = group,
                    .name = "caches",
                    .standing = processor.l2_bytes ? Standing::ok : Standing::limited,
                    .found = fmt::format("L1d {}, L2 {}, L3 {}", size_text(processor.l1d_bytes),
                                         size_text(processor.l2_bytes), size_text(processor.l3_bytes)),
                    .reason = processor.l2_bytes ? "" : "the kernel does not show them",
                    .remedy = ""});
  checks.push_back(instruction_check(processor));
  checks.push_back(bfloat16_check(processor));
  checks.push_back(governor_check(processor));
  checks.push_back(
      good("virtualisation", processor.hypervisor.empty() ? "none seen" : "hypervisor: " + processor.hypervisor));
  checks.push_back(busy_check("steal", steal, 0.01, "the host gives this machine's processors to others",
                              "measure at a quieter time, or on a machine of its own"));
  const bool one_fits =
      !stats::crowded({1, processor.physical, processor.logical}, load + steal);  // else one thread is no better off
  checks.push_back(busy_check("other load", load, 0.05,
                              "other programs are running; the times of several threads collapse beside them",
                              one_fits ? "end them, or measure with --threads 1" : "end them"));
  checks.push_back(memory_check(limits));
  checks.push_back(confinement_check());
  for (auto& check : process_checks()) checks.push_back(std::move(check));
  for (auto& check : gpu_checks()) checks.push_back(std::move(check));
  return checks;
}

}  // namespace strata::probe
