// SPDX-License-Identifier: Apache-2.0
#include "analysis/result_json.hpp"

#include <fmt/format.h>

#include "common/member_codec.hpp"
#include "store/row_members.hpp"

namespace strata::analysis {
using Json = nlohmann::json;
using members::NullIfEmpty;

// Each member with its name, for both directions.

void each_member(auto& member, LearnedEffect& learned) {
  member("process_effect_percent", learned.process_effect_percent), member("restarts", learned.restarts),
      member("runs", learned.runs);
}

void each_member(auto& member, Resolve& resolve) {
  member("command", resolve.command), member("minutes", resolve.minutes);
}

void each_member(auto& member, Ratio& ratio) {
  each_member(member, static_cast<Estimate&>(ratio));
  member("verdict", ratio.verdict), member("same_within_percent", ratio.same_within_percent),
      member("smallest_visible_percent", ratio.smallest_visible_percent),
      member("rests_on", NullIfEmpty{ratio.rests_on}), member("learned", ratio.learned),
      member("by_restart", ratio.by_restart), member("by_processor_time", ratio.by_processor_time),
      member("resolve", ratio.resolve);
}

void each_member(auto& member, BreakEven& even) {
  member("iterations", even.iterations), member("low", even.low), member("high", even.high),
      member("never", even.never), member("inconclusive", even.inconclusive);
}

void each_member(auto& member, TimeSummary& time) {
  member("estimate", time.estimate), member("is_median", time.is_median), member("median", time.median),
      member("p90", time.p90), member("p99", time.p99), member("min", time.min), member("samples", time.samples);
}

void each_member(auto& member, StartUp& start) {
  member("process_ms", start.process_ms), member("library_ms", start.library_ms), member("load_ms", start.load_ms),
      member("build_ms", start.build_ms), member("weights_ms", start.weights_ms),
      member("first_iteration_ms", start.first_iteration_ms), member("warm_start_ms", start.warm_start_ms),
      member("cold_start_ms", start.cold_start_ms), member("prepare_ms", start.prepare_ms);
}

void each_member(auto& member, Shipped& shipped) {
  member("bytes", shipped.bytes), member("libraries_bytes", shipped.libraries_bytes),
      member("artefact_bytes", shipped.artefact_bytes), member("libraries", shipped.libraries);
}

void each_member(auto& member, BlockSummary& block) {
  member("restart", block.restart), member("round", block.round), member("position", block.position),
      member("time_s", block.time_s), member("median_ms", block.median_ms), member("disturbed", block.disturbed),
      member("why", block.why);
}

void each_member(auto& member, Histogram& histogram) {
  member("edges_ms", histogram.edges_ms), member("counts", histogram.counts);
}

void each_member(auto& member, IfAssumed& assumed) {
  member("ratio", assumed.ratio), member("verdict", assumed.verdict);
}

void each_member(auto& member, AgainstItself& aa) {
  member("ratio", aa.ratio), member("verdict", aa.verdict), member("rests_on", NullIfEmpty{aa.rests_on}),
      member("learned", aa.learned), member("by_restart", aa.by_restart), member("if_assumed", aa.if_assumed);
}

void each_member(auto& member, Tuned& tuned) {
  member("ratio", tuned.ratio), member("break_even", tuned.break_even),
      member("break_even_once", tuned.break_even_once);
}

void each_member(auto& member, LatencyQuantiles& latency) {
  member("p50", latency.p50), member("p90", latency.p90), member("p99", latency.p99),
      member("samples", latency.samples), member("requests", latency.requests);
}

void each_member(auto& member, ServingMemory& memory) {
  member("private_bytes", memory.private_bytes), member("pss_bytes", memory.pss_bytes);
}

void each_member(auto& member, ClientPoint& point) {
  member("clients", point.clients), member("as", point.as), member("threads_each", point.threads_each),
      member("state", point.state), member("reason", point.reason), member("hint", point.hint),
      member("repetitions", point.repetitions), member("requests_per_s", point.requests_per_s),
      member("inputs_per_s", point.inputs_per_s), member("latency_ms", point.latency_ms),
      member("cpu_ms", point.cpu_ms), member("memory", point.memory);
}

void each_member(auto& member, Clients& clients) {
  member("seconds", clients.seconds), member("cores", clients.cores), member("reliable", clients.reliable),
      member("points", clients.points);
}

void each_member(auto& member, BatchSize& size) {
  member("batch", size.batch), member("seen", size.seen), member("first_ms", size.first_ms),
      member("again_ms", size.again_ms), member("settled_ms", size.settled_ms), member("recompiled", size.recompiled),
      member("recompile_ms", size.recompile_ms), member("envelopes", size.envelopes);
}

void each_member(auto& member, ReportedRecompiles& reported) {
  member("recompiles", reported.recompiles), member("reasons", reported.reasons);
}

void each_member(auto& member, AgainstFixed& fixed) {
  member("batch", fixed.batch), member("ratio", fixed.ratio);
}

void each_member(auto& member, OpenBatch& open) {
  member("low", open.low), member("high", open.high), member("own", open.own), member("state", open.state),
      member("reason", open.reason), member("hint", open.hint), member("prepare_ms", open.prepare_ms),
      member("sizes", open.sizes), member("unseen", open.unseen), member("recompiled", open.recompiled),
      member("recompile_ms", open.recompile_ms), member("reported", open.reported),
      member("against_fixed", open.against_fixed), member("against_fixed_note", NullIfEmpty{open.against_fixed_note});
}

void each_member(auto& member, RowResult& row) {
  member("level", row.level), member("variant", row.variant), member("environment", NullIfEmpty{row.environment}),
      member("title", row.title), member("rank", row.rank), member("language", row.language), member("peer", row.peer),
      member("harness", row.harness), member("reference", row.reference), member("state", row.state),
      member("reason", row.reason), member("reason_short", row.reason_short), member("hint", row.hint),
      member("log_tail", row.log_tail), member("repeat", row.repeat), member("default", row.default_text);
  member("end_to_end_ms", row.end_to_end_ms), member("latency_ms", row.latency_ms),
      member("throughput_per_s", row.throughput_per_s), member("steps_per_s", row.steps_per_s),
      member("cpu_ms", row.cpu_ms), member("phases", row.phases), member("profile", row.profile),
      member("ratio", row.ratio), member("break_even", row.break_even), member("break_even_once", row.break_even_once);
  member("memory", row.memory), member("startup", row.startup), member("disk_bytes", row.disk_bytes),
      member("artefact_bytes", row.artefact_bytes), member("shipped", row.shipped), member("lines", row.lines),
      member("settings", row.settings), member("facts", row.facts), member("proof", row.proof),
      member("deep", row.deep);
  member("blocks", row.blocks), member("histogram", row.histogram), member("aa", row.aa), member("tuned", row.tuned),
      member("tuning", row.tuning), member("clients", row.clients), member("dynamic", row.dynamic);
}

void each_member(auto& member, Headline& headline) {
  member("verdict", headline.verdict), member("level", NullIfEmpty{headline.level}),
      member("sentence", headline.sentence);
}

void each_member(auto& member, LimitFacts& limits) {
  member("gflops", limits.gflops), member("gbytes_per_s", limits.gbytes_per_s), member("quiet", limits.quiet),
      member("cache_bytes", limits.cache_bytes), member("memory_bytes", limits.memory_bytes),
      member("compute_ms", limits.compute_ms), member("memory_ms", limits.memory_ms),
      member("limit_ms", limits.limit_ms), member("kind", NullIfEmpty{limits.kind});
}

void each_member(auto& member, TrustFacts& trust) {
  member("restarts", trust.restarts), member("restarts_compared", trust.restarts_compared),
      member("most_process_effect_percent", trust.most_process_effect_percent),
      member("process_effect_percent", trust.process_effect_percent),
      member("process_effect_source", trust.process_effect_source),
      member("smallest_visible_percent", trust.smallest_visible_percent), member("blocks", trust.blocks),
      member("disturbed_blocks", trust.disturbed_blocks),
      member("minimum_effect_percent", trust.minimum_effect_percent), member("together", trust.together);
  member("others_begin_percent", trust.others_begin_percent), member("others_percent", trust.others_percent),
      member("host_percent", trust.host_percent), member("other_run", trust.other_run),
      member("reliable", trust.reliable), member("one_thread_fits", trust.one_thread_fits);
}

void each_member(auto& member, LedgerEdge& edge) {
  member("from", edge.from), member("to", edge.to), member("kind", edge.kind), member("changes", edge.changes),
      member("difference_ms", edge.difference_ms), member("ratio", edge.ratio), member("verdict", edge.verdict),
      member("differs", edge.differs);
}

void each_member(auto& member, Ledger& ledger) {
  member("edges", ledger.edges);
}

void each_member(auto& member, SloLevel& level) {
  member("level", level.level), member("variant", level.variant), member("environment", NullIfEmpty{level.environment}),
      member("verdict", level.verdict), member("batch", level.batch), member("clients", level.clients),
      member("as", level.as), member("inputs_per_s", level.inputs_per_s), member("quantile_ms", level.quantile_ms),
      member("miss_ms", level.miss_ms), member("samples", level.samples),
      member("needed_samples", level.needed_samples), member("sentence", level.sentence);
}

void each_member(auto& member, SloResult& slo) {
  member("quantile", slo.quantile), member("limit_ms", slo.limit_ms), member("levels", slo.levels),
      member("note", slo.note);
}

void each_member(auto& member, AaTotal& total) {
  member("comparisons", total.comparisons), member("false_alarms", total.false_alarms),
      member("bound_percent", total.bound_percent);
}

void each_member(auto& member, AcrossEnvironments& pair) {
  member("level", pair.level), member("variant", pair.variant), member("from", pair.from), member("to", pair.to),
      member("ratio", pair.ratio);
}

void each_member(auto& member, InsteadOf& instead) {
  member("level", instead.level), member("state", instead.state), member("reason", instead.reason);
}

void each_member(auto& member, ModelFacts& model) {
  member("name", model.name), member("kind", model.kind), member("source", model.source), member("note", model.note),
      member("data", model.data);
}

void each_member(auto& member, CaseResult& result) {
  member("id", result.id), member("key", result.key), member("network_hash", result.network_hash),
      member("case", result.question), member("model", result.model), member("input_source", result.input_source),
      member("weight_source", result.weight_source), member("network", result.network), member("flops", result.flops),
      member("parameters", result.parameters), member("weight_bytes", result.weight_bytes),
      member("flops_uncounted", result.flops_uncounted);
  member("reference_level", result.reference_level), member("reference_instead_of", result.reference_instead_of),
      member("headline", result.headline), member("limits", result.limits), member("trust", result.trust),
      member("next_command", result.next_command), member("ledger", result.ledger), member("slo", result.slo),
      member("aa", result.aa), member("across_environments", result.across_environments), member("rows", result.rows);
}

void each_member(auto& member, EvalFacts& eval) {
  member("state", eval.state), member("reason", eval.reason), member("hint", eval.hint), member("count", eval.count),
      member("score", eval.score), member("difference", eval.difference), member("differ", eval.differ);
}

void each_member(auto& member, PointRatio& ratio) {
  each_member(member, static_cast<Estimate&>(ratio));
  member("together", ratio.together);
}

void each_member(auto& member, AccuracyPoint& point) {
  member("case", point.case_id), member("level", point.level), member("variant", point.variant),
      member("environment", NullIfEmpty{point.environment}), member("precision", point.precision),
      member("reference", point.reference), member("time_ms", point.time_ms), member("reliable", point.reliable),
      member("ratio", point.ratio), member("error", point.error), member("answers", point.answers),
      member("differ", point.differ), member("eval", point.eval);
}

void each_member(auto& member, AccuracyReference& reference) {
  member("case", reference.case_id), member("level", reference.level), member("precision", reference.precision);
}

void each_member(auto& member, AccuracyGroup& group) {
  member("id", group.id), member("reference", group.reference), member("score", NullIfEmpty{group.score}),
      member("measured_apart", group.measured_apart), member("points", group.points);
}

void each_member(auto& member, WarningText& warning) {
  member("id", warning.id), member("case", NullIfEmpty{warning.case_key}), member("what", warning.what),
      member("advice", warning.advice);
}

void each_member(auto& member, RunFacts& run) {
  member("id", run.id), member("name", NullIfEmpty{run.name}), member("started", run.started),
      member("command", run.command), member("version", run.version), member("finished", run.finished),
      member("interrupted", run.interrupted), member("state", run.state), member("resumed", run.resumed),
      member("seed", run.seed), member("preset", run.preset), member("wall_s", run.wall_s),
      member("restarts", run.restarts), member("budget_s", run.budget_s), member("ci_width", run.ci_width);
  member("aa", run.aa), member("deep", run.deep), member("tuned", run.tuned),
      member("clients", NullIfEmpty{run.clients}), member("dynamic", NullIfEmpty{run.dynamic}),
      member("slo", NullIfEmpty{run.slo}), member("eval", NullIfEmpty{run.eval});
}

void each_member(auto& member, RunResult& result) {
  member("run", result.run), member("accuracy", result.accuracy), member("machine", result.machine),
      member("environments", result.environments), member("warnings", result.warnings), member("cases", result.cases);
}

namespace {

Json written(const auto& value) {
  return members::Writer<members::Fill::everything>().json_of(value);
}

}  // namespace

Json to_json(const RunResult& result) {
  auto json = written(result);
  json["schema"] = kResultSchema;
  return json;
}

Json to_json(const RunFacts& run) {
  return written(run);
}

Json to_json(const RowResult& result) {
  return written(result);
}

Json to_json(const AccuracyPoint& point) {
  return written(point);
}

Result<RunResult> read_result(const Json& json, const std::string& where) {
  const auto schema = outside::text_or(json, "schema");
  if (schema != kResultSchema)
    return fail(fmt::format("{}: schema is \"{}\", this strata reads \"{}\"", where, schema, kResultSchema),
                "write it again with --format json of this version", Exit::usage);
  std::string first_fault;
  members::Reader members(
      json, where,
      [&](std::string fault) {
        if (first_fault.empty()) first_fault = std::move(fault);
      },
      std::numeric_limits<double>::lowest());
  RunResult result;
  each_member(members, result);
  if (!first_fault.empty()) return fail(first_fault, "write it again with --format json", Exit::usage);
  return result;
}

ModelFacts model_facts(const Json& bundle) {
  const Json& stored = outside::field(bundle, "model");
  ModelFacts model;
  if (!stored.is_object()) return model;
  members::Reader members(
      stored, "", [](const std::string&) {}, std::numeric_limits<double>::lowest());
  each_member(members, model);
  return model;
}

}  // namespace strata::analysis
