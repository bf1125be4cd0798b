// SPDX-License-Identifier: Apache-2.0
#include "store/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/hash.hpp"
#include "common/outside.hpp"
#include "store/statement.hpp"

namespace strata::store {
namespace {

constexpr std::size_t kHashLetters = 16;

// Whatever an older or a foreign store says, as a count that a column holds.
std::int64_t count_of(const Json& description, const char* name) {
  return std::max<std::int64_t>(0, outside::integer_or(description, name));
}

}  // namespace

std::string Machine::hash() const {
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", cpu, cores, processors, memory_gib, gpu, gpus))
      .substr(0, kHashLetters);
}

Machine machine_of(const Json& description) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  Machine machine;
  machine.cpu = outside::text_or(description, "cpu");
  machine.cores = count_of(description, "cores");
  machine.processors = count_of(description, "logical_processors");
  machine.memory_gib = std::llround(static_cast<double>(count_of(description, "memory_bytes")) / gib);
  machine.gpu = outside::text_or(description, "gpu");
  machine.gpus = count_of(description, "gpu_count");
  return machine;
}

std::string Environment::hash() const {
  return sha256_hex(fmt::format("{}\n{}\n{}", python, torch, packages)).substr(0, kHashLetters);
}

Environment environment_of(const Json& description) {
  const auto& packages = outside::field(description, "packages");  // {name: version}, or a hash already
  return {outside::text_or(description, "python_version"), outside::text_or(description, "torch"),
          packages.is_object()
              ? sha256_hex(packages.dump(-1, ' ', false, Json::error_handler_t::replace)).substr(0, kHashLetters)
              : outside::text_or(description, "packages")};
}

bool write_fingerprints(sqlite3* handle, const std::string& run_id, const Json& machine, const Json& environments) {
  const auto own = machine_of(machine);
  if (!execute(handle,
               "INSERT OR IGNORE INTO machines(hash,cpu,cores,processors,memory_gib,gpu,gpus) VALUES(?,?,?,?,?,?,?)",
               own.hash(), own.cpu, own.cores, own.processors, own.memory_gib, own.gpu, own.gpus) ||
      !execute(handle, "UPDATE runs SET machine_hash=? WHERE run_id=?", own.hash(), run_id))
    return false;
  for (const auto& description : environments) {
    const auto environment = environment_of(description);
    if (!execute(handle, "INSERT OR IGNORE INTO environments(hash,python,torch,packages) VALUES(?,?,?,?)",
                 environment.hash(), environment.python, environment.torch, environment.packages))
      return false;
    std::vector<std::string> names{outside::text_or(description, "name")};
    if (environments.size() == 1 && !names.front().empty()) names.emplace_back();
    for (const auto& name : names)
      if (!execute(handle, "INSERT OR IGNORE INTO run_environments(run_id,name,hash) VALUES(?,?,?)", run_id, name,
                   environment.hash()))
        return false;
  }
  return true;
}

}  // namespace strata::store
