// SPDX-License-Identifier: Apache-2.0
#include "cli/option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>

#include "common/duration.hpp"
#include "common/nearest.hpp"
#include "common/text.hpp"
#include "plan/axes.hpp"
#include "plan/options.hpp"
#include "probe/machine.hpp"

namespace strata::cli {
namespace {

constexpr auto no_bound = std::numeric_limits<std::int64_t>::max();

// CLI11 asks with the value; what is wrong leaves as an exception, so that the sentence is strata's own.
CLI::Option* checked(CLI::Option* option, const char* name, std::function<void(const std::string&)> check) {
  if (name != nullptr) option->type_name(name);
  return option->check([check = std::move(check)](const std::string& value) {
    check(value);
    return std::string();
  });
}

std::string allowed_range(std::int64_t low, std::int64_t high) {
  return high == no_bound ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
}

// More than a few for each processor only wait for each other.
void check_threads(const CLI::Option& option, const std::string& value, std::optional<std::int64_t> got) {
  if (const auto checked = plan::check_threads(option.get_name() + " " + value, got.value_or(0)); !checked)
    throw WrongUsage(checked.error().what);
}

// "all" as a number, so that what is written once holds on any machine.
std::string counted(const std::string& value) {
  auto parts = split(value, ',');
  for (auto& part : parts)
    if (part == "all") part = std::to_string(probe::physical_cores());
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

bool takes_list(const CLI::Option& option) {
  return option.get_type_name().find("[,") != std::string::npos;
}

bool is_repeated(const CLI::Option& option) {
  return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

CLI::Option* choice(CLI::Option* option, std::vector<std::string> allowed) {
  option->type_name(fmt::format("{{{}}}", fmt::join(allowed, ",")));
  return checked(option, nullptr, [option, allowed = std::move(allowed)](const std::string& value) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    const auto error = unknown_value(option->get_name(), value, allowed);
    throw WrongUsage(error.what, error.hint);
  });
}

CLI::Option* whole(CLI::Option* option, std::int64_t low, std::int64_t high, std::string why) {
  return checked(option, "N", [=, why = std::move(why)](const std::string& value) {
    const auto got = number<std::int64_t>(value);
    if (got && *got >= low && *got <= high) return;
    throw WrongUsage(fmt::format("{} {}: {}allowed: {}{}", option->get_name(), value, got ? "" : "not a whole number; ",
                                 allowed_range(low, high), why.empty() ? "" : fmt::format(" ({})", why)));
  });
}

CLI::Option* positive(CLI::Option* option) {
  return checked(option, "N", [=](const std::string& value) {
    const auto got = number<double>(value);
    if (!got || *got <= 0) throw WrongUsage(fmt::format("{} {}: allowed: a number above 0", option->get_name(), value));
  });
}

CLI::Option* duration(CLI::Option* option) {
  return checked(option, "SECONDS", [=](const std::string& value) {
    const auto got = seconds_of(value);
    if (!got || *got <= 0 || *got > plan::longest_s)
      throw WrongUsage(
          fmt::format("{} {}: write a time as 60s or 2m, above 0 and at most 1000 days", option->get_name(), value));
  });
}

CLI::Option* list(CLI::Option* option) {
  return checked(option, nullptr, [=](const std::string& value) {
    auto parts = split(value, ',');
    for (const auto& part : parts)
      if (part.empty())
        throw WrongUsage(fmt::format("{} {}: an entry is empty", option->get_name(), value),
                         "put one comma between two entries; is a variable of your script empty?");
    std::sort(parts.begin(), parts.end());
    if (const auto twice = std::adjacent_find(parts.begin(), parts.end()); twice != parts.end())
      throw WrongUsage(fmt::format("{} {}: {} is given twice", option->get_name(), value, *twice), "name each once");
  });
}

CLI::Option* threads(CLI::Option* option) {
  checked(option, "N", [=](const std::string& value) { check_threads(*option, value, number<std::int64_t>(value)); });
  return option->transform(counted);
}

CLI::Option* thread_counts(CLI::Option* option) {
  checked(option, "N[,N...]", [=](const std::string& value) {
    constexpr int most = std::numeric_limits<int>::max();
    const auto counts = plan::whole_numbers(option->get_name(), value, -most, most);
    if (!counts && value.find_first_of(",.") == std::string::npos) check_threads(*option, value, std::nullopt);
    if (!counts) throw WrongUsage(counts.error().what, counts.error().hint);
    for (const int count : *counts) check_threads(*option, value, count);
  });
  return option->transform(counted);
}

CLI::Option* seed(CLI::Option* option) {
  return whole(option, 0, no_bound);
}

CLI::Option* add_store(CLI::App& verb, std::string& path) {
  return verb.add_option("--store", path, "the store's file (default: strata/strata.db in the XDG data folder)")
      ->type_name("PATH");
}

CLI::Option* add_data_dir(CLI::App& verb, std::string& folder) {
  return verb
      .add_option("--data-dir", folder,
                  "the folder of data sets (default: STRATA_DATA, else strata/data in the XDG data folder)")
      ->type_name("DIR");
}

CLI::Option* add_skip_bad(CLI::App& verb, bool& skip) {
  return verb.add_flag("--skip-bad", skip, "leave out images of a data set that cannot be read, and count them");
}

CLI::Option* format_choice(CLI::Option* option) {
  return choice(option->capture_default_str(), {"text", "json", "csv", "md"});
}

void refuse(const CLI::App& verb, std::initializer_list<const char*> options, const std::string& with) {
  for (const char* option : options)
    if (verb.count(option) > 0)
      throw WrongUsage(fmt::format("{} means nothing with {}", option, with), "leave one of them out");
}

void refuse_empty_values(CLI::App& app) {
  for (auto* option : app.get_options()) {
    // what is handed on to a program may be empty, or an option of it
    if (option->get_items_expected_max() == 0 || option->get_name() == "arguments" || option->get_name() == "--sbatch")
      continue;
    // transform() looks before the option's own checks, which would say less
    option->transform([option](const std::string& value) {
      if (value.empty())
        throw WrongUsage(fmt::format("{}: the value is empty", option->get_name()),
                         option->get_positional() ? "name it" : "give a value, or leave the option out");
      if (value.starts_with("--") && !option->get_positional())
        throw WrongUsage(fmt::format("{}: the value is missing; what follows is {}", option->get_name(), value),
                         fmt::format("{} {}", option->get_name(), option->get_type_name()));
      return value;
    });
  }
  for (auto* verb : app.get_subcommands(std::function<bool(CLI::App*)>())) refuse_empty_values(*verb);
}

void refuse_empty_words(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return;
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      throw WrongUsage(fmt::format("{}: the value is empty", word.substr(0, word.size() - 1)),
                       "give a value, or leave the option out");
  }
}

}  // namespace strata::cli
