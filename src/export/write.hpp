// SPDX-License-Identifier: Apache-2.0
// Fills a draft with all that an exported folder holds (docs/export.md).
#pragma once

#include <map>

#include "export/draft.hpp"
#include "export/evidence.hpp"
#include "export/recipe.hpp"

namespace strata::exporting {

struct Export {
  const plan::Job& job;
  const Recipe& recipe;
  const Evidence& evidence;
  std::string proving;                          // the command that proves the artefact
  std::string python;                           // the version of the interpreter that has them
  std::map<std::string, std::string> versions;  // of the recipe's packages, by name
  std::filesystem::path shared;                 // the README's template and the files of every export
};

// Errors: a file that is missing or cannot be written.
Result<void> write_export(const Draft& draft, const Export& exported);

}  // namespace strata::exporting
