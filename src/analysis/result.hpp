// SPDX-License-Identifier: Apache-2.0
// The result of a run of `compare` as a value: what docs/results_schema.md describes, member by member under the same
// names, but for `case` and `default`, which C++ does not allow. result_json.hpp writes and reads it. A number that is
// unknown is nullopt, a text that is unknown is empty.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/state.hpp"
#include "core/participant_id.hpp"
#include "stats/estimate.hpp"
#include "store/row_info.hpp"

namespace strata::analysis {

using OptionalNumber = std::optional<double>;
using OptionalBytes = std::optional<std::int64_t>;
using stats::Estimate, stats::JudgedRatio, stats::RatioVerdict, stats::verdict_of;
using store::DeepFacts, store::MemoryFacts, store::Proof, store::ProofLine, store::TriedVariant, store::Tuning;

// What an interval owes to earlier runs.
struct LearnedEffect {
  double process_effect_percent = 0;
  int restarts = 0, runs = 0;
};

// What would decide what a run could not.
struct Resolve {
  std::string command;
  double minutes = 0;
};

// A speedup over a reference: above 1 is faster.
struct Ratio : Estimate {
  RatioVerdict verdict = RatioVerdict::inconclusive;
  OptionalNumber same_within_percent, smallest_visible_percent;
  std::string rests_on;
  std::optional<LearnedEffect> learned;
  std::vector<double> by_restart;
  std::optional<Estimate> by_processor_time;
  std::optional<Resolve> resolve;
};

struct BreakEven {
  OptionalNumber iterations, low, high;
  bool never = false, inconclusive = false;
};

struct TimeSummary {
  OptionalNumber estimate, median, p90, p99, min;  // ms
  bool is_median = false;
  std::int64_t samples = 0;
};

struct StartUp {
  OptionalNumber process_ms, library_ms, load_ms, build_ms, weights_ms, first_iteration_ms, warm_start_ms,
      cold_start_ms, prepare_ms;
};

struct Shipped {
  std::int64_t bytes = 0, libraries_bytes = 0, artefact_bytes = 0;
  std::vector<store::FileBytes> libraries;
};

struct BlockSummary {
  int restart = 0, round = 0, position = 0;
  OptionalNumber time_s;  // since the first block of its restart
  OptionalNumber median_ms;
  bool disturbed = false;
  std::string why;
};

struct Histogram {
  std::vector<double> edges_ms;
  std::vector<std::int64_t> counts;
};

// A level beside itself (--aa).
struct IfAssumed {
  Estimate ratio;
  RatioVerdict verdict = RatioVerdict::inconclusive;
};
struct AgainstItself {
  Estimate ratio;
  RatioVerdict verdict = RatioVerdict::inconclusive;
  std::string rests_on;
  std::optional<LearnedEffect> learned;
  std::vector<double> by_restart;
  IfAssumed if_assumed;  // what the assumed process effect alone would give
};

// Its level's best against the reference level's best (--tuned); ratio: nullopt where no reference was measured.
struct Tuned {
  std::optional<Ratio> ratio;
  std::optional<BreakEven> break_even, break_even_once;
};

// Several clients at once (--clients).
struct LatencyQuantiles {
  Estimate p50, p90, p99;
  std::int64_t samples = 0;
  double requests = 0;
};
struct ServingMemory {
  double private_bytes = 0, pss_bytes = 0;
};
struct ClientPoint {
  int clients = 1, threads_each = 1;
  std::string as = "threads", state = "failed", reason, hint;  // only `measured` has numbers
  std::int64_t repetitions = 0;
  std::optional<Estimate> requests_per_s, inputs_per_s;
  std::optional<LatencyQuantiles> latency_ms;
  OptionalNumber cpu_ms;
  std::optional<ServingMemory> memory;

