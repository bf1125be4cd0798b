// SPDX-License-Identifier: Apache-2.0
// What a process and its descendants keep in memory, read from /proc. Summed over the tree: a worker's own helpers
// (compile workers) count. `private` means anonymous and shared-memory pages, each counted once: it does not depend on
// which other process maps the same libraries. File pages (libraries, memory-mapped weights) are a line of their own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/result.hpp"

namespace strata::probe {

struct ProcessMemory {
  std::uint64_t private_bytes = 0;      // anonymous and shared-memory pages, shared ones by their proportion
  std::uint64_t own_private_bytes = 0;  // of `pid` alone
  std::uint64_t pss_bytes = 0;          // all resident pages, shared ones by their proportion
  std::uint64_t rss_bytes = 0;          // resident pages; counts a page shared by two processes of the tree twice
  std::uint64_t shared_file_bytes =
      0;  // resident pages of files: the largest of any one process of the tree, not the sum
  std::uint64_t huge_page_bytes = 0;  // anonymous memory that lies in transparent huge pages
  std::uint64_t peak_rss_bytes =
      0;  // the kernel's own high-water mark of `pid` alone since it started or since reset_peak()
};

// The memory of `pid` and of all its living descendants. Error: no such process, or not ours to read.
Result<ProcessMemory> process_memory(pid_t pid);

// Sets the kernel's high-water mark of `pid` back to what is resident now. False: the kernel does not allow it.
bool reset_peak(pid_t pid);

// `pid` and all its living descendants, `pid` first.
std::vector<pid_t> process_tree(pid_t pid);

// A shared object or program whose code a process runs.
struct Library {
  std::string path;
  std::uint64_t bytes = 0;  // of its file
};
// What `pid` and its descendants have mapped as code by now from outside the system's folders (/usr, /lib, /bin),
// largest first; from /proc/PID/maps. What an interpreter only reads (.py) is not mapped. Empty: not readable.
std::vector<Library> own_libraries(pid_t pid);

// Samples the memory of a process tree on a thread of its own until stop(), every `interval` or, of a large one, so
// seldom that sampling takes 2% of a core: start-up is seen in the same pass.
class PeakSampler {
 public:
  // Between samples the process's own anonymous pages are looked at every 5 ms. The kernel's high-water mark,
  // which is reset, counts pages of files too and so tells no peak of private memory.
  PeakSampler(pid_t pid, std::chrono::milliseconds interval);
  ~PeakSampler();
  PeakSampler(const PeakSampler&) = delete;
  PeakSampler& operator=(const PeakSampler&) = delete;

  // Ends sampling and takes a last sample. Every field is the highest seen. Error: the process could never be read. May
  // be called again.
  Result<ProcessMemory> stop();
  int samples() const { return samples_; }

 private:
  void sample();
  void glance();  // at how the process itself has grown since the last sample
  pid_t pid_;
  int statm_;  // the process's open /proc/PID/statm, -1 if there is none
  std::chrono::milliseconds interval_;
  ProcessMemory peak_;
  std::uint64_t private_ = 0,
                anonymous_ = 0;  // of the process at the last sample: its own private bytes; as statm says
  std::atomic<int> samples_{0};
  bool stopping_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace strata::probe
