// SPDX-License-Identifier: Apache-2.0
#include "common/state.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace strata {
namespace {
constexpr std::array<std::pair<State, const char*>, 10> kNames{{{State::measured, "measured"},
                                                                {State::unavailable, "unavailable"},
                                                                {State::unsupported, "unsupported"},
                                                                {State::unequal, "unequal"},
                                                                {State::unproven, "unproven"},
                                                                {State::mistrusted, "mistrusted"},
                                                                {State::out_of_memory, "out_of_memory"},
                                                                {State::timeout, "timeout"},
                                                                {State::crashed, "crashed"},
                                                                {State::failed, "failed"}}};
}  // namespace

const char* to_string(State state) {
  for (const auto& [value, name] : kNames)
    if (value == state) return name;
  return "failed";
}

std::optional<State> state_from(std::string_view name) {
  for (const auto& [value, text] : kNames)
    if (text == name) return value;
  return std::nullopt;
}

bool from_string(std::string_view name, State& state) {
  const auto known = state_from(name);
  state = known.value_or(state);
  return known.has_value();
}

void to_json(nlohmann::json& json, State state) {
  json = to_string(state);
}

}  // namespace strata
