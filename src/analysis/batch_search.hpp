// SPDX-License-Identifier: Apache-2.0
// The search for the batch of a level: doubling, then bisecting, on one look at each batch. What it comes to is judged
// afterwards, from all restarts (find_batch.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/result.hpp"

namespace strata::analysis {

// What is looked for: the smallest batch within 2% of the best throughput, the largest that memory holds, the smallest
// within 2% of the highest utilisation of the processors, or that of the best throughput whose p99 is no longer than
// asked for.
struct BatchRule {
  enum class Kind { throughput, memory, utilisation, p99 };
  Kind kind = Kind::throughput;
  double limit_ms = 0;  // of p99
};
// "throughput", "memory", "utilisation", "p99=20ms". Error: what is allowed.
Result<BatchRule> parse_batch_rule(const std::string& text);

// One look at a batch; `runs` false: it did not run there, for lack of memory or otherwise.
struct BatchObservation {
  bool runs = true;
  double samples_per_s = 0, utilisation = 0, p99_ms = 0;
};
using BatchCurve = std::map<std::int64_t, BatchObservation>;

inline constexpr double kBatchTolerance = 0.02;

// Whether a batch is one that the rule allows: it runs, and within its p99.
bool is_allowed(const BatchRule& rule, const BatchObservation& seen);

// The batch to look at next, from `low` to `high`; nullopt: the search is at its end.
std::optional<std::int64_t> next_batch(const BatchRule& rule, const BatchCurve& curve, std::int64_t low,
                                       std::int64_t high);

// What the looks come to; nullopt: no batch is allowed.
std::optional<std::int64_t> best_batch(const BatchRule& rule, const BatchCurve& curve);

}  // namespace strata::analysis
