// SPDX-License-Identifier: Apache-2.0
#include "proof/conduct.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "stats/sample.hpp"

namespace strata::proof {
namespace {

// Chosen with a margin, not tuned. A checked iteration may take half as long again as the others, as long as it takes
// to fetch the inputs that changed places, and a switch.
constexpr double kBeyondShare = 0.5, kBeyondNs = 50e3, kMovedBytesPerNs = 1;
constexpr std::size_t kFewestCompared = 20;
// One thread is tied to a processor; more are not, and a library's own may turn while they wait.
constexpr double kMoreProcessors = 1.15, kWaitingThread = 0.6, kSlackS = 0.05;
// What a block and an iteration take beside the told times, and the least told time that says anything.
constexpr double kBesidesBlockNs = 200e3, kBesidesIterationNs = 20e3, kLeastReportedNs = 50e6;

}  // namespace

void Conduct::add_block(std::span<const std::int64_t> wall_ns, int check, double moved_bytes) {
  std::vector<double> others;
  for (std::size_t i = 0; i < wall_ns.size(); ++i)
    if (i != static_cast<std::size_t>(check)) others.push_back(static_cast<double>(wall_ns[i]));
  if (check < 0 || others.empty() || others.size() == wall_ns.size()) return;
  const double median = stats::median(others);
  others_ns_.push_back(median);
  beyond_ns_.push_back(static_cast<double>(wall_ns[static_cast<std::size_t>(check)]) - median);
  allowed_ns_.push_back(kBeyondShare * median + kBeyondNs + moved_bytes / kMovedBytesPerNs);
}

void Conduct::add_restart(double cpu_s, double turns_s, int threads) {
  if (!(turns_s > 0) || threads < 1) return;
  threads_ = threads;
  processors_ = std::max(processors_, cpu_s / turns_s);
  too_many_ |= cpu_s > allowed_processors() * turns_s + kSlackS;
}

void Conduct::add_iterations(double cpu_ns, double wall_ns, int iterations, double moved_bytes, int threads) {
  if (threads < 1) return;
  threads_ = threads;
  reported_cpu_ns_ += cpu_ns;
  reported_wall_ns_ += wall_ns;
  reported_besides_ns_ += kBesidesBlockNs + kBesidesIterationNs * iterations + moved_bytes / kMovedBytesPerNs;
}

bool Conduct::checks_compared() const {
  return beyond_ns_.size() >= kFewestCompared;
}

double Conduct::checked_ns() const {
  return beyond_ns_.empty() ? 0 : stats::median(beyond_ns_);
}

double Conduct::allowed_processors() const {
  return kMoreProcessors * threads_ + (threads_ > 1 ? kWaitingThread : 0);
}

std::string Conduct::complaint_of_checks() const {
  if (!checks_compared()) return {};
  std::vector<double> excess;
  for (std::size_t i = 0; i < beyond_ns_.size(); ++i) excess.push_back(beyond_ns_[i] - allowed_ns_[i]);
  if (!(stats::median(excess) > 0)) return {};
  return fmt::format(
      "the iteration whose result is checked takes {:.3g} ms longer than the {:.3g} ms of the others: they "
      "do not do the work",
      checked_ns() * 1e-6, stats::median(others_ns_) * 1e-6);
}

std::string Conduct::complaint_of_processors() const {
  const double in_iterations =
      std::max(0.0, reported_cpu_ns_ - reported_besides_ns_) / std::max(1.0, reported_wall_ns_);
  const bool exceeded = reported_wall_ns_ > kLeastReportedNs && in_iterations > allowed_processors();
  if (!too_many_ && !exceeded) return {};
  return fmt::format(
      "it used {:.2g} processors where the case has {} thread{}: others than the case's threads work for it",
      exceeded ? std::max(processors_, in_iterations) : processors_, threads_, threads_ == 1 ? "" : "s");
}

std::string Conduct::complaint() const {
  auto why = complaint_of_processors();
  return why.empty() ? complaint_of_checks() : why;
}

}  // namespace strata::proof
