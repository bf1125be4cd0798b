// SPDX-License-Identifier: Apache-2.0
// One line of a worker, which may be anything: parsed and held against the protocol's rules. Knows no process; fuzzed.
#pragma once

#include <string_view>

#include "worker/worker.hpp"

namespace strata::worker {

// An answer that keeps the rules: success with its fields, or the level's own failure (without the log's end).
struct AnswerLine {
  Json fields;
  std::optional<Failure> failure;
};

// The row's state for the code of a failure (docs/protocol.md): only what a level may say of itself, anything else is
// `failed`.
State failure_state(std::string_view code);

// What is being done, of a line that comes before the answer to request `id`, or of one that a prepare command writes
// before its answer (no id): fit to show, 200 bytes at most. nullopt: it is no such line.
std::optional<std::string> progress_in(std::string_view line, std::optional<std::int64_t> id);

// Error: how the line breaks the protocol. Refuses values nested deeper than 64, and more than five million of them.
tl::expected<AnswerLine, std::string> parse_answer_line(std::string_view line, std::int64_t id, std::string_view op);

}  // namespace strata::worker
