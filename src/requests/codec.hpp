// SPDX-License-Identifier: Apache-2.0
// A request as JSON (docs/engine.md), read and written, and as the words of a command line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "requests/request.hpp"

namespace strata::requests {

inline constexpr int kRequestVersion = 1;

// "compare", "sweep", "train", "export", "generate".
std::string verb_of(const Request& request);
// An empty one; nullopt: no such verb.
std::optional<Request> request_for(const std::string& verb);
// The part that all have.
CompareRequest& common_of(Request& request);
const CompareRequest& common_of(const Request& request);

// {"verb": "compare", "version": 1, "model": "resnet50", ...}: members that differ from their defaults.
nlohmann::json to_json(const Request& request);
nlohmann::json to_json(const SuiteRequest& request);
nlohmann::json to_json(const PackRequest& request);

// Errors (wrong usage): no object, another version, an unknown verb or member, a member of the wrong type or out of its
// bounds. What members mean together is checked by what carries the request out.
Result<Request> read_request(const nlohmann::json& value);
bool is_suite(const nlohmann::json& value);  // "run"
// "show", "runs", "diff", "data".
bool is_query(const nlohmann::json& value);
Result<Query> read_query(const nlohmann::json& value);                 // of what is one
Result<SuiteRequest> read_suite_request(const nlohmann::json& value);  // "verb": "run"

// "batch" of "--batch", as a client of the engine knows it; what is no option of the request stays as it is.
std::string member_at(Request request, const std::string& where);

// The words that ask for it: {"compare", "resnet50", "--batch", "1,8"}.
std::vector<std::string> command_words(const Request& request);

// The same for a shell: "./strata compare resnet50 --batch 1,8". `store`: named by --store; empty: the default one.
std::string command_of(const Request& request, const std::string& store = "");
std::string command_of(const SuiteRequest& request, const std::string& store = "");
std::string command_of(const std::vector<std::string>& words);

}  // namespace strata::requests
