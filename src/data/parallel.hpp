// SPDX-License-Identifier: Apache-2.0
// Many small independent pieces of work on several threads, with somebody told how far it is.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "common/interrupt.hpp"

namespace strata::data {

using Progress = std::function<void(std::size_t done, std::size_t total)>;

// work(0) ... work(total - 1), each once, in no order; `progress` is called from this thread. False: interrupted.
inline bool for_each_in_parallel(std::size_t total, int threads, const std::function<void(std::size_t)>& work,
                                 const Progress& progress = {}) {
  constexpr std::chrono::milliseconds tick{100};
  std::atomic<std::size_t> next{0}, done{0};
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = std::clamp<std::size_t>(total, 1, static_cast<std::size_t>(std::max(1, threads)));
  const auto run = [&] {
    for (std::size_t i; !interrupted().load() && (i = next.fetch_add(1)) < total; done.fetch_add(1)) work(i);
    const std::scoped_lock lock(mutex);
    --running;
    ended.notify_one();
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0, count = running; i < count; ++i) workers.emplace_back(run);
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, tick, [&] { return running == 0; })) {
    if (!progress) continue;
    lock.unlock();
    progress(done.load(), total);
    lock.lock();
  }
  return done.load() == total;
}

}  // namespace strata::data
