// SPDX-License-Identifier: Apache-2.0
// What a store can be asked, and whole runs that leave it or come to another.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "store/fingerprint.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace {
namespace fs = std::filesystem;
using core::Metric;

const std::string kKey = key_of(core::Case{.model = "m", .threads = 2});

class StoreRunsTest : public ::testing::Test {
 protected:
  StoreRunsTest() : folder_(fs::temp_directory_path() / ("strata_store_runs_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~StoreRunsTest() override { fs::remove_all(folder_); }

  Store open(const std::string& name) {
    auto store = Store::open(folder_ / name);
    EXPECT_TRUE(store) << store.error().what;
    return std::move(*store);
  }
  store::Run a_run(const std::string& id) {
    store::Run run;
    run.run_id = id;
    run.started = "2026-11-21T06:00:00Z";
    run.finished = "2026-11-21T06:01:00Z";
    run.machine = {{"cpu", "EPYC"}, {"cores", 2}, {"logical_processors", 4}, {"memory_bytes", 8LL << 30}};
    run.environments = {{{"python", "/a"}, {"python_version", "3.11.2"}, {"torch", "2.15.0"}, {"packages", "abc"}}};
    return run;
  }
  // A run of one case with two rows, a block, a metric, a series and a warning about the second row.
  std::int64_t fill(Store& store, const std::string& id, std::int64_t ns = 10) {
    EXPECT_TRUE(store.begin_run(a_run(id)));
    Case one;
    one.question = {.model = "m", .threads = 2};
    one.key = kKey;
    one.id = one.question.id();
    one.reference_level = "eager";
    EXPECT_TRUE(store.add_case(id, one));
    Row row;
    row.level = "eager";
    EXPECT_TRUE(store.add_row(id, kKey, row));
    row.level = "static";
    row.info = {.language = "c++", .rank = 7, .peer = true, .tuned = true};
    row.info.clients =
        ServedClients{.points = {{.clients = 2, .repetitions = {{.latency_ns = {5, 6}}, {.latency_ns = {ns}}}}}};
    row.proof = Proof{.verdict = "unequal", .first_difference = "layer1"};
    const auto row_id = store.add_row(id, kKey, row);
    EXPECT_TRUE(row_id);
    Block block;
    block.wall_ns = block.latency_ns = {ns, 20};
    EXPECT_TRUE(store.add_block(*row_id, block));
    EXPECT_TRUE(store.add_restart(id, kKey, 0, Json::array()));
    EXPECT_TRUE(store.add_warning(id, {"W007", "static parts", "more", kKey, *row_id}));
    EXPECT_TRUE(store.add_series(*row_id, {{"loss", "1", "step", {0, 1}, {2.5, 2.0}}}));
    EXPECT_TRUE(store.set_metrics(id, kKey, {{*row_id, Metric::speedup, "", 2, 1.5, std::nullopt, "interleaved"}}));
    return *row_id;
  }
  // The first column of every row that a question gives.
  std::vector<std::string> ask(const std::string& name, const std::string& sql) {
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open((folder_ / name).c_str(), &handle), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(handle, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
    std::vector<std::string> values;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
      values.emplace_back(text ? text : "null");
    }
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return values;
  }
  fs::path folder_;
};

using Strings = std::vector<std::string>;

TEST(ListedCases, share_a_verdict_that_is_listed_once) {
  const std::vector<store::ListedCase> cases{
      {"k1", "", "a", "static"}, {"k2", "", "b", ""}, {"k3", "", "c", "static"}, {"k4", "", "d", "eager"}};
  EXPECT_EQ(store::verdicts_of(cases), (std::vector<std::string>{"static", "eager"}));
}

TEST_F(StoreRunsTest, gives_back_metrics_which_new_ones_replace) {
  auto store = open("a.db");
  const auto row = fill(store, "run-1");
  const auto one = store.metrics("run-1");
  ASSERT_TRUE(one) << one.error().what;
  EXPECT_EQ(*one, (std::vector<store::Metric>{{row, Metric::speedup, "", 2, 1.5, std::nullopt, "interleaved"}}));
  ASSERT_TRUE(store.set_metrics("run-1", kKey,
                                {{row, Metric::request_p50, "4 threads", 3, {}, {}, "x"},
                                 {row, Metric::request_p50, "2 threads", 2, {}, {}, "x"},
                                 {row, Metric::iterations, "", 1, {}, {}, "x"}}));
  const auto two = store.metrics("run-1");
  ASSERT_EQ(two->size(), 3u);
  EXPECT_EQ((*two)[0].which, Metric::iterations);
  EXPECT_EQ((*two)[1].setting, "2 threads");
  EXPECT_EQ(ask("a.db", "SELECT unit FROM metrics WHERE name='request_p50'"), (Strings{"ms", "ms"}));
}

TEST_F(StoreRunsTest, knows_which_runs_have_no_metrics_yet) {
  auto store = open("a.db");
  fill(store, "run-1");
  EXPECT_EQ(*store.runs_without_metrics(), Strings{});
  Case one;
  one.key = "def";
  one.question = {.model = "other", .threads = 2};
  ASSERT_TRUE(store.add_case("run-1", one));
  EXPECT_EQ(*store.runs_without_metrics(), Strings{"run-1"});
  ASSERT_TRUE(store.set_metrics("run-1", "def", {}));
  EXPECT_EQ(*store.runs_without_metrics(), Strings{}) << "a case without a number has been looked at, too";
}

TEST_F(StoreRunsTest, a_case_that_goes_on_has_no_metrics_of_before) {
  auto store = open("a.db");
  fill(store, "run-1");
  ASSERT_TRUE(store.drop_restarts("run-1", kKey, 1));
  EXPECT_TRUE(store.metrics("run-1")->empty());
  EXPECT_EQ(*store.runs_without_metrics(), Strings{"run-1"});
  ASSERT_TRUE(store.drop_restarts("run-1", kKey, 0)) << "rows with metrics and series can go";
}

TEST_F(StoreRunsTest, keeps_a_series_in_order_and_what_is_not_finite_in_it) {
  auto store = open("a.db");
  const auto row = fill(store, "run-1");
  ASSERT_TRUE(store.add_series(row, {{"loss", "1", "step", {3, 2, 1}, {std::nan(""), 1.5, 1.75}}}));
  const auto all = store.series(row);
  ASSERT_TRUE(all) << all.error().what;
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].positions, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ((*all)[0].values[1], 1.75) << "written anew";
  EXPECT_TRUE(std::isnan((*all)[0].values[3]));
  EXPECT_FALSE(store.add_series(row, {{"loss", "1", "step", {1}, {}}}));
}

TEST_F(StoreRunsTest, knows_what_steps_of_a_training_took_on_this_machine_the_newest_last) {
  auto store = open("a.db");
  Case one;
  one.key = "trained";
  one.question = {.model = "m", .mode = core::Mode::train, .batch = 64, .threads = 2, .recipe = core::Recipe()};
  one.question.data = "digits";
  for (const int minute : {0, 1}) {
    auto run = a_run("run-" + std::to_string(minute));
    run.started = "2026-11-21T06:0" + std::to_string(minute) + ":00Z";
    ASSERT_TRUE(store.begin_run(run));
    ASSERT_TRUE(store.add_case(run.run_id, one));
    Row row;
    row.level = "static";
    const auto row_id = store.add_row(run.run_id, one.key, row);
    ASSERT_TRUE(store.add_series(*row_id, {{"step_time", "ms", "epoch", {1, 2}, {4.0 + minute, 6.0 + minute}}}));
  }
  const auto machine = a_run("").machine;
  const auto times = store.step_times(one.question, std::nullopt, std::nullopt, machine);
  ASSERT_TRUE(times) << times.error().what;
  ASSERT_EQ(times->size(), 2u);
  EXPECT_EQ(times->back().level, "static");
  EXPECT_EQ(times->back().run_id, "run-1");
  EXPECT_EQ(times->back().ms, 6) << "the mean of its epochs";
  auto other = one.question;
  other.threads = 1;
  EXPECT_TRUE(store.step_times(other, std::nullopt, std::nullopt, machine)->empty());
  EXPECT_TRUE(store.step_times(one.question, std::nullopt, std::nullopt, Json{{"cpu", "another"}})->empty());
}

TEST_F(StoreRunsTest, samples_of_every_pass_have_the_encoding_of_blocks_and_come_back_where_they_were) {
  auto store = open("a.db");
  const auto row = fill(store, "run-1");
  EXPECT_EQ(ask("a.db", "SELECT place||' '||hex(ns) FROM samples ORDER BY place LIMIT 1"),
            Strings{"/clients/points/0/repetitions/0/latency_ns 05000000000000000600000000000000"});
  EXPECT_EQ(ask("a.db",
                "SELECT json_extract(info,'$.clients.points[0].repetitions[1].latency_ns') FROM level_rows WHERE "
                "level='static'"),
            Strings{"null"});
  auto read = store.load_run("run-1")->cases.at(0).rows.at(1);
  EXPECT_EQ(read.info.clients->points.at(0).repetitions.at(0).latency_ns, (std::vector<std::int64_t>{5, 6}));
  read.info.clients.reset();
  read.info.dynamic = OpenBatchRecord{.visits = {{.wall_ns = {7}}}};
  ASSERT_TRUE(store.update_row(read));
  EXPECT_EQ(ask("a.db", "SELECT place FROM samples"), Strings{"/dynamic/visits/0/wall_ns"});
  EXPECT_EQ(store.load_run("run-1")->cases.at(0).rows.at(1).info, read.info) << row;
}

// With every member.
RowInfo all_facts() {
  RowInfo info{.title = "static", .language = "c++", .from = "onednn", .changes = "fused", .default_text = "by timing"};
  info.rank = 8;
  info.peer = info.harness = info.tuned = true;
  info.generate = Generate{"onednn", "--tune"};
  info.artefact = "abc";
  info.reason_short = "";
  info.lines = Lines{12, {{"a.cpp", 12}}};
  info.libraries = Libraries{5'000'000'000, {{"b.so", 5'000'000'000}}};
  info.accuracy = Accuracy{.error = 0.25, .answers = 4, .differ = 1};
  info.cold_start = ColdStart{.total_ms = 500.5, .prepare_ms = 40};
  info.phases = Phases{.ms = {{"forward", 3.5}, {"update", std::nullopt}},
                       .joined = {{"forward", {"loss"}}},
                       .iterations = 7,
                       .note = ""};
  info.meters = {{.restart = 0, .iterations = 80, .run_queue_wait_s = 0.1, .minor_faults = 3, .energy = 16.5},
                 {.restart = 1, .iterations = 80, .major_faults = 1, .switched_out = 2, .no_energy = "no counters"}};
  info.layers = {"conv1", "fc"};
  info.rows_of_shards = {7, 9};
  info.facts = {{"guards", 31}};
  info.deep = DeepFacts{.note = "no taps"};
  info.tuning = Tuning{.seconds = 3, .restarts = 1, .best = "default", .tried = {{.variant = "default"}}};
  info.tuning->tried.front().ratio = {{1.5, 1.2, std::nullopt}, stats::RatioVerdict::faster};
  info.clients = ServedClients{
      .seconds = 1,
      .cores = 2,
      .points = {{.clients = 2,
                  .state = "measured",
                  .repetitions = {
                      {.requests_per_s = 1, .requests = 2, .private_bytes = 3, .cpu_ns = 4, .latency_ns = {5, 6}}}}}};
  info.dynamic = OpenBatchRecord{
      .low = 1,
      .high = 8,
      .own = 2,
      .state = "measured",
      .prepare_ms = 1,
      .visits = {{.size = 2, .lap = 1, .first_ns = 9, .worst_ratio = 0.5, .wall_ns = {7}}},
      .reported = LevelReports{.before = {{"recompiles", 0}}, .after = {{"recompiles", 1}, {"other", {1, 2}}}},
      .turns =
          OpenTurns{.fixed = {{.restart = 1, .round = 2, .wall_ns = {3}, .runq_ns = 4, .taken = 0.5}}, .open = {}}};
  info.eval = ScoreRecord{.state = "scored", .count = 2, .score = -0.5, .per_example = {-1, 0}, .answers = {3, 4}};
  return info;
}

