// SPDX-License-Identifier: Apache-2.0
// The words of a verb that makes a run, read outside of the command line: of a stored run that goes on, of a suite's
// entry. They are read by the very options of the verb.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/train.hpp"

namespace strata::cli {

class VerbWords {
 public:
  // Null: no verb that makes a run.
  static std::unique_ptr<VerbWords> of(const std::string& verb);
  static const std::vector<std::string>& verbs();  // that there are
  VerbWords(const VerbWords&) = delete;            // options point into it

  // The verb and its words. May throw CLI::ParseError.
  void read(const std::vector<std::string>& words);
  // The same; an error is in strata's words.
  Result<void> try_read(const std::vector<std::string>& words);

  CLI::App& options() { return *verb_; }
  // Checks, runs, shows: the exit code, or what kept it from its end.
  Result<int> run();
  bool trains() const { return verb_->get_name() == "train"; }
  TrainArguments& training() { return training_; }
  CompareArguments& comparison() { return comparison_; }
  RunArguments& run_arguments();
  const engine::CompareRequest& request();

 private:
  explicit VerbWords(const std::string& verb);
  CLI::App app_;
  CLI::App* verb_;
  CompareArguments comparison_;  // or a sweep
  TrainArguments training_;
};

}  // namespace strata::cli
