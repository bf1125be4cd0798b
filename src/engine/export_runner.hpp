// SPDX-License-Identifier: Apache-2.0
// The artefact of a level, a program that serves it, a test and the certificate, in one folder.
#pragma once

#include <filesystem>
#include <string>

#include "engine/events.hpp"
#include "export/evidence.hpp"
#include "requests/request.hpp"

namespace strata::engine {

struct Exported {
  std::filesystem::path folder;
  std::string build, test;  // commands, in the folder
  exporting::Evidence evidence;
  std::string proving;  // the command that would prove equal work
};

// All of the folder appears, or nothing. `store`: where the certificate may be; need not exist.
Result<Exported> run_export(const requests::ExportRequest& request, const std::filesystem::path& store,
                            EventSink& events);

}  // namespace strata::engine
