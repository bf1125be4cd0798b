// SPDX-License-Identifier: Apache-2.0
// From a suite's entries to the words of their verbs: every option of a verb is a key, whether or not anybody thought
// of suites when it was added.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "suite/suite.hpp"

namespace strata::cli {

struct SuiteEntry {
  std::vector<std::string> words;  // the verb and its options
  std::string label;               // "train mnist_convnet on cuda", for people
  std::string device;
  int line = 0;
};

// What `strata run` adds to the words of each.
struct ForAllEntries {
  std::string scale, data_dir;  // to trainings
  std::string python, store;
};

// One for each combination of values where an option takes one and the suite has several. Error: file and line, with
// what is allowed.
Result<std::vector<SuiteEntry>> entries_of(const suite::Suite& suite, const ForAllEntries& more);

}  // namespace strata::cli
