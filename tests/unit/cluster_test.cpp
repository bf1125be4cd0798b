// SPDX-License-Identifier: Apache-2.0
// Shards of a whole, what Slurm's commands print, and several runs as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "cluster/join.hpp"
#include "cluster/progress.hpp"
#include "cluster/shard.hpp"
#include "cluster/slurm.hpp"
#include "engine/shard.hpp"
#include "report/run_documents.hpp"
#include "report/shards.hpp"

namespace strata::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Shards, of_a_list_have_every_entry_once) {
  const std::vector<int> all{10, 11, 12, 13, 14, 15, 16};
  EXPECT_THAT(part_of(all, Shard{1, 3}), ElementsAre(10, 13, 16));
  EXPECT_THAT(part_of(all, Shard{3, 3}), ElementsAre(12, 15));
  EXPECT_THAT(part_of(all, Shard{1, 1}), all);
  std::map<int, int> seen;
  for (int number = 1; number <= 5; ++number)
    for (const int one : part_of(all, Shard{number, 5})) ++seen[one];
  EXPECT_EQ(seen.size(), all.size());
  for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
}

TEST(Shards, are_written_as_two_numbers) {
  EXPECT_EQ(*read_shard("2/8"), (Shard{2, 8}));
  EXPECT_EQ(read_shard("2/8")->text(), "2/8");
  for (const auto& [text, words] : {std::pair{"0/8", "allowed: 1/8 to 8/8"},
                                    {"9/8", "allowed: 1/8 to 8/8"},
                                    {"2", "as 2/8"},
                                    {"2/8/1", "as 2/8"},
                                    {"a/8", "as 2/8"},
                                    {"1/", "as 2/8"},
                                    {"1/0", "1 to 10000 shards"},
                                    {"1/10001", "1 to 10000 shards"}}) {
    const auto shard = read_shard(text);
    ASSERT_FALSE(shard) << text;
    EXPECT_THAT(shard.error().what, HasSubstr(words));
    EXPECT_EQ(shard.error().exit, Exit::usage);
  }
}

TEST(Shards, of_one_whole_know_each_other_wherever_its_files_lie) {
  const auto whole = id_of_whole({{"model", "/home/a/net.py:build"}, {"batch", {1, 2}}});
  EXPECT_EQ(whole, id_of_whole({{"batch", {1, 2}}, {"model", "/scratch/net.py:build"}}));
  EXPECT_NE(whole, id_of_whole({{"model", "/home/a/other.py:build"}, {"batch", {1, 2}}}));
  EXPECT_NE(whole, id_of_whole({{"model", "/home/a/net.py:build"}, {"batch", {1, 2, 4}}}));
  const engine::ShardedWork sweep{"sweep", 4, {{"a", 1}}}, training{"train", 4, {{"a", 1}}};
  EXPECT_EQ(sweep.id(7, 2), sweep.id(7, 4)) << "points fit together however they were split";
  EXPECT_NE(training.id(7, 2), training.id(7, 4)) << "repeats would be there twice";
  EXPECT_NE(sweep.id(7, 2), sweep.id(8, 2));
  EXPECT_NE(sweep.id(7, 2), sweep.id(std::nullopt, 2));
}

TEST(Slurm, states_of_the_queue_are_told_apart) {
  const auto tasks = tasks_from_squeue(
      "123|1|RUNNING|n1|None\n"
      "123|2|PENDING||Resources\n"
      "123|3|COMPLETED|n3|None\n"
      "123|4|TIMEOUT|n1|TimeLimit\n"
      "123|5|NODE_FAIL|n2|NodeDown\n"
      "123|6|PREEMPTED|n2|None\n"
      "123|7|FAILED|n2|NonZeroExitCode\n"
      "123|8|CANCELLED|n2|None\n"
      "123|9|OUT_OF_MEMORY|n2|OutOfMemory\n"
      "124|N/A|RUNNING|n2|None\n"
      "slurm says hello\n");
  ASSERT_EQ(tasks.size(), 9U) << "what is no task of an array is passed over";
  EXPECT_EQ(tasks[0], (Task{"123", 1, TaskState::running, "n1", ""}));
  EXPECT_EQ(tasks[1], (Task{"123", 2, TaskState::pending, "", "Resources"}));
  std::vector<TaskState> states;
  for (const auto& task : tasks) states.push_back(task.state);
  EXPECT_THAT(states, ElementsAre(TaskState::running, TaskState::pending, TaskState::finished, TaskState::timed_out,
                                  TaskState::node_failure, TaskState::preempted, TaskState::failed,
                                  TaskState::cancelled, TaskState::out_of_memory));
  EXPECT_THAT(tasks_from_squeue(""), IsEmpty());
}

