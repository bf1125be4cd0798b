// SPDX-License-Identifier: Apache-2.0
// What is kept of a training on disk: the state after the last whole epoch, with which it goes on, and checkpoints
// under PyTorch's names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "training/learner.hpp"

namespace strata::training {

// Whose a state is: another's is not taken up.
struct Owner {
  std::string case_key, data_sha256, level;
  int repeat = 0;
};

struct SavedState {
  std::filesystem::path path{};
  int epochs = 0;  // that it has behind it
  bool diverged = false;
};

struct LastState {
  std::optional<SavedState> state{};  // the newest that is whole; nullopt: the training begins anew
  std::string damage{};               // what is newer and not used, and why; empty: nothing
};

LastState last_state(const std::filesystem::path& folder, const Owner& owner);

// The state after the epoch with the repeat's highest test accuracy so far, and what the level told of it.
struct BestState {
  std::filesystem::path path;
  int epochs = 0;
  session::SplitScore told;
};
// nullopt: none was kept, or its bytes are others by now.
std::optional<BestState> best_state(const std::filesystem::path& folder, const Owner& owner);

struct DoneEpoch {
  int epochs = 0;  // that are done, from 1
  session::SplitScore test;
};

// After an epoch: the state, with its checksum, beside the one before; `<level>-r<repeat>-last.safetensors`, and -best
// where the test accuracy is the repeat's highest so far, whose state is kept until the best is another. Atomic, file
// by file.
Try<void> keep_epoch(const std::filesystem::path& folder, const Owner& owner, Learner& learner, const DoneEpoch& done,
                     const EpochResult& result);

}  // namespace strata::training
