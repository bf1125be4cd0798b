// SPDX-License-Identifier: Apache-2.0
#include "store/statement.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "common/outside.hpp"

namespace strata::store {
namespace {

// A score of a million examples, a serving pass of an hour: more than that strata does not write.
constexpr JsonBounds kCellBounds{.bytes = std::size_t{256} << 20, .depth = 64, .values = 20'000'000};

const char* type_name(int type) {
  switch (type) {
    case SQLITE_INTEGER:
      return "an integer";
    case SQLITE_FLOAT:
      return "a real number";
    case SQLITE_TEXT:
      return "text";
    case SQLITE_BLOB:
      return "a blob";
    default:
      return "null";
  }
}

}  // namespace

std::string Statement::name() const {
  const char* held = sqlite3_column_name(statement_, column_);
  return held ? held : "?";
}

// Asked before a value is read, as SQLite would convert it to whatever is asked for.
bool Statement::has_type(int type, const char* allowed) {
  const int held = sqlite3_column_type(statement_, column_);
  if (held == type) return true;
  complain(fmt::format("\"{}\" is {}; allowed is {}", name(), type_name(held), allowed));
  return false;
}

std::string Statement::text() {
  std::string out;
  if (has_type(SQLITE_TEXT, "text")) {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
    const int size = sqlite3_column_bytes(statement_, column_);
    if (data) out.assign(data, static_cast<std::size_t>(size));
    bytes_ += size;
  }
  ++column_;
  return out;
}

std::int64_t Statement::integer(std::int64_t low, std::int64_t high) {
  std::int64_t value = low;
  if (has_type(SQLITE_INTEGER, "an integer")) {
    value = sqlite3_column_int64(statement_, column_);
    if (value < low || value > high)
      complain(fmt::format("\"{}\" is {}; allowed is {} to {}", name(), value, low, high));
  }
  ++column_;
  return value < low || value > high ? low : value;
}

std::int64_t Statement::integer() {
  return integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

double Statement::real(double low, double high) {
  double value = low;
  // What RETURNING gives is as the file has it: whole numbers as integers.
  if (sqlite3_column_type(statement_, column_) == SQLITE_INTEGER || has_type(SQLITE_FLOAT, "a number")) {
    value = sqlite3_column_double(statement_, column_);
    if (!(value >= low && value <= high)) {
      complain(fmt::format("\"{}\" is {}; allowed is {:g} to {:g}", name(), value, low, high));
      value = low;
    }
  }
  ++column_;
  return value;
}

std::optional<std::int64_t> Statement::optional_integer(std::int64_t low) {
  if (!is_null()) return integer(low, std::numeric_limits<std::int64_t>::max());
  ++column_;
  return std::nullopt;
}

std::optional<double> Statement::optional_real(double low, double high) {
  if (!is_null()) return real(low, high);
  ++column_;
  return std::nullopt;
}

Json Statement::json(Shape shape) {
  const auto column = name();
  const auto written = text();
  const Json otherwise = shape == Shape::array ? Json::array() : Json::object();
  if (!fault_.empty()) return otherwise;
  auto value = outside::parse(written, fmt::format("\"{}\"", column), kCellBounds);
  if (!value) {
    complain(value.error().what);
    return otherwise;
  }
  const bool right = shape == Shape::array ? value->is_array()
                                           : value->is_object() || (shape == Shape::object_or_null && value->is_null());
  if (right) return std::move(*value);
  complain(fmt::format("\"{}\" is {}; allowed is {}", column, outside::shown(*value),
                       shape == Shape::array ? "a list" : "an object"));
  return otherwise;
}

std::vector<std::int64_t> Statement::integers(std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> values;
  if (has_type(SQLITE_BLOB, "a blob")) {
    const int size = sqlite3_column_bytes(statement_, column_);
    const void* data = sqlite3_column_blob(statement_, column_);
    bytes_ += size;
    if (size % static_cast<int>(sizeof(std::int64_t)) != 0)
      complain(fmt::format("\"{}\" has {} bytes; allowed are multiples of 8", name(), size));
    values.resize(static_cast<std::size_t>(size) / sizeof(std::int64_t));
    if (!values.empty() && data) std::memcpy(values.data(), data, values.size() * sizeof(std::int64_t));
    for (const auto value : values)
      if (value < low || value > high) {
        complain(fmt::format("\"{}\" holds {}; allowed is {} to {}", name(), value, low, high));
        break;
      }
  }
  ++column_;
  return values;
}

}  // namespace strata::store