TEST(Slurm, the_accounting_names_pending_tasks_together) {
  const auto tasks = tasks_from_sacct(
      "123_1|COMPLETED|n1\n"
      "123_1.batch|COMPLETED|n1\n"
      "123_2|CANCELLED by 1000|n2\n"
      "123_[3-4,7%2]|PENDING|None assigned\n"
      "125|RUNNING|n2\n");
  EXPECT_THAT(tasks,
              ElementsAre(Task{"123", 1, TaskState::finished, "n1", ""}, Task{"123", 2, TaskState::cancelled, "n2", ""},
                          Task{"123", 3, TaskState::pending, "", ""}, Task{"123", 4, TaskState::pending, "", ""},
                          Task{"123", 7, TaskState::pending, "", ""}));
}

TEST(Slurm, numbers_are_written_as_ranges) {
  EXPECT_EQ(number_list({1, 2, 3, 4, 7}), "1-4,7");
  EXPECT_EQ(number_list({2}), "2");
  EXPECT_EQ(number_list({1, 3, 4}), "1,3-4");
}

TEST(TaskEnds, are_those_of_the_queue_where_it_knows_them) {
  const Task running{"1", 1, TaskState::running, "n1", ""}, waiting{"1", 1, TaskState::pending, "", "Priority"};
  EXPECT_EQ(judge_task(&running, "0\n", "").state, TaskState::running) << "the end is of an earlier try";
  EXPECT_EQ(judge_task(&waiting, "", "").why, "Priority");
  const Task failed{"1", 1, TaskState::failed, "n1", "NonZeroExitCode"};
  const auto end = judge_task(&failed, "2\n", "measuring\nerror: --batch x: no number\n  try: ./strata sweep --help\n");
  EXPECT_EQ(end.state, TaskState::failed);
  EXPECT_EQ(end.why, "exit code 2: --batch x: no number");
}

TEST(TaskEnds, are_known_without_an_accounting_by_what_slurm_wrote_into_the_log) {
  const std::string begin = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-25T10:00:00 ";
  EXPECT_EQ(judge_task(nullptr, "143\n", begin + "DUE TO TIME LIMIT ***\n").state, TaskState::timed_out);
  EXPECT_EQ(judge_task(nullptr, "", begin + "DUE TO PREEMPTION ***\n").state, TaskState::preempted);
  EXPECT_EQ(judge_task(nullptr, "", begin + "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n").state,
            TaskState::node_failure);
  EXPECT_EQ(judge_task(nullptr, "", begin + "DUE TO PREEMPTION ***\n" + begin + "DUE TO TIME LIMIT ***\n").state,
            TaskState::timed_out)
      << "the last try counts";
  EXPECT_EQ(judge_task(nullptr, "1\n", begin + "DUE TO PREEMPTION ***\n=== shard 1 on n2\nerror: no space\n").why,
            "exit code 1: no space");
  EXPECT_EQ(judge_task(nullptr, "143\n", begin + "***\n").state, TaskState::cancelled);
  EXPECT_EQ(judge_task(nullptr, "0\n", "").state, TaskState::finished);
  EXPECT_EQ(judge_task(nullptr, "1\n", "").state, TaskState::failed);
  const auto lost = judge_task(nullptr, "", "measuring\n");
  EXPECT_EQ(lost.state, TaskState::unknown);
  EXPECT_THAT(lost.why, HasSubstr("its node may have gone"));
}

