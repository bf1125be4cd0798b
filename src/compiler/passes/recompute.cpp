// SPDX-License-Identifier: Apache-2.0
// With a memory budget, steps of the forward phase are repeated in the backward phase instead of keeping their results,
// until the arena fits (Griewank and Walther 2000; Chen et al. 2016). The choice is greedy: again and again the step
// whose repetition takes most bytes above the budget off, summed over time, for its cost; then those that later ones
// made needless are taken back. Far below what can be reached that goes astray: then aims between are tried, one after
// the other. Without a budget nothing changes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "compiler/lifetimes.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/rematerialize.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

class Search {
 public:
  Search(const Program& program, const Rematerialization& repeats)
      : program_(program), repetitions_(repeats), choice_(program.steps.size(), false) {}

  // A choice with which at most `most` bytes live at once, or as near as it gets. Of those steps whose repetition
  // gained most before, `width` are tried again each time: the more, the better and slower.
  const Choice& fit(std::int64_t most, std::size_t width) {
    most_ = most;
    choice_.assign(choice_.size(), false);
    gains_.assign(choice_.size(), std::numeric_limits<double>::infinity());  // not asked yet
    left_.clear();
    for (std::size_t step = 0; step < choice_.size(); ++step)
      if (!repetitions_.given_again(step).empty()) left_.push_back(step);
    repeat_joined();
    while (now_.most() > most_ && (add_best(std::min(width, left_.size())) || add_best(left_.size()))) {
    }
    if (now_.most() <= most_) take_back();
    return choice_;
  }
  std::int64_t most_at_once() const { return now_.most(); }

 private:
  // What is joined can be joined again where its parts are kept. Of a network that joins the same parts again and again
  // (DenseNet) no one such step gains anything, and all together gain most: so they come first.
  void repeat_joined() {
    for (const auto step : std::vector<std::size_t>(left_)) {
      if (program_.steps[step].node.operation() != "cat") continue;
      choice_[step] = true;
      choice_[step] = repetitions_.profile(choice_, now_);
      if (choice_[step]) std::erase(left_, step);
    }
    repetitions_.profile(choice_, now_);
  }

  // Sum over the turns of the bytes above `most_`.
  double above(const Rematerialization::Profile& profile) const {
    double total = 0;
    for (const auto bytes : profile.bytes) total += static_cast<double>(std::max<std::int64_t>(bytes - most_, 0));
    return total;
  }

  double gain(std::size_t step) {
    choice_[step] = true;
    const bool possible = repetitions_.profile(choice_, next_);
    choice_[step] = false;
    return possible ? (above(now_) - above(next_)) / repetitions_.cost(step) : 0;
  }

  // False: none of those asked gains anything.
  bool add_best(std::size_t width) {
    const auto end = left_.begin() + static_cast<std::ptrdiff_t>(width);
    std::partial_sort(left_.begin(), end, left_.end(), [&](auto a, auto b) { return gains_[a] > gains_[b]; });
    for (auto left = left_.begin(); left != end; ++left) gains_[*left] = gain(*left);
    const auto best = std::max_element(left_.begin(), end, [&](auto a, auto b) { return gains_[a] < gains_[b]; });
    if (best == end || gains_[*best] <= 0) return false;
    choice_[*best] = true;
    left_.erase(best);
    return repetitions_.profile(choice_, now_);
  }

  // The most expensive first.
  void take_back() {
    std::vector<std::size_t> taken;
    for (std::size_t step = 0; step < choice_.size(); ++step)
      if (choice_[step]) taken.push_back(step);
    std::stable_sort(taken.begin(), taken.end(),
                     [&](auto a, auto b) { return repetitions_.cost(a) > repetitions_.cost(b); });
    for (const auto step : taken) {
      choice_[step] = false;
      if (!repetitions_.profile(choice_, next_) || next_.most() > most_) choice_[step] = true;
    }
    repetitions_.profile(choice_, now_);
  }

  const Program& program_;
  const Rematerialization& repetitions_;
  std::int64_t most_ = 0;
  Choice choice_;
  Rematerialization::Profile now_, next_;
  std::vector<double> gains_;      // by step, as of when it was last asked
  std::vector<std::size_t> left_;  // steps that can be chosen yet
};

// A program and its arena, as the passes behind this one will plan it.
struct Planned {
  Program before;  // without the plan
  Program after;
};

