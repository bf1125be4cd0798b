// SPDX-License-Identifier: Apache-2.0
// Reading the store. Whatever is not as strata writes it is an error, never another number; bounds are checked before
// memory is taken for what they bound.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "common/escape.hpp"
#include "common/outside.hpp"
#include "common/state.hpp"
#include "store/facts_codec.hpp"
#include "store/run_hash.hpp"
#include "store/run_state.hpp"
#include "store/samples.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace {

constexpr std::int64_t kMostRestarts = 100'000, kMostRounds = 100'000'000, kMostLevels = 10'000;
constexpr std::int64_t kLongest = 4'000'000'000'000'000'000;  // ns: 127 years
constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostPlaces = 20'000'000;  // levels x rounds x restarts of a case, which the statistics hold

constexpr const char* kRunColumns =
    "run_id,name,started,finished,interrupted,command,version,seed,settings,machine,environments,process,imported";

// Ids become names of files and parts of commands.
bool is_run_id(const std::string& id) {
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !id.empty() && id.size() <= 64 && fits(id.front()) &&
         std::all_of(id.begin(), id.end(), [&](char c) { return fits(c) || c == '-'; });
}

Run read_run(Statement& row) {
  Run run;
  run.run_id = row.text();
  if (!is_run_id(run.run_id))
    row.complain(fmt::format("\"run_id\" is '{}'; allowed are letters, digits and -",
                             escape::one_line(run.run_id.substr(0, 80))));
  run.name = row.text();
  run.started = row.text();
  run.finished = row.text();
  run.interrupted = row.integer(0, 1) != 0;
  run.command = row.text();
  run.version = row.text();
  run.seed = row.integer();
  read(row, run.settings);
  run.machine = row.json(Shape::object);
  run.environments = row.json(Shape::array);
  run.process = row.text();
  run.imported = row.integer(0, 1) != 0;
  return run;
}

tl::unexpected<Error> changed(const Connection& store, const std::string& run_id) {
  return fail(
      fmt::format("store {}: run {} is not as it was stored: its hash is another one", store.path().string(), run_id),
      fmt::format("nothing is shown that could be wrong: take a copy of the store that is whole, or delete the "
                  "run: ./strata runs delete {}",
                  run_id));
}

Block read_block(Statement& row) {
  Block block;
  block.restart = static_cast<int>(row.integer(0, kMostRestarts));
  block.round = static_cast<int>(row.integer(0, kMostRounds));
  block.position = static_cast<int>(row.integer(0, kMostLevels));
  block.instance = static_cast<int>(row.integer(0, 1));
  block.start_ns = row.integer(0, kAnyTime);
  block.wall_ns = row.integers(0, kLongest);
  block.latency_ns = row.integers(0, kLongest);
  block.cpu_ns = row.optional_integer(0);
  block.runq_ns = row.optional_integer(0);
  block.check = row.text();
  block.taken = row.optional_real(0, 1e6);
  if (block.wall_ns.size() != block.latency_ns.size())
    row.complain(fmt::format("\"wall_ns\" has {} entries, \"latency_ns\" {}; allowed are as many of each",
                             block.wall_ns.size(), block.latency_ns.size()));
  if (block.wall_ns.empty()) row.complain("\"wall_ns\" is empty; allowed is one entry or more");
  return block;
}

// All but `info`, which is as its column has it.
Row read_row(Statement& ask, Json& info) {
  Row row;
  row.row_id = ask.integer();
  row.level = ask.text();
  row.variant = ask.text();
  row.environment = ask.text();
  const auto state = ask.text();
  row.reason = ask.text();
  row.hint = ask.text();
  row.log_tail = ask.text();
  row.repeat = ask.text();
  info = ask.json(Shape::object);
  row.settings = ask.json(Shape::object_or_null);
  store::read(ask, row.memory);
  store::read(ask, row.start_up);
  store::read(ask, row.proof);
  row.disk_bytes = ask.optional_integer(0);
  row.artefact_bytes = ask.optional_integer(0);
  row.judged = ask.integer(0, 1) != 0;
  if (const auto known = state_from(state))
    row.state = *known;
  else
    ask.complain(fmt::format("\"state\" is '{}'; allowed is a state of a row", escape::one_line(state.substr(0, 80))));
  return row;
}

