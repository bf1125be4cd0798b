// SPDX-License-Identifier: Apache-2.0
#include "store/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>

#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "store/schema.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Watch {
  fs::path path;
  Clock::time_point began;
  bool notified = false;
  std::string no_locks;  // why files there cannot be locked; empty: they can, as far as is known
  std::int64_t steps = 0;
};

namespace {

constexpr auto kLongestWait = std::chrono::seconds(60), kSilentWait = std::chrono::seconds(1);
constexpr int kStepsPerLook = 1000;
constexpr std::int64_t kMostSteps = 4'000'000'000;  // of SQLite's machine; a store of 10 GB needs fewer to be read
constexpr int kLongestCell = 256 << 20;
constexpr int kMostSchemaEntries = 100;

void (*say)(std::string_view) = nullptr;

// What a file system without locks says of itself, as one of a network may; empty: it has them. Asked of a file of its
// own, since closing any descriptor of the store would drop SQLite's locks of it.
std::string why_no_locks(const fs::path& store) {
  std::string name = store.string() + ".XXXXXX";
  const int file = ::mkstemp(name.data());
  if (file < 0) return {};
  ::unlink(name.c_str());
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  const bool refused = ::fcntl(file, F_SETLK, &lock) != 0 && errno != EACCES && errno != EAGAIN && errno != EINTR;
  std::string why = refused ? std::strerror(errno) : "";
  ::close(file);
  return why;
}

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
    watch.no_locks = why_no_locks(watch.path);  // SQLite takes that for a lock that another program holds
    if (!watch.no_locks.empty()) return 0;
    if (say)
      say(fmt::format("another program holds the store {}: waiting for it, {} s at most\n", watch.path.string(),
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

// Each table and index with the words that made it. What ANALYZE of any program writes belongs to SQLite.
std::set<std::string> schema_of(sqlite3* handle) {
  std::set<std::string> entries;
  Statement ask(handle,
                "SELECT type,name,coalesce(sql,'') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%' LIMIT ?");
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

const std::set<std::string>& right_schema() {
  static const std::set<std::string> right = [] {
    sqlite3* handle = nullptr;
    std::set<std::string> entries;
    if (sqlite3_open(":memory:", &handle) == SQLITE_OK) {
      sqlite3_exec(handle, kSchema, nullptr, nullptr, nullptr);
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
         primary == SQLITE_IOERR;
}

// The file, or a file beside it, with what no file has: reading a pipe would wait for ever.
Result<void> check_files(const fs::path& path) {
  for (const char* end : {"", "-wal", "-shm", "-journal"}) {
    std::error_code ec;
    const auto file = path.string() + end;
    const auto type = fs::status(file, ec).type();
    if (type == fs::file_type::regular || type == fs::file_type::not_found || type == fs::file_type::none) continue;
    return fail(fmt::format("store {}: {} is no regular file but a {}", path.string(), file,
                            type == fs::file_type::directory ? "folder" : "pipe or a device"),
                "name a file with --store PATH", Exit::usage);
  }
  return {};
}

// What begins as text was never a store, nor is it a damaged one.
Result<void> check_is_no_text(const fs::path& path) {
  std::string head(256, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  const bool is_text = std::all_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
  const auto first = head.find_first_not_of(" \n\r\t");
  if (!is_text || first == std::string::npos) return {};
  const bool is_json = head[first] == '{' || head[first] == '[';
  const bool is_csv = !is_json && head.substr(0, head.find('\n')).find(',') != std::string::npos;
  return fail(fmt::format("store {}: it is a file of {}, no store", path.string(),
                          is_json  ? "JSON"
                          : is_csv ? "values with commas between them (CSV)"
                                   : "text"),
              is_json ? "a store is an SQLite database; `./strata report --from-json` draws a result from JSON"
                      : "a store is an SQLite database, which ./strata makes where there is no file",
              Exit::usage);
}

}  // namespace

void say_through(void (*to_whom)(std::string_view)) {
  say = to_whom;
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
  const auto what = fmt::format("{}: {}", doing, sqlite3_errmsg(handle_.get()));
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_TOOBIG) return damaged(what);
  std::string hint =
      "check that the file is a strata store and that it can be written, or name another with --store PATH";
  if (primary == SQLITE_FULL)
    hint = "the disk is full: free some space and run again; everything committed so far is stored";
  if (primary == SQLITE_BUSY && !watch_->no_locks.empty())
    return fail(fmt::format("store {}: {}: its file system has no locks ({}), without which a store could be damaged",
                            path_.string(), doing, watch_->no_locks),
                "keep it on a disk of this machine: --store PATH, or XDG_DATA_HOME", Exit::environment);
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
  STRATA_TRY(check_files(path_));
  STRATA_TRY(check_is_no_text(path_));
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  handle_.reset(raw);
  if (code != SQLITE_OK) return broken("cannot open it");
  trust_nothing(raw);
  sqlite3_busy_handler(raw, wait_for_it, watch_.get());
  return execute("PRAGMA cell_size_check=ON", "cannot set it up");
}

// Of which program the file is: of nobody yet, or of this one. Nothing was released before this schema, so that nothing
// reads an older one.
Result<Connection::Origin> Connection::origin() {
  Statement ask(handle(), "SELECT application_id,user_version FROM pragma_application_id,pragma_user_version");
  if (!ask.step()) return broken("cannot read it");
  const auto application = ask.integer(), version = ask.integer();
  if (application == kApplication && version == kVersion) return Origin::own;
  if (application == kApplication)
    return fail(
        fmt::format("store {}: its schema is number {}, this strata knows {}", path_.string(), version, kVersion),
        "use the newer strata that wrote it, or another file with --store PATH", Exit::environment);
  const auto schema = schema_of(handle());
  if (application == 0 && version == 0 && schema.empty()) return Origin::nobody;
  constexpr int most_older = 8;
  const auto has = [&](const char* table) {
    return std::any_of(schema.begin(), schema.end(), [&](const auto& entry) { return entry.starts_with(table); });
  };
  if (application == 0 && version > 0 && version <= most_older && has("table runs\n") && has("table level_rows\n"))
    return fail(
        fmt::format("store {}: it was written by a strata before 0.1, which this one cannot read", path_.string()),
        "move the file away and compare again for what you need, or name another with --store PATH", Exit::environment);
  return damaged("it is the database of another program");
}

// Another program may make it at the same time: who comes second finds it there.
Result<void> Connection::make_schema() {
  constexpr const char* doing = "cannot make its tables";
  Transaction all(handle());
  if (!all.is_open()) return broken(doing);
  if (STRATA_TRY(origin()) == Origin::own) return {};
  STRATA_TRY(execute(
      fmt::format("{};PRAGMA application_id={};PRAGMA user_version={};", kSchema, kApplication, kVersion).c_str(),
      doing));
  if (!all.commit()) return broken(doing);
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

Result<void> Connection::check_integrity() const {
  Statement ask(handle(), "PRAGMA integrity_check(1)");
  if (!ask.step()) return broken("cannot check it");
  const auto found = ask.text();
  if (found != "ok") return damaged("SQLite finds it damaged: " + escape::one_line(first_line(found)));
  return {};
}

// SQLite reads what is missing of the last page as zeros. A log may have the page yet.
Result<void> Connection::check_size() const {
  std::error_code no_log, no_file;
  const auto log_bytes = fs::file_size(path_.string() + "-wal", no_log);
  const auto bytes = fs::file_size(path_, no_file);
  Statement ask(handle(), "PRAGMA page_size");
  if (!ask.step()) return broken("cannot read it");
  if ((no_log || log_bytes == 0) && !no_file && bytes % static_cast<std::uintmax_t>(ask.integer(1, 65536)) != 0)
    return damaged("its last page is cut off");
  return {};
}

Result<Connection> Connection::to_write(const fs::path& path) {
  Connection connection(path);
  STRATA_TRY(connection.open(path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  const auto origin = STRATA_TRY(connection.origin());
  // WAL with NORMAL: a killed program loses nothing committed; only a power cut may lose the last blocks.
  STRATA_TRY(connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
                                "cannot set it up"));
  if (origin == Origin::nobody) STRATA_TRY(connection.make_schema());
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
  auto origin = opened ? connection.origin() : Result<Origin>(tl::unexpected(opened.error()));
  if (!origin && is_lack_of_rights(sqlite3_extended_errcode(connection.handle()))) {
    STRATA_TRY(connection.open_without_rights(origin.error()));
    origin = connection.origin();
  }
  if (!origin) return tl::unexpected(origin.error());
  if (*origin == Origin::nobody)
    return fail(fmt::format("store {}: it is an empty database, with no run in it", path.string()),
                "compare something first, which is stored there, or name another with --store PATH");
  STRATA_TRY(connection.check_schema());
  STRATA_TRY(connection.check_size());
  sqlite3_progress_handler(connection.handle(), kStepsPerLook, look_up_from_reading, connection.watch_.get());
  return connection;
}

Result<std::optional<Connection>> Connection::to_look_at(const fs::path& path) {
  {
    Connection connection(path);
    STRATA_TRY(connection.open(path.string(), SQLITE_OPEN_READONLY));
    if (const auto origin = STRATA_TRY(connection.origin()); origin != Origin::own) return std::nullopt;
  }
  return to_read(path);
}

}  // namespace strata::store
