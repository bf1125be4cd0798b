// SPDX-License-Identifier: Apache-2.0
// A level's pass alone on the machine, before anything is timed: its start, its memory, and the proof on all weight
// sets.
#pragma once

#include "measure/player.hpp"

namespace strata::measure {

// Fills the player's start-up, memory, settings and evidence; drops it with its state when it fails or is not equal.
void run_alone(Player& player, const Judge& judge, const Progress& progress);

// For a case in another maths mode than float32: the level in strict float32 (`strict`: the job of that bundle), judged
// by that bundle's reference. run_alone then proves it in its mode.
void prove_structure(Player& player, const Job& strict, const Judge& judge, const Progress& progress);

// The same network in strict float32 with every leaf module's output shown: proves layer by layer. Drops nothing: what
// it finds goes into the evidence.
void run_deep(Player& player, const Job& job, const proof::Reference& reference);

}  // namespace strata::measure
