// SPDX-License-Identifier: Apache-2.0
// A table of text in any of strata's formats; what `strata list ...` and every other printed table goes through.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::report {

enum class Format { text, json, csv, md };

// nullopt: no such format. The names are text, json, csv, md.
std::optional<Format> format_from(std::string_view name);

using Cells = std::vector<std::string>;

// Text: aligned columns, numbers to the right, two spaces between. JSON: an array of objects keyed by the header.
// A row shorter than the header is filled with empty cells. Ends with a line end.
std::string table(const Cells& header, const std::vector<Cells>& rows, Format format);

// One field as RFC 4180 wants it, safe to look at: what a terminal would act on is a question mark, and text that a
// spreadsheet would calculate (it begins with = + - @ and is no number) begins with an apostrophe.
std::string csv_field(std::string_view value);

}  // namespace strata::report
