// SPDX-License-Identifier: Apache-2.0
#include "export/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "common/hash.hpp"
#include "common/outside.hpp"
#include "plan/read_files.hpp"
#include "store/store.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// When the artefact was made, as the store writes times; empty if it is not known.
std::string made_at(const fs::path& cache) {
  std::error_code ec;
  const auto when = fs::last_write_time(cache / "prepared.json", ec);
  if (ec) return {};
  const auto seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(std::chrono::file_clock::to_sys(when)));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// The row of this level and artefact that ended with a verdict; nullptr: none.
const store::Row* verdict_row(const store::Case& run_case, const plan::Job& job) {
  for (const auto& row : run_case.rows) {
    const bool judged = row.state == State::measured || row.state == State::unequal || row.state == State::mistrusted;
    if (judged && row.level == job.level.id && row.variant == job.level.variant &&
        row.info.artefact == job.cache.filename().string())
      return &row;
  }
  return nullptr;
}

Evidence evidence_of(const store::Run& run, const store::Case& run_case, const store::Row& row, const plan::Job& job) {
  if (row.state != State::measured || !row.proof || !row.proof->is_equal())
    return {{},
            fmt::format("run {}, the newest that measured it, found it {}: {}", run.run_id, to_string(row.state),
                        row.reason),
            ""};
  Evidence result;
  result.certificate = {{"run", run.run_id},      {"started", run.started},   {"command", run.command},
                        {"strata", run.version},  {"machine", run.machine},   {"environments", run.environments},
                        {"case", run_case.id},    {"case_key", run_case.key}, {"level", row.level},
                        {"variant", row.variant}, {"settings", row.settings}, {"proof", store::to_json(row.proof)}};
  const auto prepared = made_at(job.cache);
  const bool same = prepared.empty() || run.finished.empty() || prepared <= run.finished;
  result.certificate["same_files"] = same;
  if (!same)
    result.note = fmt::format(
        "the artefact was made again on {}, after that run, from the same sources and with the same versions",
        prepared);
  return result;
}

constexpr int kLookedAt = 20;  // runs of the same case, when no one measured this network

// The name of a file of weights or inputs that a case of the same words has with another content; empty: none.
std::string changed_file(const Json& before, const Json& now) {
  for (const char* label : {"weights_label", "inputs_label"}) {
    const auto was = outside::text_or(before, label), is = outside::text_or(now, label);
    const auto end = is.rfind(':');
    const bool file = end != std::string::npos && !is.starts_with("build:");
    if (was != is && file && was.starts_with(is.substr(0, end + 1))) return is.substr(0, end);
  }
  return {};
}

// Why no run measured this network, if one measured the same case before something of it changed.
std::string what_changed(const store::Store& store, const std::vector<store::Run>& runs, const plan::Job& job) {
  const auto& info = job.bundle->info;
  const auto key = key_of(job.bundle->question);
  int looked_at = 0;
  for (const auto& listed : runs) {
    const auto cases = store.run_cases(listed.run_id);
    if (!cases || std::none_of(cases->begin(), cases->end(), [&](const auto& run_case) { return run_case.key == key; }))
      continue;
    if (++looked_at > kLookedAt) break;
    const auto run = store.load_run(listed.run_id);
    if (!run) continue;
    for (const auto& run_case : run->cases) {
      const bool same_case = run_case.key == key;
      const bool measured = std::any_of(run_case.rows.begin(), run_case.rows.end(), [&](const store::Row& row) {
        return row.level == job.level.id && row.variant == job.level.variant && row.state == State::measured;
      });
      if (!same_case || !measured || run_case.network == job.bundle->network) continue;
      const auto change = plan::changes_between(outside::field(run_case.bundle, "read"), info.value("read", Json()),
                                                plan::folder_of(job.bundle->spec.model));
      if (change) return fmt::format("{} since run {} measured it", *change, run->run_id);
      if (const auto file = changed_file(outside::field(run_case.bundle, "case"), outside::field(info, "case"));
          !file.empty())
        return fmt::format("{} changed since run {} measured it", file, run->run_id);
      const bool others = outside::field(run_case.bundle, "network") != info.value("network", Json());
      return fmt::format("{} since run {} measured it",
                         others ? "the same files gave other weights" : "strata or its environment changed",
                         run->run_id);
    }
  }
  return {};
}

}  // namespace

Evidence find_evidence(const fs::path& path, const plan::Job& job) {
  std::error_code ec;
  const std::string none = "no stored run measured it";
  if (!fs::exists(path, ec)) return {{}, fmt::format("{}: there is no store {}", none, path.string()), ""};
  const auto store = store::Store::open_existing(path);
  const auto runs = store ? store->list_runs(0) : Result<std::vector<store::Run>>(tl::unexpected(store.error()));
  if (!runs) return {{}, runs.error().what, ""};
  const auto is_of_network = [&, key = key_of(job.bundle->question)](const auto& element) {
    return element.key == key && element.network == job.bundle->network;
  };
  for (const auto& listed : *runs) {
    const auto cases = store->run_cases(listed.run_id);
    if (!cases || std::none_of(cases->begin(), cases->end(), is_of_network)) continue;
    const auto run = store->load_run(listed.run_id);
    if (!run) return {{}, run.error().what, ""};
    for (const auto& run_case : run->cases)
      if (const auto* row = is_of_network(run_case) ? verdict_row(run_case, job) : nullptr)
        return evidence_of(*run, run_case, *row, job);
  }
  const auto change = what_changed(*store, *runs, job);
  return {{}, change.empty() ? none : change, ""};
}

Result<Json> hashes_of(const fs::path& folder, const std::vector<std::string>& names) {
  Json out = Json::object();
  for (const auto& name : names) {
    out[name] = STRATA_TRY(sha256_of_file(folder / name));
  }
  return out;
}

}  // namespace strata::exporting
