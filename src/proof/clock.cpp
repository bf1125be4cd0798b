// SPDX-License-Identifier: Apache-2.0
#include "proof/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "stats/rank_sum.hpp"

namespace strata::proof {
namespace {

// Both read the same clock, so that a sum above the driver's time is no matter of precision; this is for a level in a
// language whose clock is coarser.
constexpr double kSlack = 1.001, kSlackNs = 100e3;
// Of an iteration: below what a clock that is slow by a fifth leaves untold (a quarter), above what a language takes
// between two iterations on a slow machine, and to free a result.
constexpr double kUnreportedShare = 0.15, kUnreportedNs = 15e3, kFreedBytesPerNs = 10;
// Where even the least disturbed request waited for a core: eager was at 0.26 beside one other program.
constexpr double kQuietQueue = 0.02, kBusyShare = 0.5;
// Of an ordinary block: three times its unrecorded iterations (the first is cold), half its told time, and what is
// independent of it.
constexpr double kHeadTimes = 3, kBlockShare = 0.5, kBlockNs = 20e6, kBytesPerNs = 0.05;
constexpr int kFewestBlocks = 3;
constexpr double kTurnsChance = 1e-5;  // that an honest level's long blocks lie so far above its short ones
// Of copying a result aside.
constexpr double kCopyShare = 0.5, kCopyNs = 5e6;

std::string ms(double ns) {
  return fmt::format("{:.3g} ms", ns * 1e-6);
}

}  // namespace

std::string impossible_sum(const std::string& what, double reported_ns, double waited_ns) {
  if (reported_ns <= waited_ns * kSlack + kSlackNs) return {};
  return fmt::format("{} {} by the level's own account, where the driver waited {} for the whole request", what,
                     ms(reported_ns), ms(waited_ns));
}

std::string impossible_times(std::span<const std::int64_t> wall_ns, std::span<const std::int64_t> latency_ns,
                             double waited_ns) {
  for (std::size_t i = 0; i < wall_ns.size() && i < latency_ns.size(); ++i)
    if (latency_ns[i] > wall_ns[i])
      return fmt::format("iteration {} has a latency of {} ns, more than its whole time of {} ns", i, latency_ns[i],
                         wall_ns[i]);
  const double reported_ns = std::accumulate(wall_ns.begin(), wall_ns.end(), 0.0);  // as double: no sum overflows
  return impossible_sum(fmt::format("{} iterations took", wall_ns.size()), reported_ns, waited_ns);
}

void ClockEvidence::keep(Least& least, const Timed& timed, double unreported_ns) {
  const double reported_ns = timed.reported_ns / std::max(1, timed.iterations);
  const double queued = timed.queued_ns > 0 ? timed.queued_ns / (timed.elapsed_ns + timed.queued_ns) : 0;
  if (least.iterations != timed.iterations) least = {timed.iterations, unreported_ns, reported_ns, queued};
  least.unreported_ns = std::min(least.unreported_ns, unreported_ns);
  least.reported_ns = std::min(least.reported_ns, reported_ns);
  least.queued_share = std::min(least.queued_share, queued);
}

double ClockEvidence::Pair::unreported_ns() const {
  return std::max(0.0,
                  (longer.unreported_ns - shorter.unreported_ns) / std::max(1, longer.iterations - shorter.iterations));
}

double ClockEvidence::Pair::allowed_ns(double bytes) const {
  const double queued = std::max(shorter.queued_share, longer.queued_share);
  const double share = queued > kQuietQueue ? kBusyShare : kUnreportedShare;
  return (share + queued) * longer.reported_ns + kUnreportedNs + bytes / kFreedBytesPerNs;
}

void ClockEvidence::add(const Timed& timed, bool is_long, double bytes) {
  requests_.add(timed, is_long);
  bytes_ = std::max(bytes_, bytes);
}

void ClockEvidence::add_turn(const Timed& timed, bool is_long) {
  // Waiting within an iteration is told and left out of what elapsed as well: it would hide the unrecorded ones.
  if (timed.queued_ns > kQuietQueue * (timed.elapsed_ns + timed.queued_ns)) return;
  turns_.add(timed, is_long);
  (is_long ? long_turns_ : short_turns_).push_back(timed);
}

void ClockEvidence::add_block(const Timed& timed, int head, double bytes) {
  const double reported_ns = timed.reported_ns / std::max(1, timed.iterations);
  const double excess = timed.unreported_ns() - (kHeadTimes * head * reported_ns + kBlockShare * timed.reported_ns +
                                                 kBlockNs + bytes / kBytesPerNs);
  ++blocks_;
  if (!least_excess_ns_ || excess < *least_excess_ns_) {
    least_excess_ns_ = excess;
    excess_of_ = timed;
  }
}

void ClockEvidence::add_copies(double copy_ns, double reported_ns, double bytes) {
  const double late = copy_ns - (kCopyShare * reported_ns + kCopyNs + bytes / kBytesPerNs);
  ++copied_;
  if (!least_late_ns_ || late < *least_late_ns_) {
    least_late_ns_ = late;
    late_of_ns_ = copy_ns;
  }
}

double ClockEvidence::reported_ns() const {
  return requests_.longer.reported_ns;
}

double ClockEvidence::unreported_ns() const {
  return requests_.unreported_ns();
}

double ClockEvidence::allowed_ns() const {
  return requests_.allowed_ns(bytes_);
}

std::string ClockEvidence::complaint_of_turns() const {
  const double allowed_ns = turns_.allowed_ns(bytes_);
  if (!turns_ended_ || !turns_.complete() || turns_.unreported_ns() <= allowed_ns) return {};
  const auto beyond_allowed = [&](const std::vector<Timed>& turns) {
    std::vector<double> beyond;
    for (const auto& turn : turns) beyond.push_back(turn.unreported_ns() - allowed_ns * turn.iterations);
    return beyond;
  };
  if (stats::rank_sum_chance(beyond_allowed(long_turns_), beyond_allowed(short_turns_)) > kTurnsChance) return {};
  return fmt::format(
      "an iteration of its timed blocks took {} longer by the driver's clock than the {} that the level tells: its "
      "clock is slow there, or the work is done elsewhere",
      ms(turns_.unreported_ns()), ms(turns_.longer.reported_ns));
}

std::string ClockEvidence::complaint() const {
  // First, since it says more than the others, which put-off work may cause, too.
  if (copied_ >= kFewestBlocks && *least_late_ns_ > 0)
    return fmt::format("to copy a result took {} after the iteration's clock had stopped: the work is put off",
                       ms(late_of_ns_));
  if (checked() && unreported_ns() > allowed_ns())
    return fmt::format(
        "an iteration took {} longer by the driver's clock than the {} that the level tells: its clock is slow, "
        "or the work is put off",
        ms(unreported_ns()), ms(reported_ns()));
  if (auto why = complaint_of_turns(); !why.empty()) return why;
  if (blocks_ >= kFewestBlocks && *least_excess_ns_ > 0)
    return fmt::format("a block of {} iterations took {} by the driver's clock, of which the level tells {}",
                       excess_of_.iterations, ms(excess_of_.elapsed_ns), ms(excess_of_.reported_ns));
  return {};
}

}  // namespace strata::proof
