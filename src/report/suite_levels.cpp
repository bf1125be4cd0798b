// SPDX-License-Identifier: Apache-2.0
#include "report/suite_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace strata::report {
namespace {

using document::Align;

// The states of a network's levels in one mode.
struct Network {
  std::string model, mode;
  std::map<std::string, const store::Row*> rows;  // by their participant
};

// A file of the user's without its folders, a package's network without its options.
std::string short_name(const std::string& model) {
  const auto file = model.starts_with('/') ? std::filesystem::path(model).filename().string() : model;
  return file.substr(0, file.find('?'));
}

bool compared(const store::Run& run) {
  return run.settings.verb.empty();
}

std::vector<Network> networks_of(const std::vector<store::Run>& runs, std::vector<std::string>& levels) {
  std::vector<Network> networks;
  for (const auto& run : runs)
    for (const auto& each : run.cases) {
      Network network{short_name(each.question.model), std::string(core::name_of(each.question.mode)), {}};
      for (const auto& row : each.rows) {
        const auto name = row.name();
        network.rows[name] = &row;
        if (std::find(levels.begin(), levels.end(), name) == levels.end()) levels.push_back(name);
      }
      networks.push_back(std::move(network));
    }
  return networks;
}

document::Table states_table(const std::vector<Network>& networks, const std::vector<std::string>& levels) {
  document::Table table{.id = "states",
                        .title = "What each level did with each network",
                        .columns = {{.id = "network", .title = "network", .align = Align::left},
                                    {.id = "mode", .title = "mode", .align = Align::left}}};
  for (const auto& level : levels) table.columns.push_back({.id = level, .title = level, .align = Align::left});
  for (const auto& network : networks) {
    std::vector<document::Cell> cells{network.model, network.mode};
    for (const auto& level : levels) {
      const auto at = network.rows.find(level);
      if (at == network.rows.end())
        cells.emplace_back(document::Absent{"not asked"});
      else if (at->second->state == State::measured)
        cells.emplace_back(document::Word{to_string(at->second->state), document::Tone::good});
      else
        cells.emplace_back(document::Word{to_string(at->second->state), document::Tone::bad});
    }
    table.rows.push_back(std::move(cells));
  }
  table.note = "Measured: proven equal, and timed. ./strata show RUN has the numbers of an entry.";
  return table;
}

document::Table counts_table(const std::vector<Network>& networks, const std::vector<std::string>& levels) {
  std::vector<std::string> modes;
  for (const auto& network : networks)
    if (std::find(modes.begin(), modes.end(), network.mode) == modes.end()) modes.push_back(network.mode);
  document::Table table{.id = "counts",
                        .title = "How many networks each level measured",
                        .columns = {{.id = "level", .title = "level", .align = Align::left}}};
  for (const auto& mode : modes) table.columns.push_back({.id = mode, .title = mode, .align = Align::left});
  for (const auto& level : levels) {
    std::vector<document::Cell> cells{level};
    for (const auto& mode : modes) {
      int measured = 0, asked = 0;
      for (const auto& network : networks) {
        const auto at = network.rows.find(level);
        if (network.mode != mode || at == network.rows.end()) continue;
        ++asked;
        measured += at->second->state == State::measured;
      }
      cells.emplace_back(fmt::format("{} of {}", measured, asked));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

document::Table reasons_table(const std::vector<Network>& networks, const std::vector<std::string>& levels) {
  document::Table table{.id = "reasons",
                        .title = "Why a level has no number",
                        .columns = {{.id = "network", .title = "network", .align = Align::left},
                                    {.id = "mode", .title = "mode", .align = Align::left},
                                    {.id = "level", .title = "level", .align = Align::left},
                                    {.id = "state", .title = "state", .align = Align::left},
                                    {.id = "reason", .title = "reason", .align = Align::left}}};
  for (const auto& network : networks)
    for (const auto& level : levels) {
      const auto at = network.rows.find(level);
      if (at == network.rows.end() || at->second->state == State::measured) continue;
      table.rows.push_back({network.model, network.mode, level, to_string(at->second->state), at->second->reason});
    }
  return table;
}

}  // namespace

Result<document::Section> levels_section(const std::vector<store::EntryFacts>& entries, const store::Store& store) {
  document::Section section{.id = "levels", .title = "Networks and levels"};
  std::vector<store::Run> runs;
  for (const auto& entry : entries) {
    if (entry.run.empty()) continue;
    auto run = STRATA_TRY(store.load_id(entry.run));
    if (compared(run)) runs.push_back(std::move(run));
  }
  std::vector<std::string> levels;
  const auto networks = networks_of(runs, levels);
  if (networks.empty()) return section;
  section.items = {counts_table(networks, levels), states_table(networks, levels)};
  if (auto reasons = reasons_table(networks, levels); !reasons.rows.empty())
    section.items.push_back(std::move(reasons));
  return section;
}

}  // namespace strata::report
