// SPDX-License-Identifier: Apache-2.0
// `strata runs list|delete|export|import|merge|refresh`: whole runs, in one store and between stores.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "analysis/store_metrics.hpp"
#include "cli/console.hpp"
#include "cli/join_stores.hpp"
#include "cli/list_runs.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "report/format.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

struct RunsArguments {
  std::vector<std::string> runs, files;
  std::string run, file, into, store;
};

fs::path store_of(const RunsArguments& a) {
  return store::Store::path_of(a.store);
}

// A store that is there, to be changed.
Result<store::Store> open_to_change(const fs::path& path) {
  STRATA_TRY(store::Store::open_existing(path));
  return store::Store::open(path);
}

std::string runs_in_words(std::size_t count) {
  return fmt::format("{} run{}", count, count == 1 ? "" : "s");
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

int delete_runs(const RunsArguments& a) {
  const auto path = store_of(a);
  auto store = open_to_change(path);
  if (!store) return print_error(store.error());
  const auto ids = ids_of(*store, a.runs);  // all of them, before any of them goes
  if (!ids) return print_error(ids.error());
  const auto before = bytes_of(path);
  std::uintmax_t beside = 0;
  for (const auto& id : *ids) {
    if (auto gone = store->delete_run(id); !gone) return print_error(gone.error());
    beside += remove_files_of(path, id);
    answer(fmt::format("deleted {}\n", id));
  }
  if (auto given_back = store->give_back_space(); !given_back) return print_error(given_back.error());
  const auto after = bytes_of(path);
  answer(fmt::format("freed {} of the store, and {} of logs and reports beside it\n",
                     report::size(static_cast<double>(before > after ? before - after : 0)),
                     report::size(static_cast<double>(beside))));
  return 0;
}

// Every run of `from`, the oldest first, so that equal times keep their order.
Result<void> copy_all(const store::Store& from, store::Store& into, std::size_t& copied, std::size_t& known) {
  auto runs = STRATA_TRY(from.list_runs(0));
  std::reverse(runs.begin(), runs.end());
  for (const auto& run : runs) {
    if (interrupted()) return fail("interrupted: what was copied stays", "run the command again for the rest");
    const auto done = STRATA_TRY(into.copy_run(from, run.run_id));
    ++(done ? copied : known);
  }
  return {};
}

Result<void> write_store_of(const store::Store& from, const std::string& run_id, const fs::path& path) {
  auto into = STRATA_TRY(store::Store::open(path));
  STRATA_TRY(into.copy_run(from, run_id));
  return into.give_back_space();
}

int export_run(const RunsArguments& a) {
  const auto from = store::Store::open_existing(store_of(a));
  if (!from) return print_error(from.error());
  const auto id = from->find_run(a.run);
  if (!id) return print_error(id.error());
  std::error_code ec;
  if (fs::exists(a.file, ec))
    return print_error({fmt::format("{}: there is such a file", a.file),
                        "name a new one; `./strata runs merge` adds to a store", Exit::usage});
  if (auto written = write_store_of(*from, *id, a.file); !written) {
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(a.file + end, ec);  // half of it is nothing
    return print_error(written.error());
  }
  answer(fmt::format("{}\n", a.file));
  return 0;
}

int refresh(const RunsArguments& a) {
  auto store = open_to_change(store_of(a));
  if (!store) return print_error(store.error());
  const auto ids = a.runs.empty() ? store->runs_without_metrics() : ids_of(*store, a.runs);
  if (!ids) return print_error(ids.error());
  std::size_t done = 0;
  for (const auto& id : *ids) {
    if (interrupted())
      return print_error({"interrupted: what was computed stays", "run the command again", Exit::failed});
    const auto run = store->load_case(id, "");
    if (!run) return print_error(run.error());
    if (store::state_of(*run) == store::RunState::running) {
      tell(fmt::format("{}: is being measured, and gets its metrics when its cases end\n", id));
      continue;
    }
    if (auto written = analysis::store_metrics(*store, id); !written) return print_error(written.error());
    ++done;
  }
  answer(fmt::format("metrics of {} computed\n", runs_in_words(done)));
  return 0;
}

}  // namespace

