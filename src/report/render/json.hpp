// SPDX-License-Identifier: Apache-2.0
// A document as JSON, for programs: every number as it is, sections in their order.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/document.hpp"

namespace strata::document {

// {"schema": "strata.document/1", "title", "subtitle", "summary", "sections", "facts"}; where there are any, "parts" of
// these fields and an "id". Items of a section have a `kind` (text, warning, command, log, table, figure, bars,
// heat_map, surface, facts, details). Rows of a table are objects by the columns' ids: a text, null, or {"value",
// "low", "high", "mark"}, or {"value": null, "reason"}. Fields of a surface's layers are {"value", "low", "high",
// "outcome", "label"}. Alternatives have `choices`. What is not finite is null.
nlohmann::ordered_json to_json(const Document& document);

// The same as text, two spaces deep; ends with a line end.
std::string render_json(const Document& document);

}  // namespace strata::document
