// SPDX-License-Identifier: Apache-2.0
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

document::Table warnings_table(const Json& warnings) {
  document::Table table{.id = "warning_table", .title = "Warnings of this run"};
  table.columns = {left_column("id", "id"), left_column("what", "what"), left_column("advice", "what to do")};
  for (const auto& warning : warnings)
    table.rows.push_back({text(warning, "id"), text(warning, "what"), text(warning, "advice")});
  return table;
}

document::Table packages_table(const Json& environments) {
  document::Table table{.id = "packages", .title = "Packages that are not the same in all environments"};
  table.columns = {left_column("package", "package")};
  for (const auto& environment : environments)
    table.columns.push_back(
        left_column("environment" + std::to_string(table.columns.size()), text(environment, "name")));
  for (const auto& package : package_differences(environments)) table.rows.emplace_back(package.begin(), package.end());
  return table;
}

document::Section environment_section(const Json& run) {
  document::Section section{.id = "environment", .title = "Environment", .is_detail = true};
  section.items = {facts_of("The machine", at(run, "machine")), facts_of("The run", at(run, "run"))};
  const Json& environments = list(run, "environments");
  for (auto environment : environments) {
    const auto name = text(environment, "name");
    if (environment.is_object()) environment.erase("packages");
    section.items.push_back(
        facts_of(name.empty() ? "A Python environment" : "The Python environment " + name, environment));
  }
  std::erase_if(section.items,
                [](const document::Item& item) { return std::get<document::Facts>(item).facts.empty(); });
  if (auto packages = packages_table(environments); !packages.rows.empty())
    section.items.push_back(std::move(packages));
  return section;
}

}  // namespace

document::Document environment_part(const Json& run) {
  document::Document part{.title = "Environment and command of run " + text(run, "run.id")};
  part.sections.push_back({.id = "command",
                           .title = "Run it again",
                           .items = {document::Text{text(run, "run.command"), document::Text::Kind::command}}});
  if (const auto& warnings = list(run, "warnings"); !warnings.empty())
    part.sections.push_back({.id = "warnings", .title = "Warnings", .items = {warnings_table(warnings)}});
  part.sections.push_back(environment_section(run));
  return part;
}

}  // namespace strata::report
