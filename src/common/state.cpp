// SPDX-License-Identifier: Apache-2.0
#include "common/state.hpp"

#include <array>
#include <utility>

namespace strata {
namespace {
constexpr std::array<std::pair<State, std::string_view>, 10> kNames{{{State::measured, "measured"},
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

std::string_view to_string(State state) {
  for (const auto& [value, name] : kNames)
    if (value == state) return name;
  return "failed";
}

std::optional<State> state_from(std::string_view name) {
  for (const auto& [value, text] : kNames)
    if (text == name) return value;
  return std::nullopt;
}

}  // namespace strata