using Names = std::initializer_list<const char*>;

void check_fields(Statement& row, const char* column, const Json& object, Names names, const char* allowed,
                  bool (*is_right)(const Json&)) {
  if (!object.is_object()) return;
  for (const char* name : names)
    if (const auto it = object.find(name); it != object.end() && !is_right(*it))
      row.complain(fmt::format("\"{}\": \"{}\" is {}; allowed is {}", column, name, outside::shown(*it), allowed));
}

// Numbers that others are computed from are numbers, or absent; another type would quietly stand for "unknown".
void check_numbers(Statement& row, const char* column, const Json& object, Names names) {
  check_fields(row, column, object, names, "a number from 0",
               [](const Json& value) { return value.is_number() && value.get<double>() >= 0; });
}

// Reads one run, and no more bytes than the file has: cells of a file made for it could share theirs.
class RunReader {
 public:
  RunReader(const Connection& connection, std::set<std::string>& verified)
      : connection_(connection), verified_(verified) {}

  // `only`: the key of the one case that is wanted; nullptr: all.
  Result<Run> read(const std::string& run_id, const std::string* only = nullptr) {
    Statement size(connection_.handle(), "SELECT page_count*page_size FROM pragma_page_count,pragma_page_size");
    if (!size.step()) return connection_.broken("cannot read it");
    bytes_left_ = size.integer();
    Statement ask(connection_.handle(), fmt::format("SELECT {} FROM runs WHERE run_id=?", kRunColumns).c_str());
    ask.bind(run_id);
    if (!ask.step()) return connection_.broken("cannot read the run");
    Run run = read_run(ask);
    check_numbers(ask, "machine", run.machine,
                  {"cores", "physical_cores", "logical_processors", "last_cache_bytes", "l2_bytes", "l3_bytes"});
    STRATA_TRY(check(ask, "its run"));
    STRATA_TRY(check_references());
    STRATA_TRY(read_warnings(run));
    STRATA_TRY(read_cases(run, only));
    if (!only || !only->empty()) STRATA_TRY(verify(run));
    return run;
  }

 private:
  // What is in no hash yet, since the run was killed, SQLite can only find sound.
  Result<void> verify(const Run& run) {
    if (verified_.contains(run.run_id) || state_of(run) == RunState::running || run.process == this_process())
      return {};
    Statement ask(connection_.handle(), "SELECT content_hash FROM runs WHERE run_id=?");
    ask.bind(run.run_id);  // held open: what follows is of the same moment
    const auto stored = ask.step() ? ask.text() : std::string();
    if (stored.empty()) {
      STRATA_TRY(connection_.check_integrity());
    } else {
      const auto now = content_hash(connection_.handle(), run.run_id);
      if (!now) return connection_.broken("cannot verify the run");
      if (*now != stored) return changed(connection_, run.run_id);
    }
    verified_.insert(run.run_id);
    return {};
  }
  // After each row that was read.
  Result<void> check(const Statement& row, const std::string& where) {
    if (!row.fault().empty()) return connection_.damaged(fmt::format("{}: {}", where, row.fault()));
    if (row.bytes() > bytes_left_) return connection_.damaged("its cells are longer than the whole file");
    return {};
  }
  // After the last one.
  Result<void> end(const Statement& rows, const char* doing) {
    if (!rows.ok()) return connection_.broken(doing);
    bytes_left_ -= rows.bytes();
    return {};
  }

