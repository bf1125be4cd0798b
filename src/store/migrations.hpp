// SPDX-License-Identifier: Apache-2.0
// The store's schema as numbered steps; entry i brings version i to i + 1. Steps are only ever appended.
#pragma once

#include <array>
#include <cstddef>

namespace strata::store {

inline constexpr std::array<const char*, 8> kMigrations{R"sql(
CREATE TABLE runs(
  run_id TEXT PRIMARY KEY, name TEXT NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL, interrupted INTEGER NOT NULL, command TEXT NOT NULL,
  version TEXT NOT NULL, seed INTEGER NOT NULL, settings TEXT NOT NULL, machine TEXT NOT NULL, environments TEXT NOT NULL);
CREATE TABLE cases(
  hash TEXT PRIMARY KEY, id TEXT NOT NULL, model TEXT, mode TEXT, batch INTEGER, inputs TEXT, maths TEXT, device TEXT, threads INTEGER, optimiser TEXT,
  seed INTEGER, weights TEXT, input_from TEXT, synthetic INTEGER, ring INTEGER, canonical TEXT NOT NULL);
CREATE TABLE run_cases(
  run_id TEXT NOT NULL REFERENCES runs(run_id), hash TEXT NOT NULL REFERENCES cases(hash), bundle TEXT NOT NULL, limits TEXT NOT NULL, trust TEXT NOT NULL,
  reference_level TEXT NOT NULL, PRIMARY KEY(run_id, hash));
CREATE TABLE level_rows(
  row_id INTEGER PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(run_id), hash TEXT NOT NULL REFERENCES cases(hash), level TEXT NOT NULL, variant TEXT NOT NULL,
  state TEXT NOT NULL, reason TEXT NOT NULL, hint TEXT NOT NULL, log_tail TEXT NOT NULL, repeat TEXT NOT NULL, info TEXT NOT NULL, settings TEXT NOT NULL,
  memory TEXT NOT NULL, start_up TEXT NOT NULL, proof TEXT NOT NULL, disk_bytes INTEGER, artefact_bytes INTEGER);
CREATE INDEX level_rows_of_run ON level_rows(run_id, hash);
CREATE TABLE blocks(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), restart INTEGER NOT NULL, round INTEGER NOT NULL, position INTEGER NOT NULL, instance INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, wall_ns BLOB NOT NULL, latency_ns BLOB NOT NULL, cpu_ns INTEGER, runq_ns INTEGER, check_result TEXT NOT NULL,
  PRIMARY KEY(row_id, instance, restart, round)) WITHOUT ROWID;
CREATE TABLE warnings(run_id TEXT NOT NULL REFERENCES runs(run_id), id TEXT NOT NULL, what TEXT NOT NULL, advice TEXT NOT NULL);
CREATE TABLE process_effects(
  machine TEXT NOT NULL, threads INTEGER NOT NULL, measured TEXT NOT NULL, sigma REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, detail TEXT NOT NULL);
)sql",
                                                        R"sql(
ALTER TABLE blocks ADD COLUMN taken REAL;
CREATE TABLE peaks(
  machine TEXT NOT NULL, threads INTEGER NOT NULL, instruction_set TEXT NOT NULL, gflops REAL NOT NULL, gbytes_per_s REAL NOT NULL, quiet INTEGER NOT NULL,
  PRIMARY KEY(machine, threads, instruction_set)) WITHOUT ROWID;
)sql",
                                                        R"sql(
ALTER TABLE runs ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE run_cases ADD COLUMN verdict TEXT NOT NULL DEFAULT '';
ALTER TABLE level_rows ADD COLUMN judged INTEGER NOT NULL DEFAULT 1;
CREATE INDEX runs_by_start ON runs(started);
CREATE INDEX runs_by_name ON runs(name);
)sql",
                                                        R"sql(
ALTER TABLE cases RENAME COLUMN maths TO precision;
ALTER TABLE cases RENAME COLUMN input_from TO data;
ALTER TABLE cases DROP COLUMN synthetic;
ALTER TABLE cases DROP COLUMN ring;
ALTER TABLE cases ADD COLUMN height INTEGER;
ALTER TABLE cases ADD COLUMN width INTEGER;
ALTER TABLE cases ADD COLUMN loss TEXT;
UPDATE cases SET canonical=json_remove(json_set(canonical,'$.precision',coalesce(json_extract(canonical,'$.maths'),'fp32')),'$.maths') WHERE json_valid(canonical);
ALTER TABLE run_cases ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE run_cases SET position=rowid;
ALTER TABLE run_cases ADD COLUMN network TEXT NOT NULL DEFAULT '';
ALTER TABLE run_cases ADD COLUMN finished INTEGER NOT NULL DEFAULT 0;
UPDATE run_cases SET finished=1;
CREATE TABLE restarts(
  run_id TEXT NOT NULL REFERENCES runs(run_id), hash TEXT NOT NULL REFERENCES cases(hash), number INTEGER NOT NULL, load TEXT NOT NULL,
  PRIMARY KEY(run_id, hash, number)) WITHOUT ROWID;
