// SPDX-License-Identifier: Apache-2.0
// What the store holds of a run, as plain values. The report is computed from these and from nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/state.hpp"
#include "core/case.hpp"
#include "core/metric.hpp"
#include "core/participant_id.hpp"
#include "store/case_facts.hpp"
#include "store/row_info.hpp"
#include "store/settings.hpp"

namespace strata::store {

// One participant for one case. `environment`: its name among several; empty: there is one, or the level uses none of
// them.
struct Row {
  std::int64_t row_id = 0;
  State state = State::failed;
  std::string level, variant = "default", environment, reason, hint, log_tail, repeat;
  RowInfo info;
  Json settings = Json::object();  // as the level reports them, under its own names
  std::optional<MemoryFacts> memory;
  std::vector<StartUp> start_up;  // one a start of its process
  std::optional<Proof> proof;     // nullopt: nothing was proven yet, or it is a harness level
  std::optional<std::int64_t> disk_bytes, artefact_bytes;
  bool judged = true;  // false: the run has not come to its state yet; see analysis/judge_stored.hpp
  std::vector<Block> blocks;

  bool operator==(const Row&) const = default;
  core::ParticipantId participant() const { return {level, variant, environment}; }
  std::string level_and_variant() const { return participant().level_and_variant(); }
  std::string name() const { return participant().name(); }
};

// A number of a row. `setting` tells several of one name apart; without an end of its interval: nothing bounds it.
struct Metric {
  std::int64_t row_id = 0;
  core::Metric which = core::Metric::iteration_time;
  std::string setting;
  double value = 0;
  std::optional<double> low, high;
  std::string method;  // how it was found, in a few words

  bool operator==(const Metric&) const = default;
};

// A number of a row over steps or epochs: one value a position. Not finite: it was not.
struct Series {
  std::string name, unit, axis;  // axis: "step", "epoch"
  std::vector<std::int64_t> positions;
  std::vector<double> values;
  int repeat = 0;  // of a training, from 0
};

// A step of a training as a run measured it.
struct StepTime {
  std::string level, run_id;  // the level with its variant and environment
  double ms = 0;
};

// The most private memory that a participant was seen to need for a case, alone in its process.
struct PeakMemory {
  std::string level;  // with its variant and environment
  core::Case question;
  Json bundle;  // what was captured
  double bytes = 0;
};

// A participant that ran out of memory in a case.
struct OutOfMemory {
  std::string level, torch;  // with its variant and environment; PyTorch's version in the run's first environment
  core::Case question;
  double limit_gib = 0;  // that was set for it; 0: none
};

struct Case {
  std::string key, id;  // of `question`, as they were when it was stored
  core::Case question;
  std::string network;  // hash of what was captured (plan::Bundle); cases of one key and two of these are never mixed
  Json bundle;
  std::optional<Limits> limits;  // nullopt: of a training
  Trust trust;
  std::string reference_level;
  bool finished = false;  // all that was asked of it was done; else `strata resume` goes on
  std::vector<Row> rows;

  bool operator==(const Case&) const = default;
};

// A case of a run as a list of runs shows it.
struct ListedCase {
  std::string key, network, id, verdict;  // `verdict`: a few words; empty where the run did not come to one
};

// Each verdict once, in the order of cases: the points of a sweep share one.
inline std::vector<std::string> verdicts_of(const std::vector<ListedCase>& cases) {
  std::vector<std::string> verdicts;
  for (const auto& listed : cases)
    if (!listed.verdict.empty() && std::find(verdicts.begin(), verdicts.end(), listed.verdict) == verdicts.end())
      verdicts.push_back(listed.verdict);
  return verdicts;
}

struct Warning {
  std::string id, what, advice;
  std::string case_key;                // of the case that it is about; empty: of the whole run
  std::optional<std::int64_t> row_id;  // of the participant that it is about

  bool operator==(const Warning&) const = default;
};

struct Run {
  std::string run_id, name, started, finished, command, version;  // finished is empty while it runs or after a kill
  bool interrupted = false;
  bool imported = false;  // it came from another store
  std::int64_t seed = 0;
  Settings settings;
  std::optional<Joined> joined;  // of runs of shards, for a report; such a run is in no store
  Json machine = Json::object(), environments = Json::array();
  std::string process;   // that wrote it, see store/run_state.hpp
  bool goes_on = false;  // this process, which writes it, asks for what there is so far; not stored
  std::vector<Warning> warnings;
  std::vector<Case> cases;

  bool operator==(const Run&) const = default;
};

// This machine's process effect (docs/measuring.md) for a number of threads.
struct ProcessEffect {
  std::string machine, measured;  // `measured`: UTC date and time
  int threads = 1;
  double sigma = 0, low = 0, high = 0;  // standard deviation of log time, with a 95% interval
  Json detail = Json::object();
};

// The best that this machine was ever seen to do with a number of threads and an instruction set.
struct Peak {
  std::string machine, instruction_set;
  int threads = 1;
  double gflops = 0, gbytes_per_s = 0;
  bool quiet = false;  // seen at least once while others left the cores alone: then it is not too low
};

}  // namespace strata::store
