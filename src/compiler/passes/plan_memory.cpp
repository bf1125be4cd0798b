// SPDX-License-Identifier: Apache-2.0
// Offsets in one arena for every storage that lives only during a run. Placing intervals of different sizes so that the
// peak is least is NP-hard (dynamic storage allocation: Garey and Johnson, SR2); several greedy orders with best fit
// are tried, then exchanges of two storages, until the lower bound is met or the tries are used up.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "compiler/lifetimes.hpp"
#include "compiler/passes/passes.hpp"

namespace strata::compiler {
namespace {

constexpr std::int64_t work_of_tries = 20'000'000;  // pairs of storages looked at, some tenths of a second

struct Plan {
  std::vector<std::int64_t> offsets;  // by block
  std::int64_t peak = std::numeric_limits<std::int64_t>::max();
};

class Planner {
 public:
  explicit Planner(const std::vector<Lifetime>& blocks) : blocks_(blocks) {}

  // Places blocks in `order`, each into the smallest gap that holds it between those that live with it.
  Plan place(const std::vector<std::size_t>& order) {
    Plan plan{std::vector<std::int64_t>(blocks_.size(), 0), 0};
    placed_.clear();  // by offset
    for (const auto i : order) {
      if (blocks_[i].bytes == 0) continue;
      plan.offsets[i] = gap_for(blocks_[i], plan);
      plan.peak = std::max(plan.peak, plan.offsets[i] + blocks_[i].bytes);
      const auto by_offset = [&](std::size_t a, std::size_t b) { return plan.offsets[a] < plan.offsets[b]; };
      placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), i, by_offset), i);
    }
    return plan;
  }

 private:
  std::int64_t gap_for(const Lifetime& block, const Plan& plan) const {
    std::int64_t end = 0, best = -1, least = std::numeric_limits<std::int64_t>::max();
    for (const auto j : placed_) {
      if (!overlap(block, blocks_[j])) continue;
      const auto gap = plan.offsets[j] - end;
      if (gap >= block.bytes && gap < least) {
        least = gap;
        best = end;
      }
      end = std::max(end, plan.offsets[j] + blocks_[j].bytes);
    }
    return best >= 0 ? best : end;
  }

  const std::vector<Lifetime>& blocks_;
  std::vector<std::size_t> placed_;
};

// Greedy orders: by size; by size times steps lived; by first step; by length of life.
std::vector<std::vector<std::size_t>> orders_of(const std::vector<Lifetime>& blocks) {
  using Key = std::pair<double, double>;
  const auto keys = [&](std::size_t i) -> std::array<Key, 4> {
    const auto bytes = static_cast<double>(blocks[i].bytes), first = static_cast<double>(blocks[i].first);
    const auto steps = static_cast<double>(blocks[i].last - blocks[i].first + 1);
    return {Key{-bytes, first}, Key{-bytes * steps, first}, Key{first, -bytes}, Key{-steps, -bytes}};
  };
  std::vector<std::vector<std::size_t>> orders(4);
  for (std::size_t kind = 0; kind < orders.size(); ++kind) {
    for (std::size_t i = 0; i < blocks.size(); ++i) orders[kind].push_back(i);
    std::stable_sort(orders[kind].begin(), orders[kind].end(),
                     [&](auto a, auto b) { return keys(a)[kind] < keys(b)[kind]; });
  }
  return orders;
}

Plan best_plan(const std::vector<Lifetime>& blocks, std::int64_t least) {
  Planner planner(blocks);
  Plan best;
  std::vector<std::size_t> order;
  for (auto& candidate : orders_of(blocks))
    if (auto plan = planner.place(candidate); plan.peak < best.peak) {
      best = std::move(plan);
      order = std::move(candidate);
    }
  const auto count = static_cast<std::int64_t>(blocks.size());
  const auto tries = count < 2 ? 0 : std::min<std::int64_t>(1000, work_of_tries / (count * count));
  std::mt19937 draw(5489);  // the same plan for the same program
  for (std::int64_t t = 0; t < tries && best.peak > least; ++t) {
    const auto a = draw() % blocks.size(), b = draw() % blocks.size();
    std::swap(order[a], order[b]);
    if (auto plan = planner.place(order); plan.peak <= best.peak)
      best = std::move(plan);
    else
      std::swap(order[a], order[b]);
  }
  return best;
}

}  // namespace

Result<void> plan_memory(Program& program) {
  const auto blocks = lifetimes_of(program);
  std::int64_t total = 0;
  for (const auto& block : blocks)
    if (__builtin_add_overflow(total, block.bytes, &total))
      return fail(fmt::format("value '{}' and those before it take more bytes than 64 bits can count",
                              program.value(block.storage).name));
  program.least_arena_bytes = most_at_once(blocks);
  const auto plan = best_plan(blocks, program.least_arena_bytes);
  program.arena_bytes = blocks.empty() ? 0 : plan.peak;
  for (std::size_t i = 0; i < blocks.size(); ++i) program.place(blocks[i].storage).offset = plan.offsets[i];
  return {};
}

}  // namespace strata::compiler
