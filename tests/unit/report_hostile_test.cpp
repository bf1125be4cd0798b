// SPDX-License-Identifier: Apache-2.0
// JSON of a store in which anything is of another type: shown as unknown; that of a result file: shown or refused by
// its name. Never an abort.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "analysis/result_json.hpp"
#include "report/access.hpp"
#include "report/compare.hpp"
#include "report/render/render.hpp"
#include "report/render_file.hpp"
#include "report/result.hpp"
#include "report/terminal.hpp"

namespace strata::report {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;

const std::vector<Json> kWrong{nullptr,
                               true,
                               "x",
                               -1,
                               1.5,
                               1e308,
                               2147483647,
                               Json::array(),
                               Json::object(),
                               Json::array({nullptr}),
                               Json{{"a", 1}},
                               std::int64_t{1} << 62};

store::Row hostile_row(const std::string& level) {
  store::Row row;
  row.level = level;
  row.state = State::measured;
  const store::Block block{.wall_ns = {1000}, .runq_ns = 3, .taken = 0.1};
  auto& info = row.info;
  info = {.title = level, .language = "c++", .from = "eager", .changes = "x", .rank = 1};
  info.generate = store::Generate{"onednn", ""};
  info.tuned = true;
  info.artefact = info.reason_short = "x";
  info.lines = store::Lines{.total = 1};
  info.libraries = store::Libraries{.bytes = 10};
  info.accuracy = store::Accuracy{.error = 0.1, .answers = 1};
  info.cold_start = store::ColdStart{.total_ms = 3, .prepare_ms = 1};
  info.phases = store::Phases{.ms = {{"forward", 1.0}}};
  info.facts = {{"guards", 1}, {"recompile_reasons", {"x"}}};
  info.deep = store::DeepFacts{.first_difference = "x", .worst_ratio = 1};
  info.tuning = store::Tuning{.seconds = 1, .best = "default", .tried = {{.variant = "default", .median_ms = 1}}};
  info.tuning->tried.front().ratio = {{1, 0.9, 1.1}, stats::RatioVerdict::same};
  info.clients = store::ServedClients{.seconds = 1, .cores = 2, .points = {{.state = "measured"}}};
  info.clients->points.front().repetitions = {{.requests_per_s = 10,
                                               .requests = 5,
                                               .private_bytes = 1,
                                               .pss_bytes = 1,
                                               .cpu_ns = 7,
                                               .latency_ns = {1000, 2000}}};
  info.eval = store::ScoreRecord{.state = "scored", .count = 1, .score = 0.5, .per_example = {0.5}, .answers = {1}};
  info.dynamic = store::OpenBatchRecord{
      .low = 1,
      .high = 4,
      .own = 1,
      .state = "measured",
      .prepare_ms = 1,
      .visits = {{.size = 2, .lap = 0, .first_ns = 5, .worst_ratio = 0.5, .wall_ns = {5}}},
      .reported = store::LevelReports{.before = {{"recompiles", 0}},
                                      .after = {{"recompiles", 1}, {"recompile_reasons", {"x"}}}},
      .turns = store::OpenTurns{.fixed = {block}, .open = {block}}};
  row.settings = {{"threads", 1}, {"layout", "contiguous"}};
  row.memory = store::MemoryFacts{.idle_private_bytes = 5, .peak_private_bytes = 10};
  row.start_up = {{.process_ms = 1.0, .total_ms = 4.0}};
  row.proof = store::Proof{.verdict = "equal", .observed = 1, .lines = {{.check = "x", .result = "pass"}}};
  row.disk_bytes = row.artefact_bytes = 10;
  for (int round = 0; round < 4; ++round) {
    store::Block one;
    one.round = round;
    one.wall_ns = one.latency_ns = {1'000'000, 1'100'000};
    row.blocks.push_back(one);
  }
  return row;
}

store::Run hostile_run() {
  store::Run run;
  run.run_id = "run-1";
  run.finished = "x";
  run.command = "./strata compare m";
  run.settings = {.effort = {.preset = "quick", .restarts = 1, .budget_s = 1},
                  .aa = true,
                  .tuned = true,
                  .clients = "1",
                  .slo = "p99=20ms",
                  .eval = "x"};
  run.machine = {{"cpu", "x"},    {"cores", 2},           {"physical_cores", 2}, {"logical_processors", 4},
                 {"l2_bytes", 1}, {"last_cache_bytes", 1}};
  run.environments = {{{"name", "default"}}};
  for (const auto precision : {core::Precision::fp32, core::Precision::bf16}) {
    store::Case one;
    one.question = {.model = "m", .batch = 2, .precision = precision};
    one.key = one.id = one.question.id();
    one.bundle = {{"flops", 1e6},
                  {"case", {{"model", "m"}, {"mode", "infer"}, {"batch", 2}, {"weights_label", "seed0"}}},
                  {"weight_bytes", 10},
                  {"input_bytes", 10},
                  {"parameters", 3},
                  {"model", {{"name", "m"}}},
                  {"spec",
                   {{"model", "m"},
                    {"batch", 2},
                    {"mode", "infer"},
                    {"inputs", {{{"name", "x"}, {"dtype", "int64"}, {"shape", {2, 3}}, {"low", 0}, {"high", 9}}}},
                    {"optimiser", {{"name", "sgd"}, {"schedule", {{"name", "step"}, {"every", 2}, {"gamma", 0.1}}}}}}},
                  {"flops_uncounted", {"lstm"}},
                  {"network", {{"hash", "x"}}}};
    one.limits = {.gflops = 100, .gbytes_per_s = 10, .quiet = true};
    one.trust = {.process_sigma = 0.01,
                 .load = {.begin = 0.1, .others = 0.1, .steal = 0, .restarts = {0.1}, .other_run = 7},
                 .restarts = 1,
                 .reference_wanted = "other"};
    one.reference_level = "eager";
    one.rows = {hostile_row("eager"), hostile_row("static")};
    run.cases.push_back(std::move(one));
  }
  return run;
}

// The sanitizers make each look some twenty times as long: a value is then each fourth wrong one, beginning with
// another; `./test all` tries all there, too.
#ifdef STRATA_SANITIZED
const std::size_t kEach = std::getenv("STRATA_EVERY_VALUE") ? 1 : 4;
#else
constexpr std::size_t kEach = 1;
#endif

// Every value of `object` in turn as each wrong one, then `look`.
template <class Look>
void try_everything(Json& object, const std::string& what, const Look& look) {
  std::vector<Json::json_pointer> places{Json::json_pointer()};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Json& here = object.at(places[i]);
    if (here.is_object())
      for (const auto& [key, value] : here.items()) places.push_back(places[i] / key);
    if (here.is_array())
      for (std::size_t k = 0; k < here.size(); ++k) places.push_back(places[i] / k);
  }
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t k = i % kEach; k < std::size(kWrong); k += kEach) {
      if (object.at(places[i]) == kWrong[k]) continue;
      Json right = kWrong[k];
      std::swap(object.at(places[i]), right);
      EXPECT_NO_THROW(look()) << what << places[i].to_string() << " = " << kWrong[k].dump();
      std::swap(object.at(places[i]), right);
    }
}

