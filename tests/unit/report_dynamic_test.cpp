// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "analysis/open_batch.hpp"
#include "report/access.hpp"
#include "report/render/cell_text.hpp"
#include "report/sections/sections.hpp"
#include "report/sections/total_cost.hpp"

namespace strata::report {
namespace {

using analysis::open_batch;
using analysis::RatioVerdict;
constexpr double kSigma = 0.015, kMinimum = 0.01;

store::SizeVisit visit(int size, int lap, double first_ms, double settled_ms) {
  return {.size = size,
          .lap = lap,
          .first_ns = static_cast<std::int64_t>(first_ms * 1e6),
          .worst_ratio = 1,
          .wall_ns = std::vector<std::int64_t>(3, static_cast<std::int64_t>(settled_ms * 1e6))};
}

store::Row row_with(std::vector<store::SizeVisit> visits) {
  store::Row row;
  row.info.dynamic = store::OpenBatchRecord{
      .low = 1, .high = 4, .own = 2, .state = "measured", .prepare_ms = 0, .visits = std::move(visits)};
  return row;
}

std::vector<store::Block> blocks(double ms) {
  std::vector<store::Block> out;
  for (int restart = 0; restart < 3; ++restart)
    for (int round = 0; round < 12; ++round)
      out.push_back({.restart = restart,
                     .round = round,
                     .wall_ns = {static_cast<std::int64_t>(ms * 1e6) + 100 * round},
                     .runq_ns = 0});
  return out;
}

TEST(OpenBatch, counts_a_slow_first_call_at_a_new_size_and_times_it) {
  const auto batch = open_batch(row_with({visit(1, 0, 400, 5), visit(1, 1, 6, 5), visit(2, 0, 500, 8),
                                          visit(2, 1, 8, 8), visit(4, 0, 17, 15), visit(4, 1, 16, 15)}),
                                {}, kSigma, kMinimum);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->recompiled, 1) << "the size that it was warmed up with is no new one, and 2 ms are none";
  EXPECT_EQ(batch->unseen, 2);
  EXPECT_DOUBLE_EQ(batch->recompile_ms.value(), 395);
  EXPECT_TRUE(batch->sizes.at(1).seen);
  EXPECT_FALSE(batch->prepare_ms);
}

TEST(OpenBatch, does_not_take_a_slow_call_for_a_recompilation_where_the_second_visit_is_as_slow) {
  const auto batch = open_batch(row_with({visit(1, 0, 60, 5), visit(1, 1, 55, 5)}), {}, kSigma, kMinimum);
  EXPECT_EQ(batch.value().recompiled, 0) << "what follows every change of size is no compilation";
}

TEST(OpenBatch, compares_the_open_artefact_with_the_fixed_one_round_by_round) {
  auto row = row_with({visit(1, 0, 5, 5)});
  row.info.dynamic->turns = {blocks(10), blocks(12.5)};
  const auto fixed = open_batch(row, stats::CoreBudget{}, kSigma, kMinimum).value().against_fixed.value();
  EXPECT_EQ(fixed.batch, 2);
  EXPECT_NEAR(fixed.ratio.value.value(), 0.8, 1e-3);
  EXPECT_LT(fixed.ratio.high.value(), 1.0);
  EXPECT_EQ(fixed.ratio.verdict, RatioVerdict::slower);
}

TEST(OpenBatch, judges_nothing_where_other_programs_had_the_cores) {
  auto row = row_with({visit(1, 0, 5, 5)});
  row.info.dynamic->turns = {blocks(10), blocks(12.5)};
  const auto fixed = open_batch(row, stats::CoreBudget{}, kSigma, kMinimum, false).value().against_fixed.value();
  EXPECT_EQ(fixed.ratio.verdict, RatioVerdict::inconclusive);
}

TEST(OpenBatch, gives_a_failure_its_reason_and_no_figure) {
  store::Row row;
  row.info.dynamic =
      store::OpenBatchRecord{.state = "unequal", .reason = "batch 4: wrong", .visits = {visit(1, 0, 400, 5)}};
  const auto batch = open_batch(row, {}, kSigma, kMinimum);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->reason, "batch 4: wrong");
  EXPECT_TRUE(batch->sizes.empty() && !batch->recompiled && !batch->against_fixed);
  EXPECT_FALSE(open_batch(store::Row{}, {}, kSigma, kMinimum));
}

