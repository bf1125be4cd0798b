// SPDX-License-Identifier: Apache-2.0
// The states that a row (one level for one case) can end in. Only `measured` has numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

const char* to_string(State state);
std::optional<State> state_from(std::string_view name);  // nullopt: no such state
bool from_string(std::string_view name, State& state);   // false: no such state, and `state` stays
void to_json(nlohmann::json& json, State state);         // its name, not its number

}  // namespace strata
