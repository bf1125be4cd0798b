// SPDX-License-Identifier: Apache-2.0
#include "engine/manage_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/metrics.hpp"
#include "common/interrupt.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

// A store that is there, to be changed.
Result<store::Store> open_to_change(const fs::path& path) {
  STRATA_TRY(store::Store::open_existing(path));
  return store::Store::open(path);
}

// The store's file and its log.
std::uintmax_t bytes_of(const fs::path& store) {
  std::uintmax_t bytes = 0;
  for (const char* end : {"", "-wal"}) {
    std::error_code ec;
    const auto size = fs::file_size(store.string() + end, ec);
    if (!ec) bytes += size;
  }
  return bytes;
}

// What lies beside the store for one run: workers' logs, and the page that compare wrote.
std::uintmax_t remove_files_of(const fs::path& store, const std::string& run_id) {
  std::uintmax_t bytes = 0;
  std::error_code ec;
  const auto logs = store.parent_path() / "logs" / run_id, page = store.parent_path() / "reports" / (run_id + ".html");
  for (const auto& entry : fs::recursive_directory_iterator(logs, ec))
    if (entry.is_regular_file(ec) && !entry.is_symlink(ec)) bytes += entry.file_size(ec);
  fs::remove_all(logs, ec);
  if (const auto size = fs::file_size(page, ec); !ec) bytes += size;
  fs::remove(page, ec);
  return bytes;
}

// Ids in the order in which they were named, each once.
Result<std::vector<std::string>> ids_of(const store::Store& store, const std::vector<std::string>& runs) {
  std::vector<std::string> ids;
  for (const auto& which : runs) {
    const auto id = STRATA_TRY(store.find_run(which));
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

// Every run of `from`, the oldest first, so that equal times keep their order.
Result<void> copy_all(const store::Store& from, store::Store& into, JoinCounts& all) {
  auto runs = STRATA_TRY(from.list_runs(0));
  std::reverse(runs.begin(), runs.end());
  for (const auto& run : runs) {
    if (interrupted()) return fail("interrupted: what was copied stays", "run the command again for the rest");
    const auto done = STRATA_TRY(into.copy_run(from, run.run_id));
    ++(done ? all.copied : all.known);
  }
  return {};
}

Result<void> write_store_of(const store::Store& from, const std::string& run_id, const fs::path& path) {
  auto into = STRATA_TRY(store::Store::open(path));
  STRATA_TRY(into.copy_run(from, run_id));
  return into.give_back_space();
}

}  // namespace

Result<FreedBytes> delete_runs(const fs::path& path, const std::vector<std::string>& runs, const RunCallback& told) {
  auto store = STRATA_TRY(open_to_change(path));
  const auto ids = STRATA_TRY(ids_of(store, runs));  // all of them, before any of them goes
  const auto before = bytes_of(path);
  FreedBytes freed;
  for (const auto& id : ids) {
    STRATA_TRY(store.delete_run(id));
    freed.beside += remove_files_of(path, id);
    told(id);
  }
  STRATA_TRY(store.give_back_space());
  const auto after = bytes_of(path);
  freed.store = before > after ? before - after : 0;
  return freed;
}

Result<void> export_run(const fs::path& path, const std::string& run, const fs::path& file) {
  const auto from = STRATA_TRY(store::Store::open_existing(path));
  const auto id = STRATA_TRY(from.find_run(run));
  std::error_code ec;
  if (fs::exists(file, ec))
    return fail(fmt::format("{}: there is such a file", file.string()),
                "name a new one; `./strata runs merge` adds to a store", Exit::usage);
  auto written = write_store_of(from, id, file);
  if (!written)
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(file.string() + end, ec);  // half of it is nothing
  return written;
}

Result<std::size_t> refresh_metrics(const fs::path& path, const std::vector<std::string>& runs,
                                    const RunCallback& told) {
  auto store = STRATA_TRY(open_to_change(path));
  const auto ids = STRATA_TRY(runs.empty() ? store.runs_without_metrics() : ids_of(store, runs));
  std::size_t done = 0;
  for (const auto& id : ids) {
    if (interrupted()) return fail("interrupted: what was computed stays", "run the command again");
    const auto run = STRATA_TRY(store.load_case(id, ""));
    if (store::state_of(run) == store::RunState::running) {
      told(id);
      continue;
    }
    STRATA_TRY(analysis::store_metrics(store, id));
    ++done;
  }
  return done;
}

Result<void> join_stores(const std::vector<std::string>& files, const fs::path& into_path, JoinCounts& all) {
  std::vector<store::Store> from;  // all are looked at before anything is written
  for (const auto& file : files) {
    std::error_code ec;
    if (fs::equivalent(file, into_path, ec))
      return fail(fmt::format("{} is the store that runs would come to", file), "name another one", Exit::usage);
    auto opened = STRATA_TRY(store::Store::open_existing(file));
    from.push_back(std::move(opened));
  }
  auto into = STRATA_TRY(store::Store::open(into_path));
  for (const auto& source : from) STRATA_TRY(copy_all(source, into, all));
  return {};
}

}  // namespace strata::engine
