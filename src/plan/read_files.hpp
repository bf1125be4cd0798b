// SPDX-License-Identifier: Apache-2.0
// The files that a network was captured from (bundle.json, `read`), against what lies there now.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace strata::plan {

// What differs: "w.safetensors changed", "layers.py is gone and 2 more files changed"; nullopt: nothing does. Paths are
// written as seen from `base`. Files are hashed, once a process for each state of them.
std::optional<std::string> changed_files(const nlohmann::json& read, const std::filesystem::path& base);

// The same of two records of one network.
std::optional<std::string> changes_between(const nlohmann::json& before, const nlohmann::json& after,
                                           const std::filesystem::path& base);

}  // namespace strata::plan
