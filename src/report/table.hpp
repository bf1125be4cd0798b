// SPDX-License-Identifier: Apache-2.0
// A table of texts in any of strata's formats; what `strata list ...` and every other printed table goes through.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::report {

enum class Format { text, json, csv, md };

// nullopt: no such format. The names are text, json, csv, md.
std::optional<Format> format_from(std::string_view name);

using Cells = std::vector<std::string>;

// Numbers stand to the right.
struct TextColumn {
  std::string title;
  bool is_number = false;

  TextColumn(std::string of_title, bool of_numbers = false) : title(std::move(of_title)), is_number(of_numbers) {}
  TextColumn(const char* of_title) : title(of_title) {}
};
inline TextColumn numbers(std::string title) {
  return {std::move(title), true};
}

// Text: aligned columns, two spaces between. JSON: an array of objects keyed by the titles. A row shorter than there
// are columns is filled with empty cells. Ends with a line end.
std::string table(const std::vector<TextColumn>& columns, const std::vector<Cells>& rows, Format format);

// One field as RFC 4180 wants it, safe to look at: what a terminal would act on is a question mark, and text that a
// spreadsheet would calculate (it begins with = + - @ and is no number) begins with an apostrophe.
std::string csv_field(std::string_view value);

std::string csv_line(const Cells& fields);

}  // namespace strata::report
