// SPDX-License-Identifier: Apache-2.0
// What earlier runs on this machine say: which of them measured a case, what memory levels were seen to need and what
// ran out of it, what steps took. For who foresees how a new run will go.
#include <algorithm>
#include <cmath>

#include "common/lookup.hpp"
#include "store/facts_codec.hpp"
#include "store/fingerprint.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {

Result<std::vector<std::string>> Store::runs_of_case(const std::string& case_key, const std::string& network,
                                                     const Json& machine) const {
  // A sweep or a training names its verb: their processes do more than this case.
  Statement ask(handle(),
                "SELECT u.run_id FROM run_cases c JOIN runs u ON u.run_id=c.run_id WHERE c.hash=? AND c.network=? AND "
                "u.machine_hash=? AND CASE WHEN json_valid(u.settings) THEN json_extract(u.settings,'$.verb') IS NULL "
                "ELSE 0 END ORDER BY u.started DESC, u.rowid DESC");
  ask.bind(case_key).bind(network).bind(machine_of(machine).hash());
  std::vector<std::string> ids;
  while (ask.step()) ids.push_back(ask.text());
  if (!ask.ok()) return connection_.broken("cannot look for earlier runs of a case");
  return ids;
}

Result<std::vector<OutOfMemory>> Store::out_of_memory(const Json& machine) const {
  Statement ask(handle(),
                "SELECT r.level,r.variant,r.environment,c.canonical,u.settings,u.environments FROM level_rows r "
                "JOIN cases c ON c.hash = r.hash JOIN runs u ON u.run_id = r.run_id "
                "WHERE r.state = 'out_of_memory' AND r.reason NOT LIKE 'skipped:%' AND u.machine_hash = ? "
                "ORDER BY u.started, r.row_id");
  ask.bind(machine_of(machine).hash());
  std::vector<OutOfMemory> all;
  while (ask.step()) {
    const auto level = ask.text(), variant = ask.text(), environment = ask.text();
    auto question = core::read_case(ask.json(Shape::object), "\"canonical\"");
    if (!question) ask.complain(question.error().what);
    Settings settings;
    read(ask, settings);
    const auto environments = ask.json(Shape::array);
    if (!ask.fault().empty()) return connection_.damaged("what ran out of memory: " + ask.fault());
    all.push_back({.level = core::ParticipantId{level, variant, environment}.name(),
                   .torch = environments.empty() ? std::string() : lookup::text(environments.front(), "torch"),
                   .question = std::move(*question),
                   .limit_gib = settings.memory_limit_gib.value_or(0)});
  }
  if (!ask.ok()) return connection_.broken("cannot look for what ran out of memory");
  return all;
}

namespace {

constexpr double kMostBytes = 1e18;

}  // namespace

Result<std::vector<PeakMemory>> Store::peak_memories(const std::string& model, const Json& machine, int limit) const {
  Statement ask(handle(),
                "SELECT r.level,r.variant,r.environment,c.canonical,rc.bundle,m.value FROM metrics m "
                "JOIN level_rows r ON r.row_id=m.row_id JOIN cases c ON c.hash=r.hash "
                "JOIN run_cases rc ON rc.run_id=r.run_id AND rc.hash=r.hash JOIN runs u ON u.run_id=r.run_id "
                "WHERE m.name='peak_memory' AND m.value>0 AND c.model=? AND u.machine_hash=? AND NOT r.harness "
                "ORDER BY u.started DESC, r.row_id LIMIT ?");
  ask.bind(model).bind(machine_of(machine).hash()).bind(limit);
  std::vector<PeakMemory> all;
  while (ask.step()) {
    PeakMemory peak;
    const auto level = ask.text(), variant = ask.text(), environment = ask.text();
    peak.level = core::ParticipantId{level, variant, environment}.name();
    auto question = core::read_case(ask.json(Shape::object), "\"canonical\"");
    if (!question) ask.complain(question.error().what);
    if (question) peak.question = std::move(*question);
    peak.bundle = ask.json(Shape::object_or_null);
    peak.bytes = ask.real(0, kMostBytes);
    if (!ask.fault().empty()) return connection_.damaged("what memory levels needed: " + ask.fault());
    all.push_back(std::move(peak));
  }
  if (!ask.ok()) return connection_.broken("cannot look for what memory levels needed");
  return all;
}

namespace {

constexpr double kMostMs = 1e12;

// Trainings on the same data have the same images whatever their number; single steps are of the same size.
constexpr const char* kTrained =
    "SELECT r.level,r.variant,r.environment,r.run_id,u.started,avg(s.value) FROM cases c "
    "JOIN level_rows r ON r.hash=c.hash JOIN runs u ON u.run_id=r.run_id JOIN series s ON s.row_id=r.row_id "
    "WHERE c.model=? AND c.mode='train' AND c.batch=? AND c.precision=? AND c.device=? AND c.threads=? "
    "AND u.machine_hash=? AND c.data=? AND c.height IS coalesce(?,c.height) AND c.width IS coalesce(?,c.width) "
    "AND s.name='step_time' AND s.axis='epoch' AND s.value>0 AND r.state<>'unequal' GROUP BY r.row_id";
constexpr const char* kCompared =
    "SELECT r.level,r.variant,r.environment,r.run_id,u.started,m.value FROM cases c "
    "JOIN level_rows r ON r.hash=c.hash JOIN runs u ON u.run_id=r.run_id JOIN metrics m ON m.row_id=r.row_id "
    "WHERE c.model=? AND c.mode='train' AND c.batch=? AND c.precision=? AND c.device=? AND c.threads=? "
    "AND u.machine_hash=? AND c.height=? AND c.width=? AND m.name='iteration_time' AND m.value>0";

}  // namespace

Result<std::vector<StepTime>> Store::step_times(const core::Case& question, std::optional<std::int64_t> height,
                                                std::optional<std::int64_t> width, const Json& machine) const {
  std::vector<StepTime> all;
  for (const bool trained : {false, true}) {
    Statement ask(handle(), trained ? kTrained : kCompared);
    ask.bind(question.model).bind(question.batch).bind(std::string(name_of(question.precision)));
    ask.bind(std::string(name_of(question.device))).bind(question.threads).bind(machine_of(machine).hash());
    if (trained) ask.bind(question.data);
    ask.bind(height).bind(width);
    std::vector<std::pair<std::string, StepTime>> times;  // by start
    while (ask.step()) {
      const auto level = ask.text(), variant = ask.text(), environment = ask.text();
      StepTime entry;
      entry.level = core::ParticipantId{level, variant, environment}.name();
      entry.run_id = ask.text();
      auto started = ask.text();
      entry.ms = ask.real(0, kMostMs);
      if (!ask.fault().empty()) return connection_.damaged("the time of a step: " + ask.fault());
      times.emplace_back(std::move(started), std::move(entry));
    }
    if (!ask.ok()) return connection_.broken("cannot look for times of steps");
    std::stable_sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [started, entry] : times) all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace strata::store
