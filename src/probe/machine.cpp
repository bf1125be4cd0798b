// SPDX-License-Identifier: Apache-2.0
#include "probe/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "probe/gpu.hpp"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace strata::probe {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "32768K", "32M" or plain bytes, as sysfs writes sizes; 0: none there.
std::uint64_t size_of(const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  return value * (*end == 'K' ? 1024ull : *end == 'M' ? 1024ull * 1024 : *end == 'G' ? 1024ull * 1024 * 1024 : 1);
}

// The first "key : value" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

std::vector<int> allowed_processors() {
  auto allowed = usable_processors();
  if (allowed.empty()) {
    for (int i = 0; i < static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); ++i) allowed.push_back(i);
  }
  return allowed;
}

void read_topology(Cpu& cpu, const std::vector<int>& allowed) {
  std::set<std::string> cores;
  for (const int processor : allowed) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology", processor);
    // which processors share this one's core; named core_cpus_list since Linux 5.3
    auto siblings = first_line(folder / "core_cpus_list");
    if (siblings.empty()) siblings = first_line(folder / "thread_siblings_list");
    if (siblings.empty()) siblings = std::to_string(processor);
    if (cores.insert(siblings).second) cpu.one_per_core.push_back(processor);
  }
  cpu.logical = static_cast<int>(allowed.size());
  cpu.physical = static_cast<int>(cores.size());
  cpu.smt = cpu.logical > cpu.physical;
}

void read_caches(Cpu& cpu, int processor) {
  for (int i = 0; i < 8; ++i) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", processor, i);
    const auto level = first_line(folder / "level");
    const auto bytes = size_of(first_line(folder / "size"));
    if (level.empty() || first_line(folder / "type") == "Instruction") continue;
    (level == "1" ? cpu.l1d_bytes : level == "2" ? cpu.l2_bytes : cpu.l3_bytes) = bytes;
  }
}

// A cache that several processors share counts once.
std::uint64_t last_cache_bytes(const std::vector<int>& allowed) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> sizes;  // by level and the processors that share it
  for (const int processor : allowed)
    for (int i = 0; i < 8; ++i) {
      const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", processor, i);
      const auto level = first_line(folder / "level");
      if (level.empty() || first_line(folder / "type") == "Instruction") continue;
      sizes[{level, first_line(folder / "shared_cpu_list")}] = size_of(first_line(folder / "size"));
    }
  std::uint64_t bytes = 0;
  for (const auto& [which, size] : sizes)
    if (which.first == sizes.rbegin()->first.first) bytes += size;
  return bytes;
}

std::vector<std::string> vector_instruction_sets() {
  const auto text = cpuinfo("flags").empty() ? cpuinfo("Features") : cpuinfo("flags");  // Features: aarch64
  std::istringstream words(text);
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  std::vector<std::string> result;
  for (const char* name : {"sse4_2",   "avx",         "fma",         "f16c",        "avx2",     "avx_vnni", "avx512f",
                           "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8", "asimd",
                           "asimdhp",  "asimddp",     "sve",         "sve2",        "bf16",     "i8mm"}) {
    if (flags.contains(name)) result.emplace_back(name);
  }
  return result;
}

// What the hypervisor calls itself to its guests ("KVM" of "KVMKVMKVM"); "" if it does not say.
std::string hypervisor_signature() {
#if defined(__x86_64__)
  unsigned int leaf = 0, words[3] = {};
  __cpuid(0x40000000, leaf, words[0], words[1], words[2]);
  std::string name(reinterpret_cast<const char*>(words), sizeof words);
  name.erase(std::find_if(name.begin(), name.end(), [](unsigned char c) { return !std::isprint(c); }), name.end());
  return name.starts_with("KVM") ? "KVM" : name;
#else
  return {};
#endif
}

// The folders of this process's cgroup from its own up to the root, for one controller ("" is version 2).
std::vector<fs::path> cgroup_folders(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controller.empty() ? names != ",," : names.find("," + controller + ",") == std::string::npos) continue;
    const fs::path top = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    std::vector<fs::path> folders;
    for (fs::path own = line.substr(second + 1); own.has_relative_path(); own = own.parent_path())
      folders.push_back(top / own.relative_path());
    folders.push_back(top);
    return folders;
  }
  return {};
}

void keep_smaller(std::optional<double>& limit, double value) {
  limit = limit ? std::min(*limit, value) : value;
}

}  // namespace

std::vector<int> usable_processors() {
  std::vector<int> usable;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) usable.push_back(i);
  return usable;
}

bool native_bfloat16(const Cpu& cpu) {
  return std::any_of(cpu.instruction_sets.begin(), cpu.instruction_sets.end(), [](const std::string& name) {
    return name == "avx512_bf16" || name == "amx_bf16" || name == "bf16";
  });
}

