// SPDX-License-Identifier: Apache-2.0
// Opening and writing; reading is in read.cpp.
#include "store/store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "common/places.hpp"
#include "store/facts_codec.hpp"
#include "store/fingerprint.hpp"
#include "store/run_hash.hpp"
#include "store/samples.hpp"
#include "store/statement.hpp"

namespace strata::store {
namespace fs = std::filesystem;
namespace {

// An axis of a case; of several inputs all, a line each.
std::string axis(const core::Case& question, std::string_view axis_name) {
  std::string text;
  for (const auto& [name, value] : question.axes())
    if (name == axis_name) text += (text.empty() ? "" : "\n") + value;
  return text;
}

// All of a row that may change: its columns from `state` on. `info`: as it is stored. What of `info` and `proof` is
// selected by has columns.
void bind_result(Statement& put, const Row& row, const Json& info) {
  put.bind(std::string(to_string(row.state)), row.reason, row.hint, row.log_tail, row.repeat);
  put.bind(info, row.settings, to_json(row.memory), to_json(row.start_up), to_json(row.proof));
  put.bind(row.disk_bytes, row.artefact_bytes, static_cast<int>(row.judged));
  put.bind(row.info.rank, row.info.language);
  put.bind(int{row.info.peer}, int{row.info.harness}, int{row.info.tuned});
  const auto proof = row.proof.value_or(Proof());
  put.bind(proof.verdict, proof.first_difference);
}

// One statement that has no row for an answer.
template <class... Values>
Result<void> write(const Connection& store, const char* doing, const char* sql, const Values&... values) {
  if (!execute(store.handle(), sql, values...)) return store.broken(doing);
  return {};
}

constexpr double kMostPeak = 1e9;  // GFLOP/s, GB/s: beyond any machine

tl::unexpected<Error> no_place() {
  return fail("there is no place for the store: HOME is not set", "name a file with --store PATH", Exit::environment);
}

}  // namespace

fs::path Store::path_of(const std::string& named) {
  return named.empty() ? default_path() : fs::path(named);
}

fs::path Store::default_path() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data) return fs::path(data) / "strata" / "strata.db";
  const auto home = home_folder();
  return home.empty() ? fs::path() : home / ".local/share/strata/strata.db";
}

Result<Store> Store::open(const fs::path& path) {
  if (path.empty()) return no_place();
  if (path == default_path()) STRATA_TRY(private_folder(path.parent_path(), "name another file with --store PATH"));
  std::error_code ec;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ec);
  if (ec)
    return fail(fmt::format("store {}: cannot make its folder: {}", path.string(), ec.message()),
                "name another file with --store PATH");
  auto opened = STRATA_TRY(Connection::to_write(path));
  return Store(std::move(opened));
}

Result<Store> Store::open_existing(const fs::path& path) {
  std::error_code ec;  // a name that is too long, a link that leads to itself
  const bool there = fs::exists(path, ec);
  if (ec)
    return fail(fmt::format("store {}: {}", path.string(), ec.message()), "name another file with --store PATH",
                Exit::usage);
  if (!there)
    return fail(fmt::format("store {}: there is no such file", path.string()),
                "run `strata compare MODEL` first, or name the store with --store PATH", Exit::usage,
                {.where = path.string(), .allowed = "a store"});
  auto opened = STRATA_TRY(Connection::to_read(path));
  return Store(std::move(opened));
}

Result<std::optional<Store>> Store::look_at(const fs::path& path) {
  if (path.empty()) return no_place();
  std::error_code ec;
  fs::path written = fs::absolute(path, ec);
  const bool there = fs::exists(written, ec);
  while (!fs::exists(written, ec) && !ec && written.has_relative_path()) written = written.parent_path();
  if (ec || (!there && !fs::is_directory(written, ec)) || ::access(written.c_str(), W_OK) != 0)
    return fail(fmt::format("store {}: {} cannot be written", path.string(), written.string()),
                "name another file with --store PATH", Exit::usage);
  if (!there) return std::nullopt;
  auto opened = STRATA_TRY(Connection::to_look_at(path));
  if (!opened) return std::nullopt;
  return Store(*std::move(opened));
}

Result<void> Store::begin_run(const Run& run) {
  Transaction all(handle());
  if (!all.is_open() ||
      !execute(handle(),
               "INSERT INTO runs(run_id,name,started,finished,interrupted,command,version,seed,settings,machine,"
               "environments,process) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
               run.run_id, run.name, run.started, run.finished, static_cast<int>(run.interrupted), run.command,
               run.version, run.seed, to_json(run.settings), run.machine, run.environments, run.process) ||
      !write_fingerprints(handle(), run.run_id, run.machine, run.environments) || !all.commit())
    return connection_.broken("cannot write the run");
  return {};
}

Result<void> Store::finish_run(const Run& run) {
  Transaction all(handle());
  if (!all.is_open() ||
      !execute(handle(), "UPDATE runs SET finished=?, interrupted=?, settings=? WHERE run_id=?", run.finished,
               static_cast<int>(run.interrupted), to_json(run.settings), run.run_id) ||
      !write_hashes(handle(), run.run_id) || !all.commit())
    return connection_.broken("cannot write the end of the run");
  return {};
}