  // What belongs to nobody was taken from somebody, perhaps from this run. Looks at an index of the rows and at both
  // ends of the blocks' keys, where those of another type are.
  Result<void> check_references() {
    // Each end by itself: of both together SQLite would read all blocks.
    Statement ask(
        connection_.handle(),
        "SELECT EXISTS(SELECT 1 FROM level_rows r WHERE NOT EXISTS(SELECT 1 FROM run_cases c WHERE "
        "c.run_id=r.run_id AND c.hash=r.hash)), EXISTS(SELECT 1 FROM (SELECT (SELECT min(row_id) FROM blocks) "
        "AS k UNION ALL SELECT (SELECT max(row_id) FROM blocks)) WHERE k IS NOT NULL AND NOT EXISTS(SELECT 1 "
        "FROM level_rows WHERE row_id=k))");
    if (!ask.step()) return connection_.broken("cannot look at what belongs together");
    if (ask.integer(0, 1) != 0) return connection_.damaged("it holds a row of a case that no run has");
    if (ask.integer(0, 1) != 0) return connection_.damaged("it holds a block of a row that no run has");
    return {};
  }

  Result<void> read_warnings(Run& run) {
    Statement ask(connection_.handle(),
                  "SELECT id,what,advice,case_key,row_id FROM warnings WHERE run_id=? ORDER BY rowid");
    ask.bind(run.run_id);
    while (ask.step()) {
      Warning warning;
      warning.id = ask.text();
      warning.what = ask.text();
      warning.advice = ask.text();
      warning.case_key = ask.text();
      warning.row_id = ask.optional_integer(0);
      STRATA_TRY(check(ask, "a warning of run " + run.run_id));
      run.warnings.push_back(std::move(warning));
    }
    return end(ask, "cannot read the run's warnings");
  }

  Result<void> read_cases(Run& run, const std::string* only) {
    Statement ask(
        connection_.handle(),
        "SELECT c.hash,c.id,c.canonical,r.network,r.bundle,r.limits,r.trust,r.reference_level,r.finished "
        "FROM run_cases r "
        "LEFT JOIN cases c ON c.hash=r.hash WHERE r.run_id=?1 AND (?2 IS NULL OR r.hash=?2) ORDER BY r.position");
    ask.bind(run.run_id).bind(only ? std::optional(*only) : std::nullopt);
    while (ask.step()) {
      Case stored_case;
      stored_case.key = ask.text();
      stored_case.id = ask.text();
      auto question = core::read_case(ask.json(Shape::object), "\"canonical\"");
      if (!question) ask.complain(question.error().what);
      if (question) stored_case.question = std::move(*question);
      stored_case.network = ask.text();
      stored_case.bundle = ask.json(Shape::object_or_null);
      store::read(ask, stored_case.limits);
      store::read(ask, stored_case.trust);
      stored_case.reference_level = ask.text();
      stored_case.finished = ask.integer(0, 1) != 0;
      check_fields(ask, "bundle", stored_case.bundle, {"flops", "parameters", "weight_bytes", "input_bytes"},
                   "a number from 0, or null", [](const Json& value) {
                     return value.is_null() || (value.is_number() && value.get<double>() >= 0);
                   });
      STRATA_TRY(check(ask, "a case of run " + run.run_id));
      STRATA_TRY(read_rows(run.run_id, stored_case));
      run.cases.push_back(std::move(stored_case));
    }
    return end(ask, "cannot read the run's cases");
  }

  Result<void> read_rows(const std::string& run_id, Case& run_case) {
    Statement ask(
        connection_.handle(),
        "SELECT row_id,level,variant,environment,state,reason,hint,log_tail,repeat,info,settings,memory,start_up,"
        "proof,disk_bytes,artefact_bytes,judged FROM level_rows WHERE run_id=? AND hash=? ORDER BY row_id");
    ask.bind(run_id).bind(run_case.key);
    while (ask.step()) {
      Json info;
      Row row = read_row(ask, info);
      STRATA_TRY(check(ask, "a row of run " + run_id));
      STRATA_TRY(read_samples(row, info));
      auto read = read_row_info(info);
      if (!read) return connection_.damaged(fmt::format("a row of run {}: {}", run_id, read.error().what));
      row.info = std::move(*read);
      STRATA_TRY(read_blocks(row));
      run_case.rows.push_back(std::move(row));
    }
    STRATA_TRY(end(ask, "cannot read the run's rows"));
    return check_places(run_case);
  }

