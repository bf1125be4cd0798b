// SPDX-License-Identifier: Apache-2.0
// Reading a result object (docs/results_schema.md) without surprises: what is missing, null or of another type reads as
// absent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::report {

using Json = nlohmann::json;

// The value at a dotted path ("memory.peak_private_bytes"); a null value if any part is missing.
const Json& at(const Json& node, std::string_view path);

// A finite number at `path`, otherwise nothing.
std::optional<double> number(const Json& node, std::string_view path);

// A whole number at `path`, within the bounds; otherwise `otherwise`.
int whole(const Json& node, std::string_view path, int otherwise, int low = 0, int high = 1'000'000'000);

// The string at `path`; numbers and booleans as text; "" for everything else.
std::string text(const Json& node, std::string_view path);

// True only for a JSON true at `path`.
bool flag(const Json& node, std::string_view path);

// The array at `path`; an empty array if there is none.
const Json& list(const Json& node, std::string_view path);

// "compile", or "compile@max-autotune" where the variant is not the default one; of several environments also
// "compile[new]".
std::string level_name(const Json& row);

bool is_measured(const Json& row);

// The rows of a case: by rank, then peers, then harness levels; equal ones keep their order.
std::vector<const Json*> sorted_rows(const Json& one_case);

// The row that ratios refer to, or nullptr.
const Json* reference_row(const Json& one_case);

}  // namespace strata::report