Result<void> Store::continue_run(Run& run) {
  if (run.finished.empty() || run.interrupted) run.settings.resumed = run.settings.resumed.value_or(0) + 1;
  constexpr const char* doing = "cannot go on with the run";
  STRATA_TRY(write(connection_, doing,
                   "UPDATE runs SET finished='', interrupted=0, process=?, settings=?, list_hash='', content_hash='' "
                   "WHERE run_id=?",
                   run.process, to_json(run.settings), run.run_id));
  return write(connection_, doing, "DELETE FROM warnings WHERE run_id=? AND case_key=''", run.run_id);
}

Result<void> Store::add_restart(const std::string& run_id, const std::string& case_key, int number, const Json& load) {
  return write(connection_, "cannot write a restart", "INSERT OR REPLACE INTO restarts VALUES(?,?,?,?)", run_id,
               case_key, number, load);
}

Result<void> Store::drop_warnings(const std::string& run_id, const std::string& case_key) {
  return write(connection_, "cannot go on with a case", "DELETE FROM warnings WHERE run_id=? AND case_key=?", run_id,
               case_key);
}

Result<void> Store::drop_restarts(const std::string& run_id, const std::string& case_key, int first) {
  const std::vector<std::string> after{
      "DELETE FROM warnings WHERE run_id=?1 AND case_key=?2",
      "UPDATE run_cases SET metrics_version=0 WHERE run_id=?1 AND hash=?2",
      "DELETE FROM metrics WHERE row_id IN (SELECT row_id FROM level_rows WHERE run_id=?1 AND hash=?2)",
      "DELETE FROM series WHERE row_id IN (SELECT row_id FROM level_rows WHERE run_id=?1 AND hash=?2)",
      "DELETE FROM blocks WHERE restart>=?3 AND row_id IN (SELECT row_id FROM level_rows WHERE run_id=?1 AND hash=?2)",
      "DELETE FROM restarts WHERE run_id=?1 AND hash=?2 AND number>=?3",
      "DELETE FROM samples WHERE ?3=0 AND row_id IN (SELECT row_id FROM level_rows WHERE run_id=?1 AND hash=?2)",
      "DELETE FROM level_rows WHERE ?3=0 AND run_id=?1 AND hash=?2"};
  for (const auto& sql : after) {
    Statement drop(handle(), sql.c_str());
    drop.bind(run_id).bind(case_key);
    if (sql.find("?3") != std::string::npos) drop.bind(first);
    drop.step();
    if (!drop.ok()) return connection_.broken("cannot go on with a case");
  }
  return {};
}

Result<void> Store::finish_case(const std::string& run_id, const std::string& case_key) {
  return write(connection_, "cannot write the end of a case",
               "UPDATE run_cases SET finished=1 WHERE run_id=? AND hash=?", run_id, case_key);
}

Result<void> Store::drop_empty_run(const std::string& run_id) {
  for (const char* sql :
       {"DELETE FROM warnings WHERE run_id=?1 AND NOT EXISTS(SELECT 1 FROM run_cases WHERE run_id=?1)",
        "DELETE FROM runs WHERE run_id=?1 AND NOT EXISTS(SELECT 1 FROM run_cases WHERE run_id=?1)"})
    STRATA_TRY(write(connection_, "cannot remove a run without a case", sql, run_id));
  return {};
}

Result<void> Store::set_verdicts(const std::string& run_id, const std::map<std::string, std::string>& verdicts) {
  constexpr const char* doing = "cannot write the verdicts of cases";
  Transaction all(handle());
  if (!all.is_open()) return connection_.broken(doing);
  for (const auto& [case_key, verdict] : verdicts)
    STRATA_TRY(write(connection_, doing, "UPDATE run_cases SET verdict=? WHERE run_id=? AND hash=?", verdict, run_id,
                     case_key));
  if (!write_list_hash(handle(), run_id) || !all.commit()) return connection_.broken(doing);
  return {};
}

Result<void> Store::add_warning(const std::string& run_id, const Warning& warning) {
  return write(connection_, "cannot write a warning",
               "INSERT INTO warnings(run_id,id,what,advice,case_key,row_id) VALUES(?,?,?,?,?,?)", run_id, warning.id,
               warning.what, warning.advice, warning.case_key, warning.row_id);
}

bool write_case(sqlite3* handle, const Case& run_case) {
  const auto& question = run_case.question;
  const auto size = question.image_size();
  return execute(handle,
                 "INSERT OR IGNORE INTO cases(hash,id,model,mode,batch,height,width,inputs,precision,device,threads,"
                 "optimiser,loss,data,weights,seed,canonical) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                 run_case.key, run_case.id, question.model, std::string(name_of(question.mode)), question.batch,
                 size ? std::optional(size->first) : std::nullopt, size ? std::optional(size->second) : std::nullopt,
                 axis(question, "input"), std::string(name_of(question.precision)),
                 std::string(name_of(question.device)), question.threads, axis(question, "optimiser"),
                 axis(question, "loss"), question.data, question.weights, question.seed, to_json(question));
}

