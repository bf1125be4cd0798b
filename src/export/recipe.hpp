// SPDX-License-Identifier: Apache-2.0
// What a level ships: <level>/export/export.json and the files beside it (docs/export.md).
#pragma once

#include <nlohmann/json.hpp>

#include "common/places.hpp"
#include "plan/job.hpp"

namespace strata::exporting {

// A file of the exported folder and where it is copied from. One that is optional may be missing.
struct ExportedFile {
  std::filesystem::path from;
  std::string name, about;
  bool optional = false;
};

struct Recipe {
  std::string what, build, test, run;   // a phrase for people; commands for the exported folder
  std::string image_build, image_test;  // the first two in an image, where its own Python is the interpreter
  std::vector<ExportedFile> artefacts, sources;
  std::vector<std::string> packages;  // Python packages whose versions are written down
  std::string python;                 // the interpreter that has them
};

// Errors: export.json cannot be read or lacks a field.
Result<Recipe> read_recipe(const plan::Job& job, const Installation& place);

}  // namespace strata::exporting
