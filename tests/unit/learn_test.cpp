// SPDX-License-Identifier: Apache-2.0
// What a run learns from those before it in the store, and from which it does not.
#include "analysis/learn.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "analysis/result_json.hpp"
#include "report/first_screen.hpp"
#include "report/result.hpp"

namespace strata::analysis {
namespace {
namespace fs = std::filesystem;

constexpr double kOffsets[] = {0.02, -0.02, 0.01, -0.01};  // of static's log time, by restart

class LearnTest : public ::testing::Test {
 protected:
  LearnTest() : folder_(fs::temp_directory_path() / ("strata_learn_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    store_ = std::make_unique<store::Store>(*store::Store::open(folder_ / "a.db"));
  }
  ~LearnTest() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  static store::Run a_run(const std::string& id) {
    store::Run run;
    run.run_id = id;
    run.started = "2026-11-21T06:00:0" + id.substr(id.size() - 1) + "Z";
    run.version = "0.1.0";
    run.machine = {{"cpu", "one"}, {"cores", 2}, {"physical_cores", 2}, {"logical_processors", 2}};
    run.environments = {{{"python_version", "3.11.2"}, {"torch", "2.15.0"}}};
    return run;
  }
  static store::Case a_case() {
    store::Case one;
    one.question = {.model = "m", .threads = 1};
    one.id = one.question.id();
    one.key = key_of(one.question);
    one.network = "net";
    one.bundle = {{"model", {{"name", "m"}}}};
    one.trust.process_sigma = 0.015;
    one.trust.together = true;
    one.reference_level = "eager";
    return one;
  }

  // Blocks of five equal iterations; each restart slows the machine, which a ratio does not see.
  void add_blocks(std::int64_t row_id, double ms, bool parts, int instance = 0) {
    for (int restart = 0; restart < 4; ++restart)
      for (int round = 0; round < 6; ++round) {
        const double time = ms * (1 + 0.2 * restart) * std::exp(parts ? kOffsets[restart] : 0);
        store::Block block{.restart = restart, .round = round, .instance = instance, .runq_ns = 0};
        block.wall_ns.assign(5, std::llround(time * 1e6));
        block.latency_ns = block.wall_ns;
        ASSERT_TRUE(store_->add_block(row_id, block));
      }
  }
  std::int64_t add_row(const store::Run& run, const store::Case& one, const std::string& level) {
    store::Row row;
    row.level = level;
    row.state = State::measured;
    row.proof = store::Proof{.verdict = "equal"};
    const auto id = store_->add_row(run.run_id, one.key, row);
    EXPECT_TRUE(id);
    return id.value_or(0);
  }
  void fill(const store::Run& run, const store::Case& one) {
    ASSERT_TRUE(store_->begin_run(run));
    ASSERT_TRUE(store_->add_case(run.run_id, one));
    add_blocks(add_row(run, one, "eager"), 10, false);
    add_blocks(add_row(run, one, "static"), 5, true);
  }
  std::vector<store::LearnedPair> learned(const std::set<std::string>& levels = {"eager", "static"}) {
    const auto now = a_run("now-9");
    if (!store_->has_run(now.run_id).value_or(false)) {
      EXPECT_TRUE(store_->begin_run(now));
    }
    const auto all = learn(*store_, now.run_id, a_case(), levels);
    EXPECT_TRUE(all) << all.error().what;
    return all.value_or(std::vector<store::LearnedPair>());
  }

  fs::path folder_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(LearnTest, gives_the_scatter_of_each_pairs_ratio_over_the_restarts_of_earlier_runs) {
  EXPECT_TRUE(learned().empty());
  for (const auto* id : {"run-1", "run-2", "run-3"}) fill(a_run(id), a_case());
  const auto all = learned();
  ASSERT_EQ(all.size(), 1U);
  const store::Trust trust{.learned = all};
  const auto pair = learned_of(trust, "static", "eager");
  EXPECT_NEAR(pair.variance, 0.001 / 3, 1e-9) << "0.02, -0.02, 0.01, -0.01";
  EXPECT_EQ(pair.df, 9);
  EXPECT_EQ(pair.restarts, 12);
  EXPECT_EQ(pair.runs, 3);
  EXPECT_EQ(learned_of(trust, "eager", "static").runs, 3) << "in either order";
  EXPECT_FALSE(learned_of(trust, "eager", "eager").known());
  EXPECT_FALSE(learned_of(store::Trust(), "eager", "static").known());
  EXPECT_TRUE(learned({"eager"}).empty()) << "of levels that take part";
}

TEST_F(LearnTest, leaves_out_runs_of_something_else_and_those_that_were_disturbed) {
  auto run = a_run("run-1");
  run.version = "0.0.9";
  fill(run, a_case());
  run = a_run("run-2");
  run.environments[0]["torch"] = "2.14.0";
  fill(run, a_case());
  run = a_run("run-3");
  run.machine["cpu"] = "another";
  fill(run, a_case());
  run = a_run("run-4");
  run.settings.verb = "sweep";
  fill(run, a_case());
  auto one = a_case();
  one.network = "another";
  fill(a_run("run-5"), one);
  one = a_case();
  one.trust.load = {.begin = 0.02, .others = 0.4, .steal = 0};
  fill(a_run("run-6"), one);
  one = a_case();
  one.trust.together = false;
  fill(a_run("run-7"), one);
  EXPECT_TRUE(learned().empty());
  one = a_case();
  one.trust.load = {.begin = 0.02, .others = 0.04, .steal = 0};
  fill(a_run("run-8"), one);
  EXPECT_EQ(learned().size(), 1U);
}

TEST_F(LearnTest, gives_that_of_a_level_beside_itself_where_runs_had_two_of_each) {
  auto run = a_run("run-1");
  run.settings.aa = true;
  const auto one = a_case();
  ASSERT_TRUE(store_->begin_run(run));
  ASSERT_TRUE(store_->add_case(run.run_id, one));
  const auto row = add_row(run, one, "static");
  add_blocks(row, 5, false, 0);
  add_blocks(row, 5, true, 1);
  const auto twin = learned_of({.learned = learned()}, "static", "static");
  EXPECT_NEAR(twin.variance, 0.001 / 3, 1e-9);
  EXPECT_EQ(twin.restarts, 4);
}

TEST_F(LearnTest, is_kept_with_the_run_whose_report_no_later_run_changes) {
  for (const auto* id : {"run-1", "run-2"}) fill(a_run(id), a_case());
  auto one = a_case();
  one.trust.learned = learned();
  fill(a_run("run-3"), one);
  const auto shown = [&] {
    const auto result = report::result_of(store_->load_run("run-3").value());
    return std::pair(to_json(result.cases[0].rows[1])["ratio"],
                     report::first_screen(result, result.cases[0], report::glyphs(false)).trust);
  };
  const auto [ratio, words] = shown();
  EXPECT_EQ(ratio["rests_on"], "learned");
  EXPECT_EQ(ratio["learned"]["restarts"], 8);
  EXPECT_EQ(ratio["learned"]["runs"], 2);
  EXPECT_NEAR(ratio["learned"]["process_effect_percent"].get<double>(), 100 * std::sqrt(0.001 / 6), 1e-3);
  EXPECT_NE(words.find("process effect 1.29% (learned from 8 restarts in 2 earlier runs)"), std::string::npos) << words;
  fill(a_run("run-4"), a_case());
  EXPECT_EQ(shown(), std::pair(ratio, words));
}

}  // namespace
}  // namespace strata::analysis