Result<Planned> planned(Program program) {
  STRATA_TRY(recompute_places(program));
  Planned result{program, std::move(program)};
  for (const auto pass : {in_place, plan_memory}) STRATA_TRY(pass(result.after));
  return result;
}

// What lives where most does, the largest first.
std::string at_peak(const Program& program) {
  constexpr std::size_t shown = 5;
  const auto lives = lifetimes_of(program);
  std::vector<Lifetime> most;
  std::int64_t most_bytes = -1;
  for (const auto& live : lives) {  // it is where a life begins
    std::vector<Lifetime> there;
    std::int64_t bytes = 0;
    for (const auto& other : lives)
      if (other.first <= live.first && live.first <= other.last) {
        there.push_back(other);
        bytes += other.bytes;
      }
    if (bytes > most_bytes) most = std::move(there);
    most_bytes = std::max(bytes, most_bytes);
  }
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::vector<std::string> largest;
  for (std::size_t i = 0; i < std::min(shown, most.size()); ++i) {
    const auto& step = program.steps[static_cast<std::size_t>(most[i].first)];
    largest.push_back(fmt::format("'{}' of {} ({} bytes)", program.value(most[i].storage).name,
                                  step.node.module.empty() ? "the network itself" : step.node.module, most[i].bytes));
  }
  if (most.size() > shown) largest.push_back(fmt::format("{} more", most.size() - shown));
  return fmt::format("{}", fmt::join(largest, ", "));
}

// Programs by search, until one fits.
class Fitter {
 public:
  Fitter(const Program& program, std::int64_t budget)
      : repetitions_(program), search_(program, repetitions_), budget_(budget) {}

  // Aimed at the budget; below it, where the plan's gaps take more than lives at once.
  Result<bool> directly() {
    constexpr std::size_t width = 48;
    auto aim = budget_;
    for (int tries = 0; tries < 4 && aim > 0; ++tries) {
      auto fits = attempt(aim, width);
      if (!fits || *fits || search_.most_at_once() > aim) return fits;
      aim -= last_.after.arena_bytes - budget_;
    }
    return false;
  }

  // By aims that do not depend on the budget, so that the least that is found can be had.
  Result<bool> stepwise(std::int64_t from) {
    constexpr double step = 0.9;
    constexpr std::size_t width = 8;
    for (auto aim = static_cast<double>(from) * step; aim > 1; aim *= step) {
      auto fits = attempt(static_cast<std::int64_t>(aim), width);
      if (!fits || *fits) return fits;
      if (least_.steps.empty() || last_.after.arena_bytes < least_.arena_bytes) least_ = last_.after;
      if (static_cast<double>(search_.most_at_once()) > aim) break;
    }
    return false;
  }

  Program& fitting() { return last_.before; }
  const Program& least() const { return least_; }

 private:
  Result<bool> attempt(std::int64_t aim, std::size_t width) {
    auto candidate = planned(repetitions_.program_with(search_.fit(aim, width)));
    if (!candidate) return tl::unexpected(candidate.error());
    last_ = *std::move(candidate);
    return last_.after.arena_bytes <= budget_;
  }

  Rematerialization repetitions_;
  Search search_;
  std::int64_t budget_;
  Planned last_;
  Program least_;
};

}  // namespace

Result<void> recompute(Program& program) {
  if (!program.budget) return {};
  if (program.graph.mode != graph::Mode::train)
    return fail("a memory budget is for training steps: in inference nothing is kept that could be computed again", "",
                Exit::usage);
  const auto whole = STRATA_TRY(planned(program));
  const auto all = whole.after.arena_bytes;
  const auto budget = program.budget->share > 0
                          ? static_cast<std::int64_t>(program.budget->share * static_cast<double>(all))
                          : program.budget->bytes;
  if (all <= budget) return {};
  Fitter fitter(program, budget);
  auto fits = fitter.directly();
  if (fits && !*fits) fits = fitter.stepwise(all);
  if (!fits) return tl::unexpected(fits.error());
  if (!*fits)
    return fail(fmt::format("a memory budget of {} bytes cannot be met: the least found is {} bytes, {} with every "
                            "result kept; at its peak there are {}",
                            budget, fitter.least().arena_bytes, all, at_peak(fitter.least())),
                "give more, or a smaller batch");
  Program fitting = std::move(fitter.fitting());
  program = std::move(fitting);
  return {};
}

}  // namespace strata::compiler