int join_stores(const std::vector<std::string>& files, const fs::path& into_path) {
  std::vector<store::Store> from;  // all are looked at before anything is written
  for (const auto& file : files) {
    std::error_code ec;
    if (fs::equivalent(file, into_path, ec))
      return print_error(
          {fmt::format("{} is the store that runs would come to", file), "name another one", Exit::usage});
    auto opened = store::Store::open_existing(file);
    if (!opened) return print_error(opened.error());
    from.push_back(std::move(*opened));
  }
  auto into = store::Store::open(into_path);
  if (!into) return print_error(into.error());
  std::size_t copied = 0, known = 0;
  for (const auto& source : from)
    if (auto done = copy_all(source, *into, copied, known); !done) {
      tell(fmt::format("{} copied before that\n", runs_in_words(copied)));
      return print_error(done.error());
    }
  answer(fmt::format("{} copied into {}{}\n", runs_in_words(copied), into_path.string(),
                     known > 0 ? fmt::format("; {} there already", runs_in_words(known)) : ""));
  return 0;
}

void add_runs(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("runs", "list, delete, export, import or merge stored runs");
  verb->require_subcommand(1);
  auto a = std::make_shared<RunsArguments>();
  add_list_of_runs(*verb, "list", exit_code);
  const auto add = [&](const char* name, const char* about, const char* codes, int (*action)(const RunsArguments&)) {
    auto* subcommand = verb->add_subcommand(name, about);
    subcommand->footer(codes);
    subcommand->callback([a, action, &exit_code] { exit_code = action(*a); });
    return subcommand;
  };
  const auto add_store = [&](CLI::App* verb_app, const char* about) {
    verb_app->add_option("--store", a->store, about)->type_name("PATH");
  };
  constexpr const char* where = "the store's file (default: strata/strata.db in the XDG data folder)";
  auto* gone = add("delete", "delete runs with their logs and reports, without asking",
                   "Exit codes: 0 deleted; 1 the store cannot be read or written; 2 wrong usage, there is no such run, "
                   "or it is running.",
                   delete_runs);
  gone->add_option("run", a->runs, "runs by id, the beginning of one, name, or last")->required();
  add_store(gone, where);
  auto* out = add("export", "write one run as a store of its own",
                  "Exit codes: 0 written; 1 a store cannot be read or written; 2 wrong usage, there is no such run, it "
                  "is running, or the file is there.",
                  export_run);
  out->add_option("run", a->run, "the run's id, the beginning of it, its name, or last")->required();
  out->add_option("file", a->file, "the new store's file")->required();
  add_store(out, where);
  constexpr const char* joined =
      "Exit codes: 0 all runs are there; 1 a store cannot be read or written, or a run of one id is another one in "
      "each; "
      "2 wrong usage, or a run is running.";
  auto* in = add("import", "add the runs of another store", joined,
                 [](const RunsArguments& args) { return join_stores({args.file}, store_of(args)); });
  in->add_option("file", a->file, "a store, as `runs export` writes one")->required();
  add_store(in, where);
  auto* all = add("merge", "add the runs of several stores to one", joined, [](const RunsArguments& args) {
    return join_stores({args.files.begin(), args.files.end() - 1}, args.files.back());
  });
  all->add_option("file", a->files, "the stores, and last the target; it is created if missing")
      ->required()
      ->expected(2, 1'000'000);
  auto* again = add("refresh", "compute the metrics of stored runs from their samples: of older or killed ones",
                    "Exit codes: 0 computed; 1 the store cannot be read or written; 2 wrong usage, or there is no such "
                    "run.",
                    refresh);
  again->add_option("run", a->runs, "runs by id, name or last (default: all that have none)");
  add_store(again, where);
}

}  // namespace strata::cli
