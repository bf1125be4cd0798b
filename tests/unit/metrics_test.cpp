// SPDX-License-Identifier: Apache-2.0
// Stored metrics are the numbers of the report, and the page that documents them is the list that declares them.
#include "analysis/metrics.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "analysis/result_json.hpp"
#include "report/access.hpp"
#include "report/result.hpp"

namespace strata::analysis {
namespace {

using core::Metric;
using report::Json;

std::vector<store::Block> open_turns(std::int64_t ns) {
  std::vector<store::Block> blocks;
  for (int restart = 0; restart < 4; ++restart)
    for (int round = 0; round < 8; ++round)
      blocks.push_back({.restart = restart, .round = round, .wall_ns = {ns + 100 * round}});
  return blocks;
}

store::Row row(std::int64_t id, const std::string& level, double ms) {
  store::Row out;
  out.row_id = id;
  out.level = level;
  out.state = State::measured;
  out.proof = store::Proof{.verdict = "equal", .worst_ratio = 0.5 + 0.1 * static_cast<double>(id)};
  out.memory = store::MemoryFacts{.idle_private_bytes = 10,
                                  .steady_private_bytes = 20,
                                  .peak_private_bytes = 30 * id,
                                  .steady_pss_bytes = 15,
                                  .above_idle_bytes = 20,
                                  .shared_file_bytes = 5,
                                  .device_peak_bytes = 7};
  for (const double more : {0.0, 1.0, 5.0})
    out.start_up.push_back({.restart = 0,
                            .process_ms = 1 + more,
                            .library_ms = 20,
                            .load_ms = 30,
                            .first_iteration_ms = 6,
                            .build_ms = 4,
                            .weights_ms = 5,
                            .total_ms = 57 + 40 * ms + more});
  out.disk_bytes = 1000;
  out.artefact_bytes = 100;
  std::vector<store::ServedRepetition> repetitions;
  for (const double rate : {90.0, 100.0, 110.0})
    repetitions.push_back({.requests_per_s = rate,
                           .requests = 300,
                           .private_bytes = 4'000'000,
                           .pss_bytes = 3'000'000,
                           .cpu_ns = 3'000'000'000,
                           .latency_ns = std::vector<std::int64_t>(300, static_cast<std::int64_t>(1e9 / rate))});
  out.info.tuned = true;
  out.info.lines = store::Lines{.total = 123};
  out.info.libraries = store::Libraries{.bytes = 77};
  out.info.accuracy = store::Accuracy{.error = 1e-6, .answers = 4, .differ = 1};
  out.info.cold_start = store::ColdStart{.total_ms = 500 + ms, .prepare_ms = 40};
  out.info.phases = store::Phases{.ms = {{"forward", 3.5}, {"backward", 7.0}}};
  out.info.meters = {{.restart = 0,
                      .iterations = 80,
                      .run_queue_wait_s = 0.04,
                      .major_faults = 8,
                      .minor_faults = 160,
                      .switched_out = 4,
                      .energy = 16},
                     {.restart = 1,
                      .iterations = 20,
                      .run_queue_wait_s = 0.01,
                      .major_faults = 0,
                      .minor_faults = 140,
                      .switched_out = 0,
                      .no_energy = "no counters"}};
  out.info.eval = store::ScoreRecord{.state = "scored", .count = 10, .score = 91.5};
  out.info.clients = store::ServedClients{
      .seconds = 1, .cores = 2, .points = {{.clients = 2, .state = "measured", .repetitions = std::move(repetitions)}}};
  out.info.dynamic = store::OpenBatchRecord{
      .low = 1,
      .high = 8,
      .own = 4,
      .state = "measured",
      .visits = {{.size = 8, .lap = 0, .first_ns = 300'000'000, .wall_ns = {9'000'000, 9'100'000}}},
      .turns = store::OpenTurns{.fixed = open_turns(10'000'000), .open = open_turns(20'000'000)}};
  for (int restart = 0; restart < 4; ++restart)
    for (int round = 0; round < 12; ++round) {
      store::Block block;
      block.restart = restart;
      block.round = round;
      block.wall_ns.assign(5, static_cast<std::int64_t>(ms * (1e6 + 4000 * restart) + 200 * round));
      block.latency_ns.assign(5, static_cast<std::int64_t>(ms * 0.9e6));
      block.cpu_ns = 5'000'000;
      out.blocks.push_back(block);
    }
  return out;
}

store::Run a_run(core::Mode mode) {
  store::Run run;
  run.run_id = "r";
  run.machine = {{"physical_cores", 2}, {"logical_processors", 2}};
  run.settings.tuned = true;
  store::Case one;
  one.id = one.key = "m";
  one.question = {.model = "m", .threads = 2};
  one.question.mode = mode;
  one.question.batch = 4;
  one.bundle = Json::object();
  one.trust.process_sigma = 0.01;
  one.reference_level = "eager";
  one.rows = {row(1, "eager", 40), row(2, "static", 10)};
  run.cases = {one};
  return run;
}

// The number in the result, and the ends of its interval where it has them there.
void expect_as_shown(const store::Metric& metric, const Json& shown) {
  const auto& about = core::about(metric.which);
  if (about.place.empty()) return;
  const auto name = fmt::format("{} of row {}", about.name, metric.row_id);
  const std::vector<std::optional<double>> stored{metric.value, metric.low, metric.high};
  const auto paths = about.paths();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto path = paths[i];
    const Json* from = &shown;
    if (const auto list = path.find("[]."); list != std::string::npos) {
      from = &report::list(shown, path.substr(0, list)).at(0);
      path = path.substr(list + 3);
    }
    if (const auto setting = path.find('<'); setting != std::string::npos)
      path = path.substr(0, setting) + metric.setting;
    EXPECT_EQ(stored.at(i), report::number(*from, path)) << name << " at " << path;
  }
}

TEST(Metrics, are_the_very_numbers_that_the_report_prints_and_all_that_are_declared_are_written) {
  std::set<Metric> written;
  for (const auto mode : {core::Mode::infer, core::Mode::train}) {
    const auto run = a_run(mode);
    const auto shown = to_json(report::result_of(run))["cases"][0]["rows"];
    for (const auto& metric : metrics_of(run, run.cases[0])) {
      written.insert(metric.which);
      expect_as_shown(metric, shown.at(static_cast<std::size_t>(metric.row_id - 1)));
    }
  }
  for (std::size_t i = 0; i < core::kMetrics.size(); ++i)
    EXPECT_TRUE(written.contains(static_cast<Metric>(i))) << core::kMetrics[i].name;
}

const store::Metric* find(const std::vector<store::Metric>& all, std::int64_t row_id, Metric which) {
  for (const auto& metric : all)
    if (metric.row_id == row_id && metric.which == which) return &metric;
  return nullptr;
}

TEST(Metrics, a_time_has_the_interval_that_its_restarts_leave_and_a_speedup_says_what_it_rests_on) {
  const auto run = a_run(core::Mode::infer);
  const auto all = metrics_of(run, run.cases[0]);
  const auto* time = find(all, 2, Metric::iteration_time);
  ASSERT_TRUE(time && time->low && time->high);
  EXPECT_NEAR(time->value, 10, 0.2);
  EXPECT_LT(*time->low, time->value);
  EXPECT_GT(*time->high, time->value);
  ASSERT_TRUE(find(all, 1, Metric::speedup) && find(all, 2, Metric::speedup));
  EXPECT_EQ(find(all, 1, Metric::speedup)->method, "the reference");
  EXPECT_NEAR(find(all, 2, Metric::speedup)->value, 4, 0.01);
  EXPECT_EQ(find(all, 2, Metric::speedup)->method, "interleaved, interval of assumed");
}

TEST(Metrics, of_a_row_without_a_number_are_only_what_its_proof_says) {
  auto run = a_run(core::Mode::infer);
  run.cases[0].rows[1].state = State::unequal;
  const auto all = metrics_of(run, run.cases[0]);
  std::size_t of_it = 0;
  for (const auto& metric : all) of_it += metric.row_id == 2;
  EXPECT_EQ(of_it, 1u);
  ASSERT_TRUE(find(all, 2, Metric::proof_ratio));
  EXPECT_DOUBLE_EQ(find(all, 2, Metric::proof_ratio)->value, 0.7);
}

TEST(Metrics, of_a_case_in_which_others_had_the_cores_say_so_with_each_speedup) {
  auto run = a_run(core::Mode::infer);
  for (auto& one : run.cases[0].rows)
    for (auto& block : one.blocks) block.taken = block.round < 8 ? 0.6 : 0.0;
  run.cases[0].trust.load = {.begin = 0.6, .others = 0.6, .steal = 0.0, .restarts = {0.6}};
  const auto all = metrics_of(run, run.cases[0]);
  ASSERT_TRUE(find(all, 2, Metric::speedup));
  EXPECT_EQ(find(all, 2, Metric::speedup)->method, "not reliable: other programs had the cores");
}

TEST(Metrics, of_what_iterations_take_beside_time_are_means_over_all_that_the_restarts_made) {
  const auto run = a_run(core::Mode::infer);
  const auto all = metrics_of(run, run.cases[0]);
  const auto value = [&](Metric which) {
    const auto* metric = find(all, 1, which);
    return metric ? metric->value : std::nan("");
  };
  EXPECT_DOUBLE_EQ(value(Metric::page_faults), 3);
  EXPECT_DOUBLE_EQ(value(Metric::disk_page_faults), 0.08);
  EXPECT_DOUBLE_EQ(value(Metric::switched_out), 0.04);
  EXPECT_DOUBLE_EQ(value(Metric::run_queue_wait), 0.5);  // ms
  EXPECT_DOUBLE_EQ(value(Metric::energy), 0.2);          // of the restart that had counters
  // 5 ms of a processor in blocks of five iterations of 40 ms, on two threads
  EXPECT_NEAR(value(Metric::cpu_utilisation), 5.0 / (5 * 40) / 2, 1e-4);
}

TEST(Metrics, are_documented_as_they_are_declared) {
  std::ifstream file(STRATA_SOURCE_DIR "/docs/store.md");
  std::stringstream page;
  page << file.rdbuf();
  std::string table = "| metric | pass | unit | what it is | in a row of the result |\n|---|---|---|---|---|\n";
  for (const auto& metric : core::kMetrics)
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", metric.name, metric.pass, metric.unit, metric.meaning,
                         metric.place.empty() ? "" : fmt::format("`{}`", metric.place));
  EXPECT_NE(page.str().find(table), std::string::npos) << "docs/store.md should hold:\n" << table;
}

}  // namespace
}  // namespace strata::analysis
