// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "store/run_state.hpp"

namespace strata::store {
namespace {
namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() : folder_(fs::temp_directory_path() / ("strata_store_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~StoreTest() override { fs::remove_all(folder_); }

  store::Run run(const std::string& id, const std::string& started) {
    store::Run one;
    one.run_id = id;
    one.started = started;
    one.command = "./strata compare resnet50";
    one.settings.effort.preset = "quick";
    return one;
  }
  Case a_case() {
    Case one;
    one.key = "abc";
    one.id = "m/infer/b1";
    one.question = {.model = "m", .threads = 2};
    one.reference_level = "eager";
    return one;
  }
  // A run with one case, one row and one block.
  std::int64_t fill(Store& store, const std::string& id) {
    EXPECT_TRUE(store.begin_run(run(id, "2026-11-21T06:00:00Z")));
    EXPECT_TRUE(store.add_case(id, a_case()));
    Row row;
    row.level = "eager";
    const auto row_id = store.add_row(id, "abc", row);
    EXPECT_TRUE(row_id);
    Block block;
    block.restart = 1;
    block.round = 2;
    block.wall_ns = {10, 20, 30};
    block.latency_ns = {9, 19, 29};
    block.cpu_ns = 55;
    block.check = "";
    EXPECT_TRUE(store.add_block(*row_id, block));
    return *row_id;
  }
  fs::path folder_;
};

TEST_F(StoreTest, gives_back_every_raw_sample_after_it_was_closed) {
  {
    auto store = Store::open(folder_ / "a.db");
    ASSERT_TRUE(store) << store.error().what;
    fill(*store, "run-1");
  }
  const auto again = Store::open_existing(folder_ / "a.db");
  ASSERT_TRUE(again);
  const auto run = again->load_run("last");
  ASSERT_TRUE(run) << run.error().what;
  ASSERT_EQ(run->cases.size(), 1u);
  const auto& block = run->cases[0].rows[0].blocks.at(0);
  EXPECT_EQ(block.wall_ns, (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_EQ(block.latency_ns, (std::vector<std::int64_t>{9, 19, 29}));
  EXPECT_EQ(block.cpu_ns, 55);
  EXPECT_EQ(block.runq_ns, std::nullopt);
  EXPECT_EQ(run->settings.effort.preset, "quick");
}

TEST_F(StoreTest, gives_back_every_setting_of_a_run) {
  auto store = Store::open(folder_ / "a.db");
  auto one = run("run-1", "2026-11-21T06:00:00Z");
  one.settings = {.verb = "sweep",
                  .request = {{"model", "m"}},
                  .folder = "/f",
                  .kept = {.store = "s.db", .format = "json", .output = "o.html"},
                  .effort = {.preset = "quick", .restarts = 4, .budget_s = 2.5, .ci_width = 0.25},
                  .aa = true,
                  .deep = true,
                  .tuned = true,
                  .clients = "1,2",
                  .dynamic = "1..4",
                  .slo = "p99=20ms",
                  .eval = "e.py",
                  .find_batch = "throughput",
                  .memory_limit_gib = 1.5,
                  .cases = 3,
                  .shard = {.shard = "2/8", .whole = "w", .node = "n", .parts = 9},
                  .training = {.dataset = "digits",
                               .rule = "margin",
                               .scaled = "scaled",
                               .epochs = 2,
                               .repeats = 3,
                               .margin = 0.5,
                               .loss_margin = 0.25,
                               .target = 0.75},
                  .suite_run = {.title = "t",
                                .about = "a",
                                .source = "s",
                                .file = "f",
                                .hash = "h",
                                .scale = "2",
                                .entries = {{.command = "c",
                                             .label = "l",
                                             .state = "done",
                                             .reason = "r",
                                             .run = "run-2",
                                             .predicted_s = 1.5,
                                             .took_s = 2.5,
                                             .exit_code = 3}}},
                  .suite = OfSuite{.run = "run-3", .title = "t", .entry = 4},
                  .visited = {.model = "m",
                              .visits = {{.kind = "light",
                                          .levels = "eager",
                                          .fresh = true,
                                          .trains = true,
                                          .count = 2,
                                          .flops = 1e9,
                                          .capture_s = 0.5,
                                          .rest_s = 1.5}}},
                  .forecast = "right",
                  .predicted_s = 5.5,
                  .wall_s = 6.5,
                  .resumed = 1};
  ASSERT_TRUE(store->begin_run(one));
  EXPECT_EQ(store->list_runs(0)->front().settings, one.settings);
}

TEST_F(StoreTest, gives_back_what_a_run_knew_of_a_case_with_every_fact_and_with_none) {
  auto store = Store::open(folder_ / "a.db");
  ASSERT_TRUE(store->begin_run(run("run-1", "2026-11-21T06:00:00Z")));
  auto full = a_case(), empty = a_case();
  full.limits = {.gflops = 1.5,
                 .gbytes_per_s = 2.5,
                 .instruction_set = "avx2",
                 .quiet = true,
                 .seen_gflops = 1.25,
                 .seen_gbytes_per_s = 2.25};
  full.trust = {
      .process_sigma = 0.015,
      .process_sigma_source = "calibrated",
      .minimum_effect = 0.01,
      .together = false,
      .learned = {{{"eager", "static"}, {.variance = 0.5, .within = 0.25, .df = 9, .restarts = 12, .runs = 3}}},
      .load = {.begin = 0.5, .others = 0.25, .steal = 0.125, .restarts = {0.25, 0.5}, .other_run = 77},
      .restarts = 4,
      .reference_wanted = "compile",
      .data = "digits",
      .test_images = 360,
      .commonest_class = 0.125};
  empty.key = "def";
  for (const auto& one : {full, empty}) ASSERT_TRUE(store->add_case("run-1", one));
  const auto read = store->load_run("run-1");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->cases, (std::vector{full, empty}));
}

TEST_F(StoreTest, cases_of_a_run_keep_their_places_when_one_is_written_again) {
  auto store = Store::open(folder_ / "a.db");
  ASSERT_TRUE(store->begin_run(run("run-1", "2026-11-21T06:00:00Z")));
  auto first = a_case(), second = a_case();
  second.key = "def";
  second.question.batch = 2;
  for (const auto& one : {first, second, first}) ASSERT_TRUE(store->add_case("run-1", one));
  const auto cases = store->load_run("run-1")->cases;
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].key, "abc");
  EXPECT_EQ(cases[1].question, second.question);
}

TEST_F(StoreTest, finds_a_run_by_the_beginning_of_its_id_and_refuses_an_ambiguous_one) {
  auto store = Store::open(folder_ / "a.db");
  for (const auto& one : {run("20261121-1", "2026-11-21T06:00:00Z"), run("20261122-2", "2026-11-22T06:00:00Z")}) {
    ASSERT_TRUE(store->begin_run(one));
    ASSERT_TRUE(store->add_case(one.run_id, a_case()));
  }
  EXPECT_EQ(store->load_run("20261122")->run_id, "20261122-2");
  EXPECT_EQ(store->load_run("last")->run_id, "20261122-2");
  const auto ambiguous = store->load_run("2026112");
  ASSERT_FALSE(ambiguous);
  EXPECT_NE(ambiguous.error().what.find("more than one"), std::string::npos);
  EXPECT_EQ(ambiguous.error().exit, Exit::usage);
}

TEST_F(StoreTest, keeps_a_log_that_is_not_utf8_and_a_row_that_changes) {
  auto store = Store::open(folder_ / "a.db");
  const auto id = fill(*store, "run-1");
  Row row;
  row.row_id = id;
  row.level = "eager";
  row.state = State::crashed;
  row.proof = Proof{.first_difference = "bad byte: \xff"};
  ASSERT_TRUE(store->update_row(row));
  const auto run = store->load_run("run-1");
  EXPECT_EQ(run->cases[0].rows[0].state, State::crashed);
  EXPECT_TRUE(run->cases[0].rows[0].proof);
}

TEST_F(StoreTest, gives_the_newest_calibration_of_this_machine_and_these_threads) {
  auto store = Store::open(folder_ / "a.db");
  EXPECT_FALSE(store->find_effect("machine", 2)->has_value());
  ASSERT_TRUE(store->save_effect({"machine", "2026-01-01T00:00:00Z", 2, 0.01, 0.008, 0.02, {}}));
  ASSERT_TRUE(store->save_effect({"machine", "2026-02-01T00:00:00Z", 2, 0.02, 0.01, 0.03, {}}));
  ASSERT_TRUE(store->save_effect({"machine", "2026-03-01T00:00:00Z", 1, 0.005, 0.004, 0.006, {}}));
  EXPECT_DOUBLE_EQ((*store->find_effect("machine", 2))->sigma, 0.02);
  EXPECT_FALSE(store->find_effect("other", 2)->has_value());
}

TEST_F(StoreTest, keeps_the_best_peak_that_was_ever_seen_and_whether_it_was_seen_undisturbed) {
  auto store = Store::open(folder_ / "a.db");
  EXPECT_FALSE(store->save_peak({"machine", "avx512f", 1, 17, 30, false})->quiet);
  const auto quiet = store->save_peak({"machine", "avx512f", 1, 118, 12, true});
  EXPECT_DOUBLE_EQ(quiet->gflops, 118);
  EXPECT_DOUBLE_EQ(quiet->gbytes_per_s, 30);
  EXPECT_TRUE(quiet->quiet);
  const auto busy = store->save_peak({"machine", "avx512f", 1, 17, 3, false});
  EXPECT_DOUBLE_EQ(busy->gflops, 118) << "a peak that is measured beside others takes nothing away";
  EXPECT_TRUE(busy->quiet);
  EXPECT_DOUBLE_EQ(store->save_peak({"machine", "avx512f", 2, 40, 3, false})->gflops, 40) << "other threads";
  EXPECT_DOUBLE_EQ(store->save_peak({"machine", "avx2", 1, 40, 3, false})->gflops, 40) << "other instructions";
}

TEST_F(StoreTest, keeps_what_others_had_of_the_machine_with_the_blocks_of_those_rounds_alone) {
  auto store = Store::open(folder_ / "a.db");
  const auto row = fill(*store, "run-1");
  Block later;
  later.restart = 1;
  later.round = 9;
  later.wall_ns = later.latency_ns = {1};
  ASSERT_TRUE(store->add_block(row, later));
  ASSERT_TRUE(store->set_taken(row, 1, 0, 4, 0.25));
  const auto blocks = store->load_run("run-1")->cases[0].rows[0].blocks;
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_DOUBLE_EQ(blocks[0].taken.value(), 0.25);
  EXPECT_FALSE(blocks[1].taken);
}

TEST_F(StoreTest, never_calls_a_run_without_a_case_the_last_one) {
  auto store = Store::open(folder_ / "a.db");
  EXPECT_EQ(store->load_run("last").error().exit, Exit::usage);
  fill(*store, "run-1");
  ASSERT_TRUE(store->begin_run(run("run-2", "2027-01-01T00:00:00Z")));
  EXPECT_EQ(store->load_run("last")->run_id, "run-1");
  ASSERT_TRUE(store->drop_empty_run("run-1"));
  ASSERT_TRUE(store->drop_empty_run("run-2"));
  const auto left = store->list_runs(0);
  ASSERT_EQ(left->size(), 1U) << "only the one without a case goes";
  EXPECT_EQ(left->front().run_id, "run-1");
}

// What a store in this file says of its newest run, or why not.
Result<store::Run> newest_of(const fs::path& path) {
  const auto store = Store::open_existing(path);
  return store ? store->load_run("last") : Result<store::Run>(tl::unexpected(store.error()));
}

TEST_F(StoreTest, never_gives_another_number_where_one_bit_is_another_wherever_it_is) {
  {
    auto store = Store::open(folder_ / "a.db");
    fill(*store, "run-1");
    auto ended = run("run-1", "");
    ended.finished = "2026-11-21T06:01:00Z";
    ASSERT_TRUE(store->finish_run(ended));
  }
  std::ifstream in(folder_ / "a.db", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(whole.size() % 4096, 0U);
  const auto right = newest_of(folder_ / "a.db");
  ASSERT_TRUE(right) << right.error().what;
  int refused = 0;
  for (std::size_t at = 100; at < whole.size(); at += 37) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(folder_ / "b.db", std::ios::binary) << damaged;
    if (const auto run = newest_of(folder_ / "b.db")) {
      EXPECT_EQ(*run, *right) << at;  // a page or a byte that this run does not need
      continue;
    }
    ++refused;
  }
  EXPECT_GT(refused, 20);
}

TEST_F(StoreTest, that_is_cut_off_within_its_last_page_is_damaged_in_a_run_without_an_end_too) {
  {
    auto store = Store::open(folder_ / "a.db");
    fill(*store, "run-1");
  }
  fs::resize_file(folder_ / "a.db", fs::file_size(folder_ / "a.db") - 1000);
  const auto run = newest_of(folder_ / "a.db");
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().what.find("cut off"), std::string::npos) << run.error().what;
  EXPECT_EQ(run.error().exit, Exit::failed);
}

TEST_F(StoreTest, stays_good_when_another_program_takes_up_what_a_killed_one_left) {
  const auto child = fork();
  if (child == 0) {  // ends without closing the store, which leaves its log
    auto store = Store::open(folder_ / "a.db");
    fill(*store, "run-1");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(folder_ / "a.db-wal"));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "a.db").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "SELECT count(*) FROM blocks; ANALYZE; VACUUM;", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_FALSE(fs::exists(folder_ / "a.db-wal"));
  const auto run = newest_of(folder_ / "a.db");
  ASSERT_TRUE(run) << run.error().what;
  EXPECT_EQ(run->cases.at(0).rows.at(0).blocks.at(0).wall_ns, (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_TRUE(Store::open(folder_ / "a.db"));
}

TEST_F(StoreTest, holds_no_value_of_another_type_whoever_writes_it) {
  ASSERT_TRUE(Store::open(folder_ / "a.db"));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "a.db").c_str(), &other), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(other, "INSERT INTO peaks VALUES('m','x','avx2',1,1,1)", nullptr, nullptr, nullptr),
            SQLITE_CONSTRAINT);
  EXPECT_STREQ(sqlite3_errmsg(other), "cannot store TEXT value in INTEGER column peaks.threads");
  sqlite3_close(other);
}

