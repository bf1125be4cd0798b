// SPDX-License-Identifier: Apache-2.0
#include "strata/serving.hpp"

#include <time.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "strata/timed_loop.hpp"

namespace strata {

namespace {

constexpr std::size_t reserved = std::size_t{1} << 16;

std::int64_t process_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// SplitMix64 (Steele, Lea and Flood, 2014).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) % bound;
  }

 private:
  std::uint64_t state_;
};

// A client's own copy of the inputs: callers of a server share no memory.
Ring copy_of(const Ring& ring) {
  Ring copies;
  for (const auto& entry : ring) {
    copies.emplace_back();
    for (const auto& tensor : entry) {
      copies.back().push_back(allocate(tensor.view.dtype, tensor.view.shape));
      std::memcpy(writable(copies.back().back()), tensor.view.data, tensor.view.bytes);
    }
  }
  return copies;
}

// When a result is kept: after these times from the start, drawn so that the level cannot foresee them.
std::vector<std::int64_t> check_times(Draws& draws, const ServePlan& plan) {
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < plan.checks; ++i)
    times.push_back(plan.min_ns > 0 ? static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(plan.min_ns)))
                                    : 0);
  std::sort(times.begin(), times.end());
  return times;
}

// Every request has the same chance to stay; their order stays too.
void thin_out(ServedClient& record, std::size_t most, Draws& draws) {
  const std::size_t count = record.latency_ns.size();
  std::size_t sampled = 0;
  for (std::size_t i = 0; i < count && count > most; ++i) {
    if (draws.below(count - i) >= most - sampled) continue;
    record.latency_ns[sampled] = record.latency_ns[i];
    record.done_ns[sampled++] = record.done_ns[i];
  }
  if (count <= most) sampled = count;
  record.latency_ns.resize(sampled);
  record.done_ns.resize(sampled);
}

// The closed loop of one client.
ServedClient requests_of(Client& client, const Ring& ring, const ServePlan& plan, Draws& draws) {
  ServedClient record;
  record.latency_ns.reserve(reserved);
  record.done_ns.reserve(reserved);
  const auto checks = check_times(draws, plan);
  std::vector<HostTensor> results;
  record.start_ns = now_ns();
  const std::int64_t end = plan.begin_ns.value_or(record.start_ns) + plan.min_ns;
  for (std::int64_t done = record.start_ns; record.requests == 0 || (done < end && record.requests < plan.max_requests);
       ++record.requests) {
    const auto index = static_cast<std::size_t>(draws.below(ring.size()));
    const auto wall = iterate(client, ring[index], results).wall_ns;
    done = now_ns();
    record.latency_ns.push_back(wall);
    record.done_ns.push_back(done - record.start_ns);
    if (record.checked.size() < checks.size() && done - record.start_ns >= checks[record.checked.size()])
      record.checked.emplace_back(index, std::exchange(results, {}));
  }
  record.wall_ns = record.done_ns.back();
  thin_out(record, plan.samples, draws);
  return record;
}

}  // namespace

Served serve_clients(const std::vector<std::unique_ptr<Client>>& clients, const Ring& ring, const ServePlan& plan) {
  Served served;
  served.clients.resize(clients.size());
  std::vector<std::exception_ptr> errors(clients.size());
  std::mutex warming;  // what is compiled on first use is compiled once
  std::int64_t cpu_before = 0;
  std::barrier ready(static_cast<std::ptrdiff_t>(clients.size()), [&]() noexcept { cpu_before = process_cpu_ns(); });
  const auto body = [&](std::size_t number) {
    bool arrived = false;
    try {
      Draws draws(plan.seed + number * 0x2545f4914f6cdd1dULL);
      const Ring own = copy_of(ring);
      {
        const std::lock_guard lock(warming);
        clients[number]->enter();
        std::vector<HostTensor> results;
        for (std::size_t i = 0; i < 2; ++i) iterate(*clients[number], own[i % own.size()], results);
      }
      arrived = true;
      ready.arrive_and_wait();
      if (const auto left = plan.begin_ns.value_or(0) - now_ns(); left > 0)
        std::this_thread::sleep_for(std::chrono::nanoseconds(left));
      served.clients[number] = requests_of(*clients[number], own, plan, draws);
    } catch (...) {
      errors[number] = std::current_exception();
      if (!arrived) ready.arrive_and_drop();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i) threads.emplace_back(body, i);
  }
  served.cpu_ns = process_cpu_ns() - cpu_before;
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  return served;
}

}  // namespace strata
