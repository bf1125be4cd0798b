// SPDX-License-Identifier: Apache-2.0
#include "strata/timed_loop.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "strata/bundle.hpp"

namespace strata {

namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

std::int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * ns_per_s + t.tv_nsec;
}

// The second figure of /proc/self/schedstat; a kernel without CONFIG_SCHED_INFO has no such file.
std::optional<std::int64_t> read_runq_ns() {
  const int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[128] = {};
  const auto got = read(fd, text, sizeof text - 1);
  close(fd);
  long long on_cpu = 0, waited = 0;
  if (got <= 0 || std::sscanf(text, "%lld %lld", &on_cpu, &waited) != 2) return std::nullopt;
  return waited;
}

}  // namespace

Iteration iterate(Iterated& level, std::span<const HostTensor> inputs, std::vector<HostTensor>& results) {
  const auto t0 = now_ns();
  level.set_input(inputs);
  const auto t1 = now_ns();
  level.run();
  level.wait();
  const auto t2 = now_ns();
  level.outputs(results);
  const auto t3 = now_ns();
  return {t3 - t0, t2 - t1};
}

Block run_block(Iterated& level, const std::vector<std::vector<HostTensor>>& ring, int head,
                std::span<const std::size_t> indices, const std::set<std::size_t>& retain, FreshInputs* fresh) {
  Block block;
  block.wall_ns.resize(indices.size());
  block.latency_ns.resize(indices.size());
  std::vector<HostTensor> results;
  std::int64_t copying_ns = 0;
  for (int i = 0; i < head; ++i) iterate(level, ring[static_cast<std::size_t>(i) % ring.size()], results);
  const auto runq_before = read_runq_ns();
  const auto cpu_before = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  block.start_ns = now_ns();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (fresh != nullptr) fresh->put(i);
    const Iteration times = iterate(level, ring[indices[i]], results);
    block.wall_ns[i] = times.wall_ns;
    block.latency_ns[i] = times.latency_ns;
    if (!retain.contains(i)) continue;
    // Copied at once: a result may be a view of the input, which changes, or of what is still written to.
    const auto since = now_ns();
    auto& copies = block.retained[i];
    for (const auto& result : results) copies.push_back(copy_of(result.view));
    copying_ns += now_ns() - since;
  }
  if (!retain.empty()) block.copy_ns = copying_ns / static_cast<std::int64_t>(retain.size());
  block.cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  const auto runq_after = read_runq_ns();
  if (runq_before && runq_after) block.runq_ns = *runq_after - *runq_before;
  return block;
}

}  // namespace strata
