// SPDX-License-Identifier: Apache-2.0
// The captures of one case of a user's network, one for each state of the files that it was read from. They lie side by
// side in the cache, so that going back costs nothing; the kept_states used last stay there.
#pragma once

#include <filesystem>
#include <vector>

namespace strata::plan {

inline constexpr std::size_t kept_states = 8;

// `out`: where a capture of the case lies, without its state: <out>.<16 hexadecimal digits>. The last used first.
std::vector<std::filesystem::path> states_of(const std::filesystem::path& out);

// Notes that the capture in this folder is used now.
void mark_used(const std::filesystem::path& state);

// Removes all states of the case but the kept_states that were used last, and says how many. A state that cannot be
// removed stays; nothing fails for that.
std::size_t prune_states(const std::filesystem::path& out);

}  // namespace strata::plan
