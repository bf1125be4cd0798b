// SPDX-License-Identifier: Apache-2.0
// Commands that a report offers: the same again, closer, one level alone, or a level's program to take away. Each is a
// request, rendered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "requests/codec.hpp"
#include "store/settings.hpp"

namespace strata::requests {

// What a run's settings say that it was asked; nullopt: nothing, as of one that another program wrote.
std::optional<Request> request_of_run(const store::Settings& settings);

// The options that ask for a captured case; the inverse of plan::specs_of for one.
plan::Options options_of(const core::CaseSpec& spec);

// A comparison of that case alone at `levels`, otherwise as it was asked for.
CompareRequest of_case(const plan::Options& asked, const core::CaseSpec& spec, std::vector<std::string> levels);

// What a command names beside its request; empty: not named.
struct Named {
  std::string store, python;
};

// A level's program, as `generate` writes it: its --target, and what more to say for a variant.
struct Program {
  std::string level, target, options;
};

// Precisions that `generate --target` has, for inference or a training step; empty: it has no training.
std::vector<std::string> generated_precisions(const std::string& target, bool train);

// "./strata generate resnet50 -o resnet50-static --threads 2", or "" where the program cannot be written for that case.
// `model`: as the case names it.
std::string generate_command(const core::CaseSpec& spec, const std::string& model, const Program& program,
                             const std::string& python = "");

// The command that takes a measured level away: "./strata export resnet50 --level aoti -o resnet50-aoti --threads 2".
std::string export_command(const core::CaseSpec& spec, const std::string& model, const std::string& level,
                           const Named& named = {});

}  // namespace strata::requests
