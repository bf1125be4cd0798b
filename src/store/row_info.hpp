// SPDX-License-Identifier: Apache-2.0
// What is known of a participant beside how it ended, as `level_rows.info` keeps it. One fact more is a member here and
// its name in row_info.cpp, by which it is written and read.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "store/operation_profile.hpp"
#include "store/row_records.hpp"

namespace strata::store {

using Json = nlohmann::json;

// What `strata generate` is told to write this level's program.
struct Generate {
  std::string target, options;

  bool operator==(const Generate&) const = default;
};

// Code that is kept for this level beside the model's own.
struct FileLines {
  std::string file;
  int lines = 0;

  bool operator==(const FileLines&) const = default;
};
struct Lines {
  int total = 0;
  std::vector<FileLines> files;

  bool operator==(const Lines&) const = default;
};

// What must be shipped beside the artefact: the code that the process mapped from outside the system.
struct FileBytes {
  std::string file;
  std::int64_t bytes = 0;

  bool operator==(const FileBytes&) const = default;
};
struct Libraries {
  std::int64_t bytes = 0;
  std::vector<FileBytes> files;

  bool operator==(const Libraries&) const = default;
};

// Against float64 (proof/precision.hpp).
struct Accuracy {
  std::optional<double> error;  // nullopt: not finite
  std::int64_t answers = 0, differ = 0;

  bool operator==(const Accuracy&) const = default;
};

// The very first start, which compiled what later ones take from caches.
struct ColdStart {
  double total_ms = 0, prepare_ms = 0;

  bool operator==(const ColdStart&) const = default;
};

// Of a training step.
struct Phases {
  std::map<std::string, std::optional<double>> ms;         // median of each
  std::map<std::string, std::vector<std::string>> joined;  // which phases a phase holds
  std::int64_t iterations = 0;
  std::string note;  // why there are none

  bool operator==(const Phases&) const = default;
};

// Sums over a restart's turns (measure/restart_meter.hpp). nullopt: not seen.
struct MeterSums {
  int restart = 0;
  std::int64_t iterations = 0;  // those that are not recorded included
#define METER(member, metric, units) std::optional<double> member;
#include "core/meter.def"
#undef METER
  std::optional<double> energy;          // joules
  std::optional<std::string> no_energy;  // why there is none

  bool operator==(const MeterSums&) const = default;
};

struct RowInfo {
  // As level.json has it.
  std::string title, language, from, changes, default_text;
  int rank = 0;
  bool peer = false, harness = false;
  std::optional<Generate> generate;

  bool tuned = false;                       // the variant that tuning chose
  std::optional<std::string> artefact;      // the folder in the cache that `strata export` would ship
  std::optional<std::string> reason_short;  // at most 8 words
  std::optional<Lines> lines;
  std::optional<Libraries> libraries;
  std::optional<Accuracy> accuracy;
  std::optional<ColdStart> cold_start;
  std::optional<Phases> phases;
  std::optional<OperationProfile> profile;   // --profile
  std::vector<MeterSums> meters;             // one a restart
  std::vector<std::string> layers;           // that a training's looks have sizes of, in their order
  std::vector<std::int64_t> rows_of_shards;  // of a run joined from shards: the participant's rows in the others

  Json facts;  // that the level reported of itself, under its own names; null: none
  std::optional<DeepFacts> deep;
  std::optional<Tuning> tuning;
  // Lists of times in these are stored as samples (store/samples.hpp).
  std::optional<ServedClients> clients;
  std::optional<OpenBatchRecord> dynamic;
  std::optional<ScoreRecord> eval;

  bool operator==(const RowInfo&) const = default;
};

// What is empty is left out.
Json to_json(const RowInfo& info);
Json to_json(const Lines& lines);
Json to_json(const Phases& phases);
Json to_json(const std::vector<FileBytes>& files);
// What is unknown is null, and so is what there is not.
Json to_json(const std::vector<StartUp>& starts);
Json to_json(const std::optional<MemoryFacts>& memory);
Json to_json(const std::optional<Proof>& proof);

// The error says which value is not as strata writes it. Keys that it does not know, it passes over.
Result<RowInfo> read_row_info(const Json& stored);
// What `python -m evaluation score` answered (src/evaluation).
Result<ScoreRecord> read_score(const Json& answer);

}  // namespace strata::store
