// SPDX-License-Identifier: Apache-2.0
// The states that a row (one level for one case) can end in. Only `measured` has numbers.
#pragma once

#include <optional>
#include <string_view>

namespace strata {

enum class State {
  measured,
  unavailable,
  unsupported,
  unequal,
  unproven,  // its proof could not have failed: a broken reference, a network that is random or keeps a state
  mistrusted,
  out_of_memory,
  timeout,
  crashed,
  failed
};

std::string_view to_string(State state);
std::optional<State> state_from(std::string_view name);  // nullopt: no such state

}  // namespace strata
