// SPDX-License-Identifier: Apache-2.0
// Whether JSON from outside may be parsed: one pass, linear in the text and without recursion, sees its size, its
// depth, how many values it has and, where asked for, keys that occur twice. What passes can be parsed, copied and
// written without an end of the stack, and needs a bounded memory. Self-contained: the SDK compiles it as well.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace strata {

struct JsonBounds {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 64;
  std::size_t values = 5'000'000;
  bool unique_keys = false;
};

namespace json_bounds_detail {

// The events of the parser, counted. Returning false ends the pass.
class Watch {
 public:
  explicit Watch(const JsonBounds& bounds) : bounds_(bounds) {}
  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(std::int64_t) { return value(); }
  bool number_unsigned(std::uint64_t) { return value(); }
  bool number_float(double, const std::string&) { return value(); }
  bool string(std::string&) { return value(); }
  bool binary(nlohmann::json::binary_t&) { return value(); }
  bool start_object(std::size_t) { return open(); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (!bounds_.unique_keys || keys_.back().insert(name).second) return true;
    twice = name;
    return false;
  }
  // The library's own words quote what it read last, which may be long and binary.
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    fault = "not UTF-8 JSON: something else stands at byte " + std::to_string(position);
    return false;
  }

  std::string fault, twice;

 private:
  bool value() {
    if (++values_ > bounds_.values) fault = "more than " + std::to_string(bounds_.values) + " values";
    return fault.empty();
  }
  bool open() {
    if (++depth_ > bounds_.depth) fault = "nested deeper than " + std::to_string(bounds_.depth) + " values";
    if (bounds_.unique_keys) keys_.emplace_back();
    return value();
  }
  bool close() {
    --depth_;
    if (bounds_.unique_keys) keys_.pop_back();
    return true;
  }

  const JsonBounds& bounds_;
  std::size_t depth_ = 0, values_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace json_bounds_detail

// What is wrong with the text; empty: it may be parsed. `twice` receives the key that occurs twice, if that is it.
inline std::string json_fault(std::string_view text, const JsonBounds& bounds = {}, std::string* twice = nullptr) {
  if (text.size() > bounds.bytes) return "larger than " + std::to_string(bounds.bytes) + " bytes";
  json_bounds_detail::Watch watch(bounds);
  if (nlohmann::json::sax_parse(text, &watch)) return {};
  if (twice) *twice = watch.twice;
  if (!watch.twice.empty()) return "an object with a key that occurs twice";
  return watch.fault.empty() ? "not UTF-8 JSON" : watch.fault;
}

}  // namespace strata
