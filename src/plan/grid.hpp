// SPDX-License-Identifier: Apache-2.0
// The points of a sweep as a grid: which of them are looked at most closely.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace strata::plan {

// The fields of a spec (docs/bundle.md) that are axes of a sweep.
inline constexpr const char* kAxes[] = {"batch", "size", "mode", "precision", "threads"};

class Grid {
 public:
  explicit Grid(const std::vector<nlohmann::json>& specs);
  // Every axis is at one of its ends.
  bool is_corner(const nlohmann::json& spec) const;
  // On one of the two lines on which batch or size varies and the other stays at its middle value.
  bool is_on_line(const nlohmann::json& spec) const;

 private:
  bool is_in_middle(const nlohmann::json& spec, const char* axis) const;
  std::map<std::string, std::set<nlohmann::json>> values_;
};

}  // namespace strata::plan
