// SPDX-License-Identifier: Apache-2.0
// JSON that somebody else wrote (a worker, a captured network, level.json, the store): parsed within bounds, and read
// field by field as the type that is wanted. Nothing here throws on what it reads; complaints say what, where, what was
// got and what is allowed, and are text that can be stored and shown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_bounds.hpp"
#include "common/result.hpp"

namespace strata::outside {

using Json = nlohmann::json;

inline constexpr std::int64_t most_whole = std::int64_t{1} << 53;  // on whole numbers to it JSON's readers agree

// `where` names the text in errors.
Result<Json> parse(std::string_view text, const std::string& where, const JsonBounds& bounds = {});
Result<Json> read_file(const std::filesystem::path& path, const JsonBounds& bounds = {});

// A value as it stands in a complaint: short, one line, UTF-8.
std::string shown(const Json& value);

// For what is only shown or has a sensible value when it is absent: the field if it has the wanted type, `otherwise` if
// it is missing or anything else. `object` may be any value.
const Json& field(const Json& object, std::string_view key);  // null if it is missing
std::string text_or(const Json& object, std::string_view key, std::string otherwise = {});
double number_or(const Json& object, std::string_view key, double otherwise = 0);
std::int64_t integer_or(const Json& object, std::string_view key, std::int64_t otherwise = 0);
bool flag_or(const Json& object, std::string_view key, bool otherwise);
std::optional<std::int64_t> as_integer(const Json& value);  // nullopt: none, or one that int64 does not hold

// Reads what must be right: fields one after another; the first that is not as it should be is kept as the error, and
// something harmless is returned for it. A field read with `otherwise` may be missing.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::string hint = {});  // `object` outlives this and what it returns
  Fields(const Json&& object, std::string where, std::string hint = {}) = delete;  // a temporary does not

  std::string text(const char* key);
  std::string text(const char* key, std::string otherwise);
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high);
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t otherwise);
  std::optional<std::int64_t> integer_or_null(const char* key);
  double number(const char* key, double low, double high);
  double number(const char* key, double low, double high, double otherwise);
  bool flag(const char* key);
  bool flag(const char* key, bool otherwise);
  std::vector<std::string> texts(const char* key);
  std::vector<std::string> texts(const char* key, std::vector<std::string> otherwise);
  // `count`: exactly so many.
  std::vector<std::int64_t> integers(const char* key, std::optional<std::size_t> count, std::int64_t low,
                                     std::int64_t high);
  const Json& object(const char* key);  // an empty one if it is wrong
  const Json& object_or_empty(const char* key);
  const Json& array(const char* key);

  // nullptr: missing (a complaint if `allowed` is given) .
  const Json* find(const char* key, const std::string& allowed = {});
  void complain(const char* key, const Json& got, const std::string& allowed);
  void fail_with(std::string what, std::string hint);
  const std::optional<Error>& error() const { return error_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }
  void set_exit(Exit exit) { exit_ = exit; }

 private:
  const Json& object_;
  std::string where_, hint_;
  Exit exit_ = Exit::failed;
  std::optional<Error> error_;
};

}  // namespace strata::outside
