// SPDX-License-Identifier: Apache-2.0
// The numbers and titles of a document as people read them; the same words in every format. Nothing is escaped here.
#pragma once

#include <string>

#include "report/document.hpp"
#include "report/format.hpp"

namespace strata::document {

// "percent", as JSON has it.
const char* name_of(NumberFormat format);

// "" for what is not finite.
std::string number_text(double value, NumberFormat format);

// "36.9 ms (35.1–38.0)"; ends in its own unit where that differs. "" for what is not finite.
std::string number_text(const Number& number, const report::Glyphs& glyphs);

// A text as it is, a number with its interval; "" for what is absent.
std::string cell_text(const Cell& cell, const report::Glyphs& glyphs);

// Why a cell has no value: "" where it has one, and where nobody knows.
std::string reason_of(const Cell& cell);

// The cell of a row that may be too short.
const Cell& cell_of(const std::vector<Cell>& row, std::size_t column);

// The unit, but "" where each number of the format has one of its own.
std::string unit_behind(const std::string& unit, NumberFormat format);

// "loss (nats)".
std::string shown_title(const Column& column);

// "time (s, logarithmic)".
std::string shown_title(const Axis& axis);

// "Throughput (samples/s)": where the fields are numbers, whatever their colours.
std::string shown_title(const Surface& surface);

// A value on an axis: its category, or the number.
std::string shown_place(double value, const Axis& axis);

// What a field of a surface reads where there is no room for its interval; "" where it has no number.
std::string shown_field(const SurfaceField& field);

// Those of a log.
std::vector<std::string> lines_of(const Text& text);

// None for what has no alternative.
const std::vector<Choice>& choices_of(const Item& item);

// Whether the item is left out where a report is read from its beginning to its end.
bool is_detail(const Item& item);

// Calls `visit` with each item that is none of Details, those in Details and in parts too, in their order, and with the
// id of the part that it is in ("": none).
template <class Visit>
void for_each_item(const std::vector<Item>& items, const std::string& part, const Visit& visit) {
  for (const auto& item : items)
    if (const auto* details = std::get_if<Details>(&item))
      for_each_item(details->items, part, visit);
    else
      visit(item, part);
}
template <class Visit>
void for_each_item(const Document& document, const Visit& visit) {
  for (const auto& section : document.sections) for_each_item(section.items, document.id, visit);
  for (const auto& part : document.parts) for_each_item(part, visit);
}

// How each row of an outline begins: "├─ ", "│  └─ "; in characters of `glyphs`. Empty where the table is none.
std::vector<std::string> outline_of(const Table& table, const report::Glyphs& glyphs);

}  // namespace strata::document
