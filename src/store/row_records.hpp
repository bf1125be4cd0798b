// SPDX-License-Identifier: Apache-2.0
// What passes record of a participant (measure/passes), and what is known of its starts, its memory and its proof. A
// number that is unknown is nullopt. row_members.hpp has the names of all in JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "stats/estimate.hpp"

namespace strata::store {

// Consecutive iterations of one worker. `instance` is 0, or 1 for the second worker of a level in an A/A run.
struct Block {
  int restart = 0, round = 0, position = 0, instance = 0;
  std::int64_t start_ns = 0;
  std::vector<std::int64_t> wall_ns, latency_ns;  // one entry an iteration
  std::optional<std::int64_t> cpu_ns, runq_ns;    // over the whole block
  std::optional<double> taken;                    // share of the processors that others had around it (probe/load.hpp)
  std::string check;                              // "" = the sampled output was right, else what was wrong

  bool operator==(const Block&) const = default;
};

// One start of the level's process.
struct StartUp {
  int restart = -1;   // -1: alone, before the first one
  bool cold = false;  // the level's cache was empty
  std::optional<double> process_ms, library_ms, load_ms, first_iteration_ms;
  std::optional<double> build_ms, weights_ms;  // parts of load_ms, as the level reports them
  std::optional<double> total_ms;              // from the start of the process to the end of the first iteration

  bool operator==(const StartUp&) const = default;
};

// Of a worker alone, in bytes.
struct MemoryFacts {
  std::optional<std::int64_t> idle_private_bytes, steady_private_bytes, peak_private_bytes, steady_pss_bytes,
      above_idle_bytes, shared_file_bytes, device_peak_bytes;
  std::optional<std::int64_t> expected_peak_bytes;  // of a process that goes on with other cases: its peak is not seen

  bool operator==(const MemoryFacts&) const = default;
};

// The certificate of equal work (proof/certificate.hpp).
struct ProofLine {
  std::string check, how, result, value, bound, detail;

  bool operator==(const ProofLine&) const = default;
};
// Of a whole training: single steps and scores that a referee repeated.
struct ProofWhileTraining {
  std::int64_t steps_and_scores = 0, steps = 0, steps_in_windows = 0, longest_window = 0, windows_too_rough = 0;
  std::string by;  // the referee; empty: there was none

  bool operator==(const ProofWhileTraining&) const = default;
};
struct Proof {
  std::string verdict;
  bool weak = false;
  int observed = 0, reported = 0, assumed = 0;
  std::string first_difference;
  std::optional<double> worst_ratio;
  std::vector<ProofLine> lines;
  std::optional<ProofWhileTraining> in_the_middle;

  bool operator==(const Proof&) const = default;
  bool is_equal() const { return verdict == "equal" || verdict == "equal_looser"; }
};

// --deep: where a level's activations first differ; `note`: why they were not compared.
struct DeepFacts {
  std::optional<std::string> first_difference;  // empty: they do not
  std::string reason, note;
  std::optional<double> worst_ratio;

  bool operator==(const DeepFacts&) const = default;
};

// The search for the best variant (measure/tune.hpp).
struct TriedVariant {
  std::string variant, title, state, reason;
  std::optional<double> median_ms;
  std::optional<stats::JudgedRatio> ratio;

  bool operator==(const TriedVariant&) const = default;
};
struct Tuning {
  std::optional<double> seconds;
  std::optional<int> restarts;
  std::string best, note;
  std::vector<TriedVariant> tried;

  bool operator==(const Tuning&) const = default;
};

// --clients (measure/serve.hpp): raw times of each repetition with so many clients.
struct ServedRepetition {
  double requests_per_s = 0;
  std::int64_t requests = 0, private_bytes = 0, pss_bytes = 0;
  std::optional<std::int64_t> cpu_ns;
  std::vector<std::int64_t> latency_ns;

  bool operator==(const ServedRepetition&) const = default;
};
struct ServedPoint {
  int clients = 1, threads_each = 1;
  std::string as = "threads", state = "failed", reason, hint;
  std::vector<ServedRepetition> repetitions;

  bool operator==(const ServedPoint&) const = default;
};
struct ServedClients {
  std::optional<double> seconds;
  std::optional<int> cores;
  std::vector<ServedPoint> points;

  bool operator==(const ServedClients&) const = default;
};

// --dynamic (measure/dynamic.hpp): each visit of a size in either lap, and turns of the artefact of the fixed size with
// the open one.
struct SizeVisit {
  int size = 0, lap = 0;
  std::int64_t first_ns = 0;
  double worst_ratio = 0;  // in envelopes
  std::vector<std::int64_t> wall_ns;

  bool operator==(const SizeVisit&) const = default;
};
struct OpenTurns {
  std::vector<Block> fixed, open;

  bool operator==(const OpenTurns&) const = default;
};
struct LevelReports {
  nlohmann::json before, after;  // the visits, as the level reports under its own names

  bool operator==(const LevelReports&) const = default;
};
struct OpenBatchRecord {
  int low = 0, high = 0, own = 0;
  std::string state, reason, hint;
  std::optional<double> prepare_ms;
  std::vector<SizeVisit> visits;
  std::optional<LevelReports> reported;
  std::optional<OpenTurns> turns;
  std::string turns_note;  // why there are none

  bool operator==(const OpenBatchRecord&) const = default;
};

// --eval (measure/evaluate.hpp).
struct ScoreRecord {
  std::string state = "failed", reason, hint;
  std::optional<std::int64_t> count;
  std::optional<double> score;
  std::vector<double> per_example, answers;

  bool operator==(const ScoreRecord&) const = default;
  bool is_scored() const { return state == "scored"; }
};

}  // namespace strata::store
