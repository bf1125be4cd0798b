// SPDX-License-Identifier: Apache-2.0
// What the series of a training come to: curves over epochs and time, and one line a level.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/record.hpp"

namespace strata::analysis {

// A mean over repeats with the least and the most of them.
struct Spread {
  double mean = 0, low = 0, high = 0;
  int count = 0;  // of repeats
};
std::optional<Spread> spread_of(const std::vector<double>& values);  // nullopt: none

// One level's repeats: name of a series -> repeat -> epoch (from 1) -> value.
class Learning {
 public:
  explicit Learning(const std::vector<store::Series>& series);

  std::vector<int> repeats() const;
  int epochs() const;  // the last that any repeat has
  // By epoch, of a repeat; empty: there is none.
  const std::map<int, double>& series(const std::string& name, int repeat) const;
  // Over the repeats that have this epoch; nullopt: none.
  std::optional<Spread> at(const std::string& name, int epoch) const;
  // A repeat's mean over its epochs.
  std::optional<double> mean(const std::string& name, int repeat) const;
  // The same over all repeats.
  std::optional<Spread> mean_of_all(const std::string& name) const;
  std::optional<Spread> last(const std::string& name) const;              // of each repeat's last epoch
  std::optional<double> last(const std::string& name, int repeat) const;  // of one

  std::map<int, double> ends(const std::string& name) const;  // by repeat, of those that came to the last epoch

  struct Best {
    Spread value;  // each repeat's best
    Spread epoch;  // when it was reached first
  };
  std::optional<Best> best(const std::string& name) const;  // the highest

  // When a series is first as high as `target`: epochs, and training seconds up to the end of that epoch.
  struct Reached {
    std::optional<Spread> epoch, seconds;
    int never = 0;  // repeats in which it is not
  };
  Reached reached(const std::string& name, double target) const;

  // Epochs until a series is first as high as `target`, of the repeats that came to the last epoch, reached it or
  // diverged; infinite where it never is.
  std::vector<double> epochs_until(const std::string& name, double target) const;

  // Seconds from the first step to the end of an epoch, steps and waiting for input alone, mean over repeats.
  std::optional<double> seconds_until(int epoch) const;
  // Repeats whose loss was not finite.
  int diverged() const;
  struct Diverged {
    int epoch = 0, step = 0;  // of the epoch; both from 1
  };
  std::optional<Diverged> diverged(int repeat) const;  // when the loss was first not finite; nullopt: never

 private:
  const std::map<int, double>* of(const std::string& name, int repeat) const;
  std::optional<double> seconds_of(int repeat, int epoch) const;
  std::map<std::string, std::map<int, std::map<int, double>>> values_;
};

// How many times as fast as `reference` a level went, repeat by repeat: the ratio of their mean steps, which took
// turns; or, by processor time, of what their epochs took of it.
std::optional<Spread> speedup(const Learning& level, const Learning& reference, const std::string& by = "step_time");
inline const char* const by_processor_time = "cpu_seconds";

}  // namespace strata::analysis
