// SPDX-License-Identifier: Apache-2.0
#include "store/facts_codec.hpp"

#include "store/row_members.hpp"

namespace strata::store {

// Each member with its name in the store, for both directions.

void each_member(auto& member, Limits& limits) {
  member("gflops", limits.gflops), member("gbytes_per_s", limits.gbytes_per_s),
      member("instruction_set", limits.instruction_set), member("quiet", limits.quiet),
      member("seen_gflops", limits.seen_gflops), member("seen_gbytes_per_s", limits.seen_gbytes_per_s);
}

void each_member(auto& member, LoadFacts& load) {
  member("begin", load.begin), member("others", load.others), member("steal", load.steal),
      member("restarts", load.restarts), member("other_run", load.other_run);
}

void each_member(auto& member, LearnedPair& pair) {
  member("levels", pair.levels), member("variance", pair.learned.variance), member("within", pair.learned.within),
      member("df", pair.learned.df), member("restarts", pair.learned.restarts), member("runs", pair.learned.runs);
}

void each_member(auto& member, Trust& trust) {
  member("process_sigma", trust.process_sigma), member("process_sigma_source", trust.process_sigma_source),
      member("minimum_effect", trust.minimum_effect), member("together", trust.together),
      member("learned", trust.learned), member("load", trust.load), member("restarts", trust.restarts),
      member("reference_wanted", trust.reference_wanted), member("data", trust.data),
      member("test_images", trust.test_images), member("commonest_class", trust.commonest_class);
}

void each_member(auto& member, Kept& kept) {
  member("store", kept.store), member("format", kept.format), member("output", kept.output);
}

void each_member(auto& member, EffortFacts& effort) {
  member("preset", effort.preset), member("restarts", effort.restarts), member("budget_s", effort.budget_s),
      member("ci_width", effort.ci_width);
}

void each_member(auto& member, ShardFacts& shard) {
  member("shard", shard.shard), member("shard_of", shard.whole), member("node", shard.node),
      member("parts", shard.parts);
}

void each_member(auto& member, TrainingFacts& training) {
  member("dataset", training.dataset), member("rule", training.rule), member("scaled", training.scaled),
      member("epochs", training.epochs), member("repeats", training.repeats), member("margin", training.margin),
      member("loss_margin", training.loss_margin), member("target", training.target);
}

void each_member(auto& member, OfSuite& suite) {
  member("run", suite.run), member("title", suite.title), member("entry", suite.entry);
}

void each_member(auto& member, EntryFacts& entry) {
  member("command", entry.command), member("label", entry.label), member("state", entry.state),
      member("reason", entry.reason), member("run", entry.run), member("predicted_s", entry.predicted_s),
      member("took_s", entry.took_s), member("exit_code", entry.exit_code);
}

void each_member(auto& member, SuiteFacts& suite) {
  member("title", suite.title), member("about", suite.about), member("source", suite.source),
      member("file", suite.file), member("hash", suite.hash), member("scale", suite.scale),
      member("entries", suite.entries);
}

void each_member(auto& member, VisitFacts& visit) {
  member("kind", visit.kind), member("levels", visit.levels), member("fresh", visit.fresh),
      member("trains", visit.trains), member("count", visit.count), member("flops", visit.flops),
      member("capture_s", visit.capture_s), member("rest_s", visit.rest_s);
}

void each_member(auto& member, Visited& visited) {
  member("model", visited.model), member("visits", visited.visits);
}

void each_member(auto& member, Settings& settings) {
  member("verb", settings.verb), member("request", settings.request), member("folder", settings.folder);
  each_member(member, settings.kept);
  each_member(member, settings.effort);
  member("aa", settings.aa), member("deep", settings.deep), member("tuned", settings.tuned),
      member("clients", settings.clients), member("dynamic", settings.dynamic), member("slo", settings.slo),
      member("eval", settings.eval), member("find_batch", settings.find_batch),
      member("memory_limit_gib", settings.memory_limit_gib), member("cases", settings.cases);
  each_member(member, settings.shard);
  each_member(member, settings.training);
  each_member(member, settings.suite_run);
  member("suite", settings.suite), member("visited", settings.visited), member("forecast", settings.forecast),
      member("predicted_s", settings.predicted_s), member("wall_s", settings.wall_s),
      member("resumed", settings.resumed), member("budget_spent", settings.budget_spent);
}

namespace {

template <class Facts>
Json written_sparsely(const Facts& facts) {
  return members::Writer<members::Fill::only_filled>().json_of(facts);
}

template <class Facts>
void read_facts(Statement& row, const char* column, const Json& object, Facts& facts) {
  members::Reader members(object, column, [&](std::string fault) { row.complain(std::move(fault)); });
  each_member(members, facts);
}

// Null or empty: none.
template <class Facts>
void read_facts(Statement& row, const char* column, const Json& object, std::optional<Facts>& facts) {
  if (!object.empty()) read_facts(row, column, object, facts.emplace());
}

}  // namespace

Json to_json(const std::optional<Limits>& limits) {
  return limits ? written_sparsely(*limits) : Json::object();
}

Json to_json(const Trust& trust) {
  return written_sparsely(trust);
}

Json to_json(const Settings& settings) {
  return written_sparsely(settings);
}

void read(Statement& row, std::optional<Limits>& limits) {
  read_facts(row, "limits", row.json(Shape::object_or_null), limits);
}

void read(Statement& row, Trust& trust) {
  read_facts(row, "trust", row.json(Shape::object_or_null), trust);
}

void read(Statement& row, Settings& settings) {
  read_facts(row, "settings", row.json(Shape::object), settings);
}

void read(Statement& row, std::optional<MemoryFacts>& memory) {
  read_facts(row, "memory", row.json(Shape::object_or_null), memory);
}

void read(Statement& row, std::vector<StartUp>& starts) {
  for (const Json& start : row.json(Shape::array)) {
    if (!start.is_object())
      row.complain(fmt::format("\"start_up\" holds {}; allowed are objects", outside::shown(start)));
    read_facts(row, "start_up", start, starts.emplace_back());
  }
}

void read(Statement& row, std::optional<Proof>& proof) {
  read_facts(row, "proof", row.json(Shape::object_or_null), proof);
}

}  // namespace strata::store