Cpu cpu() {
  Cpu cpu;
  const auto allowed = allowed_processors();
  read_topology(cpu, allowed);
  read_caches(cpu, allowed.front());
  cpu.last_cache_bytes = last_cache_bytes(allowed);
  cpu.model = cpuinfo("model name");
  cpu.online = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (std::ifstream online("/proc/stat"); online) {
    int count = 0;
    for (std::string line; std::getline(online, line);)
      count += line.size() > 3 && line.starts_with("cpu") && line[3] >= '0' && line[3] <= '9';
    cpu.online = std::max(count, cpu.logical);
  }
  cpu.instruction_sets = vector_instruction_sets();
  cpu.governor = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", allowed.front()));
  const auto flags = " " + cpuinfo("flags") + " ";
  if (flags.find(" hypervisor ") != std::string::npos) {
    cpu.hypervisor = first_line("/sys/class/dmi/id/sys_vendor");
    if (cpu.hypervisor.empty()) cpu.hypervisor = hypervisor_signature();
    if (cpu.hypervisor.empty()) cpu.hypervisor = "unknown";
  }
  return cpu;
}

Memory memory() {
  Memory memory;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    const auto bytes = [&line] { return std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024; };
    if (line.starts_with("MemTotal:")) memory.total_bytes = bytes();
    if (line.starts_with("MemAvailable:")) memory.available_bytes = bytes();
    if (line.starts_with("SwapTotal:")) memory.swap_bytes = bytes();
  }
  return memory;
}

CgroupLimits cgroup_limits() {
  CgroupLimits limits;
  std::optional<double> bytes;
  for (const auto& folder : cgroup_folders("")) {
    std::istringstream quota(first_line(folder / "cpu.max"));
    double allowed = 0, period = 0;
    if (quota >> allowed >> period && period > 0)
      keep_smaller(limits.cpus, allowed / period);  // "max 100000" does not parse
    const auto most = first_line(folder / "memory.max");
    if (!most.empty() && most != "max") keep_smaller(bytes, static_cast<double>(size_of(most)));
  }
  for (const auto& folder : cgroup_folders("cpu")) {
    const double allowed = std::atof(first_line(folder / "cpu.cfs_quota_us").c_str()),
                 period = std::atof(first_line(folder / "cpu.cfs_period_us").c_str());
    if (allowed > 0 && period > 0) keep_smaller(limits.cpus, allowed / period);
  }
  for (const auto& folder : cgroup_folders("memory")) {
    const auto most = size_of(first_line(folder / "memory.limit_in_bytes"));
    if (most > 0 && most < memory().total_bytes)
      keep_smaller(bytes, static_cast<double>(most));  // no limit is a huge number
  }
  if (bytes) limits.memory_bytes = static_cast<std::uint64_t>(*bytes);
  return limits;
}

int physical_cores() {
  const int cores = cpu().physical;
  const auto quota = cgroup_limits().cpus;
  return std::max(1, quota ? std::min(cores, static_cast<int>(std::floor(*quota))) : cores);
}

nlohmann::json machine() {
  const auto processor = cpu();
  const auto ram = memory();
  const auto limits = cgroup_limits();
  const auto graphics = gpus();
  utsname system{};
  uname(&system);
  std::string distribution;
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line.starts_with("PRETTY_NAME=")) distribution = line.substr(12);
  }
  std::erase(distribution, '"');
  std::string instruction_sets;
  for (const auto& name : processor.instruction_sets) instruction_sets += (instruction_sets.empty() ? "" : " ") + name;
  nlohmann::json out = {{"cpu", processor.model},
                        {"cores", physical_cores()},
                        {"physical_cores", processor.physical},
                        {"logical_processors", processor.logical},
                        {"online_processors", processor.online},
                        {"smt", processor.smt},
                        {"l1d_bytes", processor.l1d_bytes},
                        {"l2_bytes", processor.l2_bytes},
                        {"l3_bytes", processor.l3_bytes},
                        {"last_cache_bytes", processor.last_cache_bytes},
                        {"instruction_sets", instruction_sets},
                        {"memory_bytes", ram.total_bytes},
                        {"swap_bytes", ram.swap_bytes},
                        {"architecture", system.machine},
                        {"kernel", system.release},
                        {"system", distribution},
                        {"driver", nullptr},
                        {"gpu", nullptr},
                        {"gpu_count", graphics.devices.size()},
                        {"gpu_memory_bytes", nullptr}};
  out["governor"] = processor.governor.empty() ? nlohmann::json() : nlohmann::json(processor.governor);
  out["hypervisor"] = processor.hypervisor.empty() ? nlohmann::json() : nlohmann::json(processor.hypervisor);
  out["cgroup_cpus"] = limits.cpus ? nlohmann::json(*limits.cpus) : nlohmann::json();
  out["cgroup_memory_bytes"] = limits.memory_bytes ? nlohmann::json(*limits.memory_bytes) : nlohmann::json();
  if (graphics.available) {
    out["gpu"] = graphics.devices.front().name;
    out["gpu_memory_bytes"] = graphics.devices.front().memory_bytes;
    out["driver"] = graphics.driver;
  }
  return out;
}

}  // namespace strata::probe
