// SPDX-License-Identifier: Apache-2.0
// `strata list levels|models|environments|runs`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/escape.hpp"
#include "common/places.hpp"
#include "engine/installed.hpp"
#include "engine/queries.hpp"
#include "level/installed_levels.hpp"
#include "report/format.hpp"
#include "report/render/text_table.hpp"
#include "report/table.hpp"
#include "requests/members.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr const char* kListCodes = "Exit codes: 0 listed; 1 what is listed cannot be read; 2 wrong usage.";

struct ListArguments {
  std::string format = "text", python, level;
};
using Row = std::vector<Json>;  // strings, numbers and lists of strings, as many as there are columns
using Rows = std::vector<Row>;

std::string cell_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_array() ? fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " ")) : value.dump();
}

// JSON keeps numbers and lists as such; people read columns' names without underscores.
Result<int> print(const report::Cells& columns, const Rows& rows, const std::string& format_name) {
  const auto format = STRATA_TRY(format_option(format_name));
  if (format == report::Format::json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& row : rows) {
      auto& row_json = all.emplace_back(nlohmann::ordered_json::object());
      for (std::size_t c = 0; c < columns.size(); ++c) row_json[columns[c]] = row[c];
    }
    answer(escape::json(all.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n");  // in the columns' order
    return 0;
  }
  std::vector<report::TextColumn> header;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    auto name = columns[c];
    if (format != report::Format::csv) std::replace(name.begin(), name.end(), '_', ' ');
    header.emplace_back(name, !rows.empty() && rows.front()[c].is_number());
  }
  std::vector<report::Cells> cells;
  for (const auto& row : rows) {
    auto& cell = cells.emplace_back();
    for (const auto& value : row) cell.push_back(cell_of(value));
  }
  answer(report::table(header, cells, format));
  return 0;
}

std::string title_of(const level::Level& level) {
  return level.distribution.empty() ? level.title : fmt::format("{} (of {})", level.title, level.distribution);
}

Result<int> levels(const ListArguments& a) {
  const auto place = installation();
  const auto discovered = level::installed_levels(place);
  Rows rows;
  for (const auto& level : discovered.levels) {
    const auto state = engine::state_of(level, place);
    rows.push_back({level.id, level.rank, level.language, level.devices, level.modes,
                    level.harness ? "harness"
                    : level.peer  ? "peer"
                                  : level.from,
                    state, title_of(level)});
    for (const auto& variant : level.variants) {
      const auto changed = level::as_variant(level, variant);
      rows.push_back({changed.name(), changed.rank, changed.language, changed.devices, changed.modes, "variant", state,
                      variant.title});
    }
  }
  for (const auto& problem : discovered.problems) tell(fmt::format("warning: {}\n", problem.error.what));
  return print({"level", "rank", "language", "devices", "modes", "from", "state", "what_it_is"}, rows, a.format);
}

void tell_of_torchvision(bool known, const Installation& place) {
  if (known) return;
  if (there_is(place.python))
    tell(fmt::format("note: torchvision's models are not listed: {} cannot import torchvision\n", place.python));
  else
    tell("note: torchvision's models are listed once the environment is set up (./strata compare)\n");
}

// What one level can run, by mode, and why not; a summary on standard error.
Result<int> models_of_level(const ListArguments& a, const Installation& place) {
  const auto all = STRATA_TRY(engine::models_of_level(a.level, place));
  tell_of_torchvision(all.torchvision, place);
  static const std::map<plan::Support, std::string> words{
      {plan::Support::yes, "yes"}, {plan::Support::no, "no"}, {plan::Support::unknown, "?"}};
  Rows rows;
  int infer = 0, train = 0;
  for (const auto& one : all.models) {
    infer += one.infer.support == plan::Support::yes;
    train += one.train.support == plan::Support::yes;
    auto reasons = one.infer.why;
    if (!one.train.why.empty() && one.train.why != one.infer.why)
      reasons += (reasons.empty() ? "" : "; ") + one.train.why;
    rows.push_back({one.model.name, one.model.kind, words.at(one.infer.support), words.at(one.train.support), reasons});
  }
  STRATA_TRY(print({"model", "kind", "infer", "train", "why_not"}, rows, a.format));
  tell(fmt::format("{} runs {} of {} models in infer, {} in train{}\n", all.level.name(), infer, rows.size(), train,
                   all.torch.empty() ? ""
                                     : fmt::format("; judged by graphs captured with torch {} and torchvision {}",
                                                   all.torch, all.torchvision_version)));
  return 0;
}

Result<int> models(const ListArguments& a) {
  const auto place = installation();
  if (!a.level.empty()) return models_of_level(a, place);
  const auto known = engine::known_models(place);
  tell_of_torchvision(known.torchvision, place);
  Rows rows;
  for (const auto* models : {&known.packages, &known.models})
    for (const auto& model : *models) rows.push_back({model.name, model.kind, model.about});
  return print({"model", "kind", "what_it_is"}, rows, a.format);
}

