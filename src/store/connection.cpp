// SPDX-License-Identifier: Apache-2.0
#include "store/connection.hpp"

#include <fmt/format.h>

#include <chrono>
#include <set>
#include <system_error>
#include <thread>

#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "store/fingerprint.hpp"
#include "store/migrations.hpp"
#include "store/page_sums.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Watch {
  fs::path path;
  Clock::time_point began;
  bool notified = false;
  std::int64_t steps = 0;
};

namespace {

constexpr auto kLongestWait = std::chrono::seconds(60), kSilentWait = std::chrono::seconds(1);
constexpr int kStepsPerLook = 1000;
constexpr std::int64_t kMostSteps = 4'000'000'000;  // of SQLite's machine; a store of 10 GB needs fewer to be read
constexpr int kLongestCell = 256 << 20;
constexpr int kMostSchemaEntries = 100;

void (*say_waiting)(std::string_view) = nullptr;

// Another program holds the store: is it worth waiting on?
int wait_for_it(void* data, int tries) {
  auto& watch = *static_cast<Watch*>(data);
  const auto now = Clock::now();
  if (tries == 0) {
    watch.began = now;
    watch.notified = false;
  }
  if (interrupted() || now - watch.began > kLongestWait) return 0;
  if (!watch.notified && now - watch.began > kSilentWait) {
    watch.notified = true;
    if (say_waiting)
      say_waiting(fmt::format("another program holds the store {}: waiting for it, {} s at most\n", watch.path.string(),
                              kLongestWait.count()));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(tries < 10 ? 5 : 50));
  return 1;
}

int look_up_from_reading(void* data) {
  auto& watch = *static_cast<Watch*>(data);
  watch.steps += kStepsPerLook;
  return interrupted() || watch.steps > kMostSteps;
}

// What a foreign file's schema could do is off: nothing in it runs, no function is called by it.
void trust_nothing(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kLongestCell);
}

// Each table and index with the words that made it; a word in front where there are more than a store has.
std::set<std::string> schema_of(sqlite3* handle) {
  std::set<std::string> entries;
  Statement ask(handle, "SELECT type,name,coalesce(sql,'') FROM sqlite_master LIMIT ?");
  ask.bind(kMostSchemaEntries);
  while (ask.step()) {
    auto entry = ask.text();
    entry += " " + ask.text();
    entry += "\n" + ask.text();
    entries.insert(std::move(entry));
  }
  if (!ask.ok()) entries = {"unreadable"};
  return entries;
}

// The schema of this version, from the steps that make it.
const std::set<std::string>& right_schema() {
  static const std::set<std::string> right = [] {
    sqlite3* handle = nullptr;
    std::set<std::string> entries;
    if (sqlite3_open(":memory:", &handle) == SQLITE_OK) {
      for (const char* step : kMigrations) sqlite3_exec(handle, step, nullptr, nullptr, nullptr);
      entries = schema_of(handle);
    }
    sqlite3_close(handle);
    return entries;
  }();
  return right;
}

std::string first_line(const std::string& text) {
  return text.substr(0, std::min<std::size_t>(text.find('\n'), 60));
}

// A path as SQLite's URIs write it: https://www.sqlite.org/uri.html
std::string uri_of(const fs::path& path, std::string_view parameters) {
  std::string uri = "file:";
  for (const char c : fs::absolute(path).string())
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      uri += c;
  return uri + std::string(parameters);
}

// SQLite wants to write beside the file (its index of the log), and may not.
bool is_lack_of_rights(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_READONLY || primary == SQLITE_CANTOPEN || primary == SQLITE_PERM || primary == SQLITE_FULL ||
         (primary == SQLITE_IOERR && code != SQLITE_IOERR_DATA);
}

}  // namespace

void when_waiting(void (*say)(std::string_view)) {
  say_waiting = say;
}

Connection::Connection(fs::path path) : path_(std::move(path)), watch_(std::make_unique<Watch>()) {
  watch_->path = path_;
}
Connection::Connection(Connection&&) noexcept = default;
// The handle goes first, since what it would call goes next.
Connection& Connection::operator=(Connection&& other) noexcept {
  handle_ = std::move(other.handle_);
  watch_ = std::move(other.watch_);
  copy_ = std::move(other.copy_);
  path_ = std::move(other.path_);
  return *this;
}
Connection::~Connection() = default;

tl::unexpected<Error> Connection::damaged(const std::string& what) const {
  return fail(
      fmt::format("store {}: {}", path_.string(), what),
      "the file is damaged or not a strata store, and nothing is shown that could be wrong: take a copy that is "
      "whole with --store PATH, or move the file away");
}

tl::unexpected<Error> Connection::broken(std::string_view doing) const {
  const int code = sqlite3_extended_errcode(handle_.get()), primary = code & 0xff;
  if (code == SQLITE_IOERR_DATA)
    return damaged(fmt::format("{}: page {} is not as strata wrote it", doing, last_wrong_page()));
  const auto what = fmt::format("{}: {}", doing, sqlite3_errmsg(handle_.get()));
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_TOOBIG) return damaged(what);
  std::string hint =
      "check that the file is a strata store and that it can be written, or name another with --store PATH";
  if (primary == SQLITE_FULL)
    hint = "the disk is full: free some space and run again; everything committed so far is stored";
  if (primary == SQLITE_BUSY) hint = "another program holds the store; wait for it, or name another with --store PATH";
  if (primary == SQLITE_INTERRUPT && interrupted()) hint = "reading was interrupted: run the command again";
  if (primary == SQLITE_INTERRUPT && !interrupted()) hint = "reading it takes too long: it is not a strata store";
  return fail(fmt::format("store {}: {}", path_.string(), what), hint);
}

