// SPDX-License-Identifier: Apache-2.0
// A compiled program (src/compiler) for people and programs: as a table, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/program.hpp"

namespace strata::report {

// Steps with what was fused into them, results, layouts and places; the arena against its lower bound. `pass`: the last
// one that was applied. No line is wider than `width` columns, if that is 80 or more.
std::string program_text(const compiler::Program& program, const std::string& title, const std::string& pass,
                         std::size_t width);

// "40 of 120 steps of the forward phase are repeated in the backward phase: 2.10 GFLOPs, 35.1% of the forward phase's."
std::string repeated_text(const compiler::Program& program);

nlohmann::ordered_json program_json(const compiler::Program& program, const std::string& title,
                                    const std::string& pass);

}  // namespace strata::report
