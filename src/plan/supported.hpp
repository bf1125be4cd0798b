// SPDX-License-Identifier: Apache-2.0
// Which models a level can run, judged without running anything: by level.json and the operations recorded of each
// model's graph (src/graph/recorded).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "level/level.hpp"

namespace strata::plan {

// Names of operations by model and mode, as tools/record_operations.py writes them.
struct RecordedOperations {
  std::string torch, torchvision;  // versions that the graphs were captured with
  std::map<std::string, std::map<std::string, std::vector<std::string>>> models;
};

// Error: the file is missing or damaged.
Result<RecordedOperations> recorded_operations(const std::filesystem::path& root);

enum class Support { yes, no, unknown };

struct Verdict {
  Support support = Support::unknown;
  std::vector<std::string> lacks;  // operations, if that is why
  std::string why;                 // empty for yes
};

// Of a level with `operations`: whether it has all that were recorded. Of others: what `modes` and `models` say, else
// yes for those that run the module itself, and unknown for those that compile or export it, which only a run can tell.
Verdict supports(const level::Level& level, const std::string& model, const std::string& mode,
                 const RecordedOperations& recorded);

}  // namespace strata::plan