TEST_F(StoreTest, keeps_the_environment_of_a_row_which_its_name_then_shows) {
  auto store = Store::open(folder_ / "a.db");
  ASSERT_TRUE(store) << store.error().what;
  fill(*store, "run-1");
  Row row;
  row.level = "compile";
  row.variant = "freezing";
  row.environment = "new";
  ASSERT_TRUE(store->add_row("run-1", "abc", row));
  const auto run = store->load_run("run-1");
  ASSERT_TRUE(run) << run.error().what;
  ASSERT_EQ(run->cases.at(0).rows.size(), 2u);
  EXPECT_EQ(run->cases[0].rows[0].name(), "eager");
  EXPECT_EQ(run->cases[0].rows[1].name(), "compile@freezing[new]");
  EXPECT_EQ(run->cases[0].rows[1].level_and_variant(), "compile@freezing");
}

TEST_F(StoreTest, of_an_older_strata_is_refused_by_its_name_and_stays_as_it_is) {
  const auto path = folder_ / "a.db";
  sqlite3* old = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &old), SQLITE_OK);
  const char* filled = "PRAGMA user_version=8; CREATE TABLE runs(run_id TEXT); CREATE TABLE level_rows(x)";
  ASSERT_EQ(sqlite3_exec(old, filled, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(old);
  sqlite3_close(old);
  for (const auto& error : {Store::open(path).error(), Store::open_existing(path).error()}) {
    EXPECT_NE(error.what.find("by a strata before 0.1"), std::string::npos) << error.what;
    EXPECT_EQ(error.exit, Exit::environment);
  }
}

TEST_F(StoreTest, that_is_a_pipe_or_has_one_beside_it_is_refused_at_once) {
  ASSERT_EQ(mkfifo((folder_ / "a.db").c_str(), 0600), 0);
  ASSERT_TRUE(Store::open(folder_ / "b.db"));
  ASSERT_EQ(mkfifo((folder_ / "b.db-wal").c_str(), 0600), 0);
  for (const char* name : {"a.db", "b.db"})
    for (const auto& error : {Store::open(folder_ / name).error(), Store::open_existing(folder_ / name).error()}) {
      EXPECT_NE(error.what.find("no regular file"), std::string::npos) << error.what;
      EXPECT_EQ(error.exit, Exit::usage);
    }
}

TEST_F(StoreTest, that_another_program_holds_is_waited_for_with_a_sentence) {
  auto store = Store::open(folder_ / "a.db");
  static std::string message;
  say_through([](std::string_view text) { message += text; });
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "a.db").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  });
  EXPECT_TRUE(store->begin_run(run("run-1", "2026-11-21T06:00:00Z")));
  later.join();
  sqlite3_close(other);
  say_through(nullptr);
  EXPECT_NE(message.find("another program holds the store"), std::string::npos);
}

