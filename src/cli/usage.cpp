// SPDX-License-Identifier: Apache-2.0
// Wrong usage in words, and what --help looks like (option.hpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "common/nearest.hpp"
#include "report/format.hpp"

namespace strata::cli {
namespace {

constexpr std::size_t help_column = 32;

// The app that the arguments chose: a verb, or a verb of a verb.
const CLI::App& chosen(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  return *deepest;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands(std::function<bool(const CLI::App*)>()))
    names.push_back(verb->get_name());
  return names;
}

// What the person probably meant by an argument that nobody knows.
std::string suggestion(const CLI::App& app, const std::string& got) {
  auto known = verbs_of(app);
  if (got.starts_with("-")) {
    known.clear();
    for (const auto* option : app.get_options())
      for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  const auto near = nearest(got.substr(0, got.find('=')), known);
  return near ? fmt::format(" (did you mean '{}'?)", *near) : "";
}

// The two names in "--block requires --dump-after".
std::pair<std::string, std::string> names_in(const std::string& sentence, const std::string& between) {
  const auto at = sentence.find(between);
  return {sentence.substr(0, at), at == std::string::npos ? "" : sentence.substr(at + between.size())};
}

// What an option that was given is wrong in, where CLI11's own words would not do.
std::optional<Error> fault_of_option(const CLI::App& verb, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const auto [option, needed] = names_in(error.what(), " requires ");
    return Error{fmt::format("{} means nothing without {}", option, needed),
                 fmt::format("add {}, or leave {} out", needed, option), Exit::usage};
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [one, other] = names_in(error.what(), " excludes ");
    return Error{fmt::format("{} and {} exclude each other", one, other), "leave one of them out", Exit::usage};
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return std::nullopt;
  for (const auto* option : verb.get_options()) {
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      return Error{fmt::format("{} is given {} times", option->get_name(), option->count()), "give it once",
                   Exit::usage};
    if (std::string(error.what()).starts_with(option->get_name() + ":"))
      return Error{fmt::format("{}: the value is missing", option->get_name()),
                   fmt::format("{} {}", option->get_name(), option->get_type_name()), Exit::usage};
  }
  return std::nullopt;
}

// Descriptions are broken at the terminal's width, and end with what the program itself knows of the option.
class Help : public CLI::Formatter {
 public:
  Help() { column_width(help_column); }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_items_expected_max() == 0 || option->get_positional()) return "";  // a flag, the network
    return " " + option->get_type_name() + (is_repeated(*option) ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    auto text = option->get_description();
    if (!option->get_default_str().empty()) text += fmt::format(" (default: {})", option->get_default_str());
    if (option->get_required() && !option->get_positional()) text += " (must be given)";
    if (!option->get_needs().empty()) text += fmt::format("; only with {}", names(option->get_needs()));
    if (!option->get_excludes().empty()) text += fmt::format("; not with {}", names(option->get_excludes()));
    return broken(text);
  }

  std::string make_subcommand(const CLI::App* verb) const override {
    std::stringstream out;
    CLI::detail::format_help(out, verb->get_name(), broken(verb->get_description()), help_column);
    return out.str();
  }

  std::string make_description(const CLI::App* app) const override {
    return fmt::format("{}\n", fmt::join(report::wrap(app->get_description(), width() + help_column), "\n"));
  }

  std::string make_footer(const CLI::App* app) const override {
    const auto lines = report::wrap(app->get_footer(), width() + help_column, 2);
    return fmt::format("{}\n", fmt::join(lines, "\n"));
  }

 private:
  static std::size_t width() { return static_cast<std::size_t>(std::max(terminal_style().width, 72)) - help_column; }
  static std::string broken(const std::string& text) {
    return fmt::format("{}", fmt::join(report::wrap(text, width()), "\n"));
  }
  static std::string names(const std::set<CLI::Option*>& options) {
    std::vector<std::string> all;
    for (const auto* option : options) all.push_back(option->get_name());
    std::sort(all.begin(), all.end());  // the set is ordered by address
    return fmt::format("{}", fmt::join(all, ", "));
  }
};

}  // namespace

std::string words_of(const CLI::App& verb) {
  std::string words;
  for (const auto* app = &verb; app->get_parent() != nullptr; app = app->get_parent())
    words = app->get_name() + (words.empty() ? "" : " ") + words;
  return words;
}

Error in_words(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  const auto& verb = chosen(app);
  const auto help = fmt::format("./strata{}{} --help", &verb == &app ? "" : " ", words_of(verb));
  if (const auto* own = dynamic_cast<const WrongUsage*>(&error))
    return {own->what(), own->hint().empty() ? help : own->hint(), Exit::usage};
  if (argc >= 2 && &verb == &app && !std::string(argv[1]).starts_with("-"))
    return {fmt::format("unknown verb '{}'{}", argv[1], suggestion(app, argv[1])), help, Exit::usage};
  if (const auto extras = app.remaining(true); !extras.empty())
    return {fmt::format("unknown argument '{}'{}", extras.front(), suggestion(verb, extras.front())), help,
            Exit::usage};
  const auto verbs = verbs_of(verb);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !verbs.empty() && verb.get_subcommands().empty())
    return {fmt::format("{} needs a verb: {}", &verb == &app ? "strata" : words_of(verb), fmt::join(verbs, ", ")), help,
            Exit::usage};
  if (const auto fault = fault_of_option(verb, error)) return *fault;
  return {error.what(), help, Exit::usage};
}

void prepare_help(CLI::App& app) {
  app.formatter(std::make_shared<Help>());
  app.set_help_all_flag("--help-all", "the help of every verb");
}

}  // namespace strata::cli
