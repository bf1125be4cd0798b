// SPDX-License-Identifier: Apache-2.0
#include "report/table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/format.hpp"

namespace strata::report {
namespace {

const std::string& cell(const Cells& row, std::size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column] : empty;
}

bool looks_numeric(std::string_view value) {
  if (value.empty() || value == "-" || value == "–") return true;
  const auto first = value.find_first_not_of("+-~=<");
  return first != std::string_view::npos && value[first] >= '0' && value[first] <= '9';
}

bool is_numeric_column(const std::vector<Cells>& rows, std::size_t column) {
  return !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [&](const Cells& row) { return looks_numeric(cell(row, column)); });
}

std::string text_table(const Cells& header, const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < header.size(); ++c) {
    widths.push_back(width_of(header[c]));
    right.push_back(is_numeric_column(rows, c));
    for (const auto& row : rows) widths[c] = std::max(widths[c], width_of(printable(cell(row, c))));
  }
  std::string out;
  const auto line = [&](const Cells& row) {
    std::string one;
    for (std::size_t c = 0; c < header.size(); ++c) {
      const auto value = printable(cell(row, c));
      const std::string space(widths[c] - width_of(value), ' ');
      one += (c ? "  " : "") + (right[c] ? space + value : value + space);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    out += one + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return out;
}

std::string json_table(const Cells& header, const std::vector<Cells>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    auto one = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < header.size(); ++c) one[header[c]] = cell(row, c);
    all.push_back(std::move(one));
  }
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string csv_table(const Cells& header, const std::vector<Cells>& rows) {
  std::string out;
  const auto line = [&](const Cells& row) {
    for (std::size_t c = 0; c < header.size(); ++c) out += (c ? "," : "") + csv_field(cell(row, c));
    out += "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return out;
}

std::string markdown_table(const Cells& header, const std::vector<Cells>& rows) {
  std::string out = "|", rule = "|";
  for (std::size_t c = 0; c < header.size(); ++c) {
    out += " " + markdown_text(header[c]) + " |";
    rule += is_numeric_column(rows, c) ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : rows) {
    out += "|";
    for (std::size_t c = 0; c < header.size(); ++c) out += " " + markdown_text(cell(row, c)) + " |";
    out += "\n";
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
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(value);
  std::string out = "\"";
  for (const char c : value) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string markdown_text(std::string_view value) {
  std::string out;
  for (const char c : printable(value)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\|*`[]").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string markdown_code(std::string_view value) {
  const auto shown = printable(value);
  if (shown.empty()) return "";
  std::size_t longest = 0, run = 0;
  std::string escaped;
  for (const char c : shown) {
    longest = std::max(longest, run = c == '`' ? run + 1 : 0);
    escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  }
  const std::string fence(longest + 1, '`');
  return longest ? fence + " " + escaped + " " + fence : fence + escaped + fence;
}

std::string table(const Cells& header, const std::vector<Cells>& rows, Format format) {
  switch (format) {
    case Format::json:
      return json_table(header, rows);
    case Format::csv:
      return csv_table(header, rows);
    case Format::md:
      return markdown_table(header, rows);
    case Format::text:
      break;
  }
  return text_table(header, rows);
}

}  // namespace strata::report
