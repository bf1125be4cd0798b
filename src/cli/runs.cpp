// SPDX-License-Identifier: Apache-2.0
// `strata runs list|delete|export|import|merge|refresh`: whole runs, in one store and between stores.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "engine/manage_runs.hpp"
#include "report/format.hpp"
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

std::string runs_in_words(std::size_t count) {
  return fmt::format("{} run{}", count, count == 1 ? "" : "s");
}

Result<int> delete_runs(const RunsArguments& a) {
  const auto freed = STRATA_TRY(
      engine::delete_runs(store_of(a), a.runs, [](const std::string& id) { answer(fmt::format("deleted {}\n", id)); }));
  answer(fmt::format("freed {} of the store, and {} of logs and reports beside it\n",
                     report::size(static_cast<double>(freed.store)), report::size(static_cast<double>(freed.beside))));
  return 0;
}

Result<int> export_run(const RunsArguments& a) {
  STRATA_TRY(engine::export_run(store_of(a), a.run, a.file));
  answer(fmt::format("{}\n", a.file));
  return 0;
}

Result<int> refresh(const RunsArguments& a) {
  const auto done = STRATA_TRY(engine::refresh_metrics(store_of(a), a.runs, [](const std::string& id) {
    tell(fmt::format("{}: is being measured, and gets its metrics when its cases end\n", id));
  }));
  answer(fmt::format("metrics of {} computed\n", runs_in_words(done)));
  return 0;
}

}  // namespace

Result<int> join_stores(const std::vector<std::string>& files, const fs::path& into) {
  engine::JoinCounts all;
  const auto joined = engine::join_stores(files, into, all);
  if (!joined && all.copied > 0) tell(fmt::format("{} copied before that\n", runs_in_words(all.copied)));
  STRATA_TRY(joined);
  answer(fmt::format("{} copied into {}{}\n", runs_in_words(all.copied), into.string(),
                     all.known > 0 ? fmt::format("; {} there already", runs_in_words(all.known)) : ""));
  return 0;
}

void add_runs(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("runs", "list, delete, export, import or merge stored runs");
  verb->require_subcommand(1);
  auto a = std::make_shared<RunsArguments>();
  add_list_of_runs(*verb, "list", exit_code);
  const auto add = [&](const char* name, const char* about, const char* codes,
                       Result<int> (*action)(const RunsArguments&)) {
    auto* subcommand = verb->add_subcommand(name, about);
    subcommand->footer(codes);
    set_action(*subcommand, exit_code, [a, action] { return action(*a); });
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
