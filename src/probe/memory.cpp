// SPDX-License-Identifier: Apache-2.0
#include "probe/memory.hpp"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace strata::probe {
namespace {

constexpr const char* kSystem[] = {"/usr/lib", "/usr/bin/", "/usr/libexec/", "/lib", "/bin/",
                                   "/sbin/",   "/dev/",     "/memfd:"};  // /usr/local is what a person put there

// Adding up a process of a gigabyte walks all of its pages, which takes milliseconds of a core that the process wants.
constexpr int kRestPerSample = 50;

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
  const auto found = values.find(key);
  return found == values.end() ? 0 : found->second;
}

// The parent of a process by /proc/PID/stat; the command's name may hold spaces and parentheses, so fields count from
// the last ')'.
pid_t parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const auto end = line.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream rest(line.substr(end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

// One process alone; nullopt-like false: gone or not readable. A zombie has no memory and reads as zeros.
bool add_process(pid_t pid, bool first, ProcessMemory& sum) {
  const auto rollup = kilobyte_lines(fmt::format("/proc/{}/smaps_rollup", pid));
  const auto status = kilobyte_lines(fmt::format("/proc/{}/status", pid));
  if (rollup.empty()) return false;
  // Pss_Anon needs Linux 5.4; before it, anonymous pages shared with a forked relative count twice.
  sum.private_bytes += rollup.contains("Pss_Anon") ? get(rollup, "Pss_Anon") + get(rollup, "Pss_Shmem")
                                                   : get(rollup, "Anonymous") + get(status, "RssShmem");
  sum.pss_bytes += get(rollup, "Pss");
  sum.rss_bytes += get(rollup, "Rss");
  sum.shared_file_bytes = std::max(sum.shared_file_bytes, get(status, "RssFile"));
  if (first) sum.peak_rss_bytes = get(status, "VmHWM");
  return true;
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
  std::vector<Library> found;
  std::error_code ec;
  for (const auto& path : paths)
    if (const auto bytes = std::filesystem::file_size(path, ec); !ec) found.push_back({path, bytes});
  std::sort(found.begin(), found.end(), [](const Library& a, const Library& b) { return a.bytes > b.bytes; });
  return found;
}

bool reset_peak(pid_t pid) {
  std::ofstream file(fmt::format("/proc/{}/clear_refs", pid));
  file << "5" << std::flush;
  return file.good();
}

PeakSampler::PeakSampler(pid_t pid, std::chrono::milliseconds interval) : pid_(pid), interval_(interval) {
  reset_peak(pid_);
  sample();
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    std::chrono::steady_clock::duration wait = interval_;
    while (!wake_.wait_for(lock, wait, [this] { return stopping_; })) {
      lock.unlock();
      const auto begin = std::chrono::steady_clock::now();
      sample();
      wait = std::max<std::chrono::steady_clock::duration>(interval_,
                                                           kRestPerSample * (std::chrono::steady_clock::now() - begin));
      lock.lock();
    }
  });
}

PeakSampler::~PeakSampler() {
  stop();
}

void PeakSampler::sample() {
  const auto now = process_memory(pid_);
  if (!now) return;
  peak_.private_bytes = std::max(peak_.private_bytes, now->private_bytes);
  peak_.pss_bytes = std::max(peak_.pss_bytes, now->pss_bytes);
  peak_.rss_bytes = std::max(peak_.rss_bytes, now->rss_bytes);
  peak_.shared_file_bytes = std::max(peak_.shared_file_bytes, now->shared_file_bytes);
  peak_.peak_rss_bytes = std::max(peak_.peak_rss_bytes, now->peak_rss_bytes);
  ++samples_;
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
    // A peak that fell between two samples: what was resident then and cannot have been file pages was private.
    if (peak_.peak_rss_bytes > peak_.shared_file_bytes)
      peak_.private_bytes = std::max(peak_.private_bytes, peak_.peak_rss_bytes - peak_.shared_file_bytes);
    peak_.rss_bytes = std::max(peak_.rss_bytes, peak_.peak_rss_bytes);
  }
  if (samples_ == 0)
    return fail(fmt::format("the memory of process {} could not be read once", pid_),
                "the process ended before the memory pass");
  return peak_;
}

}  // namespace strata::probe
