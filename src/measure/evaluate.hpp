// SPDX-License-Identifier: Apache-2.0
// The user's own score of a level's outputs (`--eval file.py:score`). Inputs are made once for a case, every level runs
// all of them, and the score is asked in a process of its own.
#pragma once

#include <memory>

#include "measure/participant.hpp"
#include "plan/environment.hpp"

namespace strata::measure {

struct ScoreFile {
  std::filesystem::path path;  // absolute
  std::string function;
};
// "path/score.py:score". Error: usage.
Result<ScoreFile> score_file(const std::string& text);

// Calls the file's inputs() before anything is captured. Error: what the user has to fix of the file, whatever the
// network is.
Result<void> check_score(const ScoreFile& score, const Installation& place, const std::string& python,
                         std::chrono::milliseconds timeout);

// The inputs of one case as files, which go with the last copy of this.
struct Evaluation {
  ScoreFile score;
  std::shared_ptr<const std::filesystem::path> folder;
  std::vector<int> chunks;  // batches in each file
  std::int64_t count = 0;   // examples
  std::chrono::milliseconds timeout{600000};
};

// Calls the file's inputs(). Error: what the user has to fix, before any worker starts.
Result<Evaluation> begin_evaluation(const ScoreFile& score, const plan::Bundle& bundle, const Installation& place,
                                    const plan::Environment& environment, const std::filesystem::path& folder,
                                    std::chrono::milliseconds timeout);

// Runs all inputs through the level with its timed weights, then scores. It takes nothing that was measured away.
store::ScoreRecord evaluate(const Participant& participant, const Evaluation& evaluation, const Installation& place,
                            const plan::Environment& environment);

}  // namespace strata::measure
