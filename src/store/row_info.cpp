// SPDX-License-Identifier: Apache-2.0
#include "store/row_info.hpp"

#include "store/row_members.hpp"

namespace strata::store {

// Each member with its name in the store; row_members.hpp has those that results show as they are.

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

void each_member(auto& member, ServedRepetition& repetition) {
  member("requests_per_s", repetition.requests_per_s), member("requests", repetition.requests),
      member("latency_ns", repetition.latency_ns), member("cpu_ns", repetition.cpu_ns),
      member("private_bytes", repetition.private_bytes), member("pss_bytes", repetition.pss_bytes);
}

void each_member(auto& member, ServedPoint& point) {
  member("clients", point.clients), member("as", point.as), member("threads_each", point.threads_each),
      member("state", point.state), member("reason", point.reason), member("hint", point.hint),
      member("repetitions", point.repetitions);
}

void each_member(auto& member, ServedClients& clients) {
  member("seconds", clients.seconds), member("cores", clients.cores), member("points", clients.points);
}

void each_member(auto& member, SizeVisit& visit) {
  member("size", visit.size), member("lap", visit.lap), member("first_ns", visit.first_ns),
      member("worst_ratio", visit.worst_ratio), member("wall_ns", visit.wall_ns);
}

void each_member(auto& member, Block& turn) {
  member("restart", turn.restart), member("round", turn.round), member("wall_ns", turn.wall_ns),
      member("runq_ns", turn.runq_ns), member("taken", turn.taken);
}

void each_member(auto& member, OpenTurns& turns) {
  member("fixed", turns.fixed), member("open", turns.open);
}

void each_member(auto& member, LevelReports& reports) {
  member("before", reports.before), member("after", reports.after);
}

void each_member(auto& member, OpenBatchRecord& open) {
  member("low", open.low), member("high", open.high), member("own", open.own), member("state", open.state),
      member("reason", open.reason), member("hint", open.hint), member("prepare_ms", open.prepare_ms),
      member("visits", open.visits), member("reported", open.reported), member("turns", open.turns),
      member("turns_note", members::NullIfEmpty{open.turns_note});
}

void each_member(auto& member, ScoreRecord& score) {
  member("state", score.state), member("reason", score.reason), member("hint", score.hint),
      member("count", score.count), member("score", members::AnySign{score.score}),
      member("per_example", members::AnySign{score.per_example}), member("answers", members::AnySign{score.answers});
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

// What is unknown is null.
Json written_whole(const auto& facts) {
  return members::Writer<members::Fill::everything>().json_of(facts);
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

Json to_json(const std::vector<StartUp>& starts) {
  return written_whole(starts);
}

Json to_json(const std::optional<MemoryFacts>& memory) {
  return written_whole(memory);
}

Json to_json(const std::optional<Proof>& proof) {
  return written_whole(proof);
}

namespace {

template <class Facts>
Result<Facts> read_whole(const Json& object, const char* where) {
  std::string first_fault;
  members::Reader members(object, where, [&](std::string fault) {
    if (first_fault.empty()) first_fault = std::move(fault);
  });
  Facts facts;
  each_member(members, facts);
  if (!first_fault.empty()) return fail(first_fault);
  return facts;
}

}  // namespace

Result<RowInfo> read_row_info(const Json& stored) {
  return read_whole<RowInfo>(stored, "info");
}

Result<ScoreRecord> read_score(const Json& answer) {
  return read_whole<ScoreRecord>(answer, "score");
}

}  // namespace strata::store
