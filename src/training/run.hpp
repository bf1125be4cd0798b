// SPDX-License-Identifier: Apache-2.0
// Trains all levels of a case on a data set, repeat by repeat and epoch by epoch, in turns of seconds, so that what
// happens to the machine happens to all. Every epoch is in the store before the next begins.
#pragma once

#include <optional>

#include "measure/compare.hpp"
#include "training/order.hpp"
#include "training/prepared_data.hpp"

namespace strata::training {

struct Plan {
  int repeats = 1;
  std::vector<int> own_repeats;       // those that this process does, from 0, ascending; empty: all
  double turn_s = 2;                  // of steps, about, before the next level has its turn
  int proofs = 3;                     // steps of each repeat that are proven, at places that are drawn
  std::optional<std::int64_t> norms;  // steps between two looks at the layers; 0: none; nullopt: an epoch
  Augment augment;
  PreparedData data;
  std::string data_note;       // what was used, in words
  std::filesystem::path keep;  // folder for states and checkpoints of this training alone
};

// `question`: the bundle's, with the data and the training named. `initial`: by repeat. Error: the store's, or a bundle
// that cannot be read; what happens to single levels are rows.
Result<measure::Outcome> train_case(const measure::Setting& setting, const plan::Bundle& bundle,
                                    const core::Case& question, const std::vector<level::Level>& levels,
                                    const Plan& plan, const std::vector<std::filesystem::path>& initial,
                                    measure::MachineFacts& facts, store::Store& store,
                                    const measure::Progress& progress);

}  // namespace strata::training