TEST(ShardedWork, is_one_wherever_its_files_lie_and_however_their_paths_are_spelled) {
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(::testing::TempDir() + "/whole_a");
  std::filesystem::create_directories(::testing::TempDir() + "/whole_b");
  const auto id_in = [&](const char* folder, auto change) {
    std::filesystem::current_path(::testing::TempDir() + "/" + folder);
    std::ofstream("net.py") << "\n";
    requests::SweepRequest request;
    request.options.batches = {1, 2};
    change(request);
    const auto whole = engine::sharded_work(request);
    std::filesystem::current_path(before);
    return whole ? whole->id(1, 2) : whole.error().what;
  };
  const auto spelled = [](const std::string& model) {
    return [model](auto& request) { request.options.model = model; };
  };
  EXPECT_EQ(id_in("whole_a", spelled("net.py:build")), id_in("whole_b", spelled("./net.py:build")));
  EXPECT_EQ(id_in("whole_a", spelled("net.py:build")), id_in("whole_b", spelled("../whole_a/net.py:build")));
  EXPECT_NE(id_in("whole_a", spelled("net.py:build")), id_in("whole_a", spelled("net.py:other")));
  const auto named = [](const char* name) {
    return [name](auto& request) {
      request.options.model = name;
      request.options.environments = {{"old", std::filesystem::current_path().string() + "/python"}};
      request.options.memory_limit_gib = 2;
    };
  };
  EXPECT_EQ(id_in("whole_a", named("resnet50")), id_in("whole_b", named("resnet50")));
  EXPECT_NE(id_in("whole_a", named("resnet50")), id_in("whole_a", named("resnet18")));
}

store::Case a_point(const std::string& name, bool finished = true, const std::string& network = "n") {
  store::Case one;
  one.key = one.id = name;
  one.question = {.model = "m", .batch = name == "b1" ? 1 : name == "b2" ? 2 : 4};
  one.network = network;
  one.finished = finished;
  return one;
}

store::Run a_shard(const std::string& shard, const std::string& started, std::vector<store::Case> cases) {
  store::Run run;
  run.run_id = "run-" + started;
  run.started = started;
  run.finished = started + "z";
  run.settings = {.verb = "sweep",
                  .cases = cases.size(),
                  .shard = {.shard = shard, .whole = "w", .node = "node-" + started, .parts = 3}};
  run.machine = {{"cpu", "A"}};
  run.cases = std::move(cases);
  return run;
}

std::vector<std::string> ids_of(const store::Run& run) {
  std::vector<std::string> ids;
  for (const auto& one : run.cases) ids.push_back(one.id);
  return ids;
}

std::string words_of_shards(const store::Run& run) {
  std::string words;
  const auto section = report::shards_section(run);
  if (!section) return "none";
  for (const auto& item : section->items)
    if (const auto* text = std::get_if<document::Text>(&item)) words += text->paragraph + "\n";
  return words;
}

TEST(JoinedShards, have_every_point_once_with_its_machine) {
  const auto joined =
      join_shards({a_shard("2/2", "1", {a_point("b2")}), a_shard("1/2", "2", {a_point("b1"), a_point("b4")})});
  EXPECT_THAT(ids_of(joined), ElementsAre("b1", "b4", "b2"));
  EXPECT_EQ(joined.settings.cases, 3);
  EXPECT_EQ(joined.joined->node_of.at("b2"), "node-1");
  EXPECT_EQ(joined.joined->shards.size(), 2U);
  EXPECT_THAT(words_of_shards(joined), IsEmpty());
  const auto document = report::sweep_document(joined);
  const auto& points =
      std::get<document::Table>(std::find_if(document.sections.begin(), document.sections.end(), [](const auto& one) {
                                  return one.id == "points";
                                })->items.front());
  EXPECT_EQ(points.columns[1].id, "machine");
  EXPECT_FALSE(document.sections.empty());
}

TEST(JoinedShards, of_several_machines_show_the_best_that_each_was_seen_to_do) {
  const auto point = [](const char* name, double gflops) {
    auto one = a_point(name);
    one.limits = {.gflops = gflops, .gbytes_per_s = 10, .instruction_set = "avx2", .quiet = true};
    return one;
  };
  const auto joined =
      join_shards({a_shard("1/2", "1", {point("b1", 50), point("b4", 60)}), a_shard("2/2", "2", {point("b2", 0)})});
  const auto section = report::shards_section(joined);
  ASSERT_TRUE(section);
  const auto& peaks = std::get<document::Table>(section->items.back());
  ASSERT_EQ(peaks.id, "peaks");
  ASSERT_EQ(peaks.rows.size(), 2U);
  EXPECT_EQ(std::get<std::string>(peaks.rows[0][0]), "node-1");
  EXPECT_EQ(std::get<document::Number>(peaks.rows[0][3]).value, 60);
  EXPECT_EQ(std::get<document::Number>(peaks.rows[1][4]).value, 10);
  EXPECT_THAT(std::get<document::Absent>(peaks.rows[1][3]).reason, HasSubstr("not measured"));
  const auto alone = join_shards({a_shard("1/1", "1", {point("b1", 50)})});
  EXPECT_EQ(std::get<document::Table>(report::shards_section(alone)->items.back()).id, "shards");
}

