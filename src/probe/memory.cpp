// SPDX-License-Identifier: Apache-2.0
#include "probe/memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/process_begin.hpp"

namespace strata::probe {
namespace {

constexpr const char* kSystem[] = {"/usr/lib", "/usr/bin/", "/usr/libexec/", "/lib", "/bin/",
                                   "/sbin/",   "/dev/",     "/memfd:"};  // /usr/local is what a person put there

// Adding up a process of a gigabyte walks all of its pages, which takes milliseconds of a core that the process wants.
constexpr int kRestPerSample = 50;
// How often the process's own counters are read between samples, which takes microseconds.
constexpr auto kGlanceEvery = std::chrono::milliseconds(5);

// "Key:   123 kB" lines of a /proc file, in bytes. Empty: the file cannot be read.
std::map<std::string, std::uint64_t> kilobyte_lines(const std::string& path) {
  std::map<std::string, std::uint64_t> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.ends_with(" kB")) continue;
    values[line.substr(0, colon)] = std::strtoull(line.c_str() + colon + 1, nullptr, 10) * 1024;
  }
  return values;
}

std::uint64_t get(const std::map<std::string, std::uint64_t>& values, const char* key) {
  const auto it = values.find(key);
  return it == values.end() ? 0 : it->second;
}

pid_t parent_of(const std::string& pid) {
  char state = 0;
  pid_t parent = 0;
  stat_fields(pid) >> state >> parent;
  return parent;
}

// One process alone; nullopt-like false: gone or not readable. A zombie has no memory and reads as zeros.
bool add_process(pid_t pid, bool first, ProcessMemory& sum) {
  const auto rollup = kilobyte_lines(fmt::format("/proc/{}/smaps_rollup", pid));
  const auto status = kilobyte_lines(fmt::format("/proc/{}/status", pid));
  if (rollup.empty()) return false;
  // Pss_Anon needs Linux 5.4; before it, anonymous pages shared with a forked relative count twice.
  const auto own = rollup.contains("Pss_Anon") ? get(rollup, "Pss_Anon") + get(rollup, "Pss_Shmem")
                                               : get(rollup, "Anonymous") + get(status, "RssShmem");
  sum.private_bytes += own;
  sum.pss_bytes += get(rollup, "Pss");
  sum.rss_bytes += get(rollup, "Rss");
  sum.huge_page_bytes += get(rollup, "AnonHugePages");
  sum.shared_file_bytes = std::max(sum.shared_file_bytes, get(status, "RssFile"));
  if (first) {
    sum.own_private_bytes = own;
    sum.peak_rss_bytes = get(status, "VmHWM");
  }
  return true;
}

// What an open /proc/PID/statm tells at once, without a walk over pages; those shared with a forked relative count in
// full. 0: not readable.
std::uint64_t anonymous_bytes(int statm) {
  char text[128];
  const auto length = pread(statm, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = '\0';
  char* at = text;
  std::strtoull(at, &at, 10);  // all that is mapped
  const auto resident = std::strtoull(at, &at, 10), shared = std::strtoull(at, &at, 10);
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return resident < shared ? 0 : (resident - shared) * page;
}

}  // namespace

std::vector<pid_t> process_tree(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  if (DIR* folder = opendir("/proc")) {
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (const pid_t parent = parent_of(entry->d_name); parent > 0) children.emplace(parent, std::atoi(entry->d_name));
    }
    closedir(folder);
  }
  std::vector<pid_t> tree{pid};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto child = begin; child != end; ++child) tree.push_back(child->second);
  }
  return tree;
}

Result<ProcessMemory> process_memory(pid_t pid) {
  ProcessMemory sum;
  bool first = true;
  for (const pid_t member : process_tree(pid)) {
    const bool read = add_process(member, first, sum);
    if (first && !read) {
      return fail(
          fmt::format("the memory of process {} cannot be read: /proc/{}/smaps_rollup is missing, empty or not ours",
                      pid, pid),
          "the process may have ended; inside a container /proc must be mounted");
    }
    first = false;
  }
  return sum;
}

std::vector<Library> own_libraries(pid_t pid) {
  std::set<std::string> paths;
  for (const pid_t member : process_tree(pid)) {
    std::ifstream maps(fmt::format("/proc/{}/maps", member));
    for (std::string line; std::getline(maps, line);) {
      const auto slash = line.find('/');
      const auto rights = line.find(' ');
      if (slash == std::string::npos || line.compare(rights + 3, 1, "x") != 0) continue;
      const auto path = line.substr(slash);
      if (std::none_of(std::begin(kSystem), std::end(kSystem),
                       [&](const char* folder) { return path.starts_with(folder); }))
        paths.insert(path);
    }
  }
  std::vector<Library> result;
  std::error_code ec;
  for (const auto& path : paths)
    if (const auto bytes = std::filesystem::file_size(path, ec); !ec) result.push_back({path, bytes});
  std::sort(result.begin(), result.end(), [](const Library& a, const Library& b) { return a.bytes > b.bytes; });
  return result;
}

bool reset_peak(pid_t pid) {
  std::ofstream file(fmt::format("/proc/{}/clear_refs", pid));
  file << "5" << std::flush;
  return file.good();
}

PeakSampler::PeakSampler(pid_t pid, std::chrono::milliseconds interval)
    : pid_(pid), statm_(::open(fmt::format("/proc/{}/statm", pid).c_str(), O_RDONLY | O_CLOEXEC)), interval_(interval) {
  reset_peak(pid_);
  sample();
  thread_ = std::thread([this] {
    using Steady = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    auto next = Steady::now() + interval_;
    while (!wake_.wait_for(lock, kGlanceEvery, [this] { return stopping_; })) {
      lock.unlock();
      glance();
      if (const auto begin = Steady::now(); begin >= next) {
        sample();
        const auto end = Steady::now();
        next = end + std::max<Steady::duration>(interval_, kRestPerSample * (end - begin));
      }
      lock.lock();
    }
  });
}

PeakSampler::~PeakSampler() {
  stop();
  if (statm_ >= 0) ::close(statm_);
}

void PeakSampler::sample() {
  const auto now = process_memory(pid_);
  if (!now) return;
  private_ = now->own_private_bytes;
  anonymous_ = anonymous_bytes(statm_);
  peak_.private_bytes = std::max(peak_.private_bytes, now->private_bytes);
  peak_.own_private_bytes = std::max(peak_.own_private_bytes, now->own_private_bytes);
  peak_.pss_bytes = std::max(peak_.pss_bytes, now->pss_bytes);
  peak_.rss_bytes = std::max(peak_.rss_bytes, now->rss_bytes);
  peak_.shared_file_bytes = std::max(peak_.shared_file_bytes, now->shared_file_bytes);
  peak_.peak_rss_bytes = std::max(peak_.peak_rss_bytes, now->peak_rss_bytes);
  ++samples_;
}

void PeakSampler::glance() {
  const auto now = anonymous_bytes(statm_);
  if (samples_ > 0 && now > anonymous_)
    peak_.private_bytes = std::max(peak_.private_bytes, private_ + (now - anonymous_));
}

Result<ProcessMemory> PeakSampler::stop() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    sample();
    peak_.rss_bytes = std::max(peak_.rss_bytes, peak_.peak_rss_bytes);
  }
  if (samples_ == 0)
    return fail(fmt::format("the memory of process {} could not be read once", pid_),
                "the process ended before the memory pass");
  return peak_;
}

}  // namespace strata::probe