TEST_F(StoreRunsTest, a_row_has_every_fact_that_it_was_stored_with_and_one_of_another_kind_is_refused) {
  auto store = open("a.db");
  const auto row = fill(store, "run-1");
  auto stored = store.load_run("run-1")->cases.at(0).rows.at(1);
  stored.info = all_facts();
  stored.memory = MemoryFacts{.idle_private_bytes = 5, .peak_private_bytes = 10};
  stored.start_up = {{.cold = true, .total_ms = 7}, {.restart = 1, .process_ms = 1, .build_ms = 2, .total_ms = 5}};
  stored.proof = Proof{.verdict = "equal",
                       .weak = true,
                       .observed = 3,
                       .worst_ratio = 0.5,
                       .lines = {{.check = "outputs", .result = "pass"}},
                       .in_the_middle = ProofWhileTraining{.steps = 4, .by = "eager"}};
  ASSERT_TRUE(store.update_row(stored));
  const auto read = store.load_run("run-1");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->cases.at(0).rows.at(1), stored);
  ask("a.db", "UPDATE level_rows SET info=json_set(info,'$.lines.total','x') WHERE row_id=" + std::to_string(row));
  const auto refused = store.load_run("run-1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("a row of run run-1: \"info.lines\": \"total\" is \"x\""), std::string::npos)
      << refused.error().what;
  ask("a.db", "UPDATE level_rows SET proof='{\"weak\":7}' WHERE row_id=" + std::to_string(row));
  const auto unknown = store.load_run("run-1");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("\"proof\": \"weak\" is 7"), std::string::npos) << unknown.error().what;
}

