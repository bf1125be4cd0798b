// SPDX-License-Identifier: Apache-2.0
// What is kept of a training on disk: the state after the last whole epoch, with which it goes on, and checkpoints
// under PyTorch's names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "training/learner.hpp"

namespace strata::training {

struct SavedState {
  std::filesystem::path path;
  int epochs = 0;  // that it has behind it
  bool diverged = false;
};

// Of a level and a repeat; nullopt: no epoch of it came to its end.
std::optional<SavedState> last_state(const std::filesystem::path& folder, const std::string& level, int repeat);

// After epoch `epochs` (from 1): the state in place of the one before; `<level>-r<repeat>-last.safetensors`, and -best
// where the test accuracy is the repeat's highest so far. Atomic, file by file.
Try<void> keep_epoch(const std::filesystem::path& folder, Learner& learner, int epochs, const EpochResult& result);

}  // namespace strata::training