  bool is_measured() const { return state == "measured"; }
};
struct Clients {
  OptionalNumber seconds;
  std::optional<int> cores;
  bool reliable = true;
  std::vector<ClientPoint> points;
};

// One artefact over several batch sizes (--dynamic).
struct BatchSize {
  int batch = 0;
  bool seen = false, recompiled = false;
  OptionalNumber first_ms, again_ms, settled_ms, recompile_ms, envelopes;
};
struct ReportedRecompiles {
  double recompiles = 0;
  std::vector<std::string> reasons;
};
struct AgainstFixed {
  int batch = 0;
  JudgedRatio ratio;
};
struct OpenBatch {
  int low = 0, high = 0, own = 0;  // 0: unknown
  std::string state, reason, hint;
  OptionalNumber prepare_ms;
  std::vector<BatchSize> sizes;
  std::optional<int> unseen, recompiled;
  OptionalNumber recompile_ms;
  std::optional<ReportedRecompiles> reported;
  std::optional<AgainstFixed> against_fixed;
  std::string against_fixed_note;

  bool is_measured() const { return state == "measured"; }
};

struct RowResult {
  std::string level, variant = "default", environment, title, language;
  int rank = 99;
  bool peer = false, harness = false, reference = false;
  State state = State::failed;
  std::string reason, reason_short, hint, log_tail, repeat, default_text;
  std::optional<TimeSummary> end_to_end_ms, latency_ms;
  OptionalNumber throughput_per_s, steps_per_s, cpu_ms;
  std::optional<store::Phases> phases;
  std::optional<store::OperationProfile> profile;
  std::optional<Ratio> ratio;
  std::optional<BreakEven> break_even, break_even_once;
  std::optional<MemoryFacts> memory;
  std::optional<StartUp> startup;
  OptionalBytes disk_bytes, artefact_bytes;
  std::optional<Shipped> shipped;
  std::optional<store::Lines> lines;
  nlohmann::json settings, facts;  // as the level reports them, under its own names; null: none
  std::optional<Proof> proof;
  std::optional<DeepFacts> deep;
  std::vector<BlockSummary> blocks;
  std::optional<Histogram> histogram;
  std::optional<AgainstItself> aa;
  std::optional<Tuned> tuned;
  std::optional<Tuning> tuning;
  std::optional<Clients> clients;
  std::optional<OpenBatch> dynamic;

  core::ParticipantId participant() const { return {level, variant, environment}; }
  std::string name() const { return participant().name(); }
  bool is_measured() const { return state == State::measured; }
  OptionalNumber estimate_ms() const { return end_to_end_ms ? end_to_end_ms->estimate : std::nullopt; }
  OptionalNumber peak_private_bytes() const { return memory ? memory->peak_private_bytes : std::nullopt; }
  OptionalNumber warm_start_ms() const { return startup ? startup->warm_start_ms : std::nullopt; }
};

enum class HeadlineVerdict { move, stay, undecided, no_data, not_reliable, preliminary };
const char* to_string(HeadlineVerdict verdict);
bool from_string(std::string_view name, HeadlineVerdict& verdict);

struct Headline {
  HeadlineVerdict verdict = HeadlineVerdict::no_data;
  std::string level, sentence;  // level: empty for none
};

struct LimitFacts {
  double gflops = 0, gbytes_per_s = 0;
  bool quiet = false;
  OptionalNumber cache_bytes, memory_bytes, compute_ms, memory_ms, limit_ms;
  std::string kind;  // "bound" where no program can take less, "roofline" where one may do fewer operations
};

struct TrustFacts {
  std::optional<int> restarts, restarts_compared;
  OptionalNumber most_process_effect_percent, process_effect_percent;
  std::string process_effect_source;
  OptionalNumber smallest_visible_percent;
  std::optional<int> blocks, disturbed_blocks;
  OptionalNumber minimum_effect_percent;
  bool together = true;
  OptionalNumber others_begin_percent, others_percent, host_percent;
  std::optional<int> other_run;
  bool reliable = true, one_thread_fits = false;
};

enum class EdgeKind { step, peer, differs };
const char* to_string(EdgeKind kind);
bool from_string(std::string_view name, EdgeKind& kind);

struct LedgerEdge {
  std::string from, to;
  EdgeKind kind = EdgeKind::step;
  std::string changes;
  std::optional<Estimate> difference_ms, ratio;
  std::optional<RatioVerdict> verdict;
  std::vector<std::string> differs;
};
struct Ledger {
  std::vector<LedgerEdge> edges;
};

struct SloLevel {
  std::string level, variant = "default", environment, verdict;  // meets, may_meet, misses
  double batch = 1, clients = 1;
  std::string as;
  OptionalNumber inputs_per_s;
  Estimate quantile_ms;
  OptionalNumber miss_ms;
  std::int64_t samples = 0, needed_samples = 0;
  std::string sentence;
};
struct SloResult {
  std::string quantile;
  double limit_ms = 0;
  std::vector<SloLevel> levels;
  std::string note;
};

struct AaTotal {
  int comparisons = 0, false_alarms = 0;
  OptionalNumber bound_percent;
};

// A level in one environment against itself in another.
struct AcrossEnvironments {
  std::string level, variant = "default", from, to;
  std::optional<Ratio> ratio;
};

struct InsteadOf {
  std::string level, state, reason;
};

struct ModelFacts {
  std::string name, kind, source, note;
  std::vector<std::string> data;
};

struct CaseResult {
  std::string id, key, network_hash;
  nlohmann::json question;  // `case` of bundle.json; null: unknown
  ModelFacts model;
  std::string input_source, weight_source;
  nlohmann::json network;  // of bundle.json: {"sha256", "tensors"}
  std::optional<std::int64_t> flops, parameters;
  OptionalBytes weight_bytes;
  std::vector<std::string> flops_uncounted;
  std::string reference_level;
  std::optional<InsteadOf> reference_instead_of;
  std::optional<Headline> headline;
  std::optional<LimitFacts> limits;
  TrustFacts trust;
  std::string next_command;
  Ledger ledger;
  std::optional<SloResult> slo;
  std::optional<AaTotal> aa;
  std::vector<AcrossEnvironments> across_environments;
  std::vector<RowResult> rows;

