// SPDX-License-Identifier: Apache-2.0
// A level of a case before anything ran: its job, and what its row says of it whatever comes.
#include <fmt/format.h>

#include "level/line_count.hpp"
#include "measure/case_run.hpp"
#include "plan/jobs.hpp"
#include "requests/commands.hpp"

namespace strata::measure {

namespace {
const plan::NamedEnvironment* named(const Setting& setting, const level::Level& level) {
  for (const auto& named : setting.environments)
    if (named.name == level.in_environment) return &named;
  return nullptr;
}
}  // namespace

const Installation& Setting::place_of(const level::Level& level) const {
  const auto* other = named(*this, level);
  return other == nullptr ? place : other->place;
}

const plan::Environment& Setting::environment_of(const level::Level& level) const {
  const auto* other = named(*this, level);
  return other == nullptr ? environment : other->environment;
}

Result<Participant> make_participant(const level::Level& level, const plan::Bundle& bundle, const Setting& setting,
                                     const std::filesystem::path& logs) {
  const auto& place = setting.place_of(level);
  auto job = STRATA_TRY(plan::make_job(level, bundle, place, setting.environment_of(level), setting.options, logs));
  Participant participant;
  participant.job = std::move(job);
  participant.row.level = level.id;
  participant.row.variant = level.variant;
  participant.row.environment = level.in_environment;
  participant.row.judged = false;
  participant.row.reason = "the run ended before this level was measured";
  const auto name = level.level_and_variant();
  auto again = requests::of_case(setting.options, bundle.spec,
                                 name == "eager" ? std::vector{name} : std::vector<std::string>{"eager", name});
  if (setting.environments.empty() && setting.place.python != setting.place.tools_python)
    again.python = setting.place.python;
  participant.row.repeat = requests::command_of(again);
  auto& info = participant.row.info;
  info = {.title = level.title,
          .language = level.language,
          .from = level.from,
          .changes = level.changes,
          .default_text = level.default_text,
          .rank = level.rank,
          .peer = level.peer,
          .harness = level.harness};
  if (const auto target = level.generate.find(setting.options.device); target != level.generate.end())
    info.generate = store::Generate{target->second, level.generate_options};
  const auto files =
      STRATA_TRY(level::to_maintain(level, plan::places_of(place), bundle.info["model"].value("name", "")));
  if (!files.empty()) {
    auto& lines = info.lines.emplace();
    for (const auto& file : files) {
      lines.files.push_back({file.name, file.lines});
      lines.total += file.lines;
    }
  }
  if (level::ships(level)) info.artefact = participant.job.cache.filename().string();
  return participant;
}

}  // namespace strata::measure
