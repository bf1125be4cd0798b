// SPDX-License-Identifier: Apache-2.0
// A request as JSON (docs/engine.md), read and written, and as the words of a command line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "engine/request.hpp"

namespace strata::engine {

inline constexpr int kRequestVersion = 1;

using Request = std::variant<CompareRequest, SweepRequest>;

// "compare" or "sweep".
std::string verb_of(const Request& request);

// {"verb": "compare", "version": 1, "model": "resnet50", ...}: members that differ from their defaults.
nlohmann::json to_json(const Request& request);

// Errors (wrong usage): no object, another version, an unknown verb or member, a member of the wrong type. What members
// mean is checked by engine::prepare, as that of options is.
Result<Request> read_request(const nlohmann::json& value);

// The words that ask for it: {"compare", "resnet50", "--batch", "1,8"}.
std::vector<std::string> command_words(const Request& request);

}  // namespace strata::engine