void look_at(const analysis::RunResult& result) {
  (void)terminal(result, {});
  (void)terminal_ledger(result, {});
  (void)terminal_certificate(result, {});
  (void)document::render_markdown(compare_document({result}));
  (void)csv(result);
}

TEST(Report, of_a_stored_run_survives_any_json_in_any_place) {
  auto run = hostile_run();
  const auto look = [&] { look_at(result_of(run)); };
  look();
  auto& one = run.cases[0];
  auto& row = one.rows[1];
  try_everything(run.settings.request, "request", look);
  try_everything(run.machine, "machine", look);
  try_everything(one.bundle, "bundle", look);
  auto info = store::to_json(row.info);
  try_everything(info, "info", [&] {
    auto read = store::read_row_info(info);
    if (!read) {
      EXPECT_THAT(read.error().what, StartsWith("\"info"));
      return;
    }
    row.info = std::move(*read);
    look();
  });
}

TEST(Report, of_a_result_file_survives_any_json_in_any_place_or_refuses_it) {
  auto result = read_results(std::filesystem::path(STRATA_SOURCE_DIR) / "tests/report/example_run.json").value().at(0);
  // Long lists say the same in each entry.
  auto& rows = result.cases.at(0).rows;
  result.cases.resize(1), rows.resize(2);
  for (auto& row : rows) {
    if (row.blocks.size() > 2) row.blocks.resize(2);
    if (row.profile && row.profile->operations.size() > 2) row.profile->operations.resize(2);
    row.histogram.reset();
  }
  auto written = analysis::to_json(result);
  try_everything(written, "", [&] {
    if (const auto read = analysis::read_result(written, "result"))
      look_at(*read);
    else
      EXPECT_THAT(read.error().what, AnyOf(StartsWith("\"result"), StartsWith("result: schema is ")));
  });
}

}  // namespace
}  // namespace strata::report
