// SPDX-License-Identifier: Apache-2.0
#include "engine/suite_entries.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/nearest.hpp"
#include "requests/codec.hpp"
#include "requests/members.hpp"

namespace strata::engine {
namespace {

using requests::Arity;
using requests::Member;
using requests::Request;
using suite::Setting;

constexpr std::size_t kMostEntries = 10'000;

// What a suite leaves to `strata run`: set-up has to know it beforehand, or it is about the whole suite.
const std::vector<std::string> kNotForEntries{"constraint", "data-dir", "dry-run",   "env",    "folder", "format",
                                              "nodes",      "on",       "output",    "python", "resume", "sbatch",
                                              "scale",      "shard",    "partition", "store"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string help_of(const std::string& verb) {
  return fmt::format("./strata {} --help", verb);
}

// A member's option without its dashes; the model's name.
std::string key_of(const Member& member) {
  const auto& option = member.option_or_name();
  return option.substr(std::min(option.find_first_not_of('-'), option.size()));
}

std::vector<std::string> keys_of(const std::vector<Member>& members) {
  std::vector<std::string> keys;
  for (const auto& member : members)
    if (!contains(kNotForEntries, key_of(member))) keys.push_back(key_of(member));
  return keys;
}

const std::vector<std::string> kVerbs{"compare", "sweep", "train"};

// An empty request; nullopt: no verb that makes a run.
std::optional<Request> request_of(const std::string& verb) {
  return contains(kVerbs, verb) ? requests::request_for(verb) : std::nullopt;
}

const Member* member_for(const std::vector<Member>& members, const std::string& key) {
  const auto at = std::find_if(members.begin(), members.end(), [&](const auto& member) {
    return key_of(member) == key || (!key.empty() && member.also == "--" + key);
  });
  return at == members.end() || contains(kNotForEntries, key) ? nullptr : &*at;
}

Error unknown_key(const suite::Suite& suite, const Setting& setting, const std::string& verb,
                  const std::vector<std::string>& keys) {
  if (contains(kNotForEntries, setting.key))
    return suite::at_line(suite.path, setting.line, fmt::format("{} is not an option of entries", setting.key),
                          "leave it out; `strata run --help` shows the options of the whole run");
  const auto near = nearest(setting.key, keys);
  return suite::at_line(suite.path, setting.line,
                        fmt::format("unknown key '{}' of {}{}; allowed: {}", setting.key, verb,
                                    near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(keys, ", ")),
                        help_of(verb.substr(0, verb.find(','))));
}

// What a setting may be: one, but where a list is given to what takes one value. Each is what the option is given, once
// or several times.
Result<std::vector<std::vector<std::string>>> ways_of(const suite::Suite& suite, const Setting& setting, Arity arity) {
  const auto wrong = [&](const char* what) {
    return tl::unexpected(
        suite::at_line(suite.path, setting.line, fmt::format("{} {}", setting.key, what), "see the verb's --help"));
  };
  const bool flag = arity == Arity::nothing;
  if (flag != setting.flag.has_value()) return wrong(flag ? "is true or false" : "takes a value, not true or false");
  using Ways = std::vector<std::vector<std::string>>;
  if (flag) return *setting.flag ? Ways{{""}} : Ways{{}};
  // It would be taken for an option where the command is shown; a negative number is a value.
  const auto is_option = [](const std::string& value) {
    return value.starts_with('-') && value.find_first_of("0123456789.") != 1;
  };
  if (std::any_of(setting.values.begin(), setting.values.end(), is_option))
    return wrong("has a value that begins with -, as options do; a path can begin with ./");
  if (std::any_of(setting.values.begin(), setting.values.end(), [](const auto& value) { return value.empty(); }))
    return wrong("has an empty value");
  if (arity == Arity::repeated) return Ways{setting.values};
  if (arity == Arity::list) return Ways{{fmt::format("{}", fmt::join(setting.values, ","))}};
  Ways ways;
  for (const auto& value : setting.values) ways.push_back({value});
  return ways;
}

// The entry's own settings, and before them the defaults that it does not set.
std::vector<const Setting*> settings_of(const suite::Suite& suite, const suite::Entry& entry,
                                        const std::vector<Member>& members) {
  std::vector<const Setting*> all;
  for (const auto& default_setting : suite.defaults) {
    const bool own = std::any_of(entry.settings.begin(), entry.settings.end(),
                                 [&](const Setting& other) { return other.key == default_setting.key; });
    if (!own && member_for(members, default_setting.key) != nullptr) all.push_back(&default_setting);
  }
  for (const auto& setting : entry.settings) all.push_back(&setting);
  return all;
}

Result<void> check_defaults(const suite::Suite& suite) {
  for (const auto& setting : suite.defaults) {
    std::string verbs;
    std::vector<std::string> keys;  // of all verbs: a default is for those that have it
    bool any = false;
    for (const auto& entry : suite.entries) {
      auto request = request_of(entry.verb);
      if (!request) continue;
      const auto members = requests::members_of(*request);
      for (const auto& key : keys_of(members))
        if (!contains(keys, key)) keys.push_back(key);
      if (verbs.find(entry.verb) == std::string::npos) verbs += (verbs.empty() ? "" : ", ") + entry.verb;
      any = any || member_for(members, setting.key) != nullptr;
    }
    if (!any && !keys.empty()) return tl::unexpected(unknown_key(suite, setting, verbs, keys));
  }
  return {};
}

// All combinations of an entry's values, the last key's changing fastest.
Result<std::vector<Request>> product_of(const suite::Suite& suite, const suite::Entry& entry, Request plain) {
  std::vector<Request> all{plain};
  const auto members = requests::members_of(plain);
  for (const auto* setting : settings_of(suite, entry, members)) {
    const auto* known = member_for(members, setting->key);
    if (known == nullptr) return tl::unexpected(unknown_key(suite, *setting, entry.verb, keys_of(members)));
    const auto ways = STRATA_TRY(ways_of(suite, *setting, known->arity));
    if (all.size() * ways.size() > kMostEntries)
      return tl::unexpected(suite::at_line(suite.path, setting->line,
                                           fmt::format("an entry of more than {} combinations of values", kMostEntries),
                                           "shorten its lists"));
    std::vector<Request> longer;
    longer.reserve(all.size() * ways.size());
    for (const auto& request : all)
      for (const auto& way : ways) {
        const auto own = requests::members_of(longer.emplace_back(request));
        for (const auto& value : way)
          if (const auto read = member_for(own, setting->key)->read(value); !read)
            return tl::unexpected(suite::at_line(suite.path, entry.line, read.error().what,
                                                 read.error().hint.empty() ? help_of(entry.verb) : read.error().hint));
      }
    all = std::move(longer);
  }
  return all;
}

// What `strata run` says for all of them.
void add_for_all(Request& request, const ForAllEntries& more) {
  auto& common = requests::common_of(request);
  auto* train = std::get_if<requests::TrainRequest>(&request);
  if (train) train->scale = more.scale;
  if (train || !common.options.dataset.empty()) common.options.data_dir = more.data_dir;
  common.python = more.python;
}

Result<void> check_whole(const suite::Suite& suite, const suite::Entry& entry, Request& request) {
  for (const auto& member : requests::members_of(request))
    if (member.required && member.values().empty())
      return tl::unexpected(suite::at_line(suite.path, entry.line,
                                           fmt::format("{} without {}", entry.verb, key_of(member)),
                                           fmt::format("add {} = ..., {}", key_of(member), member.help)));
  return {};
}

}  // namespace

Result<std::vector<SuiteEntry>> entries_of(const suite::Suite& suite, const ForAllEntries& more) {
  STRATA_TRY(check_defaults(suite));
  std::vector<SuiteEntry> all;
  for (const auto& entry : suite.entries) {
    const auto plain = request_of(entry.verb);
    if (!plain) {
      const auto near = nearest(entry.verb, kVerbs);
      return tl::unexpected(
          suite::at_line(suite.path, entry.line,
                         fmt::format("unknown verb '{}'{}; allowed: {}", entry.verb,
                                     near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(kVerbs, ", ")),
                         "docs/suites.md says what an entry is"));
    }
    auto product = STRATA_TRY(product_of(suite, entry, *plain));
    for (auto& request : product) {
      STRATA_TRY(check_whole(suite, entry, request));
      add_for_all(request, more);
      const auto& options = requests::common_of(request).options;
      all.push_back({.request = request,
                     .command = requests::command_of(request, more.store),
                     .label = fmt::format("{} {}{}", entry.verb, options.model,
                                          options.device == "cpu" ? "" : " on " + options.device),
                     .device = options.device,
                     .line = entry.line});
    }
  }
  return all;
}

}  // namespace strata::engine