TEST(JoinedShards, take_the_newer_whole_one_of_a_point_that_was_measured_twice_and_say_so) {
  const auto half = join_shards({a_shard("1/2", "1", {a_point("b1"), a_point("b4")}),
                                 a_shard("1/2", "2", {a_point("b1"), a_point("b4", false)})});
  EXPECT_THAT(ids_of(half), ElementsAre("b1", "b4"));
  const auto& node_of = half.joined->node_of;
  EXPECT_EQ(node_of.at("b1"), "node-2");
  EXPECT_EQ(node_of.at("b4"), "node-1") << "the newer one is not whole";
  EXPECT_THAT(words_of_shards(half),
              HasSubstr("2 points were measured more than once; the newer whole one is shown: b1, b4"));
  EXPECT_THAT(words_of_shards(half), HasSubstr("no run of shard 2/2"));
}

TEST(JoinedShards, say_that_a_point_is_of_another_network) {
  const auto joined = join_shards(
      {a_shard("1/1", "1", {a_point("b1", true, "old")}), a_shard("1/1", "2", {a_point("b1", true, "new")})});
  ASSERT_EQ(joined.cases.size(), 1U);
  EXPECT_EQ(joined.cases.front().network, "new");
  EXPECT_THAT(words_of_shards(joined), HasSubstr("the network was another one when 1 point was measured again"));
}

TEST(JoinedShards, name_the_kinds_of_machines_where_there_are_several) {
  auto other = a_shard("2/2", "2", {a_point("b2")});
  other.machine = {{"cpu", "B"}};
  const auto joined = join_shards({a_shard("1/2", "1", {a_point("b1")}), std::move(other)});
  EXPECT_THAT(words_of_shards(joined), HasSubstr("machines of several kinds"));
  EXPECT_EQ(words_of_shards(a_shard("1/1", "1", {})), "none");
}

store::Run a_training(const std::string& shard, const std::string& started, std::vector<store::Row> rows) {
  auto one = a_point("t");
  one.rows = std::move(rows);
  auto run = a_shard(shard, started, {one});
  run.settings.verb = "train";
  return run;
}

store::Row a_row(std::int64_t row_id, const std::string& level, State state = State::measured) {
  store::Row row;
  row.row_id = row_id;
  row.level = level;
  row.state = state;
  row.proof = store::Proof{.in_the_middle = store::ProofWhileTraining{.steps_and_scores = 3}};
  return row;
}

TEST(JoinedTrainings, have_a_row_a_level_with_the_repeats_of_all_shards) {
  const auto joined = join_shards({a_training("1/2", "1", {a_row(1, "eager"), a_row(2, "static")}),
                                   a_training("2/2", "2", {a_row(7, "eager"), a_row(8, "static")})});
  ASSERT_EQ(joined.cases.size(), 1U);
  const auto& rows = joined.cases.front().rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].info.rows_of_shards, ElementsAre(7));
  EXPECT_THAT(rows[1].info.rows_of_shards, ElementsAre(8));
  EXPECT_EQ(rows[0].proof->in_the_middle->steps_and_scores, 6);
}

TEST(JoinedTrainings, have_no_number_of_a_level_that_did_other_work_in_one_shard) {
  auto unequal = a_row(8, "static", State::unequal);
  unequal.reason = "step 7";
  const auto joined = join_shards({a_training("1/2", "1", {a_row(1, "eager"), a_row(2, "static")}),
                                   a_training("2/2", "2", {a_row(7, "eager"), unequal})});
  const auto& row = joined.cases.front().rows[1];
  EXPECT_EQ(row.state, State::unequal);
  EXPECT_EQ(row.reason, "shard 2/2: step 7");
}

TEST(JoinedTrainings, count_a_shard_that_was_trained_twice_once) {
  const auto joined =
      join_shards({a_training("1/1", "1", {a_row(1, "eager")}), a_training("1/1", "2", {a_row(7, "eager")})});
  EXPECT_EQ(joined.cases.front().rows.front().row_id, 7);
  EXPECT_THAT(joined.cases.front().rows.front().info.rows_of_shards, IsEmpty());
  EXPECT_THAT(words_of_shards(joined),
              HasSubstr("shard 1/1 was trained more than once; run-2 is shown, and run-1 is not"));
}

}  // namespace
}  // namespace strata::cluster
