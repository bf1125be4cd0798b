// SPDX-License-Identifier: Apache-2.0
#include "proof/conduct.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "stats/sample.hpp"

namespace strata::proof {
namespace {

// Chosen with a margin, not tuned. An iteration whose input changed places may take half as long again as the
// others, as long as it takes to fetch that input, and a switch.
constexpr double kBeyondShare = 0.5, kBeyondNs = 50e3, kMovedBytesPerNs = 1;
constexpr std::size_t kFewestCompared = 20;
constexpr std::size_t kSampledOfBlock = 8;  // of its iterations on known inputs, as many as say what is usual
// Which iteration is exchanged, or shown what nobody saw, is drawn: on a machine that others use any may be held up,
// and what an honest level's would show by chance more often than this says nothing.
constexpr double kChance = 1e-5;
// Of new inputs the quickest is looked at: of four that others' programs held up all, of ten none is.
constexpr std::size_t kFewestUnseen = 4, kManyUnseen = 10;
constexpr double kManyBeyondShare = 0.2;
// Of reading a state the first time, against the second: its file may find colder caches, and a level that puts off a
// twentieth of what it told gains no more than that.
constexpr double kStateTimes = 2, kStateNs = 50e6, kStateToldShare = 0.05;
// One thread is tied to a processor; more are not, and a library's own may turn while they wait.
constexpr double kMoreProcessors = 1.15, kWaitingThread = 0.6, kSlackS = 0.05;
// What a block and an iteration take beside the told times, and the least told time that says anything.
constexpr double kBesidesBlockNs = 200e3, kBesidesIterationNs = 20e3, kLeastReportedNs = 50e6;

}  // namespace

void Conduct::add_block(std::span<const std::int64_t> wall_ns, int at, double moved_bytes, bool unseen) {
  if (at < 0 || static_cast<std::size_t>(at) >= wall_ns.size()) return;
  std::vector<double> others(wall_ns.begin(), wall_ns.end());
  const double marked = others[static_cast<std::size_t>(at)];
  const double usual = stats::lower_quartile(others);
  others.erase(others.begin() + at);
  if (unseen) {
    unseen_ns_.push_back(marked);
    unseen_moved_ = std::max(unseen_moved_, moved_bytes);
  }
  const auto sampled = std::min(others.size(), kSampledOfBlock);
  for (std::size_t i = 0; i < sampled; ++i) known_ns_.push_back(others[i * others.size() / sampled]);
  if (others.empty() && !unseen) known_ns_.push_back(marked);
  if (others.empty()) return;
  others_ns_.push_back(stats::median(others));
  beyond_ns_.push_back(marked - others_ns_.back());
  const double slow = usual + kBeyondShare * usual + kBeyondNs + moved_bytes / kMovedBytesPerNs;
  const auto slow_others = std::ranges::count_if(others, [&](double ns) { return ns > slow; });
  slow_exchanged_ += marked > slow ? 1 : 0;
  slow_expected_ += static_cast<double>(slow_others + (marked > slow ? 1 : 0)) / static_cast<double>(wall_ns.size());
}

void Conduct::add_retained(std::size_t results, int iterations) {
  retained_ += static_cast<double>(results);
  iterations_ += iterations;
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

void Conduct::add_states(std::span<const StateRead> reads, double again_ns) {
  if (reads.empty()) return;
  StateRead all;
  std::optional<double> least;
  for (const auto& read : reads) {
    all.ns += read.ns;
    all.told_ns += read.told_ns;
    const double late = read.ns - (kStateTimes * again_ns + kStateToldShare * read.told_ns);
    least = std::min(least.value_or(late), late);
  }
  const double late = *least * static_cast<double>(reads.size()) - kStateNs;
  if (least_late_ns_ && *least_late_ns_ <= late) return;
  least_late_ns_ = late;
  late_of_ns_ = all.ns;
  late_told_ns_ = all.told_ns;
}

bool Conduct::exchanges_compared() const {
  return beyond_ns_.size() >= kFewestCompared;
}

double Conduct::exchanged_ns() const {
  return beyond_ns_.empty() ? 0 : stats::median(beyond_ns_);
}

double Conduct::allowed_processors() const {
  return kMoreProcessors * threads_ + (threads_ > 1 ? kWaitingThread : 0);
}

std::string Conduct::complaint_of_exchanges() const {
  if (!exchanges_compared()) return {};
  const auto blocks = static_cast<int>(beyond_ns_.size());
  if (2 * slow_exchanged_ <= blocks ||
      stats::binomial_chance(slow_exchanged_, blocks, slow_expected_ / blocks) > kChance)
    return {};
  return fmt::format(
      "the iteration whose input changed places takes {:.3g} ms longer than the {:.3g} ms of the others: they do not "
      "do the work",
      exchanged_ns() * 1e-6, stats::median(others_ns_) * 1e-6);
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

bool Conduct::unseen_compared() const {
  return unseen_ns_.size() >= kFewestUnseen && !known_ns_.empty();
}

double Conduct::unseen_ns() const {
  if (unseen_ns_.empty() || known_ns_.empty()) return 0;
  return *std::min_element(unseen_ns_.begin(), unseen_ns_.end()) - stats::median(known_ns_);
}

std::string Conduct::complaint_of_unseen() const {
  if (!unseen_compared()) return {};
  const double known = stats::median(known_ns_);
  const double beyond = unseen_ns_.size() < kManyUnseen ? kBeyondShare : kManyBeyondShare;
  const double allowed_ns = beyond * known + kBeyondNs + unseen_moved_ / kMovedBytesPerNs;
  if (unseen_ns() <= allowed_ns) return {};
  const auto slow = std::ranges::count_if(known_ns_, [&](double ns) { return ns > known + allowed_ns; });
  const double share = static_cast<double>(slow + 1) / static_cast<double>(known_ns_.size() + 1);
  const auto unseen = static_cast<int>(unseen_ns_.size());
  if (stats::binomial_chance(unseen, unseen, share) > kChance) return {};
  return fmt::format(
      "each of {} inputs that it had never seen took {:.3g} ms longer or more than the {:.3g} ms of those that it "
      "knew: it remembers results",
      unseen_ns_.size(), unseen_ns() * 1e-6, known * 1e-6);
}

std::string Conduct::complaint_of_states() const {
  if (!least_late_ns_ || *least_late_ns_ <= 0) return {};
  return fmt::format(
      "reading its state after the timed steps, of which it told {:.3g} ms, took {:.3g} ms: the work is put off",
      late_told_ns_ * 1e-6, late_of_ns_ * 1e-6);
}

std::string Conduct::complaint() const {
  for (const auto& why : {complaint_of_processors(), complaint_of_states(), complaint_of_exchanges()})
    if (!why.empty()) return why;
  return complaint_of_unseen();
}

}  // namespace strata::proof
