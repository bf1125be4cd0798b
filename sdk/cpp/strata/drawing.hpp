// SPDX-License-Identifier: Apache-2.0
// The generator of dropout's masks in a training's state (docs/protocol.md, state), for levels whose masks are hashes
// of a place and of one number, which counts what was drawn. Such a number is all of their generator.
#pragma once

#include <cstdint>
#include <optional>

#include "strata/level.hpp"

namespace strata {

// How `state` names generators; a level leaves those of other kinds than its own alone.
inline constexpr const char* generator_prefix = "generator:";

// Where a seed's count begins: far from where every other seed's does.
std::uint64_t first_count(std::uint64_t seed);
// Nothing where the network draws nothing.
void add_count(State& state, std::optional<std::uint64_t> count);
// Nullopt: the file has none. Throws `failed` for one that is no number.
std::optional<std::uint64_t> count_in(const SafeTensors& state);

}  // namespace strata
