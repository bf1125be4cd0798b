// SPDX-License-Identifier: Apache-2.0
// What the first screen says, in words and cells, the same for terminal, Markdown and HTML. No layout here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/result.hpp"
#include "report/format.hpp"

namespace strata::report {

// One measured level; `tuned`: its ratio to the tuned reference if it is its level's best variant, `tuned_short`
// without the interval. Cells are ready to show; `verdict` is one of "", "faster", "slower", "same", "inconclusive".
struct LevelLine {
  const analysis::RowResult* row;
  std::string name, time, ratio, verdict, tuned, tuned_short, p99, memory, device_memory, warm_start, proof,
      proof_short;
  bool recommended = false, harness = false;
};

// Levels without a number that have one state and one reason.
struct EmptyLine {
  std::string names, state, reason;  // "onednn, static"; state in words: "out of memory"; reason: a whole sentence
  bool not_run = false;              // they were not tried here: unsupported, unavailable
};

struct FirstScreen {
  std::string id, verdict, sentence;
  std::string what;  // what was run beside the id, parts separated by the glyphs' dot
  std::vector<LevelLine> levels;
  std::vector<EmptyLine> without;  // those that failed first
  // What each level of the table is, once, by its level.json: "static", "a static program that strata generates".
  std::vector<std::pair<std::string, std::string>> about;
  std::string proof_note, state_note;  // what the words of the tables' last columns mean, of those that are there
  std::string doubt;                   // of the states of those without a number; mostly empty
  std::string limit_title, limit;      // limit_title(), and the distance to it; `limit` is empty where there is none
  std::string trust;
  std::string next;  // a command, may be empty
  bool has_device_memory = false, has_tuned = false;
};

FirstScreen first_screen(const analysis::RunResult& run, const analysis::CaseResult& one_case, const Glyphs& glyphs);

// "Limit" where no program can take less time, "Roofline" where one that counts fewer operations can.
std::string limit_title(const analysis::CaseResult& one_case);

// "9 observed, 3 reported" and what weakens it; "none" without a proof.
std::string proof_mark(const analysis::RowResult& row, bool shortened);

// "1.42 (1.35-1.49)"; the glyph for missing where the value is unknown.
std::string ratio_with_interval(const analysis::Estimate& estimate, const Glyphs& glyphs);

}  // namespace strata::report
