// SPDX-License-Identifier: Apache-2.0
#include "common/outside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

namespace strata::outside {
namespace fs = std::filesystem;
namespace {

const Json none;
const Json empty_object = Json::object();
const Json empty_array = Json::array();

bool is_text(const Json& value) {
  return value.is_string();
}

std::string range_of(std::int64_t low, std::int64_t high) {
  return high == std::numeric_limits<std::int64_t>::max() ? fmt::format("from {}", low)
                                                          : fmt::format("from {} to {}", low, high);
}

bool in_range(const Json& value, std::int64_t low, std::int64_t high) {
  const auto number = as_integer(value);
  return number && *number >= low && *number <= high;
}

}  // namespace

Result<Json> parse(std::string_view text, const std::string& where, const JsonBounds& bounds) {
  if (const auto fault = json_fault(text, bounds); !fault.empty()) return fail(fmt::format("{}: {}", where, fault));
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return fail(fmt::format("{}: not JSON", where));
  return value;
}

Result<Json> read_file(const fs::path& path, const JsonBounds& bounds) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) return fail(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  if (bytes > bounds.bytes)
    return fail(fmt::format("{}: {} bytes; allowed are {}", path.string(), bytes, bounds.bytes));
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return fail(fmt::format("{}: cannot be read", path.string()), "check its permissions");
  return parse(text.str(), path.string(), bounds);
}

std::string shown(const Json& value) {
  constexpr std::size_t longest = 80;
  if (value.is_structured() && value.size() > longest)
    return fmt::format("{} of {} entries", value.is_array() ? "a list" : "an object", value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);  // ASCII, control characters escaped
  std::replace(text.begin(), text.end(), '\x7f', ' ');
  return text.size() > longest ? text.substr(0, longest - 3) + "..." : text;
}

const Json& field(const Json& object, std::string_view key) {
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

std::string text_or(const Json& object, std::string_view key, std::string otherwise) {
  const Json& value = field(object, key);
  return value.is_string() ? value.get<std::string>() : std::move(otherwise);
}

double number_or(const Json& object, std::string_view key, double otherwise) {
  const Json& value = field(object, key);
  return value.is_number() ? value.get<double>() : otherwise;
}

std::int64_t integer_or(const Json& object, std::string_view key, std::int64_t otherwise) {
  return as_integer(field(object, key)).value_or(otherwise);
}

bool flag_or(const Json& object, std::string_view key, bool otherwise) {
  const Json& value = field(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  return value.is_number_integer() ? std::optional<std::int64_t>(value.get<std::int64_t>()) : std::nullopt;
}

Fields::Fields(const Json& object, std::string where, std::string hint)
    : object_(object.is_object() ? object : empty_object), where_(std::move(where)), hint_(std::move(hint)) {
  if (!object.is_object())
    fail_with(fmt::format("{}: {}; allowed is a JSON object", where_, outside::shown(object)), hint_);
}

void Fields::fail_with(std::string what, std::string hint) {
  if (!error_) error_ = Error{std::move(what), std::move(hint), exit_};
}

void Fields::complain(const char* key, const Json& got, const std::string& allowed) {
  fail_with(fmt::format("{}: \"{}\" is {}; allowed is {}", where_, key, outside::shown(got), allowed), hint_);
}

const Json* Fields::find(const char* key, const std::string& allowed) {
  const auto it = object_.find(key);
  if (it != object_.end()) return &*it;
  if (!allowed.empty())
    fail_with(fmt::format("{}: the field \"{}\" is missing; allowed is {}", where_, key, allowed), hint_);
  return nullptr;
}

std::string Fields::text(const char* key) {
  const Json* value = find(key, "a string");
  if (value && !is_text(*value)) complain(key, *value, "a string");
  return value && is_text(*value) ? value->get<std::string>() : std::string();
}

std::string Fields::text(const char* key, std::string otherwise) {
  return find(key) ? text(key) : std::move(otherwise);
}

std::int64_t Fields::integer(const char* key, std::int64_t low, std::int64_t high) {
  const auto allowed = "an integer " + range_of(low, high);
  const Json* value = find(key, allowed);
  if (value && in_range(*value, low, high)) return *as_integer(*value);
  if (value) complain(key, *value, allowed);
  return low;
}

std::int64_t Fields::integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
  return find(key) ? integer(key, low, high) : otherwise;
}

std::optional<std::int64_t> Fields::integer_or_null(const char* key) {
  const std::string allowed = "an integer or null";
  const Json* value = find(key, allowed);
  if (!value || value->is_null()) return std::nullopt;
  const auto number = as_integer(*value);
  if (!number) complain(key, *value, allowed);
  return number;
}

double Fields::number(const char* key, double low, double high) {
  const auto allowed = fmt::format("a number from {:g} to {:g}", low, high);
  const Json* value = find(key, allowed);
  if (value && value->is_number() && value->get<double>() >= low && value->get<double>() <= high)
    return value->get<double>();
  if (value) complain(key, *value, allowed);
  return low;
}

double Fields::number(const char* key, double low, double high, double otherwise) {
  return find(key) ? number(key, low, high) : otherwise;
}

bool Fields::flag(const char* key) {
  const Json* value = find(key, "true or false");
  if (value && !value->is_boolean()) complain(key, *value, "true or false");
  return value && value->is_boolean() && value->get<bool>();
}

bool Fields::flag(const char* key, bool otherwise) {
  return find(key) ? flag(key) : otherwise;
}

std::vector<std::string> Fields::texts(const char* key) {
  const Json* value = find(key, "a list of strings");
  if (value && value->is_array() && std::all_of(value->begin(), value->end(), is_text))
    return value->get<std::vector<std::string>>();
  if (value) complain(key, *value, "a list of strings");
  return {};
}

std::vector<std::string> Fields::texts(const char* key, std::vector<std::string> otherwise) {
  return find(key) ? texts(key) : std::move(otherwise);
}

std::vector<std::int64_t> Fields::integers(const char* key, std::optional<std::size_t> count, std::int64_t low,
                                           std::int64_t high) {
  const auto allowed = count ? fmt::format("a list of {} integers {}", *count, range_of(low, high))
                             : fmt::format("a list of integers {}", range_of(low, high));
  const Json* value = find(key, allowed);
  if (!value) return {};
  if (!value->is_array() || (count && value->size() != *count)) {
    complain(key, *value, allowed);
    return {};
  }
  std::vector<std::int64_t> out;
  out.reserve(value->size());
  for (const Json& entry : *value) {
    if (!in_range(entry, low, high)) {
      fail_with(fmt::format("{}: \"{}\" holds {}; allowed is {}", where_, key, outside::shown(entry), allowed), hint_);
      return {};
    }
    out.push_back(*as_integer(entry));
  }
  return out;
}

const Json& Fields::object(const char* key) {
  const Json* value = find(key, "an object");
  if (value && !value->is_object()) complain(key, *value, "an object");
  return value && value->is_object() ? *value : empty_object;
}

const Json& Fields::object_or_empty(const char* key) {
  return find(key) ? object(key) : empty_object;
}

const Json& Fields::array(const char* key) {
  const Json* value = find(key, "a list");
  if (value && !value->is_array()) complain(key, *value, "a list");
  return value && value->is_array() ? *value : empty_array;
}

}  // namespace strata::outside
