// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/timed_commands.hpp"
#include "report/document.hpp"

namespace strata::report {

// Programs side by side: what a reader acts on, a row each, and every run.
document::Document commands_document(const analysis::TimedCommands& timed);

}  // namespace strata::report
