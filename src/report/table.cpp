// SPDX-License-Identifier: Apache-2.0
#include "report/table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/escape.hpp"
#include "common/text.hpp"
#include "report/format.hpp"

namespace strata::report {
namespace {

const std::string& cell(const Cells& row, std::size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column] : empty;
}

bool is_unknown(std::string_view value) {
  return value.empty() || value == "-" || value == "–";
}

// Whether a spreadsheet would calculate it. A sign of its own ("-": unknown) and numbers, negative ones too, are none.
bool is_formula(std::string_view value) {
  if (value.size() < 2 || std::string_view("=+-@\t").find(value.front()) == std::string_view::npos) return false;
  return !strata::number<double>(value.front() == '+' ? value.substr(1) : value);
}

// Cuts the first word off; "" at the end.
std::string_view next_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return word;
}

// "1,128", "~1.03", "<0.01", "1.2e-02", "5.5%", "12"; no date, shape or version, which have more parts.
bool is_number(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("+-~=<"), word.size()));
  if (!word.empty() && (word.back() == '%' || word.back() == '?')) word.remove_suffix(1);
  std::size_t digits = 0, points = 0, exponents = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    const bool signs_exponent = (c == '+' || c == '-') && i > 0 && word[i - 1] == 'e';
    if (c >= '0' && c <= '9')
      ++digits;
    else if (c == '.')
      ++points;
    else if (c == 'e' && digits > 0)
      ++exponents;
    else if (c != ',' && !signs_exponent)
      return false;
  }
  return digits > 0 && points <= 1 && exponents <= 1;
}

// A number alone, with its unit, its interval or the whole that it is a part of: "36.9 ms", "1.42 (1.35-1.49)",
// "916 us *", "4 of 10,000", "8.20 G".
bool looks_numeric(std::string_view value) {
  if (!is_number(next_word(value))) return false;
  if (value.empty() || value.front() == '(' || value == "*") return true;
  auto second = next_word(value);
  if (second.ends_with('?')) second.remove_suffix(1);
  if (second == "of") return is_number(value);
  const bool known = is_unit(second) || second == "k" || second == "M" || second == "G" || second == "T";
  return known && (value.empty() || value.front() == '(' || value == "*");
}

// Numbers, at least one, and what is unknown.
bool is_numeric_column(const std::vector<Cells>& rows, std::size_t column) {
  bool any = false;
  for (const auto& row : rows) {
    const auto& value = cell(row, column);
    if (is_unknown(value)) continue;
    if (!looks_numeric(value)) return false;
    any = true;
  }
  return any;
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
    std::string row_json;
    for (std::size_t c = 0; c < header.size(); ++c) {
      const auto value = printable(cell(row, c));
      const std::string space(widths[c] - width_of(value), ' ');
      row_json += (c ? "  " : "") + (right[c] ? space + value : value + space);
    }
    row_json.erase(row_json.find_last_not_of(' ') + 1);
    out += row_json + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return out;
}

std::string json_table(const Cells& header, const std::vector<Cells>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    auto row_json = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < header.size(); ++c) row_json[header[c]] = cell(row, c);
    all.push_back(std::move(row_json));
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
    out += " " + escape::markdown(header[c]) + " |";
    rule += is_numeric_column(rows, c) ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : rows) {
    out += "|";
    for (std::size_t c = 0; c < header.size(); ++c) out += " " + escape::markdown(cell(row, c)) + " |";
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
  auto field = escape::terminal(value);
  if (is_formula(field)) field.insert(0, 1, '\'');
  if (field.find_first_of(",\"\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
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