Result<void> Connection::execute(const char* sql, std::string_view doing) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return broken(doing);
  return {};
}

Result<void> Connection::open(const std::string& name, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_EXRESCODE, page_sums_vfs());
  handle_.reset(raw);
  if (code != SQLITE_OK) return broken("cannot open it");
  trust_nothing(raw);
  sqlite3_busy_handler(raw, wait_for_it, watch_.get());
  return execute("PRAGMA cell_size_check=ON", "cannot set it up");
}

Result<std::size_t> Connection::version() {
  Statement ask(handle(), "PRAGMA user_version");
  if (!ask.step()) return broken("cannot read it");
  const auto result = static_cast<std::size_t>(ask.integer());
  if (result > kMigrations.size())
    return fail(fmt::format("store {}: its schema is number {}, this strata knows up to {}", path_.string(), result,
                            kMigrations.size()),
                "use the newer strata that wrote it, or another file with --store PATH", Exit::environment);
  return result;
}

// A store from before there were sums is written anew, with them, before anything else changes: one that says it is of
// today and has none is damaged.
Result<void> Connection::migrate() {
  const auto schema = STRATA_TRY(version());
  if (schema == 0 && !schema_of(handle()).empty()) return damaged("it is the database of another program");
  const bool is_today = schema == kMigrations.size();
  if (!has_page_sums(handle()) && is_today) return damaged("its pages have no checksums");
  if (!has_page_sums(handle()) && schema > 0) {
    if (auto done = execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);", "cannot give its pages checksums"); !done)
      return done;
    if (!has_page_sums(handle())) return damaged("its pages could not be given checksums");
  }
  const char* doing = "cannot bring its schema up to date";
  for (std::size_t step = schema; step < kMigrations.size(); ++step) {
    auto done = execute(fmt::format("BEGIN IMMEDIATE;{};", kMigrations[step]).c_str(), doing);
    if (done && step == kFingerprintStep && !fingerprint_old_runs(handle())) done = broken(doing);
    if (done) done = execute(fmt::format("PRAGMA user_version={};COMMIT;", step + 1).c_str(), doing);
    if (!done) {
      auto error = done.error();
      sqlite3_exec(handle(), "ROLLBACK", nullptr, nullptr, nullptr);
      // Another program may have made the same steps at the same time.
      if (const auto now = version(); now && *now == kMigrations.size()) return {};
      return tl::unexpected(error);
    }
  }
  return {};
}

Result<void> Connection::check_schema() {
  const auto schema = schema_of(handle());
  if (schema == right_schema()) return {};
  if (schema == std::set<std::string>{"unreadable"}) return broken("cannot read its schema");
  for (const auto& entry : schema)
    if (!right_schema().contains(entry))
      return damaged(fmt::format("it holds the {}, which no store of strata has", escape::one_line(first_line(entry))));
  return damaged("some of its tables are missing");
}

Result<Connection> Connection::to_write(const fs::path& path) {
  Connection connection(path);
  STRATA_TRY(connection.open(path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  int reserved = kSumBytes;
  sqlite3_file_control(connection.handle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  // WAL with NORMAL: a killed program loses nothing committed; only a power cut may lose the last blocks.
  if (auto set = connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
                                    "cannot set it up");
      !set)
    return tl::unexpected(set.error());
  STRATA_TRY(connection.migrate());
  STRATA_TRY(connection.check_schema());
  return connection;
}

// Where SQLite may not write beside the file: as it stands if there is no log, else from a copy of both, as a log can
// only be read together with an index of it.
Result<void> Connection::open_without_rights(const Error& why) {
  std::error_code ec;
  auto log = path_;
  log += "-wal";
  const auto log_bytes = fs::file_size(log, ec);
  if (ec || log_bytes == 0) return open(uri_of(path_, "?immutable=1"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  copy_ = std::make_unique<ScratchFolder>("store");
  if (copy_->path().empty()) return tl::unexpected(why);
  fs::copy_file(path_, copy_->path() / "strata.db", ec);
  if (!ec) fs::copy_file(log, copy_->path() / "strata.db-wal", ec);
  if (ec) return tl::unexpected(why);
  return open((copy_->path() / "strata.db").string(), SQLITE_OPEN_READONLY);
}

Result<Connection> Connection::to_read(const fs::path& path) {
  Connection connection(path);
  auto opened = connection.open(path.string(), SQLITE_OPEN_READONLY);
  auto schema = opened ? connection.version() : Result<std::size_t>(tl::unexpected(opened.error()));
  if (!schema && is_lack_of_rights(sqlite3_extended_errcode(connection.handle()))) {
    STRATA_TRY(connection.open_without_rights(schema.error()));
    schema = connection.version();
  }
  if (!schema) return tl::unexpected(schema.error());
  if (*schema == 0) return connection.damaged("it is no store, or an empty one");
  if (*schema < kMigrations.size()) {  // brought up to date first, where it can be
    connection.handle_.reset();
    STRATA_TRY(to_write(path));
    return to_read(path);
  }
  if (!has_page_sums(connection.handle())) return connection.damaged("its pages have no checksums");
  STRATA_TRY(connection.check_schema());
  sqlite3_progress_handler(connection.handle(), kStepsPerLook, look_up_from_reading, connection.watch_.get());
  return connection;
}

}  // namespace strata::store