ALTER TABLE warnings ADD COLUMN case_key TEXT NOT NULL DEFAULT '';
)sql",
                                                        R"sql(
ALTER TABLE level_rows ADD COLUMN environment TEXT NOT NULL DEFAULT '';
)sql",
                                                        R"sql(
CREATE TABLE machines(
  hash TEXT PRIMARY KEY, cpu TEXT NOT NULL, cores INTEGER NOT NULL, processors INTEGER NOT NULL, memory_gib INTEGER NOT NULL, gpu TEXT NOT NULL,
  gpus INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE environments(hash TEXT PRIMARY KEY, python TEXT NOT NULL, torch TEXT NOT NULL, packages TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE run_environments(
  run_id TEXT NOT NULL REFERENCES runs(run_id), name TEXT NOT NULL, hash TEXT NOT NULL REFERENCES environments(hash), PRIMARY KEY(run_id, name)) WITHOUT ROWID;
ALTER TABLE runs ADD COLUMN machine_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE run_cases ADD COLUMN metrics_version INTEGER NOT NULL DEFAULT 0;
CREATE TABLE metrics(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), pass TEXT NOT NULL, name TEXT NOT NULL, setting TEXT NOT NULL, unit TEXT NOT NULL,
  value REAL NOT NULL, low REAL, high REAL, method TEXT NOT NULL, PRIMARY KEY(row_id, name, setting)) WITHOUT ROWID;
CREATE INDEX metrics_by_name ON metrics(name, value);
CREATE TABLE series(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), name TEXT NOT NULL, unit TEXT NOT NULL, axis TEXT NOT NULL, repeat INTEGER NOT NULL DEFAULT 0,
  position INTEGER NOT NULL, value REAL, PRIMARY KEY(row_id, name, axis, repeat, position)) WITHOUT ROWID;
CREATE TABLE samples(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), place TEXT NOT NULL, ns BLOB NOT NULL, PRIMARY KEY(row_id, place)) WITHOUT ROWID;
ALTER TABLE warnings ADD COLUMN row_id INTEGER;
ALTER TABLE level_rows ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE level_rows ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE level_rows ADD COLUMN peer INTEGER NOT NULL DEFAULT 0;
ALTER TABLE level_rows ADD COLUMN harness INTEGER NOT NULL DEFAULT 0;
ALTER TABLE level_rows ADD COLUMN tuned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE level_rows ADD COLUMN verdict TEXT NOT NULL DEFAULT '';
ALTER TABLE level_rows ADD COLUMN first_difference TEXT NOT NULL DEFAULT '';
UPDATE level_rows SET
  rank=coalesce(json_extract(info,'$.rank'),0), language=coalesce(json_extract(info,'$.language'),''), peer=coalesce(json_extract(info,'$.peer'),0),
  harness=coalesce(json_extract(info,'$.harness'),0), tuned=coalesce(json_extract(info,'$.tuned'),0) WHERE json_valid(info);
UPDATE level_rows SET
  verdict=coalesce(json_extract(proof,'$.verdict'),''), first_difference=coalesce(json_extract(proof,'$.first_difference'),'') WHERE json_valid(proof);
CREATE INDEX run_cases_of_case ON run_cases(hash);
CREATE INDEX level_rows_of_case ON level_rows(hash, level);
CREATE INDEX warnings_of_run ON warnings(run_id);
)sql",
                                                        R"sql(
UPDATE level_rows SET settings=json_remove(json_set(settings,'$.precision',json_extract(settings,'$.maths')),'$.maths')
  WHERE CASE WHEN json_valid(settings) THEN json_type(settings,'$.maths') IS NOT NULL END;
UPDATE run_cases SET bundle=json_remove(json_set(bundle,'$.case.precision',json_extract(bundle,'$.case.maths')),'$.case.maths')
  WHERE CASE WHEN json_valid(bundle) THEN json_type(bundle,'$.case.maths') IS NOT NULL END;
UPDATE run_cases SET bundle=json_remove(json_set(bundle,'$.spec.precision',json_extract(bundle,'$.spec.maths')),'$.spec.maths')
  WHERE CASE WHEN json_valid(bundle) THEN json_type(bundle,'$.spec.maths') IS NOT NULL END;
UPDATE runs SET settings=json_remove(json_set(settings,'$.ci_width',json_extract(settings,'$.precision')),'$.precision')
  WHERE CASE WHEN json_valid(settings) THEN json_type(settings,'$.precision') IS NOT NULL END;
)sql",
                                                        R"sql(
UPDATE level_rows SET start_up=replace(start_up,'"again_ms":','"total_ms":'),
  info=replace(replace(info,'"first_ever":','"cold_start":'),'"first_ever_ms":','"total_ms":');
)sql"};

// Whose runs get their fingerprints (fingerprint.hpp) besides, which SQL cannot compute.
inline constexpr std::size_t kFingerprintStep = 5;

}  // namespace strata::store
