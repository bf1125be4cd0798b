// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

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
    one.settings = {{"preset", "quick"}};
    return one;
  }
  // A run with one case, one row and one block.
  std::int64_t fill(Store& store, const std::string& id) {
    EXPECT_TRUE(store.begin_run(run(id, "2026-11-21T06:00:00Z")));
    Case one;
    one.hash = "abc";
    one.id = "m/infer/b1";
    one.canonical = {{"model", "m"}, {"batch", 1}, {"threads", 2}};
    one.reference_level = "eager";
    EXPECT_TRUE(store.add_case(id, one));
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
  EXPECT_EQ(run->settings["preset"], "quick");
}

TEST_F(StoreTest, finds_a_run_by_the_beginning_of_its_id_and_refuses_an_ambiguous_one) {
  auto store = Store::open(folder_ / "a.db");
  ASSERT_TRUE(store->begin_run(run("20261121-1", "2026-11-21T06:00:00Z")));
  ASSERT_TRUE(store->begin_run(run("20261122-2", "2026-11-22T06:00:00Z")));
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
  row.state = "crashed";
  row.proof = {{"detail", "bad byte: \xff"}};
  ASSERT_TRUE(store->update_row(row));
  const auto run = store->load_run("run-1");
  EXPECT_EQ(run->cases[0].rows[0].state, "crashed");
  EXPECT_TRUE(run->cases[0].rows[0].proof.is_object());
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

TEST_F(StoreTest, does_not_create_a_store_that_was_only_to_be_read) {
  const auto missing = Store::open_existing(folder_ / "none.db");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().exit, Exit::usage);
  EXPECT_FALSE(fs::exists(folder_ / "none.db"));
}

}  // namespace
}  // namespace strata::store
