// SPDX-License-Identifier: Apache-2.0
// Many small independent pieces of work on several threads, with somebody told how far it is.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include "common/interrupt.hpp"
#include "common/parallel.hpp"

namespace strata::data {

using Progress = std::function<void(std::size_t done, std::size_t total)>;

// work(0) ... work(total - 1), each once, in no order; `progress` is called from this thread. False: interrupted.
inline bool for_each_in_parallel(std::size_t total, int threads, const std::function<void(std::size_t)>& work,
                                 const Progress& progress = {}) {
  constexpr std::chrono::milliseconds tick{100};
  std::atomic<std::size_t> done{0};
  const auto work_on = [&](std::size_t i) {
    if (interrupted().load()) return;
    work(i);
    done.fetch_add(1);
  };
  const auto all = std::async(std::launch::async, [&] { in_parallel(total, work_on, threads); });
  while (all.wait_for(tick) != std::future_status::ready)
    if (progress) progress(done.load(), total);
  return done.load() == total;
}

}  // namespace strata::data
