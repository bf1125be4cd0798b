// SPDX-License-Identifier: Apache-2.0
// From a suite's entries to requests: every member of a request is a key, by its option's name.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "requests/request.hpp"
#include "suite/suite.hpp"

namespace strata::engine {

struct SuiteEntry {
  requests::Request request;
  std::string command;  // that asks for it
  std::string label;    // "train mnist_convnet on cuda", for people
  std::string device;
  int line = 0;
};

// What `strata run` says for each.
struct ForAllEntries {
  std::string scale, data_dir;  // to trainings
  std::string python, store;
};

// One for each combination of values where an option takes one and the suite has several. Error: file and line, with
// what is allowed.
Result<std::vector<SuiteEntry>> entries_of(const suite::Suite& suite, const ForAllEntries& more);

}  // namespace strata::engine
