// SPDX-License-Identifier: Apache-2.0
// What a run knows of a case beside its question: what the machine can do at most, and what its numbers may be trusted
// for. facts_codec.hpp has the names of all in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stats/learned.hpp"

namespace strata::store {

// Rates of 0: not measured in this mode (measure/peaks.hpp).
struct Limits {
  double gflops = 0, gbytes_per_s = 0;
  std::string instruction_set;
  bool quiet = false;                                    // seen at least once with the cores to itself
  std::optional<double> seen_gflops, seen_gbytes_per_s;  // in this run alone

  bool operator==(const Limits&) const = default;
};

// What others used of the machine before and while a case was measured. Shares of the processors, 0 to 1.
struct LoadFacts {
  std::optional<double> begin;          // that other programs had when the run itself did nothing
  std::optional<double> others, steal;  // programs and the host, while blocks were measured, all restarts together
  std::vector<double> restarts;         // what both had in each restart
  std::optional<int> other_run;         // process of another strata run that measured; 0: its number is unknown

  double taken() const;  // by others while blocks were measured, or at the beginning; NaN: not known
  double most() const;   // that other programs were seen to have; 0: nothing is known
  bool busy() const;     // W002 holds

  bool operator==(const LoadFacts&) const = default;
};

// Of two rows, by name in order; a row beside itself in runs with --aa.
struct LearnedPair {
  std::vector<std::string> levels;
  stats::LearnedSpread learned;

  bool operator==(const LearnedPair&) const = default;
};

struct Trust {
  std::optional<double> process_sigma;  // nullopt, as the next ones: of a training
  std::string process_sigma_source;
  std::optional<double> minimum_effect;  // smaller differences are never claimed
  std::optional<bool> together;          // levels took turns; false: memory does not hold all at once
  std::vector<LearnedPair> learned;      // from earlier runs, when this one began (measure/learn.hpp)
  LoadFacts load;
  std::optional<int> restarts;   // that were begun
  std::string reference_wanted;  // which dropped out; empty: it is the one that there is
  std::string data;              // of a training, in words
  std::optional<std::int64_t> test_images;
  std::optional<double> commonest_class;  // its share

  bool operator==(const Trust&) const = default;
};

}  // namespace strata::store
