// SPDX-License-Identifier: Apache-2.0
// Answers of a worker as types: what a level says is checked before anybody relies on it.
#pragma once

#include <limits>

#include "common/outside.hpp"
#include "worker/worker.hpp"

namespace strata::worker {

constexpr int protocol_api = 2;
// What to tell the author of a level of another version.
constexpr const char* how_to_upgrade =
    "docs/protocol.md says what it is to do; a level on the SDK in C++ is built again, too";
constexpr std::int64_t longest_ns = std::numeric_limits<std::int64_t>::max();  // sums of such are made as double

struct Hello {
  int api = 0;
  std::string level, language, build_type, build_flags;
  std::map<std::string, std::string> versions;
  std::vector<std::string> devices, modes, precisions, ops;
  std::int64_t library_ns = 0;
};

// An answer to hello. `failed` for missing or mistyped fields, another api, or a debug build unless allowed.
tl::expected<Hello, Failure> read_hello(const Json& answer, bool allow_debug);

// The first complaint of `fields`, which has one, as a level's failure.
Failure broken_answer(const outside::Fields& fields);

// `count` integers (nullopt: any number of them), each from `least` to longest_ns, from the array `key`; `failed`
// otherwise.
tl::expected<std::vector<std::int64_t>, Failure> read_integers(const Json& answer, const char* key,
                                                               std::optional<std::size_t> count,
                                                               std::int64_t least = 0);

// An integer or null; `failed` for anything else, a missing field too.
tl::expected<std::optional<std::int64_t>, Failure> read_optional_integer(const Json& answer, const char* key);

// The last line of what a command wrote, which is its answer; null if it is no JSON object.
Json last_line(const Finished& finished);

}  // namespace strata::worker