const document::Table& table_in(const document::Section& section, std::size_t place) {
  return std::get<document::Table>(section.items.at(place));
}

// What the rows of the section's table at this place show.
std::vector<std::vector<std::string>> cells_of(const analysis::CaseResult& one_case, std::size_t place) {
  const auto section = dynamic_section(one_case);
  std::vector<std::vector<std::string>> shown;
  for (const auto& row : table_in(section, place).rows) {
    shown.emplace_back();
    for (const auto& cell : row) shown.back().push_back(document::cell_text(cell, glyphs(false)));
  }
  return shown;
}

std::string reason_in(const analysis::CaseResult& one_case, std::size_t row, std::size_t column) {
  const auto section = dynamic_section(one_case);
  return document::reason_of(table_in(section, 0).rows.at(row).at(column));
}

TEST(DynamicTables, have_a_line_a_level_and_a_column_a_size) {
  const auto row = row_with({visit(1, 0, 400, 5), visit(1, 1, 6, 5), visit(2, 0, 8, 8), visit(2, 1, 8, 8)});
  const analysis::OpenBatch refused{.state = "unsupported", .reason = "it does not export"};
  const analysis::CaseResult one_case{
      .rows = {{.level = "compile", .state = State::measured, .dynamic = open_batch(row, {}, kSigma, kMinimum)},
               {.level = "aoti", .state = State::measured, .dynamic = refused}}};
  EXPECT_THAT(cells_of(one_case, 0),
              testing::ElementsAre(testing::Each(testing::AnyOf("aoti", "")),
                                   testing::ElementsAre("compile", "1 of 1", "395 ms", "", "", testing::_)));
  EXPECT_EQ(reason_in(one_case, 0, 2), "unsupported: it does not export");
  EXPECT_THAT(cells_of(one_case, 1),
              testing::ElementsAre(testing::ElementsAre("compile", "5.00 ms (+395 ms)", "8.00 ms")));
  auto interrupted = one_case;
  interrupted.rows[0].dynamic->against_fixed_note = "open artefact: it took too long";
  EXPECT_EQ(reason_in(interrupted, 1, 3), "open artefact: it took too long");
}

TEST(TotalCost, says_at_once_never_or_how_many_iterations_with_their_interval) {
  const auto words = [](const std::optional<analysis::BreakEven>& even) {
    return break_even_words(even, glyphs(false));
  };
  using Even = analysis::BreakEven;
  EXPECT_EQ(words(Even{.iterations = 0, .low = 0, .high = 0}), "starts no slower");
  EXPECT_EQ(words(Even{.iterations = 0.4, .low = 0.1, .high = 0.9}), "at once");
  EXPECT_EQ(words(Even{.never = true}), "never");
  EXPECT_EQ(words(Even{.inconclusive = true}), "inconclusive");
  EXPECT_EQ(words(Even{.iterations = 1128.4, .low = 900, .high = 1400}), "1,128 (900 to 1,400)");
  EXPECT_EQ(words(Even{.iterations = 1128.4, .low = 900}), "1,128 (from 900)");
  EXPECT_EQ(words(std::nullopt), glyphs(false).missing);
}

TEST(TotalCost, puts_what_a_level_reported_after_its_run_into_words) {
  EXPECT_EQ(
      fact_words(
          {.facts = {{"guards", 31}, {"guard_us", 12}, {"recompiles", 1}, {"recompile_reasons", {"size mismatch"}}}}),
      "31 guards, 12.0 us a call; 1 compiled again, size mismatch");
  EXPECT_EQ(fact_words({.facts = {{"bailouts", 0}}}), "0 bailouts");
  EXPECT_EQ(fact_words({}), "");
}

}  // namespace
}  // namespace strata::report
