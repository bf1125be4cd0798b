// SPDX-License-Identifier: Apache-2.0
// From a case back to the words that ask for it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/options.hpp"

namespace strata::plan {

// A word as a shell reads it back.
std::string quoted(const std::string& word);

// "resnet50 --batch 8 --threads 2": a spec (docs/bundle.md) as arguments of compare and export. The inverse of specs_of
// for one batch; `device`, `seed` and what else has a default is left out where it has it.
std::string case_words(const nlohmann::json& spec);

// " --preset quick --budget 3s --restarts 1": what the options say of a run beside its case and its levels, where it is
// not the default; begins with a space unless it is empty.
std::string run_words(const Options& options);

// The command with an option set to a value, whether or not it had the option.
std::string with_option(const std::string& command, const std::string& option, const std::string& value);

// A level's program, as `generate` writes it: its --target, and what more to say for a variant.
struct Program {
  std::string level, target, options;
};

// Precisions that `generate --target` has, for inference or a training step; empty: it has no training.
std::vector<std::string> generated_precisions(const std::string& target, bool train);

// "./strata generate resnet50 --threads 2 -o resnet50-static", or "" where the program cannot be written for that case.
std::string generate_command(const nlohmann::json& spec, const std::string& model, const Program& program,
                             const std::string& measured_by);

// The command that takes a measured level away: "./strata export resnet50 --threads 2 --level aoti -o resnet50-aoti".
// Where `measured_by`, the command that measured it, named a store or an interpreter, it is named again.
std::string export_command(const nlohmann::json& spec, const std::string& model, const std::string& level,
                           const std::string& measured_by);

}  // namespace strata::plan
