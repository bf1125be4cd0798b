// SPDX-License-Identifier: Apache-2.0
#include "cli/option.hpp"

#include <fmt/format.h>

#include <string_view>

namespace strata::cli {
namespace {

// What a member of that kind would refuse. `kind` makes one of a value that nobody needs.
template <class Value, class Kind>
CLI::Option* checked(CLI::Option* option, Kind kind) {
  Value shown{};
  option->type_name(kind(shown).type);
  return option->check([option, kind = std::move(kind)](const std::string& text) {
    Value value{};
    const auto read = kind(value).read_text(option->get_name(), text);
    // as an exception: CLI11 would put its own words around the sentence
    if (!read) throw WrongUsage(read.error().what, read.error().hint);
    return std::string();
  });
}

void read(const requests::Member& member, const std::string& value) {
  if (const auto done = member.read(value); !done) throw WrongUsage(done.error().what, done.error().hint);
}

CLI::Option* option_of(CLI::App& verb, const requests::Member& member) {
  const auto name = member.option_or_name() + (member.also.empty() ? "" : "," + member.also);
  switch (member.arity) {
    case requests::Arity::nothing:
      return verb.add_flag_function(
          name, [member](std::int64_t count) { read(member, count > 0 ? "" : requests::kOff); }, member.help);
    case requests::Arity::repeated:
      return verb
          .add_option_function<std::vector<std::string>>(
              name,
              [member](const std::vector<std::string>& values) {
                for (const auto& value : values) read(member, value);
              },
              member.help)
          ->allow_extra_args(false);
    default:
      return verb.add_option_function<std::string>(
          name, [member](const std::string& value) { read(member, value); }, member.help);
  }
}

}  // namespace

bool is_repeated(const CLI::Option& option) {
  return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

CLI::Option* choice(CLI::Option* option, std::vector<std::string> allowed) {
  return checked<std::string>(option,
                              [allowed = std::move(allowed)](auto& value) { return requests::choice(value, allowed); });
}

CLI::Option* whole(CLI::Option* option, std::int64_t low, std::int64_t high) {
  return checked<std::int64_t>(option, [=](auto& value) { return requests::whole(value, low, high); });
}

CLI::Option* positive(CLI::Option* option) {
  return checked<double>(option, [](auto& value) { return requests::positive(value); });
}

CLI::Option* duration(CLI::Option* option) {
  return checked<double>(option, [](auto& value) { return requests::seconds(value); });
}

CLI::Option* add_store(CLI::App& verb, std::string& path) {
  return verb.add_option("--store", path, "the store's file (default: strata/strata.db in the XDG data folder)")
      ->type_name("PATH");
}

CLI::Option* format_choice(CLI::Option* option) {
  return choice(option->capture_default_str(), {"text", "json", "csv", "md"});
}

void add_member(CLI::App& verb, const requests::Member& member) {
  auto* option = option_of(verb, member);
  if (!member.type.empty()) option->type_name(member.type);
  if (member.required) option->required();
  if (const auto values = member.values(); !values.empty()) option->default_str(values.front());
  if (member.name == "max_megapixels") option->needs(verb.get_option("--input-from"));
}

void add_members(CLI::App& verb, const std::vector<requests::Member>& members) {
  for (const auto& member : members) add_member(verb, member);
}

namespace {

const CLI::Option* needs_option(const CLI::App* app) {
  while (app->get_parent() != nullptr) app = app->get_parent();
  return app->get_option_no_throw("--needs");
}

}  // namespace

void add_needs(CLI::App& app) {
  // its value is read from its words: an error of a verb ends the parsing before it is assigned
  choice(app.add_option("--needs", "for set-up: what the call that follows needs, as JSON or a line an environment"),
         {"json", "lines"})
      ->expected(1);
}

bool asks_for_needs(const CLI::App& verb) {
  const auto* option = needs_option(&verb);
  return option != nullptr && option->count() > 0 &&
         (option->results().front() == "json" || option->results().front() == "lines");
}

void tell_needs(const CLI::App& verb, const Result<engine::Needs>& needs) {
  const auto told = needs.value_or(engine::Needs());
  if (needs_option(&verb)->results().front() != "lines") return answer_json(engine::to_json(told), -1);
  // the interpreter last, whose path may have a bar
  for (const auto& [name, python, programs] : told.environments)
    answer(fmt::format("{}|{}|{}|{}\n", told.set_up ? "levels" : "program", name, fmt::join(programs, " "), python));
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
