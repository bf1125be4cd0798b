// SPDX-License-Identifier: Apache-2.0
// What is known of a step's time, for who predicts how long a training takes.
#include <algorithm>
#include <cmath>

#include "store/fingerprint.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
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
      entry.level = name_of(variant == "default" ? level : level + "@" + variant, environment);
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
