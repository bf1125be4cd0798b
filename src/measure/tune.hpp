// SPDX-License-Identifier: Apache-2.0
// Finding the best of a level's variants by short turns of their own, before anything of the case is measured.
#pragma once

#include "measure/player.hpp"
#include "stats/disturbed.hpp"

namespace strata::measure {

struct Choice {
  Player best;  // as it was given: without the times that chose it
  Json record;  // {"seconds", "tried": [{"variant", "title", "state", "reason", "median_ms"}], "best"}
};

// Lets copies of the candidates that are still playing take turns for `seconds` and gives the one with the least median
// iteration; the first (the default) where none was measured. Nothing is written but `record`. Error: the store's.
Result<Choice> choose_variant(const std::vector<Player>& candidates, const Judge& judge, store::Store& store,
                              double seconds, std::uint64_t seed, const stats::Room& room, const Progress& progress);

}  // namespace strata::measure
