// SPDX-License-Identifier: Apache-2.0
// The certificate of a level that trains: the `proof` object of docs/results_schema.md.
#pragma once

#include "proof/certificate.hpp"
#include "proof/train_checks.hpp"

namespace strata::proof {

// What the driver gathers beside Evidence, whose blocks here are losses. What is missing becomes `not_checked`, never
// `pass`.
struct TrainEvidence {
  std::map<std::string, OutputVerdict> steps;  // the gradient probe by weight set
  std::optional<OutputVerdict> losses;         // of the whole ring
  struct Rule {
    std::string name;  // "weight decay", "momentum", ...
    std::optional<OutputVerdict> verdict;
    std::string note;  // why it was not checked
  };
  std::vector<Rule> rules;  // the optimiser by differences
  std::optional<OutputVerdict> dropout, variances, evaluation;
  std::string dropout_note, evaluation_note;  // why they were not checked
  int updates_checked = 0;                    // steps after the last timed block of a restart
  int updates_failed = 0;
  std::optional<OutputVerdict> update_failure;  // the first
  double rate_error = 0;     // relative standard error of the learning rate seen, the worst of the restarts
  int counts_checked = 0;    // answers of `state` whose step and learning rate were those that are due
  std::string counts_wrong;  // the first that was not
  // Timed steps that were made again, of those between two states so near that they could be, of all.
  std::int64_t replayed_steps = 0, comparable_steps = 0, timed_steps = 0;
  int rough_replays = 0;                        // over which rounding carried too far to judge
  std::optional<OutputVerdict> replay_failure;  // the first
  int begun_again = 0;                          // times that the training had diverged while it was timed

  void add_update(const UpdateVerdict& update);
};

// True and a reason if this bundle's gradients prove little.
struct TrainPower {
  bool weak = false;
  std::string reason;
};
TrainPower train_power(const TrainReference& reference);

// What was proven in float32 of a case in another precision.
struct StrictTraining {
  const TrainReference& reference;
  const TrainEvidence& training;
};

// `reference`, `training`: in the case's precision. `strict`: nullptr where that is float32.
Certificate train_certificate(const TrainReference& reference, const Evidence& evidence, const TrainEvidence& training,
                              const StrictTraining* strict = nullptr);

}  // namespace strata::proof
