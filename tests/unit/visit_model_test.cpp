// SPDX-License-Identifier: Apache-2.0
// What a visit of a point of a sweep is foreseen to take, and how much work a point is before it is captured.
#include "plan/visit_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/work_model.hpp"

namespace strata::plan {
namespace {

using Json = nlohmann::json;

Visit visit(double flops, VisitKind kind = VisitKind::light, const char* levels = "eager,static") {
  return {.kind = kind, .fresh = kind != VisitKind::later, .levels = levels, .count = 2, .flops = flops};
}

// A machine of its own: captures of 4 s and 8 s a TFLOP, all else 2 s and 20 s a TFLOP.
MeasuredVisit seen(const Visit& visit) {
  return {.visit = visit, .capture_s = 4 + 8e-12 * visit.flops, .rest_s = 2 + 20e-12 * visit.flops};
}

TEST(VisitModel, without_a_visit_takes_longer_for_more_work_more_levels_and_more_proof) {
  const VisitModel model(1e11);
  EXPECT_GT(model.beside_s(visit(1e12)), 2 * model.beside_s(visit(1e9)));
  auto more = visit(1e11);
  more.count = 4;
  EXPECT_DOUBLE_EQ(model.rest_s(more), 2 * model.rest_s(visit(1e11)));
  EXPECT_GT(model.beside_s(visit(1e11, VisitKind::whole)), model.beside_s(visit(1e11, VisitKind::light)));
  EXPECT_GT(model.beside_s(visit(1e11, VisitKind::light)), model.beside_s(visit(1e11, VisitKind::later)));
  auto trains = visit(1e12);
  trains.trains = true;
  EXPECT_GT(model.rest_s(trains), 2 * model.rest_s(visit(1e12)));
}

TEST(VisitModel, of_visits_of_a_kind_with_different_work_has_their_line) {
  VisitModel model(1e11);
  for (const double flops : {1e9, 1e11, 4e11}) model.add(seen(visit(flops)));
  EXPECT_NEAR(model.capture_s(visit(1e12)), 12, 1e-6);
  EXPECT_NEAR(model.rest_s(visit(1e12)), 22, 1e-6);
  EXPECT_NEAR(model.beside_s(visit(0)), 6, 1e-6);
}

TEST(VisitModel, of_one_visit_is_as_many_times_the_guess_as_that_took) {
  const VisitModel guess(1e11);
  VisitModel model(1e11);
  const auto first = visit(1e11);
  model.add({.visit = first, .capture_s = 3 * guess.capture_s(first), .rest_s = 0.5 * guess.rest_s(first)});
  EXPECT_NEAR(model.capture_s(visit(1e12)), 3 * guess.capture_s(visit(1e12)), 1e-9);
  EXPECT_NEAR(model.rest_s(visit(1e12)), 0.5 * guess.rest_s(visit(1e12)), 1e-9);
  EXPECT_NEAR(model.rest_s(visit(1e12, VisitKind::later)), 0.5 * guess.rest_s(visit(1e12, VisitKind::later)), 1e-9)
      << "of another kind nothing better is known";
}

TEST(VisitModel, of_visits_of_nearly_the_same_work_has_no_line) {
  VisitModel model(1e11);
  model.add({.visit = visit(1.00e11), .capture_s = 1, .rest_s = 10});
  model.add({.visit = visit(1.01e11), .capture_s = 1, .rest_s = 11});  // 100 s a TFLOP, by chance
  EXPECT_LT(model.rest_s(visit(3e11)), 29);
  EXPECT_GT(model.rest_s(visit(3e11)), 20);
}

TEST(VisitModel, other_levels_say_nothing_of_the_line_and_all_of_a_capture) {
  VisitModel model(1e11);
  for (const double flops : {1e9, 1e11, 4e11}) model.add(seen(visit(flops)));
  EXPECT_NEAR(model.capture_s(visit(1e12, VisitKind::light, "eager,compile")), 12, 1e-6);
  EXPECT_GT(std::abs(model.rest_s(visit(1e12, VisitKind::light, "eager,compile")) - 22), 0.01);
}

TEST(VisitModel, never_falls_with_work_nor_below_nothing) {
  VisitModel model(1e11);
  for (const double flops : {1e9, 1e11, 4e11})
    model.add({.visit = visit(flops), .capture_s = 1, .rest_s = 10 - 2e-11 * flops});  // by chance
  EXPECT_GT(model.rest_s(visit(1e13)), 0);
  EXPECT_GE(model.rest_s(visit(1e13)), model.rest_s(visit(1e9)));
}

TEST(VisitModel, of_a_captured_case_and_of_a_later_walk_has_no_capture) {
  VisitModel model(1e11);
  auto cached = visit(1e11);
  cached.fresh = false;
  EXPECT_EQ(model.capture_s(cached), 0);
  EXPECT_EQ(model.capture_s(visit(1e11, VisitKind::later)), 0);
}

core::CaseSpec spec(int batch, int size, core::Mode mode = core::Mode::infer) {
  return {.model = "m", .mode = mode, .batch = batch, .size = std::pair(size, size)};
}

TEST(WorkModel, grows_with_batch_and_pixels_from_the_nearest_case) {
  WorkModel model;
  EXPECT_FALSE(model.expected(sweep_position(spec(8, 64))));
  model.add(sweep_position(spec(1, 32)), {.flops = 1e9, .moving_bytes = 1e6, .weight_bytes = 5e6});
  const auto work = model.expected(sweep_position(spec(8, 64)));
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->flops, 32e9);
  EXPECT_DOUBLE_EQ(work->moving_bytes, 32e6);
  EXPECT_DOUBLE_EQ(work->weight_bytes, 5e6);
  model.add(sweep_position(spec(8, 128)), {.flops = 100e9});
  EXPECT_DOUBLE_EQ(model.expected(sweep_position(spec(8, 64)))->flops, 25e9) << "nearer than batch 1 at 32 pixels";
}

TEST(WorkModel, takes_the_own_mode_if_it_has_it) {
  WorkModel model;
  model.add(sweep_position(spec(8, 64)), {.flops = 1e9});
  EXPECT_DOUBLE_EQ(model.expected(sweep_position(spec(8, 64, core::Mode::train)))->flops, 1e9);
  model.add(sweep_position(spec(1, 32, core::Mode::train)), {.flops = 2e9});
  EXPECT_DOUBLE_EQ(model.expected(sweep_position(spec(8, 64, core::Mode::train)))->flops, 64e9);
}

TEST(WorkModel, what_a_plan_leaves_open_is_the_same_everywhere) {
  WorkModel model;
  model.add(sweep_position(spec(2, 32)), {.flops = 1e9});
  EXPECT_DOUBLE_EQ(model.expected(sweep_position(core::CaseSpec{.batch = 4}))->flops, 2e9);
  EXPECT_DOUBLE_EQ(model.expected(sweep_position(core::CaseSpec{}))->flops, 1e9);
}

TEST(WorkModel, reads_a_captured_case) {
  const auto work = work_of({{"flops", 7}, {"activation_bytes", 10}, {"input_bytes", 5}, {"weight_bytes", 3}});
  EXPECT_EQ(work.flops, 7);
  EXPECT_EQ(work.moving_bytes, 15);
  EXPECT_EQ(work.weight_bytes, 3);
  EXPECT_EQ(work_of({{"flops", nullptr}}).flops, 0);
  core::Case question;
  question.mode = core::Mode::train;
  question.batch = 4;
  question.inputs = {{.name = "x", .shape = {4, 3, 32, 64}}};
  const auto at = sweep_position(question);
  EXPECT_EQ(at.mode, core::Mode::train);
  EXPECT_EQ(at.batch, 4);
  EXPECT_EQ(at.size, (std::pair<std::int64_t, std::int64_t>{32, 64}));
}

}  // namespace
}  // namespace strata::plan
