// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>
#include <system_error>

#include "common/places.hpp"
#include "store/migrations.hpp"
#include "store/statement.hpp"

namespace strata::store {
namespace fs = std::filesystem;
namespace {

tl::unexpected<Error> broken(sqlite3* handle, const fs::path& path, std::string_view doing) {
  const int code = sqlite3_errcode(handle);
  std::string hint =
      "check that the file is a strata store and that it can be written, or name another with --store PATH";
  if (code == SQLITE_FULL)
    hint = "the disk is full: free some space and run again; everything committed so far is kept";
  if (code == SQLITE_BUSY) hint = "another program holds the store; wait for it, or name another with --store PATH";
  return fail(fmt::format("store {}: {}: {}", path.string(), doing, sqlite3_errmsg(handle)), hint);
}

Result<void> execute(sqlite3* handle, const fs::path& path, const char* sql, std::string_view doing) {
  if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return broken(handle, path, doing);
  return {};
}

Result<void> migrate(sqlite3* handle, const fs::path& path) {
  Statement ask(handle, "PRAGMA user_version");
  if (!ask.step()) return broken(handle, path, "cannot read it");
  const auto version = static_cast<std::size_t>(ask.integer());
  if (version > kMigrations.size())
    return fail(fmt::format("store {}: its schema is number {}, this strata knows up to {}", path.string(), version,
                            kMigrations.size()),
                "use the newer strata that wrote it, or another file with --store PATH", Exit::environment);
  for (std::size_t step = version; step < kMigrations.size(); ++step) {
    const auto sql = fmt::format("BEGIN IMMEDIATE;{};PRAGMA user_version={};COMMIT;", kMigrations[step], step + 1);
    if (auto done = execute(handle, path, sql.c_str(), "cannot bring its schema up to date"); !done) {
      auto error = done.error();
      sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
      return tl::unexpected(error);
    }
  }
  return {};
}

Run read_run(Statement& row) {
  Run run;
  run.run_id = row.text();
  run.name = row.text();
  run.started = row.text();
  run.finished = row.text();
  run.interrupted = row.integer() != 0;
  run.command = row.text();
  run.version = row.text();
  run.seed = row.integer();
  run.settings = row.json();
  run.machine = row.json();
  run.environments = row.json();
  return run;
}
constexpr const char* kRunColumns =
    "run_id,name,started,finished,interrupted,command,version,seed,settings,machine,environments";

std::vector<Block> read_blocks(sqlite3* handle, std::int64_t row_id) {
  Statement ask(handle,
                "SELECT restart,round,position,instance,start_ns,wall_ns,latency_ns,cpu_ns,runq_ns,check_result,taken "
                "FROM blocks WHERE row_id=? "
                "ORDER BY restart,round,instance");
  ask.bind(row_id);
  std::vector<Block> blocks;
  while (ask.step()) {
    Block block;
    block.restart = static_cast<int>(ask.integer());
    block.round = static_cast<int>(ask.integer());
    block.position = static_cast<int>(ask.integer());
    block.instance = static_cast<int>(ask.integer());
    block.start_ns = ask.integer();
    block.wall_ns = ask.integers();
    block.latency_ns = ask.integers();
    block.cpu_ns = ask.optional_integer();
    block.runq_ns = ask.optional_integer();
    block.check = ask.text();
    block.taken = ask.optional_real();
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<Row> read_rows(sqlite3* handle, const std::string& run_id, const std::string& hash) {
  Statement ask(handle,
                "SELECT "
                "row_id,level,variant,state,reason,hint,log_tail,repeat,info,settings,memory,start_up,proof,disk_bytes,"
                "artefact_bytes "
                "FROM level_rows WHERE run_id=? AND hash=? ORDER BY row_id");
  ask.bind(run_id).bind(hash);
  std::vector<Row> rows;
  while (ask.step()) {
    Row row;
    row.row_id = ask.integer();
    row.level = ask.text();
    row.variant = ask.text();
    row.state = ask.text();
    row.reason = ask.text();
    row.hint = ask.text();
    row.log_tail = ask.text();
    row.repeat = ask.text();
    row.info = ask.json();
    row.settings = ask.json();
    row.memory = ask.json();
    row.start_up = ask.json();
    row.proof = ask.json();
    row.disk_bytes = ask.optional_integer();
    row.artefact_bytes = ask.optional_integer();
    row.blocks = read_blocks(handle, row.row_id);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A canonical case's axis as text for its own column.
std::string axis(const Json& canonical, const char* name) {
  const auto found = canonical.find(name);
  if (found == canonical.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

void Store::Close::operator()(sqlite3* handle) const {
  sqlite3_close(handle);
}

Store::Store(std::unique_ptr<sqlite3, Close> handle, fs::path path)
    : handle_(std::move(handle)), path_(std::move(path)) {}

fs::path Store::default_path() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data) return fs::path(data) / "strata" / "strata.db";
  const auto home = home_folder();
  return home.empty() ? fs::path() : home / ".local/share/strata/strata.db";
}

Result<Store> Store::open_with(const fs::path& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  std::unique_ptr<sqlite3, Close> handle(raw);
  if (code != SQLITE_OK) return broken(raw, path, "cannot open it");
  sqlite3_busy_timeout(raw, 5000);
  // WAL with NORMAL: a killed program loses nothing committed; only a power cut may lose the last blocks.
  if (auto set = execute(raw, path, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
                         "cannot set it up");
      !set)
    return tl::unexpected(set.error());
  if (auto done = migrate(raw, path); !done) return tl::unexpected(done.error());
  return Store(std::move(handle), path);
}

Result<Store> Store::open(const fs::path& path) {
  if (path.empty())
    return fail("there is no place for the store: HOME is not set", "name a file with --store PATH", Exit::environment);
  if (path == default_path())
    if (auto own = private_folder(path.parent_path(), "name another file with --store PATH"); !own)
      return tl::unexpected(own.error());
  std::error_code ec;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ec);
  if (ec)
    return fail(fmt::format("store {}: cannot make its folder: {}", path.string(), ec.message()),
                "name another file with --store PATH");
  return open_with(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<Store> Store::open_existing(const fs::path& path) {
  std::error_code ec;  // a name that is too long, a link that leads to itself
  const bool there = fs::exists(path, ec);
  if (ec)
    return fail(fmt::format("store {}: {}", path.string(), ec.message()), "name another file with --store PATH",
                Exit::usage);
  if (!there)
    return fail(fmt::format("store {}: there is no such file", path.string()),
                "run `strata compare MODEL` first, or name the store with --store PATH", Exit::usage);
  return open_with(path, SQLITE_OPEN_READWRITE);
}

Result<void> Store::begin_run(const Run& run) {
  Statement put(handle_.get(), "INSERT INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  put.bind(run.run_id)
      .bind(run.name)
      .bind(run.started)
      .bind(run.finished)
      .bind(static_cast<int>(run.interrupted))
      .bind(run.command)
      .bind(run.version);
  put.bind(run.seed).bind(run.settings).bind(run.machine).bind(run.environments);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write the run");
  return {};
}

Result<void> Store::finish_run(const Run& run) {
  Statement put(handle_.get(), "UPDATE runs SET finished=?, interrupted=?, settings=? WHERE run_id=?");
  put.bind(run.finished).bind(static_cast<int>(run.interrupted)).bind(run.settings).bind(run.run_id);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write the end of the run");
  return {};
}

Result<void> Store::add_warning(const std::string& run_id, const Warning& warning) {
  Statement put(handle_.get(), "INSERT INTO warnings VALUES(?,?,?,?)");
  put.bind(run_id).bind(warning.id).bind(warning.what).bind(warning.advice);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write a warning");
  return {};
}

Result<void> Store::add_case(const std::string& run_id, const Case& one) {
  const Json& c = one.canonical;
  const auto number = [&](const char* name) {
    return c.contains(name) && c[name].is_number() ? c[name].get<std::int64_t>() : std::int64_t{0};
  };
  Statement put(handle_.get(), "INSERT OR IGNORE INTO cases VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  put.bind(one.hash)
      .bind(one.id)
      .bind(axis(c, "model"))
      .bind(axis(c, "mode"))
      .bind(number("batch"))
      .bind(axis(c, "inputs"))
      .bind(axis(c, "maths"));
  put.bind(axis(c, "device"))
      .bind(number("threads"))
      .bind(axis(c, "optimiser"))
      .bind(number("seed"))
      .bind(axis(c, "weights"))
      .bind(axis(c, "input_from"));
  put.bind(static_cast<int>(c.value("synthetic", false))).bind(number("ring")).bind(c);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write a case");
  Statement link(handle_.get(), "INSERT OR REPLACE INTO run_cases VALUES(?,?,?,?,?,?)");
  link.bind(run_id).bind(one.hash).bind(one.bundle).bind(one.limits).bind(one.trust).bind(one.reference_level);
  link.step();
  if (!link.ok()) return broken(handle_.get(), path_, "cannot write a case of the run");
  return {};
}

Result<std::int64_t> Store::add_row(const std::string& run_id, const std::string& case_hash, const Row& row) {
  Statement put(handle_.get(), "INSERT INTO level_rows VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  put.bind(run_id)
      .bind(case_hash)
      .bind(row.level)
      .bind(row.variant)
      .bind(row.state)
      .bind(row.reason)
      .bind(row.hint)
      .bind(row.log_tail)
      .bind(row.repeat);
  put.bind(row.info)
      .bind(row.settings)
      .bind(row.memory)
      .bind(row.start_up)
      .bind(row.proof)
      .bind(row.disk_bytes)
      .bind(row.artefact_bytes);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write a row");
  return sqlite3_last_insert_rowid(handle_.get());
}

Result<void> Store::update_row(const Row& row) {
  Statement put(handle_.get(),
                "UPDATE level_rows SET "
                "state=?,reason=?,hint=?,log_tail=?,repeat=?,info=?,settings=?,memory=?,start_up=?,proof=?,disk_bytes=?"
                ",artefact_bytes=? "
                "WHERE row_id=?");
  put.bind(row.state)
      .bind(row.reason)
      .bind(row.hint)
      .bind(row.log_tail)
      .bind(row.repeat)
      .bind(row.info)
      .bind(row.settings)
      .bind(row.memory);
  put.bind(row.start_up).bind(row.proof).bind(row.disk_bytes).bind(row.artefact_bytes).bind(row.row_id);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write a row's result");
  return {};
}

Result<void> Store::add_block(std::int64_t row_id, const Block& block) {
  Statement put(handle_.get(), "INSERT INTO blocks VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
  put.bind(row_id)
      .bind(block.restart)
      .bind(block.round)
      .bind(block.position)
      .bind(block.instance)
      .bind(block.start_ns)
      .bind(block.wall_ns);
  put.bind(block.latency_ns).bind(block.cpu_ns).bind(block.runq_ns).bind(block.check).bind(block.taken);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write a block");
  return {};
}

Result<void> Store::set_taken(std::int64_t row_id, int restart, int first, int last, double taken) {
  Statement put(handle_.get(), "UPDATE blocks SET taken=? WHERE row_id=? AND restart=? AND round BETWEEN ? AND ?");
  put.bind(taken).bind(row_id).bind(restart).bind(first).bind(last);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write what others used");
  return {};
}

Result<Peak> Store::save_peak(const Peak& peak) {
  Statement put(handle_.get(),
                "INSERT INTO peaks VALUES(?,?,?,?,?,?) ON CONFLICT(machine,threads,instruction_set) DO UPDATE SET "
                "gflops=max(gflops,excluded.gflops),gbytes_per_s=max(gbytes_per_s,excluded.gbytes_per_s),"
                "quiet=max(quiet,excluded.quiet) RETURNING gflops,gbytes_per_s,quiet");
  put.bind(peak.machine).bind(peak.threads).bind(peak.instruction_set).bind(peak.gflops).bind(peak.gbytes_per_s);
  put.bind(static_cast<int>(peak.quiet));
  if (!put.step()) return broken(handle_.get(), path_, "cannot write the machine's peak");
  Peak best = peak;
  best.gflops = put.real();
  best.gbytes_per_s = put.real();
  best.quiet = put.integer() != 0;
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write the machine's peak");
  return best;
}

Result<void> Store::save_effect(const ProcessEffect& effect) {
  Statement put(handle_.get(), "INSERT INTO process_effects VALUES(?,?,?,?,?,?,?)");
  put.bind(effect.machine)
      .bind(effect.threads)
      .bind(effect.measured)
      .bind(effect.sigma)
      .bind(effect.low)
      .bind(effect.high)
      .bind(effect.detail);
  put.step();
  if (!put.ok()) return broken(handle_.get(), path_, "cannot write the calibration");
  return {};
}

Result<std::optional<ProcessEffect>> Store::find_effect(const std::string& machine, int threads) const {
  Statement ask(handle_.get(),
                "SELECT measured,sigma,low,high,detail FROM process_effects WHERE machine=? AND threads=? ORDER BY "
                "measured DESC LIMIT 1");
  ask.bind(machine).bind(threads);
  if (!ask.step()) {
    if (!ask.ok()) return broken(handle_.get(), path_, "cannot read the calibration");
    return std::optional<ProcessEffect>{};
  }
  ProcessEffect effect;
  effect.machine = machine;
  effect.threads = threads;
  effect.measured = ask.text();
  effect.sigma = ask.real();
  effect.low = ask.real();
  effect.high = ask.real();
  effect.detail = ask.json();
  return std::optional<ProcessEffect>{effect};
}

Result<std::vector<Run>> Store::list_runs(int limit) const {
  Statement ask(handle_.get(),
                fmt::format("SELECT {} FROM runs ORDER BY started DESC, rowid DESC LIMIT ?", kRunColumns).c_str());
  ask.bind(limit > 0 ? limit : -1);
  std::vector<Run> runs;
  while (ask.step()) runs.push_back(read_run(ask));
  if (!ask.ok()) return broken(handle_.get(), path_, "cannot list the runs");
  return runs;
}

Result<std::vector<std::pair<std::string, std::string>>> Store::run_cases(const std::string& run_id) const {
  Statement ask(handle_.get(),
                "SELECT c.hash, c.id FROM run_cases r JOIN cases c ON c.hash=r.hash WHERE r.run_id=? ORDER BY r.rowid");
  ask.bind(run_id);
  std::vector<std::pair<std::string, std::string>> found;
  while (ask.step()) {
    auto hash = ask.text();
    auto id = ask.text();
    found.emplace_back(std::move(hash), std::move(id));
  }
  if (!ask.ok()) return broken(handle_.get(), path_, "cannot list the cases of a run");
  return found;
}

Result<Run> Store::load_run(const std::string& which) const {
  auto runs = list_runs(0);
  if (!runs) return tl::unexpected(runs.error());
  if (runs->empty())
    return fail(fmt::format("store {}: no run is stored yet", path_.string()), "run `strata compare MODEL` first",
                Exit::usage);
  std::vector<const Run*> hits;
  for (const Run& run : *runs) {
    if (run.run_id == which || (!run.name.empty() && run.name == which)) {
      hits = {&run};
      break;
    }
    if (!which.empty() && run.run_id.rfind(which, 0) == 0) hits.push_back(&run);
  }
  if (which == "last") hits = {&runs->front()};
  if (hits.size() != 1)
    return fail(
        fmt::format("store {}: {} run is called '{}'", path_.string(), hits.empty() ? "no" : "more than one", which),
        fmt::format("`strata list runs` shows them; the newest is {}, also called 'last'", runs->front().run_id),
        Exit::usage);
  Run run = *hits.front();
  Statement warned(handle_.get(), "SELECT id,what,advice FROM warnings WHERE run_id=? ORDER BY rowid");
  warned.bind(run.run_id);
  while (warned.step()) {
    Warning warning;
    warning.id = warned.text();
    warning.what = warned.text();
    warning.advice = warned.text();
    run.warnings.push_back(std::move(warning));
  }
  Statement ask(handle_.get(),
                "SELECT c.hash,c.id,c.canonical,r.bundle,r.limits,r.trust,r.reference_level FROM run_cases r JOIN "
                "cases c ON c.hash=r.hash "
                "WHERE r.run_id=? ORDER BY r.rowid");
  ask.bind(run.run_id);
  while (ask.step()) {
    Case one;
    one.hash = ask.text();
    one.id = ask.text();
    one.canonical = ask.json();
    one.bundle = ask.json();
    one.limits = ask.json();
    one.trust = ask.json();
    one.reference_level = ask.text();
    one.rows = read_rows(handle_.get(), run.run_id, one.hash);
    run.cases.push_back(std::move(one));
  }
  if (!ask.ok() || !warned.ok()) return broken(handle_.get(), path_, "cannot read the run");
  return run;
}

}  // namespace strata::store