TEST_F(StoreRunsTest, has_columns_for_what_is_selected_by) {
  auto store = open("a.db");
  const auto row = fill(store, "run-1");
  EXPECT_EQ(ask("a.db", "SELECT cpu||cores||processors||memory_gib FROM machines JOIN runs ON machine_hash=hash"),
            Strings{"EPYC248"});
  EXPECT_EQ(
      ask("a.db", "SELECT torch||python||packages FROM run_environments JOIN environments USING(hash) WHERE name=''"),
      Strings{"2.15.03.11.2abc"});
  EXPECT_EQ(ask("a.db",
                "SELECT rank||language||peer||harness||tuned||verdict||first_difference FROM level_rows WHERE "
                "level='static'"),
            Strings{"7c++101unequallayer1"});
  EXPECT_EQ(ask("a.db", "SELECT row_id FROM warnings"), Strings{std::to_string(row)});
}

TEST_F(StoreRunsTest, a_machine_is_the_same_one_after_a_new_kernel_and_another_one_with_another_gpu) {
  Json description{{"cpu", "EPYC"}, {"cores", 2}, {"memory_bytes", 8'300'000'000}, {"kernel", "6.1"}};
  const auto before = machine_of(description).hash();
  description["kernel"] = "6.2";
  description["memory_bytes"] = 8'299'000'000;
  EXPECT_EQ(machine_of(description).hash(), before);
  description["gpu"] = "H100";
  EXPECT_NE(machine_of(description).hash(), before);
}

TEST_F(StoreRunsTest, several_environments_have_their_names_and_equal_ones_are_one) {
  auto store = open("a.db");
  fill(store, "run-1");
  auto run = a_run("run-2");
  run.environments = {{{"name", "old"}, {"python_version", "3.11.2"}, {"torch", "2.14.0"}},
                      {{"name", "new"}, {"python_version", "3.11.2"}, {"torch", "2.15.0"}, {"packages", "abc"}}};
  ASSERT_TRUE(store.begin_run(run));
  EXPECT_EQ(ask("a.db",
                "SELECT name||torch FROM run_environments JOIN environments USING(hash) WHERE run_id='run-2' ORDER "
                "BY name"),
            (Strings{"new2.15.0", "old2.14.0"}));
  EXPECT_EQ(ask("a.db", "SELECT count(*) FROM environments"), Strings{"2"});
}

TEST_F(StoreRunsTest, a_run_is_copied_with_all_that_belongs_to_it_under_numbers_of_its_own) {
  auto from = open("from.db"), into = open("into.db");
  fill(from, "run-0");
  const auto theirs = fill(from, "run-1", 11);
  fill(into, "run-2");
  const auto copied = into.copy_run(from, "run-1");
  ASSERT_TRUE(copied) << copied.error().what;
  EXPECT_TRUE(*copied);
  const auto run = into.load_run("run-1");
  ASSERT_TRUE(run) << run.error().what;
  const auto& row = run->cases.at(0).rows.at(1);
  EXPECT_EQ(row.blocks.at(0).wall_ns.at(0), 11);
  EXPECT_EQ(run->warnings.at(0).row_id, row.row_id) << "and not " << theirs;
  EXPECT_EQ(into.metrics("run-1")->at(0).row_id, row.row_id);
  EXPECT_EQ(into.series(row.row_id)->at(0).values, (std::vector<double>{2.5, 2.0}));
  EXPECT_EQ(into.restarts("run-1", kKey)->size(), 1u);
  EXPECT_EQ(ask("into.db", "SELECT count(*) FROM machines"), Strings{"1"}) << "shared with the run that was there";
  EXPECT_FALSE(*into.has_run("run-0"));
}

TEST_F(StoreRunsTest, a_run_that_is_there_already_is_skipped_and_one_with_other_content_is_an_error) {
  auto from = open("from.db"), same = open("same.db"), other = open("other.db");
  fill(from, "run-1");
  fill(same, "run-0");
  fill(same, "run-1");
  fill(other, "run-1", 12);
  EXPECT_FALSE(*same.copy_run(from, "run-1"));
  const auto refused = other.copy_run(from, "run-1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("run-1 is another one"), std::string::npos) << refused.error().what;
  EXPECT_EQ(other.load_run("run-1")->cases.at(0).rows.at(1).blocks.at(0).wall_ns.at(0), 12);
}

TEST_F(StoreRunsTest, nothing_is_taken_over_that_is_not_what_its_hash_says) {
  auto from = open("from.db"), into = open("into.db");
  fill(from, "run-1");
  ASSERT_TRUE(from.give_back_space());  // its file is whole
  for (const std::string sql : {"UPDATE machines SET cpu='another'", "UPDATE environments SET torch='9'",
                                "UPDATE cases SET batch=9", "UPDATE cases SET id='another'"}) {
    const auto forged = folder_ / "forged.db";
    fs::copy_file(folder_ / "from.db", forged, fs::copy_options::overwrite_existing);
    ask("forged.db", sql);
    {
      auto store = open("forged.db");  // with hashes that fit
      ASSERT_TRUE(store.finish_run(*from.load_run("run-1")));
    }
    EXPECT_FALSE(into.copy_run(open("forged.db"), "run-1")) << sql;
    EXPECT_EQ(ask("into.db",
                  "SELECT cpu FROM machines UNION ALL SELECT torch FROM environments UNION ALL SELECT id FROM "
                  "cases UNION ALL SELECT run_id FROM runs"),
              Strings{})
        << sql;
  }
}

TEST_F(StoreRunsTest, a_run_of_another_store_is_marked_and_last_only_where_there_is_no_own) {
  auto from = open("from.db"), into = open("into.db");
  fill(from, "theirs");
  ASSERT_TRUE(into.copy_run(from, "theirs"));
  EXPECT_EQ(*into.find_run("last"), "theirs");
  EXPECT_TRUE(into.load_run("theirs")->imported);
  auto run = a_run("own");
  run.started = "2020-01-01T00:00:00Z";
  ASSERT_TRUE(into.begin_run(run));
  ASSERT_TRUE(into.add_case("own", from.load_run("theirs")->cases.at(0)));
  EXPECT_EQ(*into.find_run("last"), "own") << "whatever date the other one claims";
  EXPECT_FALSE(into.load_run("own")->imported);
}

TEST_F(StoreRunsTest, a_finished_run_that_another_program_changed_is_not_shown_and_a_refreshed_one_is) {
  auto store = open("a.db");
  const auto row = fill(store, "run-1");
  ASSERT_TRUE(store.finish_run(a_run("run-1")));
  ASSERT_TRUE(store.set_metrics("run-1", kKey, {{row, Metric::speedup, "", 3, 1.5, std::nullopt, "interleaved"}}));
  ASSERT_TRUE(store.set_verdicts("run-1", {{kKey, "static"}}));
  ASSERT_TRUE(open("a.db").load_run("run-1"));
  ASSERT_TRUE(open("a.db").list_runs(0));
  ask("a.db", "UPDATE run_cases SET verdict='eager'");
  EXPECT_FALSE(open("a.db").list_runs(0));
  ask("a.db", "UPDATE blocks SET start_ns=5");
  const auto changed = open("a.db").load_run("run-1");
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().what.find("run-1 is not as it was stored"), std::string::npos) << changed.error().what;
}

TEST_F(StoreRunsTest, a_deleted_run_leaves_nothing_of_its_own_and_others_whole) {
  auto store = open("a.db");
  fill(store, "run-1");
  fill(store, "run-2");
  const auto before = store.load_run("run-2");
  ASSERT_TRUE(store.delete_run("run-1"));
  ASSERT_TRUE(store.give_back_space());
  EXPECT_EQ(*store.load_run("run-2"), *before);
  EXPECT_EQ(store.metrics("run-2")->size(), 1u);
  EXPECT_FALSE(*store.has_run("run-1"));
  ASSERT_TRUE(store.delete_run("run-2"));
  for (const char* table : {"runs", "cases", "run_cases", "level_rows", "blocks", "warnings", "restarts", "metrics",
                            "series", "samples", "machines", "environments", "run_environments"})
    EXPECT_EQ(ask("a.db", std::string("SELECT count(*) FROM ") + table), Strings{"0"}) << table;
  EXPECT_FALSE(store.delete_run("run-2"));
}

TEST_F(StoreRunsTest, counts_how_often_a_run_that_was_cut_off_went_on_and_keeps_it_through_a_kill) {
  auto store = open("a.db");
  fill(store, "run-1");
  auto run = a_run("run-1");
  run.interrupted = true;
  ASSERT_TRUE(store.continue_run(run));
  EXPECT_EQ(store.load_run("run-1")->settings.resumed, 1) << "also before it ends, as a kill leaves it";
  run.finished.clear(), run.interrupted = false;  // as a kill leaves it
  ASSERT_TRUE(store.continue_run(run));
  run.finished = "2026-11-21T06:02:00Z";
  ASSERT_TRUE(store.continue_run(run)) << "nothing was cut off";
  EXPECT_EQ(store.load_run("run-1")->settings.resumed, 2);
}

TEST_F(StoreRunsTest, a_running_run_is_neither_deleted_nor_copied) {
  auto store = open("a.db"), into = open("b.db");
  fill(store, "run-1");
  const auto child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  // As the child would name itself: its number, and the tick at which it began.
  auto run = a_run("run-1");
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  std::string fields((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream after(fields.substr(fields.rfind(')') + 1));
  std::string ticks;
  for (int field = 3; field <= 22; ++field) after >> ticks;
  const auto own = this_process();
  const auto system = own.substr(0, own.rfind(' ', own.rfind(' ') - 1));
  run.process = system + " " + std::to_string(child) + " " + ticks;
  ASSERT_TRUE(store.continue_run(run));
  const auto gone = store.delete_run("run-1");
  const auto copied = into.copy_run(store, "run-1");
  kill(child, SIGKILL);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().exit, Exit::usage);
  EXPECT_NE(gone.error().what.find("is being measured"), std::string::npos);
  ASSERT_FALSE(copied);
  EXPECT_TRUE(*store.has_run("run-1"));
}

TEST_F(StoreRunsTest, text_of_another_kind_is_called_what_it_is_and_no_damaged_store) {
  for (const auto& [text, kind] : std::map<std::string, std::string>{{"a,b\n1,2\n", "values with commas"},
                                                                     {" {\"schema\": 1}", "a file of JSON"},
                                                                     {"import torch\n", "a file of text"}}) {
    const auto path = (folder_ / "x.csv").string();
    std::ofstream(path) << text;
    const auto opened = Store::open_existing(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().exit, Exit::usage);
    EXPECT_NE(opened.error().what.find(kind), std::string::npos) << opened.error().what;
    EXPECT_EQ(Store::open(path).error().what, opened.error().what);
  }
}

}  // namespace
}  // namespace strata::store