Result<void> Store::add_case(const std::string& run_id, const Case& run_case) {
  if (!write_case(handle(), run_case)) return connection_.broken("cannot write a case");
  // A case that comes back keeps its place among the run's.
  return write(connection_, "cannot write a case of the run",
               "INSERT INTO run_cases(run_id,hash,bundle,limits,trust,reference_level,network,position) "
               "VALUES(?1,?2,?3,?4,?5,?6,?7,(SELECT count(*) FROM run_cases WHERE run_id=?1)) "
               "ON CONFLICT(run_id,hash) DO UPDATE SET bundle=excluded.bundle,limits=excluded.limits,"
               "trust=excluded.trust,reference_level=excluded.reference_level,network=excluded.network,verdict=''",
               run_id, run_case.key, run_case.bundle, to_json(run_case.limits), to_json(run_case.trust),
               run_case.reference_level, run_case.network);
}

Result<std::int64_t> Store::add_row(const std::string& run_id, const std::string& case_key, const Row& row) {
  Transaction all(handle());
  if (!all.is_open()) return connection_.broken("cannot write a row");
  Statement put(handle(),
                "INSERT INTO level_rows(run_id,hash,level,variant,environment,state,reason,hint,log_tail,repeat,info,"
                "settings,memory,start_up,proof,disk_bytes,artefact_bytes,judged,rank,language,peer,harness,tuned,"
                "verdict,first_difference) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  put.bind(run_id, case_key, row.level, row.variant, row.environment);
  auto info = to_json(row.info);
  const auto samples = take_samples(info);
  bind_result(put, row, info);
  put.step();
  const auto row_id = sqlite3_last_insert_rowid(handle());
  if (!put.ok() || !write_samples(handle(), row_id, samples) || !all.commit())
    return connection_.broken("cannot write a row");
  return row_id;
}

Result<void> Store::update_row(const Row& row) {
  Transaction all(handle());
  if (!all.is_open()) return connection_.broken("cannot write a row's result");
  Statement put(handle(),
                "UPDATE level_rows SET state=?,reason=?,hint=?,log_tail=?,repeat=?,info=?,settings=?,memory=?,"
                "start_up=?,proof=?,disk_bytes=?,artefact_bytes=?,judged=?,rank=?,language=?,peer=?,harness=?,tuned=?,"
                "verdict=?,first_difference=? WHERE row_id=?");
  auto info = to_json(row.info);
  const auto samples = take_samples(info);
  bind_result(put, row, info);
  put.bind(row.row_id).step();
  if (!put.ok() || !write_samples(handle(), row.row_id, samples) || !all.commit())
    return connection_.broken("cannot write a row's result");
  return {};
}

Result<void> Store::add_block(std::int64_t row_id, const Block& block) {
  return write(connection_, "cannot write a block", "INSERT INTO blocks VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", row_id,
               block.restart, block.round, block.position, block.instance, block.start_ns, block.wall_ns,
               block.latency_ns, block.cpu_ns, block.runq_ns, block.check, block.taken);
}

Result<void> Store::set_taken(std::int64_t row_id, int restart, int first, int last, double taken) {
  return write(connection_, "cannot write what others used",
               "UPDATE blocks SET taken=? WHERE row_id=? AND restart=? AND round BETWEEN ? AND ?", taken, row_id,
               restart, first, last);
}

Result<Peak> Store::save_peak(const Peak& peak) {
  Statement put(handle(),
                "INSERT INTO peaks VALUES(?,?,?,?,?,?) ON CONFLICT(machine,threads,instruction_set) DO UPDATE SET "
                "gflops=max(gflops,excluded.gflops),gbytes_per_s=max(gbytes_per_s,excluded.gbytes_per_s),"
                "quiet=max(quiet,excluded.quiet) RETURNING gflops,gbytes_per_s,quiet");
  put.bind(peak.machine, peak.threads, peak.instruction_set, peak.gflops, peak.gbytes_per_s,
           static_cast<int>(peak.quiet));
  if (!put.step()) return connection_.broken("cannot write the machine's peak");
  Peak best = peak;
  best.gflops = put.real(0, kMostPeak);
  best.gbytes_per_s = put.real(0, kMostPeak);
  best.quiet = put.integer(0, 1) != 0;
  if (!put.fault().empty()) return connection_.damaged(put.fault() + " among the machine's peaks");
  put.step();
  if (!put.ok()) return connection_.broken("cannot write the machine's peak");
  return best;
}

Result<void> Store::save_effect(const ProcessEffect& effect) {
  return write(connection_, "cannot write the calibration", "INSERT INTO process_effects VALUES(?,?,?,?,?,?,?)",
               effect.machine, effect.threads, effect.measured, effect.sigma, effect.low, effect.high, effect.detail);
}

}  // namespace strata::store
