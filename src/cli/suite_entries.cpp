// SPDX-License-Identifier: Apache-2.0
#include "cli/suite_entries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/former_names.hpp"
#include "cli/option.hpp"
#include "cli/verb_words.hpp"
#include "common/nearest.hpp"

namespace strata::cli {
namespace {

using suite::Setting;
using Words = std::vector<std::string>;

constexpr std::size_t kMostEntries = 10'000;

// What a suite leaves to `strata run`: set-up has to know it beforehand, or it is about the whole suite.
const std::set<std::string>& not_for_entries() {
  static const std::set<std::string> names{"constraint", "data-dir", "dry-run", "env",   "folder", "format",
                                           "help",       "help-all", "nodes",   "on",    "output", "partition",
                                           "python",     "resume",   "sbatch",  "scale", "shard",  "store"};
  return names;
}

// The option that a key names, by its long name or its place; nullptr: none.
const CLI::Option* option_named(const CLI::App& verb, const std::string& key) {
  if (not_for_entries().contains(key)) return nullptr;
  for (const auto* option : verb.get_options()) {
    const auto& names = option->get_lnames();
    if (std::find(names.begin(), names.end(), key) != names.end()) return option;
    if (names.empty() && option->get_positional() && option->get_name() == key) return option;
  }
  return nullptr;
}

std::vector<std::string> keys_of(const CLI::App& verb) {
  std::vector<std::string> keys;
  for (const auto* option : verb.get_options()) {
    const auto key = option->get_lnames().empty() ? option->get_name() : option->get_lnames().front();
    if (option_named(verb, key) != nullptr) keys.push_back(key);
  }
  return keys;
}

Error unknown_key(const suite::Suite& suite, const Setting& setting, const std::string& verb,
                  const std::vector<std::string>& keys) {
  if (not_for_entries().contains(setting.key))
    return suite::at_line(suite.path, setting.line, fmt::format("{} is not an option of entries", setting.key),
                          "leave it out; `strata run --help` shows the options of the whole run");
  const auto near = nearest(setting.key, keys);
  return suite::at_line(suite.path, setting.line,
                        fmt::format("unknown key '{}' of {}{}; allowed: {}", setting.key, verb,
                                    near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(keys, ", ")),
                        fmt::format("./strata {} --help", verb.substr(0, verb.find(','))));
}

bool is_flag(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

// Every way of saying a setting: one, but where a list is given to what takes one value.
Result<std::vector<Words>> ways_of(const suite::Suite& suite, const Setting& setting, const CLI::Option& option) {
  const auto wrong = [&](const char* what) {
    return tl::unexpected(
        suite::at_line(suite.path, setting.line, fmt::format("{} {}", setting.key, what), "see the verb's --help"));
  };
  if (is_flag(option) != setting.flag.has_value())
    return wrong(is_flag(option) ? "is true or false" : "takes a value, not true or false");
  if (is_flag(option)) return std::vector<Words>{*setting.flag ? Words{option.get_name()} : Words{}};
  // It would be read as an option of its own; a negative number is a value.
  const auto is_option = [](const std::string& value) {
    return value.starts_with('-') && value.find_first_of("0123456789.") != 1;
  };
  if (std::any_of(setting.values.begin(), setting.values.end(), is_option))
    return wrong("has a value that begins with -, as options do; a path can begin with ./");
  const auto say = [&](const std::string& value) {
    return option.get_positional() ? Words{value} : Words{option.get_name(), value};
  };
  if (is_repeated(option)) {
    Words all;
    for (const auto& value : setting.values)
      for (auto& word : say(value)) all.push_back(std::move(word));
    return std::vector<Words>{all};
  }
  if (takes_list(option)) return std::vector<Words>{say(fmt::format("{}", fmt::join(setting.values, ",")))};
  std::vector<Words> ways;
  for (const auto& value : setting.values) ways.push_back(say(value));
  return ways;
}

// The entry's own settings, and before them the defaults that it does not set.
std::vector<const Setting*> settings_of(const suite::Suite& suite, const suite::Entry& entry, const CLI::App& verb) {
  std::vector<const Setting*> all;
  for (const auto& default_setting : suite.defaults) {
    const bool own = std::any_of(entry.settings.begin(), entry.settings.end(),
                                 [&](const Setting& other) { return other.key == default_setting.key; });
    if (!own && option_named(verb, default_setting.key) != nullptr) all.push_back(&default_setting);
  }
  for (const auto& setting : entry.settings) all.push_back(&setting);
  return all;
}

Result<void> check_defaults(const suite::Suite& suite) {
  for (const auto& setting : suite.defaults) {
    std::string verbs;
    std::vector<std::string> keys;  // of all verbs: a default is for those that have it
    const bool any = std::any_of(suite.entries.begin(), suite.entries.end(), [&](const suite::Entry& entry) {
      auto verb = VerbWords::of(entry.verb);
      if (!verb) return false;
      const auto own = keys_of(verb->options());
      for (const auto& key : own)
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
      const auto& name = verb->options().get_name();
      if (verbs.find(name) == std::string::npos) verbs += (verbs.empty() ? "" : ", ") + name;
      return option_named(verb->options(), setting.key) != nullptr;
    });
    if (!any && !keys.empty()) return tl::unexpected(unknown_key(suite, setting, verbs, keys));
  }
  return {};
}

// All combinations of an entry's values, the last key's changing fastest.
Result<std::vector<Words>> product_of(const suite::Suite& suite, const suite::Entry& entry, const CLI::App& verb) {
  std::vector<Words> all{{entry.verb}};
  for (const auto* setting : settings_of(suite, entry, verb)) {
    const auto* option = option_named(verb, setting->key);
    if (option == nullptr) return tl::unexpected(unknown_key(suite, *setting, verb.get_name(), keys_of(verb)));
    const auto ways = STRATA_TRY(ways_of(suite, *setting, *option));
    if (all.size() * ways.size() > kMostEntries)
      return tl::unexpected(suite::at_line(suite.path, setting->line,
                                           fmt::format("an entry of more than {} combinations of values", kMostEntries),
                                           "shorten its lists"));
    std::vector<Words> longer;
    for (const auto& words : all)
      for (const auto& way : ways) {
        longer.push_back(words);
        longer.back().insert(longer.back().end(), way.begin(), way.end());
      }
    all = std::move(longer);
  }
  return all;
}

void add(Words& words, const char* option, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {option, value});
}

}  // namespace

Result<std::vector<SuiteEntry>> entries_of(const suite::Suite& written, const ForAllEntries& more) {
  auto suite = written;
  use_current_names(suite);
  STRATA_TRY(check_defaults(suite));
  std::vector<SuiteEntry> all;
  for (const auto& entry : suite.entries) {
    const auto known = VerbWords::of(entry.verb);
    if (!known) {
      const auto near = nearest(entry.verb, VerbWords::verbs());
      return tl::unexpected(suite::at_line(
          suite.path, entry.line,
          fmt::format("unknown verb '{}'{}; allowed: {}", entry.verb,
                      near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(VerbWords::verbs(), ", ")),
          "docs/suites.md"));
    }
    const auto product = STRATA_TRY(product_of(suite, entry, known->options()));
    for (auto words : product) {
      if (entry.verb == "train") add(words, "--scale", more.scale);
      if (std::find(words.begin(), words.end(), "--dataset") != words.end()) add(words, "--data-dir", more.data_dir);
      add(words, "--python", more.python);
      add(words, "--store", more.store);
      const auto verb = VerbWords::of(entry.verb);
      if (auto read = verb->try_read(words); !read)
        return tl::unexpected(suite::at_line(suite.path, entry.line, read.error().what, read.error().hint));
      const auto& options = verb->request().options;
      all.push_back({.words = words,
                     .label = fmt::format("{} {}{}", entry.verb, options.model,
                                          options.device == "cpu" ? "" : " on " + options.device),
                     .device = options.device,
                     .line = entry.line});
    }
  }
  return all;
}

}  // namespace strata::cli
