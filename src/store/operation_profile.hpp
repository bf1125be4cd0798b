// SPDX-License-Identifier: Apache-2.0
// How long each operation of an iteration takes at a level, from a pass of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace strata::store {

// As docs/protocol.md has it, operations.
struct ProfiledOperation {
  std::string operation, kernel;
  std::optional<std::string> layer;
  std::vector<std::vector<std::int64_t>> shapes;
  bool moves_only = false;
  double ms = 0, gap_ms = 0;  // of an iteration; the gap lies before it
  // Of products in inference, by the captured graph: what they compute, and the least bytes that they move (each tensor
  // once), which no mixed precision has. Unknown where the graph's products are not those of the level.
  std::optional<double> flops, bytes;

  bool operator==(const ProfiledOperation&) const = default;
};

// Times of an iteration, each the mean over the faster half of the iterations, so that they add up: operations, the
// gaps before them and `after_ms` to `profiled_ms`.
struct OperationProfile {
  std::vector<ProfiledOperation> operations;  // in the order in which they run
  double after_ms = 0;                        // since the last one's end
  double profiled_ms = 0, plain_ms = 0;       // of the whole: while its operations were recorded, and while not
  std::int64_t iterations = 0;                // of each kind
  std::string note;                           // why there are none

  bool operator==(const OperationProfile&) const = default;
};

}  // namespace strata::store
