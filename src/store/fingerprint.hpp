// SPDX-License-Identifier: Apache-2.0
// Which machine and which environment a run had, by hash: what a question may select or group by. The whole description
// stays with the run.
#pragma once

#include <string>

#include "store/record.hpp"

struct sqlite3;

namespace strata::store {

// A machine as its owner tells it from others; a new kernel or a swap file makes no other of it.
struct Machine {
  std::string cpu, gpu;  // models; gpu empty: none
  std::int64_t cores = 0, processors = 0, memory_gib = 0, gpus = 0;
  std::string hash() const;
};
Machine machine_of(const Json& description);  // as probe::machine() describes it

// An interpreter by what is in it, wherever it lies.
struct Environment {
  std::string python, torch;  // versions
  std::string packages;       // hash of all names and versions; empty: nobody looked
  std::string hash() const;
};
Environment environment_of(const Json& description);  // as plan::Environment describes it

// Internal to store/; false: SQLite refused. A run that is stored gets its machine and its environments, by name; a
// single one has the name "" too, as its rows have.
bool write_fingerprints(sqlite3* handle, const std::string& run_id, const Json& machine, const Json& environments);
bool write_case(sqlite3* handle, const Case& run_case);  // with its axes, unless it is there

}  // namespace strata::store
