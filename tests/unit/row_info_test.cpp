// SPDX-License-Identifier: Apache-2.0
// The facts of a row as the store's column has them.
#include "store/row_info.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::store {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;

// As a store of before has it, a key that nobody knows any more included.
const char* const kStored = R"({
  "title": "static", "rank": 8, "language": "c++", "peer": true, "harness": true, "from": "onednn", "changes": "fused",
  "default": "kernels by timing", "generate": {"target": "onednn", "options": "--tune"}, "artefact": "abc",
  "reason_short": "", "tuned": true, "lines": {"total": 12, "files": [{"file": "a.cpp", "lines": 12}]},
  "libraries": {"bytes": 5000000000, "files": [{"file": "b.so", "bytes": 5000000000}]},
  "accuracy": {"error": 0.25, "answers": 4, "differ": 1}, "cold_start": {"total_ms": 500.5, "prepare_ms": 40},
  "phases": {"ms": {"forward": 3.5, "update": null}, "joined": {"forward": ["loss"]}, "iterations": 7, "note": ""},
  "meters": [{"restart": 0, "iterations": 80, "run_queue_wait_s": 0.5, "major_faults": 8, "minor_faults": 160,
              "switched_out": 4, "energy": 16.5},
             {"restart": 1, "iterations": 80, "no_energy": "no counters"}],
  "layers": ["conv1", "fc"], "rows_of_shards": [7, 9], "facts": {"guards": 31},
  "deep": {"first_difference": "layer1", "reason": "", "worst_ratio": 0.5},
  "tuning": {"seconds": 2.5, "restarts": 1, "best": "default", "note": "",
             "tried": [{"variant": "default", "title": "", "state": "measured", "reason": "", "median_ms": 1.5,
                        "ratio": {"value": 1.5, "low": 1.25, "high": 2, "verdict": "faster"}}]},
  "clients": {"seconds": 1, "cores": 2,
              "points": [{"clients": 2, "as": "threads", "threads_each": 1, "state": "measured", "reason": "",
                          "hint": "", "repetitions": [{"requests_per_s": 10.5, "requests": 5, "cpu_ns": 7,
                                                       "private_bytes": 1, "pss_bytes": 1, "latency_ns": [3, 4]}]}]},
  "dynamic": {"low": 1, "high": 4, "own": 2, "state": "measured", "reason": "", "hint": "", "prepare_ms": 1.5,
              "visits": [{"size": 2, "lap": 1, "first_ns": 9, "worst_ratio": 0.5, "wall_ns": [5]}],
              "reported": {"before": {"recompiles": 0}, "after": {"recompiles": 1, "recompile_reasons": ["x"]}},
              "turns": {"fixed": [{"restart": 0, "round": 1, "wall_ns": [5], "runq_ns": 0, "taken": 0.5}],
                        "open": [{"restart": 0, "round": 1, "wall_ns": [6]}]}},
  "eval": {"state": "scored", "reason": "", "hint": "", "count": 2, "score": -0.5, "per_example": [-1, 0],
           "answers": [3, 4]}, "of_before": 1})";

std::string refused(const Json& info) {
  const auto read = read_row_info(info);
  return read ? "" : read.error().what;
}

TEST(RowInfo, that_is_stored_is_read_with_every_member_and_written_as_it_was) {
  auto stored = Json::parse(kStored);
  const auto info = read_row_info(stored).value();
  EXPECT_EQ(info.default_text, "kernels by timing");
  EXPECT_EQ(info.generate, (Generate{"onednn", "--tune"}));
  EXPECT_EQ(info.reason_short, "");
  EXPECT_EQ(info.libraries->files.at(0), (FileBytes{"b.so", 5'000'000'000}));
  EXPECT_EQ(info.phases->ms.at("update"), std::nullopt);
  EXPECT_EQ(info.meters.at(0).energy, 16.5);
  EXPECT_EQ(info.meters.at(1).run_queue_wait_s, std::nullopt) << "not seen is no zero";
  stored.erase("of_before");
  EXPECT_EQ(to_json(info), stored);
  EXPECT_EQ(read_row_info(to_json(info)).value(), info);
}

TEST(RowInfo, of_a_level_of_which_nothing_is_known_yet_has_no_empty_entries) {
  EXPECT_EQ(read_row_info(Json::object()).value(), RowInfo());
  EXPECT_EQ(to_json(RowInfo()), Json({{"title", ""},
                                      {"language", ""},
                                      {"from", ""},
                                      {"changes", ""},
                                      {"default", ""},
                                      {"rank", 0},
                                      {"peer", false},
                                      {"harness", false},
                                      {"tuned", false}}));
}

TEST(RowInfo, has_an_empty_text_where_the_store_has_null) {
  const auto info = read_row_info({{"title", nullptr}, {"lines", {{"files", {{{"file", nullptr}}}}}}}).value();
  EXPECT_EQ(info.title, "");
  EXPECT_EQ(info.lines.value().files.at(0).file, "");
}

TEST(RowInfo, says_which_value_is_not_as_strata_writes_it) {
  EXPECT_EQ(refused({{"harness", 1}}), "\"info\": \"harness\" is 1; allowed is true or false");
  EXPECT_EQ(refused({{"cold_start", {{"total_ms", "x"}}}}),
            "\"info.cold_start\": \"total_ms\" is \"x\"; allowed is a number from 0");
  EXPECT_EQ(refused({{"meters", {{{"switched_out", -1}}}}}),
            "\"info.meters[0]\": \"switched_out\" is -1; allowed is a number from 0");
  EXPECT_EQ(refused({{"phases", {{"ms", {{"loss", true}}}}}}),
            "\"info.phases.ms\": \"loss\" is true; allowed is a number from 0");
  EXPECT_EQ(refused({{"lines", 7}}), "\"info\": \"lines\" is 7; allowed is an object");
  EXPECT_EQ(refused({{"layers", "fc"}}), "\"info\": \"layers\" is \"fc\"; allowed is a list");
  EXPECT_EQ(refused({{"rank", std::int64_t{1} << 40}}),
            "\"info\": \"rank\" is 1099511627776; allowed is a whole number from 0");
}

TEST(RowInfo, with_any_value_in_any_place_is_read_or_refused) {
  const auto stored = Json::parse(kStored);
  const auto places = stored.flatten();
  for (const auto& [place, unused] : places.items())
    for (const Json& wrong : {Json(), Json(true), Json("x"), Json(-1), Json(1.5), Json::array(), Json::object()}) {
      auto changed = stored;
      changed[Json::json_pointer(place)] = wrong;
      EXPECT_THAT(refused(changed), AnyOf("", StartsWith("\"info"))) << place;
    }
}

}  // namespace
}  // namespace strata::store
