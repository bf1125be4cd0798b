// SPDX-License-Identifier: Apache-2.0
#include "requests/member.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "common/duration.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/text.hpp"
#include "plan/axes.hpp"
#include "plan/options.hpp"
#include "probe/machine.hpp"

namespace strata::requests {
using Json = nlohmann::json;
namespace {

using Values = std::vector<std::string>;
using Allowed = std::optional<std::string>;

constexpr const char* kText = "a text that is not empty and does not begin with -";

// `facts`: of the option and what it was given.
tl::unexpected<Error> wrong(const std::string& option, const std::string& text, const std::string& why,
                            std::string hint = {}, std::string allowed = {}) {
  return fail(fmt::format("{} {}: {}", option, text, why), std::move(hint), Exit::usage,
              {option, outside::shown(text), std::move(allowed)});
}

bool is_text(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty() &&
         !value.get_ref<const std::string&>().starts_with('-');
}

// In digits alone, as options are read.
std::string digits(double value) {
  std::array<char, 400> all{};
  return {all.data(), std::to_chars(all.data(), all.data() + all.size(), value, std::chars_format::fixed).ptr};
}
// Of a share in hundredths: the point two places further, so that hundredths_of reads it back.
std::string hundredths(double share) {
  auto whole = digits(share);
  const auto point = std::min(whole.find('.'), whole.size());
  auto rest = whole.substr(std::min(point + 1, whole.size()));
  whole.resize(point);
  rest.resize(std::max<std::size_t>(rest.size(), 2), '0');
  whole += rest.substr(0, 2);
  rest.erase(0, 2);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  return rest.empty() ? whole : whole + "." + rest;
}

std::string range_of(std::int64_t low, std::int64_t high) {
  return high == no_bound ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
}

// "all" as a number, so that what is written once holds on any machine.
std::string counted(const std::string& value) {
  auto parts = split(value, ',');
  for (auto& part : parts)
    if (part == "all") part = std::to_string(probe::physical_cores());
  return fmt::format("{}", fmt::join(parts, ","));
}

// A number as it is written with a unit. `scaled`: what the text says, or nothing; `spelled`: the inverse.
Member real(Real value, double most, bool or_none, std::function<std::optional<double>(const std::string&)> scaled,
            std::function<Error(const std::string& option, const std::string& text)> error,
            std::function<std::string(double)> spelled, std::string type) {
  const auto fits = [=](const std::optional<double>& got) {
    return got && (*got > 0 || (or_none && *got == 0)) && *got <= most;
  };
  Member member;
  member.type = std::move(type);
  member.read_text = [=](const auto& option, const auto& text) -> Result<void> {
    const auto got = scaled(text);
    if (!fits(got)) return tl::unexpected(error(option, text));
    value.set(*got);
    return {};
  };
  member.read_json = [=](const Json& json) -> Allowed {
    if (!json.is_number() || !fits(json.get<double>()))
      return fmt::format("a number {}, at most {}", or_none ? "from 0" : "above 0", digits(most));
    value.set(json.get<double>());
    return std::nullopt;
  };
  member.json = [=] { return value.get() ? Json(*value.get()) : Json(); };
  member.values = [=] { return value.get() ? Values{spelled(*value.get())} : Values{}; };
  return member;
}

// A share that is written in hundredths with a unit. `hint`: with {} for the option.
Member in_hundredths(Real share, double most, const std::string& unit, const std::string& allowed,
                     const std::string& hint, const char* type) {
  return real(
      std::move(share), most, false, [unit](const std::string& text) { return hundredths_of(text, unit); },
      [allowed, hint](const auto& option, const auto& text) {
        return not_allowed(option, text, allowed, fmt::format(fmt::runtime(hint), option));
      },
      [unit](double value) { return hundredths(value) + unit; }, type);
}

// Several numbers, of which `read` makes the list.
Member numbers(std::vector<int>& values, int low, int high,
               std::function<Result<std::vector<int>>(const std::string&, const std::string&)> read) {
  Member member;
  member.type = "N[,N...]";
  member.arity = Arity::list;
  member.read_text = [&values, read = std::move(read)](const auto& option, const auto& text) -> Result<void> {
    values = STRATA_TRY(read(option, text));
    return {};
  };
  member.read_json = [&values, low, high](const Json& json) -> Allowed {
    const auto allowed = fmt::format("a list of different whole numbers, each {}", range_of(low, high));
    if (!json.is_array()) return allowed;
    values.clear();
    for (const auto& element : json) {
      const auto got = outside::as_integer(element);
      if (!got || *got < low || *got > high) return allowed;
      if (std::find(values.begin(), values.end(), static_cast<int>(*got)) != values.end()) return allowed;
      values.push_back(static_cast<int>(*got));
    }
    return std::nullopt;
  };
  member.json = [&values] { return Json(values); };
  member.values = [&values] { return values.empty() ? Values{} : Values{fmt::format("{}", fmt::join(values, ","))}; };
  return member;
}

Allowed read_texts(const Json& json, std::vector<std::string>& values, const char* allowed, auto&& fits) {
  if (!json.is_array()) return allowed;
  values.clear();
  for (const auto& element : json) {
    if (!is_text(element) || !fits(element.template get<std::string>())) return allowed;
    values.push_back(element.template get<std::string>());
  }
  return std::nullopt;
}

Result<std::vector<std::string>> words_of(const std::string& option, const std::string& text) {
  auto parts = split(text, ',');
  for (const auto& part : parts)
    if (part.empty())
      return wrong(option, text, "an entry is empty",
                   "put one comma between two entries; is a variable of your script empty?");
  auto sorted = parts;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return wrong(option, text, fmt::format("{} is given twice", *twice), "name each once");
  return parts;
}

}  // namespace

Member described(Member member, std::string name, std::string option, std::string help, const char* type) {
  member.name = std::move(name);
  member.option = std::move(option);
  member.help = std::move(help);
  if (*type != '\0') member.type = type;
  return member;
}

Member flag(bool& value) {
  Member member;
  member.arity = Arity::nothing;
  member.read_text = [&value](const auto&, const auto& text) -> Result<void> {
    value = text != kOff;
    return {};
  };
  member.read_json = [&value](const Json& json) -> Allowed {
    if (!json.is_boolean()) return "true or false";
    value = json.get<bool>();
    return std::nullopt;
  };
  member.json = [&value] { return Json(value); };
  member.values = [] { return Values{}; };
  return member;
}

Member text(std::string& value, Arity arity) {
  Member member;
  member.arity = arity;
  member.read_text = [&value](const auto& option, const auto& text) -> Result<void> {
    if (text.starts_with('-')) return tl::unexpected(not_allowed(option, text, kText, "a path can begin with ./"));
    value = text;
    return {};
  };
  member.read_json = [&value](const Json& json) -> Allowed {
    if (!is_text(json)) return kText;
    value = json.get<std::string>();
    return std::nullopt;
  };
  member.json = [&value] { return Json(value); };
  member.values = [&value] { return value.empty() ? Values{} : Values{value}; };
  return member;
}

Member choice(std::string& value, std::vector<std::string> allowed) {
  auto member = text(value);
  member.type = fmt::format("{{{}}}", fmt::join(allowed, ","));
  member.read_text = [&value, allowed](const auto& option, const auto& text) -> Result<void> {
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
      return tl::unexpected(unknown_value(option, text, allowed));
    value = text;
    return {};
  };
  member.read_json = [&value, allowed](const Json& json) -> Allowed {
    if (std::find(allowed.begin(), allowed.end(), json) == allowed.end())
      return fmt::format("one of {}", fmt::join(allowed, ", "));
    value = json.get<std::string>();
    return std::nullopt;
  };
  return member;
}

Member whole(Whole value, std::int64_t low, std::int64_t high) {
  const auto fits = [=](const std::optional<std::int64_t>& got) { return got && *got >= low && *got <= high; };
  Member member;
  member.type = "N";
  member.read_text = [=](const auto& option, const auto& text) -> Result<void> {
    const auto got = number<std::int64_t>(text);
    if (!fits(got))
      return wrong(option, text, fmt::format("{}allowed: {}", got ? "" : "not a whole number; ", range_of(low, high)),
                   {}, range_of(low, high));
    value.set(*got);
    return {};
  };
  member.read_json = [=](const Json& json) -> Allowed {
    const auto got = outside::as_integer(json);
    if (!fits(got)) return "a whole number, " + range_of(low, high);
    value.set(*got);
    return std::nullopt;
  };
  member.json = [=] { return value.get() ? Json(*value.get()) : Json(); };
  member.values = [=] { return fits(value.get()) ? Values{std::to_string(*value.get())} : Values{}; };
  return member;
}

Member threads(Whole value) {
  auto member = whole(value, 1, std::numeric_limits<int>::max());
  member.read_text = [value](const auto& option, const auto& text) -> Result<void> {
    const auto got = number<std::int64_t>(counted(text)).value_or(0);
    STRATA_TRY(plan::check_threads(option + " " + text, got));
    value.set(got);
    return {};
  };
  return member;
}

Member thread_counts(std::vector<int>& all) {
  constexpr int most = std::numeric_limits<int>::max();
  return numbers(all, 1, most, [](const auto& option, const auto& text) -> Result<std::vector<int>> {
    auto counts = plan::whole_numbers(option, counted(text), -most, most);
    const auto what = option + " " + text;
    if (!counts && text.find_first_of(",.") == std::string::npos) STRATA_TRY(plan::check_threads(what, 0));
    if (counts)
      for (const int count : *counts) STRATA_TRY(plan::check_threads(what, count));
    return counts;
  });
}

Member axis(std::vector<int>& values, int low, int high) {
  return numbers(values, low, high, [low, high](const auto& option, const auto& text) {
    return plan::whole_numbers(option, text, low, high);
  });
}

Member words(std::vector<std::string>& values, std::vector<std::string> allowed) {
  const auto fits = [allowed](const std::string& word) {
    return allowed.empty() ? word.find(',') == std::string::npos
                           : std::find(allowed.begin(), allowed.end(), word) != allowed.end();
  };
  Member member;
  member.arity = Arity::list;
  if (!allowed.empty()) member.type = fmt::format("{{{}}}[,...]", fmt::join(allowed, ","));
  member.read_text = [&values, fits, allowed](const auto& option, const auto& text) -> Result<void> {
    auto parts = STRATA_TRY(words_of(option, text));
    for (const auto& part : parts)
      if (!fits(part))
        return wrong(option, text, fmt::format("'{}' is not one of: {}", part, fmt::join(allowed, ", ")), {},
                     fmt::format("{}", fmt::join(allowed, ", ")));
    values = std::move(parts);
    return {};
  };
  member.read_json = [&values, fits, allowed](const Json& json) {
    const auto list = allowed.empty() ? std::string("a list of texts without commas")
                                      : fmt::format("a list of: {}", fmt::join(allowed, ", "));
    return read_texts(json, values, list.c_str(), fits);
  };
  member.json = [&values] { return Json(values); };
  member.values = [&values] { return values.empty() ? Values{} : Values{fmt::format("{}", fmt::join(values, ","))}; };
  return member;
}

Member repeated(std::vector<std::string>& values) {
  Member member;
  member.arity = Arity::repeated;
  member.read_text = [&values](const auto&, const auto& text) -> Result<void> {
    values.push_back(text);
    return {};
  };
  member.read_json = [&values](const Json& json) {
    return read_texts(json, values, "a list of texts", [](const auto&) { return true; });
  };
  member.json = [&values] { return Json(values); };
  member.values = [&values] { return values; };
  return member;
}

Member environments(std::vector<plan::NamedPython>& named) {
  const auto spelled = [&named] {
    Values all;
    for (const auto& environment : named) all.push_back(environment.name + "=" + environment.python);
    return all;
  };
  Member member;
  member.arity = Arity::repeated;
  member.values = spelled;
  member.read_text = [&named, spelled](const auto&, const auto& text) -> Result<void> {
    auto all = spelled();
    all.push_back(text);
    named = STRATA_TRY(plan::parse_environments(all));
    return {};
  };
  member.read_json = [&named](const Json& json) -> Allowed {
    constexpr const char* allowed = R"(a list of objects {"name": "new", "python": "/path/to/python"})";
    if (!json.is_array()) return allowed;
    named.clear();
    for (const auto& element : json) {
      const auto &name = outside::field(element, "name"), &python = outside::field(element, "python");
      if (!element.is_object() || element.size() != 2 || !is_text(name) || !is_text(python)) return allowed;
      named.push_back({name.get<std::string>(), python.get<std::string>()});
    }
    return std::nullopt;
  };
  member.json = [&named] {
    Json all = Json::array();
    for (const auto& environment : named) all.push_back({{"name", environment.name}, {"python", environment.python}});
    return all;
  };
  return member;
}

Member positive(Real value) {
  return real(
      std::move(value), plan::longest_s, false, number<double>,
      [](const auto& option, const auto& text) { return not_allowed(option, text, "a number above 0"); }, digits, "N");
}

Member seconds(Real value) {
  return real(
      std::move(value), plan::longest_s, false, seconds_of,
      [](const auto& option, const auto& text) {
        constexpr const char* allowed = "a time as 60s or 2m, above 0 and at most 1000 days";
        return wrong(option, text, fmt::format("write {}", allowed), {}, allowed).value();
      },
      [](double value_s) { return digits(value_s) + "s"; }, "SECONDS");
}

Member share(Real value, bool or_none) {
  return real(
      std::move(value), 1, or_none, share_of,
      [](const auto& option, const auto& text) {
        return not_allowed(option, text, share_of(text) ? "between 0% and 100%, as 1%" : "a share as 1%",
                           option + " 1%");
      },
      [](double shown) { return hundredths(shown) + "%"; }, "PERCENT");
}

Member percentage_points(Real share) {
  return in_hundredths(std::move(share), 0.5, "pp", "percentage points above 0 and up to 50", "as {0} 1pp or {0} 0.5pp",
                       "PP");
}

Member percent(Real share) {
  return in_hundredths(std::move(share), 1, "%", "above 0% and up to 100%", "as {} 95%", "PERCENT");
}

}  // namespace strata::requests
