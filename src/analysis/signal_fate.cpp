// SPDX-License-Identifier: Apache-2.0
#include "analysis/signal_fate.hpp"

#include <fmt/format.h>

#include <cmath>

namespace strata::analysis {
namespace {

struct FirstFault {
  std::int64_t step = 0;  // from 1
  SignalFault fault;
};

// The first fault of a repeat.
std::optional<FirstFault> first_fault(const SizesByStep& sizes, int repeat, const core::Recipe& recipe) {
  const auto steps = sizes.find(repeat);
  if (steps == sizes.end()) return std::nullopt;
  for (const auto& [step, layers] : steps->second)
    if (auto event = signal_fault(layers, recipe, step - 1)) return FirstFault{step, std::move(*event)};
  return std::nullopt;
}

void describe(SignalFate& out, const std::optional<FirstFault>& first,
              const std::optional<Learning::Diverged>& diverged) {
  if (diverged && !(first && first->fault.explodes)) {
    out.words = fmt::format("the loss is not finite at step {} of epoch {}", diverged->step, diverged->epoch);
    out.fate = Fate::explodes;
  } else if (first) {
    out.layer = first->fault.layer;
    out.words = first->fault.words;
    out.step = first->step;
    out.fate = first->fault.explodes ? Fate::explodes : Fate::vanishes;
  }
}

}  // namespace

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::learns:
      return "learns";
    case Fate::vanishes:
      return "vanishes";
    case Fate::explodes:
      return "explodes";
    case Fate::stays:
      break;
  }
  return "stays at chance";
}

double above_chance(double commonest, double test_images) {
  if (!(test_images > 0)) return commonest;
  return commonest + 3 * std::sqrt(commonest * (1 - commonest) / test_images);
}

std::optional<SignalFate> signal_fate(const Learning& learning, const SizesByStep& sizes, const core::Recipe& recipe,
                                      double above) {
  const auto repeats = learning.repeats();
  if (repeats.empty()) return std::nullopt;
  SignalFate out;
  std::optional<int> shown;  // the first repeat that did not learn
  for (const int repeat : repeats) {
    const auto accuracy = learning.last("test_accuracy", repeat);
    const bool learns = accuracy && *accuracy > above && !learning.diverged(repeat);
    ++out.repeats;
    out.learned += learns;
    if (!learns && !shown) shown = repeat;
  }
  if (const auto last = learning.last("test_accuracy")) out.accuracy = last->mean;
  const int repeat = shown.value_or(repeats.front());
  describe(out, first_fault(sizes, repeat, recipe), learning.diverged(repeat));
  if (!shown) out.fate = Fate::learns;
  return out;
}

}  // namespace strata::analysis
