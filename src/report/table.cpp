// SPDX-License-Identifier: Apache-2.0
#include "report/table.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "common/escape.hpp"
#include "common/text.hpp"
#include "report/format.hpp"
#include "report/render/render.hpp"
#include "report/render/text_table.hpp"

namespace strata::report {
namespace {

const std::string& cell(const Cells& row, std::size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column] : empty;
}

// Whether a spreadsheet would calculate it. A sign of its own ("-": unknown) and numbers, negative ones too, are none.
bool is_formula(std::string_view value) {
  if (value.size() < 2 || std::string_view("=+-@\t").find(value.front()) == std::string_view::npos) return false;
  return !strata::number<double>(value.front() == '+' ? value.substr(1) : value);
}

document::Table table_of(const std::vector<TextColumn>& columns, const std::vector<Cells>& rows) {
  document::Table table;
  for (const auto& [title, is_number] : columns)
    table.columns.push_back(
        {.id = title, .title = title, .align = is_number ? document::Align::right : document::Align::left});
  for (const auto& row : rows) table.rows.emplace_back(row.begin(), row.end());
  return table;
}

// In lines as long as they are.
std::string text_table(const document::Table& table) {
  auto marks = glyphs(true);
  marks.missing = "";
  std::string out;
  for (const auto& part : document::text_table(table, std::numeric_limits<std::size_t>::max(), marks).parts)
    for (const auto* lines : {&part.header, &part.rows})
      for (const auto& line : *lines) out += line + "\n";
  return out;
}

std::string json_table(const std::vector<TextColumn>& columns, const std::vector<Cells>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    auto& row_json = all.emplace_back(nlohmann::ordered_json::object());
    for (std::size_t c = 0; c < columns.size(); ++c) row_json[columns[c].title] = cell(row, c);
  }
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string csv_table(const std::vector<TextColumn>& columns, const std::vector<Cells>& rows) {
  Cells header;
  for (const auto& column : columns) header.push_back(column.title);
  auto out = csv_line(header);
  for (auto row : rows) {
    row.resize(columns.size());
    out += csv_line(row);
  }
  return out;
}

}  // namespace

std::optional<Format> format_from(std::string_view name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  if (name == "csv") return Format::csv;
  if (name == "md") return Format::md;
  return std::nullopt;
}

std::string csv_field(std::string_view value) {
  auto field = escape::terminal(value);
  if (is_formula(field)) field.insert(0, 1, '\'');
  if (field.find_first_of(",\"\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string csv_line(const Cells& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) out += (i ? "," : "") + csv_field(fields[i]);
  return out + "\n";
}

std::string table(const std::vector<TextColumn>& columns, const std::vector<Cells>& rows, Format format) {
  switch (format) {
    case Format::json:
      return json_table(columns, rows);
    case Format::csv:
      return csv_table(columns, rows);
    case Format::md:
      return document::markdown_table(table_of(columns, rows));
    case Format::text:
      break;
  }
  return text_table(table_of(columns, rows));
}

}  // namespace strata::report
