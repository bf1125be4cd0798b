// SPDX-License-Identifier: Apache-2.0
#include "training/proof_plan.hpp"

#include <algorithm>
#include <cmath>

namespace strata::training {
namespace {

constexpr std::size_t kScoresDrawn = 2;
constexpr double kShareForWindows = 0.04;  // of the time of steps, for what windows cost besides
constexpr std::uint64_t kOneShort = 4;     // of so many other requests, drawn, one has so small a part of the steps
constexpr std::int64_t kShortPart = 3;

std::uint64_t bound(std::int64_t count) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, count));
}

}  // namespace

std::set<int> epochs_to_score(stats::Random& random, int epochs) {
  std::set<int> scored{0, epochs - 1};
  const auto wanted = std::min(static_cast<std::size_t>(epochs), scored.size() + kScoresDrawn);
  while (scored.size() < wanted) scored.insert(static_cast<int>(random.below(bound(epochs))));
  return scored;
}

// One window in each of as many equal parts of the repeat, whose last step ends the last part.
ProofPlan::ProofPlan(std::uint64_t seed, const RepeatShape& shape) : shape_(shape), random_(seed) {
  scored_ = epochs_to_score(random_, shape.epochs);
  const std::int64_t all = shape.epochs * shape.steps, windows = std::min<std::int64_t>(shape.proofs + 1, all);
  for (std::int64_t i = 0; i < windows; ++i) {
    const auto begin = i * all / windows, end = (i + 1) * all / windows;
    const auto steps = draw_length(std::clamp<std::int64_t>((end - begin) / 2, 1, kLongestWindow));
    auto first = begin + static_cast<std::int64_t>(random_.below(bound(end - begin - steps + 1)));
    if (i + 1 == windows) first = end - steps;
    // none goes across the end of an epoch
    const auto next_epoch = (first / shape.steps + 1) * shape.steps;
    if (first + steps > next_epoch) first = next_epoch - steps >= begin ? next_epoch - steps : next_epoch;
    planned_.push_back({static_cast<int>(first / shape.steps), first % shape.steps, steps});
  }
}

// Half of the windows have all the steps that one can have.
std::int64_t ProofPlan::draw_length(std::int64_t longest) {
  if (longest < 2 || random_.below(2) == 0) return std::max<std::int64_t>(1, longest);
  return 1 + static_cast<std::int64_t>(random_.below(bound(longest - 1)));
}

NextRequest ProofPlan::next(int epoch, std::int64_t next, std::int64_t end, std::int64_t longest, std::int64_t fitting,
                            double window_share) {
  const auto passed = [&](const Window& window) {
    return window.epoch < epoch || (window.epoch == epoch && window.first + window.steps <= next);
  };
  while (!planned_.empty() && passed(planned_.front())) planned_.pop_front();
  const bool in_epoch = !planned_.empty() && planned_.front().epoch == epoch;
  if (auto* front = in_epoch ? &planned_.front() : nullptr; front && front->steps > longest) {  // to the same end
    front->first += front->steps - longest;
    front->steps = longest;
  }
  const auto until = in_epoch ? std::min(end, std::max(next, planned_.front().first)) : end;
  NextRequest request;
  if (in_epoch && planned_.front().first <= next) {
    request = {.steps = planned_.front().steps, .window = true, .judged = true};
    planned_.pop_front();
  } else {
    if (gap_ < 0) {  // the share of windows that their cost allows, on average
      const double mean = window_share / kShareForWindows - static_cast<double>(longest);
      gap_ = !(mean < static_cast<double>(shape_.epochs * shape_.steps)) ? shape_.steps
             : mean < 1                                                  ? 0
                        : std::llround(mean / 2) + static_cast<std::int64_t>(random_.below(bound(std::llround(mean))));
    }
    if (gap_ == 0) {
      request = {.steps = draw_length(longest), .window = true};
      gap_ = -1;
    } else {
      const auto most = std::clamp<std::int64_t>(fitting, 1, gap_);
      request = {.steps = random_.below(kOneShort) == 0 ? std::max<std::int64_t>(1, most / kShortPart) : most};
    }
  }
  request.steps = std::clamp<std::int64_t>(request.steps, 1, (request.judged ? end : until) - next);
  if (!request.window) gap_ -= request.steps;
  return request;
}

bool ProofPlan::retry(int epoch, std::int64_t next) {
  const bool in_epoch = !planned_.empty() && planned_.front().epoch == epoch;
  const auto end = in_epoch ? planned_.front().first : shape_.steps;
  if (end <= next) return false;
  const auto first = next + static_cast<std::int64_t>(random_.below(bound(end - next)));
  planned_.push_front({epoch, first, std::min<std::int64_t>(kLongestWindow, end - first)});
  return true;
}

}  // namespace strata::training
