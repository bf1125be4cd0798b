// SPDX-License-Identifier: Apache-2.0
// Small independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace strata {

inline int all_processors() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// work(0) ... work(count - 1), each once, in no order; returns when all are done. Nothing may be thrown. Not while
// something is timed.
inline void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work,
                        int threads = all_processors()) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  const auto team = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < team; ++i) others.emplace_back(run);
  run();
}

}  // namespace strata
