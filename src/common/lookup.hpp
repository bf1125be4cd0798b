// SPDX-License-Identifier: Apache-2.0
// Reading nested JSON without surprises: what is missing, null or of another type reads as absent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace strata::lookup {

using Json = nlohmann::json;

// The value at a dotted path ("memory.peak_private_bytes"); a null value if any part is missing.
const Json& at(const Json& node, std::string_view path);

// A finite number at `path`, otherwise nothing.
std::optional<double> number(const Json& node, std::string_view path);

// The string at `path`; numbers and booleans as text; "" for everything else.
std::string text(const Json& node, std::string_view path);

// True only for a JSON true at `path`.
bool flag(const Json& node, std::string_view path);

// The array at `path`; an empty array if there is none.
const Json& list(const Json& node, std::string_view path);

}  // namespace strata::lookup
