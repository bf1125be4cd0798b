// SPDX-License-Identifier: Apache-2.0
// The store's schema, and the two numbers in a file's header by which a store of this strata is known.
#pragma once

namespace strata::store {

inline constexpr int kApplication = 0x73747261;  // "stra"
inline constexpr int kVersion = 1;

// Every column has one type, which SQLite keeps (STRICT).
inline constexpr const char* kSchema = R"sql(
CREATE TABLE machines(
  hash TEXT PRIMARY KEY, cpu TEXT NOT NULL, cores INTEGER NOT NULL, processors INTEGER NOT NULL, memory_gib INTEGER NOT NULL, gpu TEXT NOT NULL,
  gpus INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE environments(hash TEXT PRIMARY KEY, python TEXT NOT NULL, torch TEXT NOT NULL, packages TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE cases(
  hash TEXT PRIMARY KEY, id TEXT NOT NULL, model TEXT, mode TEXT, batch INTEGER, height INTEGER, width INTEGER, inputs TEXT, precision TEXT, device TEXT,
  threads INTEGER, optimiser TEXT, loss TEXT, data TEXT, weights TEXT, seed INTEGER, canonical TEXT NOT NULL) STRICT;
CREATE TABLE runs(
  run_id TEXT PRIMARY KEY, name TEXT NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL, interrupted INTEGER NOT NULL, command TEXT NOT NULL,
  version TEXT NOT NULL, seed INTEGER NOT NULL, settings TEXT NOT NULL, machine TEXT NOT NULL, environments TEXT NOT NULL, process TEXT NOT NULL DEFAULT '',
  machine_hash TEXT NOT NULL DEFAULT '', imported INTEGER NOT NULL DEFAULT 0, list_hash TEXT NOT NULL DEFAULT '', content_hash TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE run_environments(
  run_id TEXT NOT NULL REFERENCES runs(run_id), name TEXT NOT NULL, hash TEXT NOT NULL REFERENCES environments(hash),
  PRIMARY KEY(run_id, name)) STRICT, WITHOUT ROWID;
CREATE TABLE run_cases(
  run_id TEXT NOT NULL REFERENCES runs(run_id), hash TEXT NOT NULL REFERENCES cases(hash), position INTEGER NOT NULL DEFAULT 0,
  network TEXT NOT NULL DEFAULT '', bundle TEXT NOT NULL, limits TEXT NOT NULL, trust TEXT NOT NULL, reference_level TEXT NOT NULL,
  finished INTEGER NOT NULL DEFAULT 0, verdict TEXT NOT NULL DEFAULT '', metrics_version INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(run_id, hash)) STRICT;
CREATE TABLE restarts(
  run_id TEXT NOT NULL REFERENCES runs(run_id), hash TEXT NOT NULL REFERENCES cases(hash), number INTEGER NOT NULL, load TEXT NOT NULL,
  PRIMARY KEY(run_id, hash, number)) STRICT, WITHOUT ROWID;
CREATE TABLE level_rows(
  row_id INTEGER PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(run_id), hash TEXT NOT NULL REFERENCES cases(hash), level TEXT NOT NULL,
  variant TEXT NOT NULL, environment TEXT NOT NULL DEFAULT '', state TEXT NOT NULL, reason TEXT NOT NULL, hint TEXT NOT NULL, log_tail TEXT NOT NULL,
  repeat TEXT NOT NULL, info TEXT NOT NULL, settings TEXT NOT NULL, memory TEXT NOT NULL, start_up TEXT NOT NULL, proof TEXT NOT NULL, disk_bytes INTEGER,
  artefact_bytes INTEGER, judged INTEGER NOT NULL DEFAULT 1, rank INTEGER NOT NULL DEFAULT 0, language TEXT NOT NULL DEFAULT '',
  peer INTEGER NOT NULL DEFAULT 0, harness INTEGER NOT NULL DEFAULT 0, tuned INTEGER NOT NULL DEFAULT 0, verdict TEXT NOT NULL DEFAULT '',
  first_difference TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE warnings(
  run_id TEXT NOT NULL REFERENCES runs(run_id), id TEXT NOT NULL, what TEXT NOT NULL, advice TEXT NOT NULL, case_key TEXT NOT NULL DEFAULT '',
  row_id INTEGER) STRICT;
CREATE TABLE blocks(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), restart INTEGER NOT NULL, round INTEGER NOT NULL, position INTEGER NOT NULL, instance INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, wall_ns BLOB NOT NULL, latency_ns BLOB NOT NULL, cpu_ns INTEGER, runq_ns INTEGER, check_result TEXT NOT NULL, taken REAL,
  PRIMARY KEY(row_id, instance, restart, round)) STRICT, WITHOUT ROWID;
CREATE TABLE samples(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), place TEXT NOT NULL, ns BLOB NOT NULL, PRIMARY KEY(row_id, place)) STRICT, WITHOUT ROWID;
CREATE TABLE series(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), name TEXT NOT NULL, unit TEXT NOT NULL, axis TEXT NOT NULL, repeat INTEGER NOT NULL DEFAULT 0,
  position INTEGER NOT NULL, value REAL, PRIMARY KEY(row_id, name, axis, repeat, position)) STRICT, WITHOUT ROWID;
CREATE TABLE metrics(
  row_id INTEGER NOT NULL REFERENCES level_rows(row_id), pass TEXT NOT NULL, name TEXT NOT NULL, setting TEXT NOT NULL, unit TEXT NOT NULL,
  value REAL NOT NULL, low REAL, high REAL, method TEXT NOT NULL, PRIMARY KEY(row_id, name, setting)) STRICT, WITHOUT ROWID;
CREATE TABLE process_effects(
  machine TEXT NOT NULL, threads INTEGER NOT NULL, measured TEXT NOT NULL, sigma REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  detail TEXT NOT NULL) STRICT;
CREATE TABLE peaks(
  machine TEXT NOT NULL, threads INTEGER NOT NULL, instruction_set TEXT NOT NULL, gflops REAL NOT NULL, gbytes_per_s REAL NOT NULL, quiet INTEGER NOT NULL,
  PRIMARY KEY(machine, threads, instruction_set)) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_start ON runs(started);
CREATE INDEX runs_by_name ON runs(name);
CREATE INDEX run_cases_of_case ON run_cases(hash);
CREATE INDEX level_rows_of_run ON level_rows(run_id, hash);
CREATE INDEX level_rows_of_case ON level_rows(hash, level);
CREATE INDEX metrics_by_name ON metrics(name, value);
CREATE INDEX warnings_of_run ON warnings(run_id);
)sql";

}  // namespace strata::store
