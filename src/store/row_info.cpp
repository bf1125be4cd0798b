// SPDX-License-Identifier: Apache-2.0
#include "store/row_info.hpp"

#include "common/member_codec.hpp"
#include "store/row_info_members.hpp"

namespace strata::store {

// Each member with its name in the store; row_info_members.hpp has those that results show as they are.

void each_member(auto& member, Generate& generate) {
  member("target", generate.target), member("options", generate.options);
}

void each_member(auto& member, Libraries& libraries) {
  member("bytes", libraries.bytes), member("files", libraries.files);
}

void each_member(auto& member, Accuracy& accuracy) {
  member("error", accuracy.error), member("answers", accuracy.answers), member("differ", accuracy.differ);
}

void each_member(auto& member, ColdStart& start) {
  member("total_ms", start.total_ms), member("prepare_ms", start.prepare_ms);
}

void each_member(auto& member, MeterSums& sums) {
  member("restart", sums.restart), member("iterations", sums.iterations);
#define METER(sum, metric, units) member(#sum, sums.sum);
#include "core/meter.def"
#undef METER
  member("energy", sums.energy), member("no_energy", sums.no_energy);
}

void each_member(auto& member, RowInfo& info) {
  member("title", info.title), member("language", info.language), member("from", info.from),
      member("changes", info.changes), member("default", info.default_text), member("rank", info.rank),
      member("peer", info.peer), member("harness", info.harness), member("generate", info.generate);
  member("tuned", info.tuned), member("artefact", info.artefact), member("reason_short", info.reason_short),
      member("lines", info.lines), member("libraries", info.libraries), member("accuracy", info.accuracy),
      member("cold_start", info.cold_start), member("phases", info.phases), member("profile", info.profile),
      member("meters", info.meters), member("layers", info.layers), member("rows_of_shards", info.rows_of_shards);
  member("facts", info.facts), member("deep", info.deep), member("tuning", info.tuning);
  member("clients", info.clients), member("dynamic", info.dynamic), member("eval", info.eval);
}

namespace {

Json written(const auto& facts) {
  return members::Writer<members::Fill::no_nulls>().json_of(facts);
}

}  // namespace

Json to_json(const RowInfo& info) {
  return written(info);
}

Json to_json(const Lines& lines) {
  return written(lines);
}

Json to_json(const Phases& phases) {
  return written(phases);
}

Json to_json(const std::vector<FileBytes>& files) {
  return written(files);
}

Result<RowInfo> read_row_info(const Json& stored) {
  std::string first_fault;
  members::Reader members(stored, "info", [&](std::string fault) {
    if (first_fault.empty()) first_fault = std::move(fault);
  });
  RowInfo info;
  each_member(members, info);
  if (!first_fault.empty()) return fail(first_fault);
  return info;
}

}  // namespace strata::store
