// SPDX-License-Identifier: Apache-2.0
#include "analysis/batch_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/duration.hpp"

namespace strata::analysis {
namespace {

using RuleKind = BatchRule::Kind;

constexpr int kIdleDoublings = 2;      // without gain, after which larger batches are not tried
constexpr std::int64_t kFineness = 8;  // bisecting ends at an eighth of the batch
constexpr std::array<std::pair<const char*, RuleKind>, 3> kNames{
    {{"throughput", RuleKind::throughput}, {"memory", RuleKind::memory}, {"utilisation", RuleKind::utilisation}}};

double value_of(const BatchRule& rule, const BatchObservation& seen) {
  return rule.kind == RuleKind::utilisation ? seen.utilisation : seen.samples_per_s;
}

double best_value(const BatchRule& rule, const BatchCurve& curve) {
  double best = 0;
  for (const auto& [batch, seen] : curve)
    if (is_allowed(rule, seen)) best = std::max(best, value_of(rule, seen));
  return best;
}

// Whether the last doublings of those that were looked at still gained something.
bool still_gains(const BatchRule& rule, const BatchCurve& curve) {
  if (rule.kind == RuleKind::memory) return true;
  double best = 0;
  int idle = 0;
  for (const auto& [batch, seen] : curve) {
    const double value = value_of(rule, seen);
    idle = value > (1 + kBatchTolerance) * best ? 0 : idle + 1;
    best = std::max(best, value);
  }
  return idle < kIdleDoublings;
}

// Between a batch that is not what is looked for and the next one that is; nullopt: they are close enough.
std::optional<std::int64_t> between(std::int64_t below, std::int64_t above) {
  if (above - below <= std::max<std::int64_t>(1, above / kFineness)) return std::nullopt;
  return below + (above - below) / 2;
}

}  // namespace

Result<BatchRule> parse_batch_rule(const std::string& text) {
  for (const auto& [name, kind] : kNames)
    if (text == name) return BatchRule{kind, 0};
  if (text.starts_with("p99=")) {
    const auto seconds = seconds_of(text.substr(4));
    const bool has_unit = !text.empty() && (text.back() == 's');
    if (seconds && has_unit && *seconds > 0) return BatchRule{RuleKind::p99, *seconds * 1e3};
  }
  return fail(
      fmt::format("--find-batch {}: allowed: throughput, memory, utilisation, or p99 with a time, as p99=20ms", text),
      "docs/sweep.md says what each looks for", Exit::usage);
}

bool is_allowed(const BatchRule& rule, const BatchObservation& seen) {
  return seen.runs && (rule.kind != RuleKind::p99 || seen.p99_ms <= rule.limit_ms);
}

std::optional<std::int64_t> best_batch(const BatchRule& rule, const BatchCurve& curve) {
  std::optional<std::int64_t> result;
  const double least = (1 - kBatchTolerance) * best_value(rule, curve);
  for (const auto& [batch, seen] : curve) {
    if (!is_allowed(rule, seen)) continue;
    if (rule.kind == RuleKind::memory)
      result = batch;
    else if (!result && value_of(rule, seen) >= least)
      result = batch;
  }
  return result;
}

std::optional<std::int64_t> next_batch(const BatchRule& rule, const BatchCurve& curve, std::int64_t low,
                                       std::int64_t high) {
  if (curve.empty()) return low;
  const auto& [largest, last] = *curve.rbegin();
  if (is_allowed(rule, last) && largest < high && still_gains(rule, curve)) return std::min(high, 2 * largest);
  const auto best = best_batch(rule, curve);
  if (!best) {  // a training step may need more than one sample
    const bool may_be_too_small = curve.size() == 1 && !last.runs && largest < high;
    return may_be_too_small ? std::optional(std::min(high, 2 * largest)) : std::nullopt;
  }
  const auto at = curve.find(*best);
  // From above: the first batch that is not allowed any more. From below: the last that is not good enough yet.
  const auto above = std::next(at);
  const bool at_edge = above != curve.end() && !is_allowed(rule, above->second);
  if (at_edge && (rule.kind == RuleKind::memory || rule.kind == RuleKind::p99))
    if (const auto next = between(*best, above->first)) return next;
  if (rule.kind == RuleKind::memory || at == curve.begin()) return std::nullopt;
  return between(std::prev(at)->first, *best);
}

}  // namespace strata::analysis
