// SPDX-License-Identifier: Apache-2.0
// How a run was asked for, and what it notes of its course. facts_codec.cpp has the names of all in the store.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace strata::store {

// What each case gets (plan/options.hpp).
struct EffortFacts {
  std::string preset;
  std::optional<int> restarts;
  std::optional<double> budget_s, ci_width;

  bool operator==(const EffortFacts&) const = default;
};

// Of the command line, beside the request; empty: not named.
struct Kept {
  std::string store, format, output;

  bool operator==(const Kept&) const = default;
};

// Which part of a whole it is (docs/cluster.md).
struct ShardFacts {
  std::string shard, whole, node;     // "2/8"; the same of all its parts; where it ran, of several nodes each
  std::optional<std::int64_t> parts;  // of the whole

  bool operator==(const ShardFacts&) const = default;
};

// What a training is judged by.
struct TrainingFacts {
  std::string dataset, rule;
  std::string scaled;  // what --scale cut, in words
  std::optional<int> epochs, repeats;
  std::optional<double> margin, loss_margin, target;

  bool operator==(const TrainingFacts&) const = default;
};

// The suite's run that it is an entry of, from 1.
struct OfSuite {
  std::string run, title;
  int entry = 0;

  bool operator==(const OfSuite&) const = default;
};

// What became of an entry of a suite. `state` empty: nothing yet.
struct EntryFacts {
  std::string command, label, state, reason, run;
  std::optional<double> predicted_s, took_s;
  std::optional<int> exit_code;

  bool operator==(const EntryFacts&) const = default;
};

// Of a suite's own run.
struct SuiteFacts {
  std::string title, about, source, file, hash, scale;
  std::vector<EntryFacts> entries;

  bool operator==(const SuiteFacts&) const = default;
};

// What a visit of a point of a sweep took (plan/visit_model.hpp).
struct VisitFacts {
  std::string kind, levels;
  bool fresh = false, trains = false;
  int count = 1;
  double flops = 0, capture_s = 0, rest_s = 0;

  bool operator==(const VisitFacts&) const = default;
};

struct Visited {
  std::string model;
  std::vector<VisitFacts> visits;

  bool operator==(const Visited&) const = default;
};

struct Settings {
  std::string verb;        // empty: a comparison
  nlohmann::json request;  // as requests/codec.hpp writes it
  std::string folder;      // in which its paths hold
  Kept kept;
  EffortFacts effort;
  bool aa = false, deep = false, tuned = false;
  std::string clients, dynamic, slo, eval, find_batch;  // as they were asked for; empty: not
  std::optional<double> memory_limit_gib;
  std::optional<std::int64_t> cases;  // that were planned
  ShardFacts shard;
  TrainingFacts training;
  SuiteFacts suite_run;
  std::optional<OfSuite> suite;
  Visited visited;
  std::string forecast;  // how far off it was, in words
  std::optional<double> predicted_s, wall_s;
  std::optional<int> resumed;  // how many times after it was cut off
  bool budget_spent = false;   // why it ended before all of its points were reached

  bool operator==(const Settings&) const = default;
};

// A shard's run in one that shards were joined to.
struct JoinedShard {
  std::string shard, run, node, cpu, state;
  std::optional<std::int64_t> points;  // that it finished, of a sweep

  bool operator==(const JoinedShard&) const = default;
};

struct Joined {
  std::vector<JoinedShard> shards;
  std::map<std::string, std::string> node_of;  // of a case, by its id
  std::vector<std::string> notes;

  bool operator==(const Joined&) const = default;
};

}  // namespace strata::store
