// SPDX-License-Identifier: Apache-2.0
// A suite as `run` begins it and `resume` goes on with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/record.hpp"

namespace CLI {
class App;
}

namespace strata::cli {

struct SuiteArguments {
  std::string suite, scale, data_dir, python, store, format = "text", name;
  bool dry_run = false, yes = false, resume = false;
  std::vector<std::string> words;
  std::optional<store::Run> resumed;
};

void add_run_options(CLI::App& verb, SuiteArguments& a);

// Plans, runs what is not done, shows; the exit code.
int run_suite(SuiteArguments& a);

// `strata resume` of a suite's run: its words are read again, but for these. May throw CLI::ParseError.
struct ResumedWith {
  std::string store, format, python;
};
int resume_suite(store::Run run, const ResumedWith& with);

}  // namespace strata::cli
