// SPDX-License-Identifier: Apache-2.0
// A data set in the form that workers map (docs/protocol.md, data): images of the network's size, one file a split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "data/dataset.hpp"
#include "session/session.hpp"

namespace strata::training {

struct PreparedData {
  session::SplitFiles files;
  std::int64_t train = 0, test = 0;  // images that are used
  double commonest = 0;              // share of the test images that the commonest class has
  std::string change;                // "8x8 resized to 28x28"; empty: as they are
};

// `channels`, `height`, `width`: of the network's input. `most`: at most so many images of each split, the first ones.
// The mean and the deviation are those of all pixels of the training images, by channel, as shares of the highest
// value. Written into `folder`. Errors: several classes an image; channels that do not
// fit; fewer images than one batch; the disk's.
Result<PreparedData> prepare_data(const data::Dataset& set, const data::Shape& network, std::int64_t batch,
                                  std::optional<std::int64_t> most, const std::filesystem::path& folder);

}  // namespace strata::training
