// SPDX-License-Identifier: Apache-2.0
#include "analysis/result_json.hpp"
#include "report/access.hpp"
#include "report/environments.hpp"
#include "report/sections/cells.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

document::Facts facts_of(const std::string& title, const Json& object) {
  document::Facts facts{.title = title};
  for (const auto& [key, value] : object.items())
    facts.facts.push_back({.name = key,
                           .value = value.is_string() ? value.get<std::string>()
                                    : value.is_null() ? ""
                                                      : value.dump(-1, ' ', false, Json::error_handler_t::replace)});
  return facts;
}

document::Table warnings_table(const std::vector<analysis::WarningText>& warnings) {
  document::Table table{.id = "warning_table", .title = "Warnings of this run"};
  table.columns = {left_column("id", "id"), left_column("what", "what"), left_column("advice", "what to do")};
  for (const auto& warning : warnings) table.rows.push_back({warning.id, warning.what, warning.advice});
  return table;
}

document::Table packages_table(const std::vector<Json>& environments) {
  document::Table table{.id = "packages", .title = "Packages that are not the same in all environments"};
  table.columns = {left_column("package", "package")};
  for (const auto& environment : environments)
    table.columns.push_back(
        left_column("environment" + std::to_string(table.columns.size()), text(environment, "name")));
  for (const auto& package : package_differences(environments)) table.rows.emplace_back(package.begin(), package.end());
  return table;
}

document::Section environment_section(const analysis::RunResult& run) {
  document::Section section{.id = "environment", .title = "Environment", .is_detail = true};
  section.items = {facts_of("The machine", run.machine), facts_of("The run", analysis::to_json(run.run))};
  for (auto environment : run.environments) {
    const auto name = text(environment, "name");
    if (environment.is_object()) environment.erase("packages");
    section.items.push_back(
        facts_of(name.empty() ? "A Python environment" : "The Python environment " + name, environment));
  }
  std::erase_if(section.items,
                [](const document::Item& item) { return std::get<document::Facts>(item).facts.empty(); });
  if (auto packages = packages_table(run.environments); !packages.rows.empty())
    section.items.push_back(std::move(packages));
  return section;
}

}  // namespace

document::Document environment_part(const analysis::RunResult& run) {
  document::Document part{.title = "Environment and command of run " + run.run.id};
  part.sections.push_back({.id = "command",
                           .title = "Run it again",
                           .items = {document::Text{run.run.command, document::Text::Kind::command}}});
  if (!run.warnings.empty())
    part.sections.push_back({.id = "warnings", .title = "Warnings", .items = {warnings_table(run.warnings)}});
  part.sections.push_back(environment_section(run));
  return part;
}

}  // namespace strata::report
