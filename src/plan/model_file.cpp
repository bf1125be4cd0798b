// SPDX-License-Identifier: Apache-2.0
#include "plan/model_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>

#include "common/confine.hpp"
#include "common/temporary.hpp"

namespace strata::plan {
namespace fs = std::filesystem;

bool is_model_file(const std::string& model) {
  return model.ends_with(".pt2") || model.ends_with(".pt") || model.ends_with(".onnx");
}

bool is_of_package(const std::string& model) {
  const auto colon = model.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == model.size()) return false;
  return std::all_of(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(colon),
                     [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
}

Result<void> confine(worker::Launch& launch, const Installation& place, const std::vector<fs::path>& folders) {
  const auto temporary = STRATA_TRY(temporary_folder(place.cache));
  // apart from what other runs compile with: a header put there would be code in their networks
  const fs::path own = fs::path(temporary) / "model-file";
  ::mkdir(own.c_str(), 0700);
  launch.env["TMPDIR"] = own.string();
  launch.writable = std::vector<std::string>{own.string()};
  for (const auto& folder : folders) launch.writable->push_back(folder.string());
  return {};
}

std::string notice_of(const std::string& model) {
  if (!is_model_file(model)) return {};
  const auto have = landlock();
  const std::string rest =
      have.version == 0 ? fmt::format("what it does then is not confined, since {}", have.why_not)
      : have.version < 4
          ? "what it does then is confined to writing into folders of its own (the network is open to it)"
          : "what it does then is confined: it writes into folders of its own only, and reaches no network";
  return fmt::format(
      "note: {} is a program. What it holds is checked before it is loaded; {}. It can read your files: use only files "
      "whose origin you trust (docs/model_files.md).",
      fs::path(model).filename().string(), rest);
}

}  // namespace strata::plan
