// SPDX-License-Identifier: Apache-2.0
#include "engine/request_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "engine/request_members.hpp"

namespace strata::engine {
using Json = nlohmann::json;
namespace {

template <class Visit>
void visit_members(const Request& request, Visit&& visit) {
  if (const auto* sweep = std::get_if<SweepRequest>(&request))
    visit_sweep(*sweep, visit);
  else
    visit_comparison(std::get<CompareRequest>(request), visit);
}

Json json_of(const plan::NamedPython& named) {
  return {{"name", named.name}, {"python", named.python}};
}
template <class Value>
Json json_of(const Value& value) {
  return value;
}
template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}
template <class Values>
Json json_of(const Repeated<Values>& repeated) {
  Json all = Json::array();
  for (const auto& value : repeated.values) all.push_back(json_of(value));
  return all;
}

// Each `read` says what is allowed where the value is not that; nullptr: it is.
using Allowed = const char*;

Allowed read(const Json& value, std::string& to) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty() ||
      value.get_ref<const std::string&>().starts_with('-'))
    return "a text that is not empty and does not begin with -";
  to = value.get<std::string>();
  return nullptr;
}
Allowed read(const Json& value, bool& to) {
  if (!value.is_boolean()) return "true or false";
  to = value.get<bool>();
  return nullptr;
}
Allowed read(const Json& value, std::int64_t& to) {
  const auto whole = outside::as_integer(value);
  if (!whole || *whole < 0) return "a whole number from 0";
  to = *whole;
  return nullptr;
}
Allowed read(const Json& value, int& to) {
  const auto whole = outside::as_integer(value);
  if (!whole || *whole < 1 || *whole > std::numeric_limits<int>::max()) return "a whole number from 1";
  to = static_cast<int>(*whole);
  return nullptr;
}
Allowed read(const Json& value, double& to) {
  if (!value.is_number() || !(value.get<double>() > 0 && value.get<double>() <= plan::longest_s))
    return "a number above 0, at most 86400000";
  to = value.get<double>();
  return nullptr;
}
template <class Value>
Allowed read(const Json& value, std::optional<Value>& to) {
  return read(value, to.emplace());
}
Allowed read(const Json& value, plan::NamedPython& to) {
  constexpr Allowed allowed = R"(objects {"name": "new", "python": "/path/to/python"})";
  if (!value.is_object() || value.size() != 2) return allowed;
  return read(outside::field(value, "name"), to.name) || read(outside::field(value, "python"), to.python) ? allowed
                                                                                                          : nullptr;
}
template <class Value>
Allowed read(const Json& value, std::vector<Value>& to) {
  if (!value.is_array()) return "a list";
  to.clear();
  for (const auto& element : value)
    if (const auto allowed = read(element, to.emplace_back())) return allowed;
  return nullptr;
}
template <class Values>
Allowed read(const Json& value, const Repeated<Values>& to) {
  return read(value, to.values);
}

void add_words(std::vector<std::string>& words, const char* option, const std::string& value) {
  if (*option != '\0') words.emplace_back(option);
  words.push_back(value);
}
void render(std::vector<std::string>& words, const char* option, const plan::NamedPython& named) {
  add_words(words, option, named.name + "=" + named.python);
}
template <class Value>
void render(std::vector<std::string>& words, const char* option, const Value& value) {
  add_words(words, option, fmt::format("{}", value));
}
// In digits alone, as options are read.
void render(std::vector<std::string>& words, const char* option, const double& value) {
  std::array<char, 400> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr;
  add_words(words, option, std::string(digits.data(), end));
}
void render(std::vector<std::string>& words, const char* option, const bool& value) {
  if (value) words.emplace_back(option);
}
template <class Value>
void render(std::vector<std::string>& words, const char* option, const std::optional<Value>& value) {
  if (value) render(words, option, *value);
}
template <class Value>
void render(std::vector<std::string>& words, const char* option, const std::vector<Value>& values) {
  add_words(words, option, fmt::format("{}", fmt::join(values, ",")));
}
template <class Values>
void render(std::vector<std::string>& words, const char* option, const Repeated<Values>& repeated) {
  for (const auto& value : repeated.values) render(words, option, value);
}

// Calls `use(name, option, member)` of each member that differs from its default.
template <class Use>
void visit_changed(const Request& request, Use&& use) {
  Json defaults = Json::object();
  const Request plain =
      std::holds_alternative<SweepRequest>(request) ? Request(SweepRequest{}) : Request(CompareRequest{});
  visit_members(plain, [&](const char* name, const char*, const auto& member) { defaults[name] = json_of(member); });
  visit_members(request, [&](const char* name, const char* option, const auto& member) {
    if (json_of(member) != defaults[name]) use(name, option, member);
  });
}

tl::unexpected<Error> wrong(std::string what, std::string hint) {
  return fail(std::move(what), std::move(hint), Exit::usage);
}

template <class Kind>
Result<Request> read_members(const Json& value) {
  Kind request;
  std::vector<std::string> known{"verb", "version"};
  std::optional<Error> error;
  const auto take = [&](const char* name, const char*, auto&& member) {
    known.emplace_back(name);
    const auto given = value.find(name);
    if (given == value.end() || error) return;
    if (const auto allowed = read(*given, member))
      error = Error{fmt::format("the request's member {} is {}; allowed: {}", name, outside::shown(*given), allowed),
                    "docs/engine.md lists the members", Exit::usage};
  };
  if constexpr (std::is_same_v<Kind, SweepRequest>)
    visit_sweep(request, take);
  else
    visit_comparison(request, take);
  for (const auto& [name, member] : value.items())
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto near = nearest(name, known);
      return wrong(fmt::format("the request has a member {}, which is not known", outside::shown(name)),
                   near ? fmt::format("did you mean \"{}\"?", *near) : "docs/engine.md lists the members");
    }
  if (error) return tl::unexpected(*error);
  if (request.options.model.empty())
    return wrong("the request names no model", R"(add "model": a model's name, FILE.py:FUNCTION, or a file)");
  return request;
}

}  // namespace

std::string verb_of(const Request& request) {
  return std::holds_alternative<SweepRequest>(request) ? "sweep" : "compare";
}

Json to_json(const Request& request) {
  Json value{{"verb", verb_of(request)}, {"version", kRequestVersion}};
  visit_changed(request, [&](const char* name, const char*, const auto& member) { value[name] = json_of(member); });
  return value;
}

Result<Request> read_request(const Json& value) {
  if (!value.is_object())
    return wrong(fmt::format("the request is {}, not an object", outside::shown(value)),
                 R"(as {"verb": "compare", "version": 1, "model": "resnet50"})");
  if (const auto version = outside::as_integer(outside::field(value, "version")); version != kRequestVersion)
    return wrong(fmt::format("the request's version is {}", outside::shown(outside::field(value, "version"))),
                 fmt::format("this strata reads \"version\": {}", kRequestVersion));
  const auto verb = outside::text_or(value, "verb");
  if (verb == "compare") return read_members<CompareRequest>(value);
  if (verb == "sweep") return read_members<SweepRequest>(value);
  return tl::unexpected(
      unknown_value("the request's verb", outside::shown(outside::field(value, "verb")), {"compare", "sweep"}));
}

std::vector<std::string> command_words(const Request& request) {
  std::vector<std::string> words{verb_of(request)};
  visit_changed(request, [&](const char*, const char* option, const auto& member) { render(words, option, member); });
  return words;
}

}  // namespace strata::engine
