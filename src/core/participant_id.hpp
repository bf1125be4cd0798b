// SPDX-License-Identifier: Apache-2.0
// Who takes part in a case, and the one spelling of it.
#pragma once

#include <string>
#include <string_view>

namespace strata::core {

struct ParticipantId {
  std::string level;
  std::string variant = "default";  // empty: the same
  std::string environment{};        // its name among several; empty: there is one, or the level uses none of them

  bool operator==(const ParticipantId&) const = default;
  bool is_plain() const { return variant.empty() || variant == "default"; }
  // "compile@freezing", as --levels takes it.
  std::string level_and_variant() const { return is_plain() ? level : level + "@" + variant; }
  // "compile@freezing[new]".
  std::string name() const { return level_and_variant() + (environment.empty() ? "" : "[" + environment + "]"); }
};

}  // namespace strata::core