TEST(StoredRun, without_an_end_is_running_or_interrupted) {
  store::Run run;
  EXPECT_EQ(state_of(run), RunState::unknown) << "of a store that does not name processes";
  run.process = this_process();
  ASSERT_FALSE(run.process.empty());
  EXPECT_EQ(state_of(run), RunState::interrupted) << "this process asks for its own run when it could not end it";
  run.goes_on = true;
  EXPECT_EQ(state_of(run), RunState::running) << "or when it asks for what there is so far";
  run.goes_on = false;
  const auto child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  std::string field;
  for (int i = 0; i < 22; ++i) stat >> field;  // the name has no spaces here
  const auto system = run.process.substr(0, run.process.rfind(' ', run.process.rfind(' ') - 1));
  run.process = system + " " + std::to_string(child) + " " + field;
  EXPECT_EQ(state_of(run), RunState::running);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(state_of(run), RunState::interrupted);
  run.process = "another-boot pid:[1] 1 1";
  EXPECT_EQ(state_of(run), RunState::unknown);
  run.finished = "2026-11-21T06:00:00Z";
  EXPECT_EQ(state_of(run), RunState::finished);
}

TEST_F(StoreTest, does_not_create_a_store_that_was_only_to_be_read) {
  const auto missing = Store::open_existing(folder_ / "none.db");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().exit, Exit::usage);
  EXPECT_FALSE(fs::exists(folder_ / "none.db"));
}

}  // namespace
}  // namespace strata::store