  bool is_training() const;
  // By rank, then peers, then harness levels; equal ones keep their order.
  std::vector<const RowResult*> sorted_rows() const;
  // That ratios refer to; nullptr: there is none.
  const RowResult* reference_row() const;
};

// Accuracy against speed: a point a level and precision, of cases that differ in their precision alone.
struct EvalFacts {
  std::string state, reason, hint;
  std::optional<std::int64_t> count, differ;
  OptionalNumber score;
  std::optional<Estimate> difference;
};
struct PointRatio : Estimate {
  bool together = false;
};
struct AccuracyPoint {
  std::string case_id, level, variant = "default", environment, precision;
  bool reference = false, reliable = true;
  OptionalNumber time_ms, error;
  std::optional<PointRatio> ratio;
  std::optional<std::int64_t> answers, differ;
  std::optional<EvalFacts> eval;

  std::string name() const { return core::ParticipantId{level, variant, environment}.name(); }
};
struct AccuracyReference {
  std::string case_id, level, precision;
};
struct AccuracyGroup {
  std::string id;
  std::optional<AccuracyReference> reference;
  std::string score;
  bool measured_apart = false;
  std::vector<AccuracyPoint> points;
};

struct WarningText {
  std::string id, case_key, what, advice;  // case_key: empty of the whole run

  bool operator==(const WarningText&) const = default;
};

struct RunFacts {
  std::string id, name, started, command, version;
  bool finished = false, interrupted = false;
  std::string state;
  int resumed = 0;
  std::int64_t seed = 0;
  std::string preset;
  OptionalNumber wall_s;
  std::optional<int> restarts;
  OptionalNumber budget_s, ci_width;
  bool aa = false, deep = false, tuned = false;
  std::string clients, dynamic, slo, eval;
};

struct RunResult {
  RunFacts run;
  std::vector<AccuracyGroup> accuracy;
  nlohmann::json machine;                    // under the names of `strata doctor`
  std::vector<nlohmann::json> environments;  // as plan/environment.hpp writes each
  std::vector<WarningText> warnings;
  std::vector<CaseResult> cases;
};

}  // namespace strata::analysis