  Result<void> read_samples(const Row& row, Json& info) {
    Statement ask(connection_.handle(), "SELECT place,ns FROM samples WHERE row_id=? ORDER BY place");
    ask.bind(row.row_id);
    while (ask.step()) {
      const auto place = ask.text();
      const auto values = ask.integers(-kLongest, kLongest);
      if (!put_back(info, place, values))
        ask.complain(fmt::format("\"place\" is '{}'; allowed is one that \"info\" leaves to it",
                                 escape::one_line(place.substr(0, 80))));
      STRATA_TRY(check(ask, fmt::format("a sample of {}", escape::one_line(row.name()))));
    }
    return end(ask, "cannot read the run's samples");
  }

  Result<void> read_blocks(Row& row) {
    Statement ask(
        connection_.handle(),
        "SELECT restart,round,position,instance,start_ns,wall_ns,latency_ns,cpu_ns,runq_ns,check_result,taken "
        "FROM blocks WHERE row_id=? ORDER BY restart,round,instance");
    ask.bind(row.row_id);
    while (ask.step()) {
      Block block = read_block(ask);
      STRATA_TRY(check(ask, fmt::format("a block of {}", escape::one_line(row.name()))));
      row.blocks.push_back(std::move(block));
    }
    return end(ask, "cannot read the run's blocks");
  }

  // The statistics hold a place for every level in every round, so that one absurd number would take all memory.
  Result<void> check_places(const Case& run_case) {
    std::map<int, std::int64_t> rounds;
    for (const auto& row : run_case.rows)
      for (const auto& block : row.blocks) {
        auto& most = rounds[block.restart];
        most = std::max<std::int64_t>(most, block.round + 1);
      }
    std::int64_t places = 0;
    for (const auto& [restart, count] : rounds) places += count * static_cast<std::int64_t>(run_case.rows.size());
    if (places <= kMostPlaces) return {};
    return connection_.damaged(
        fmt::format("a case of it has {} places of blocks; allowed are {}", places, kMostPlaces));
  }

  const Connection& connection_;
  std::set<std::string>& verified_;
  std::int64_t bytes_left_ = 0;
};

}  // namespace

Result<std::optional<ProcessEffect>> Store::find_effect(const std::string& machine, int threads) const {
  Statement ask(handle(),
                "SELECT measured,sigma,low,high,detail FROM process_effects WHERE machine=? AND threads=? ORDER BY "
                "measured DESC LIMIT 1");
  ask.bind(machine).bind(threads);
  if (!ask.step()) {
    if (!ask.ok()) return connection_.broken("cannot read the calibration");
    return std::optional<ProcessEffect>{};
  }
  constexpr double most = 100;  // of the logarithm of a time
  ProcessEffect effect;
  effect.machine = machine;
  effect.threads = threads;
  effect.measured = ask.text();
  effect.sigma = ask.real(0, most);
  effect.low = ask.real(0, most);
  effect.high = ask.real(0, most);
  effect.detail = ask.json(Shape::object_or_null);
  if (!ask.fault().empty()) return connection_.damaged("a calibration: " + ask.fault());
  return std::optional<ProcessEffect>{effect};
}

Result<std::vector<Run>> Store::list_runs(int limit) const {
  Statement ask(
      handle(),
      fmt::format("SELECT {},list_hash FROM runs ORDER BY started DESC, rowid DESC LIMIT ?", kRunColumns).c_str());
  ask.bind(limit > 0 ? limit : -1);
  std::vector<Run> runs;
  while (ask.step()) {
    runs.push_back(read_run(ask));
    const auto stored = ask.text();
    if (!ask.fault().empty()) return connection_.damaged("a run: " + ask.fault());
    const auto& run = runs.back();
    if (!run.finished.empty() && list_hash(handle(), run.run_id) != stored) return changed(connection_, run.run_id);
  }
  if (!ask.ok()) return connection_.broken("cannot list the runs");
  return runs;
}

