// SPDX-License-Identifier: Apache-2.0
// The result of a run on a terminal: the first screen, the ledger, the certificate. From the result alone.
#pragma once

#include <optional>
#include <string>

#include "analysis/result.hpp"

namespace strata::report {

struct TerminalStyle {
  int width = 100;
  bool colour = false;
  bool unicode = true;
};

// One first screen a case, at most 24 lines for up to nine levels from 80 columns on; several cases get a summary
// first.
std::string terminal(const analysis::RunResult& run, const TerminalStyle& style);

// The ledger of every case as an outline: what each step changes, costs or saves.
std::string terminal_ledger(const analysis::RunResult& run, const TerminalStyle& style);

// Every line of the proof, of one level or of all. Says so if the run has no such level.
std::string terminal_certificate(const analysis::RunResult& run, const TerminalStyle& style,
                                 const std::optional<std::string>& level = std::nullopt);

}  // namespace strata::report