Result<int> environments(const ListArguments& a) {
  Rows rows;
  for (const auto& one : engine::known_environments(installation()))
    rows.push_back({one.name, one.interpreter, one.python, one.torch, one.problem});
  return print({"environment", "interpreter", "python", "torch", "problem"}, rows, a.format);
}

// On a new machine: what a program reads is an empty table, what a person reads says how to begin.
Result<int> no_runs(const report::Cells& header, const std::string& format) {
  if (format != "text") STRATA_TRY(print(header, {}, format));
  constexpr const char* sentence = "no runs yet; ./strata compare MODEL makes one\n";
  format == "text" ? answer(sentence) : tell(sentence);
  return 0;
}

// For a person: as wide as the terminal. Of the verdict, the cases and the command is cut what has no room.
std::string fitted_runs(report::Cells header, const Rows& rows, std::size_t width) {
  constexpr std::size_t whole_columns = 4, fewest = 12, to_the_minute = 16, shares_of_name = 6;
  std::vector<report::Cells> cells;
  for (const auto& row : rows) {
    auto& line = cells.emplace_back();
    for (const auto& value : row) line.push_back(report::printable(cell_of(value)));
    line[1] = document::shortened(line[1], std::max(fewest, width / shares_of_name), "...");
    line[2].resize(std::min(line[2].size(), to_the_minute));
  }
  std::size_t used = 0;
  for (std::size_t column = 0; column < header.size(); ++column) {
    const std::size_t left = width > used ? width - used : 0;
    if (column >= whole_columns && left < fewest) {
      header.resize(column);
      for (auto& line : cells) line.resize(column);
      break;
    }
    const auto share = std::max(fewest, left / (header.size() - column));
    std::size_t widest = report::width_of(header[column]);
    for (auto& line : cells) {
      if (column >= whole_columns) line[column] = document::shortened(line[column], share, "...");
      widest = std::max(widest, report::width_of(line[column]));
    }
    used += widest + 2;
  }
  return report::table({header.begin(), header.end()}, cells, report::Format::text);
}

struct RunsArguments : requests::RunsRequest {
  std::string store, format = "text";
};

Result<int> runs(const RunsArguments& a) {
  const report::Cells header{"run", "name", "started", "state", "verdict", "cases", "command"};
  const auto path = store::Store::path_of(a.store);
  if (!a.store.empty() && !there_is(path)) STRATA_TRY(store::Store::open_existing(path));
  const auto listed = STRATA_TRY(engine::list_runs(a, path));
  if (listed.empty()) {
    const auto any = engine::list_runs({.limit = 1, .name = {}, .model = {}, .since = {}}, path);
    if (any && any->empty()) return no_runs(header, a.format);
  }
  Rows rows;
  for (const auto& one : listed)
    rows.push_back({one.run, one.name, one.started, one.state, one.verdicts, one.cases, one.command});
  if (a.format != "text" || ::isatty(STDOUT_FILENO) == 0) return print(header, rows, a.format);
  answer(fitted_runs(header, rows, static_cast<std::size_t>(terminal_style().width)));
  return 0;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("list", "list levels, models, environments or runs");
  verb->require_subcommand(1);
  auto a = std::make_shared<ListArguments>();
  const auto add = [&](const char* name, const char* about, Result<int> (*action)(const ListArguments&)) {
    auto* subcommand = verb->add_subcommand(name, about);
    format_choice(subcommand->add_option("--format", a->format, "of the list"));
    subcommand->footer(kListCodes);
    set_action(
        *subcommand, exit_code, [a, action] { return action(*a); },
        [a] { return engine::needs_of_python(a->python, false); });
    return subcommand;
  };
  const auto add_python = [&](CLI::App* verb_app) {
    verb_app->add_option("--python", a->python, "your interpreter (default: STRATA_PYTHON, else strata's own)")
        ->type_name("PATH");
    return verb_app;
  };
  add("levels", "every level (backend) found, and whether it is ready", levels);
  add_python(add("models", "models by name", models))
      ->add_option("--level", a->level, "which of them this level can run, and what it lacks for the others")
      ->type_name("LEVEL");
  add_python(add("environments", "Python interpreters and their PyTorch", environments));
  add_list_of_runs(*verb, "runs", exit_code);
}

void add_list_of_runs(CLI::App& verb, const char* name, int& exit_code) {
  auto a = std::make_shared<RunsArguments>();
  auto* subcommand = verb.add_subcommand(name, "runs in the store, the newest first");
  format_choice(subcommand->add_option("--format", a->format, "of the list"));
  add_store(*subcommand, a->store);
  add_members(*subcommand, requests::members_of(*a));
  subcommand->footer(kListCodes);
  set_action(*subcommand, exit_code, [a] { return runs(*a); });
}

}  // namespace strata::cli