Result<std::vector<Json>> Store::restarts(const std::string& run_id, const std::string& case_key) const {
  Statement ask(handle(), "SELECT number,load FROM restarts WHERE run_id=? AND hash=? ORDER BY number");
  ask.bind(run_id).bind(case_key);
  std::vector<Json> loads;
  while (ask.step()) {
    const auto number = ask.integer(0, kMostRestarts);
    loads.push_back(ask.json(Shape::array));
    if (number != static_cast<std::int64_t>(loads.size()) - 1) ask.complain("a restart is missing");
    if (!ask.fault().empty()) return connection_.damaged("the restarts of a case: " + ask.fault());
  }
  if (!ask.ok()) return connection_.broken("cannot read the restarts of a case");
  return loads;
}

Result<std::vector<ListedCase>> Store::run_cases(const std::string& run_id) const {
  Statement ask(handle(),
                "SELECT c.hash,r.network,c.id,r.verdict FROM run_cases r LEFT JOIN cases c ON c.hash=r.hash WHERE "
                "r.run_id=? ORDER BY r.position");
  ask.bind(run_id);
  std::vector<ListedCase> result;
  while (ask.step()) {
    ListedCase listed;
    listed.key = ask.text();
    listed.network = ask.text();
    listed.id = ask.text();
    listed.verdict = ask.text();
    if (!ask.fault().empty()) return connection_.damaged("a case: " + ask.fault());
    result.push_back(std::move(listed));
  }
  if (!ask.ok()) return connection_.broken("cannot list the cases of a run");
  return result;
}

// The id of the run that is meant. A run to which nothing was added is never "last".
Result<std::string> Store::find_run(const std::string& which) const {
  const auto ids = [&](const char* sql, const std::vector<std::string>& values) -> Result<std::vector<std::string>> {
    Statement ask(handle(), sql);
    for (const auto& value : values) ask.bind(value);
    std::vector<std::string> result;
    while (ask.step()) result.push_back(ask.text());
    if (!ask.ok()) return connection_.broken("cannot look for a run");
    for (const auto& id : result)
      if (!is_run_id(id)) return connection_.damaged("a run has an id that strata does not give");
    return result;
  };
  const auto newest =
      ids("SELECT run_id FROM runs WHERE EXISTS(SELECT 1 FROM run_cases WHERE run_cases.run_id=runs.run_id) ORDER BY "
          "imported, started DESC, rowid DESC LIMIT 1",
          {});
  if (!newest) return tl::unexpected(newest.error());
  const auto none = [&] {
    return fail(fmt::format("store {}: no run is stored yet", path().string()), "run `strata compare MODEL` first",
                Exit::usage);
  };
  if (which == "last" && newest->empty()) return none();
  if (which == "last") return newest->front();
  auto hits =
      ids("SELECT run_id FROM runs WHERE run_id=?1 OR (name=?1 AND name<>'') ORDER BY started DESC, rowid DESC "
          "LIMIT 1",
          {which});
  // '~' is greater than every letter of an id.
  if (hits && hits->empty() && !which.empty())
    hits = ids("SELECT run_id FROM runs WHERE run_id>=?1 AND run_id<?1||'~' LIMIT 2", {which});
  if (!hits) return tl::unexpected(hits.error());
  if (hits->size() == 1) return hits->front();
  if (newest->empty()) return none();
  return fail(fmt::format("store {}: {} run is called '{}'", path().string(), hits->empty() ? "no" : "more than one",
                          escape::one_line(which)),
              fmt::format("`strata list runs` shows them; the newest is {}, also called 'last'", newest->front()),
              Exit::usage, {.where = "run", .got = outside::shown(which)});
}

Result<Run> Store::load_run(const std::string& which) const {
  const auto id = STRATA_TRY(find_run(which));
  return load_id(id);
}

Result<Run> Store::load_id(const std::string& run_id) const {
  return RunReader(connection_, verified_).read(run_id);
}

Result<Run> Store::load_case(const std::string& run_id, const std::string& case_key) const {
  return RunReader(connection_, verified_).read(run_id, &case_key);
}

}  // namespace strata::store
