// SPDX-License-Identifier: Apache-2.0
// What is known of a case before anything of it is captured (prepare.hpp).
#include <fmt/format.h>

#include "core/bundle_info.hpp"
#include "engine/prepare.hpp"
#include "plan/jobs.hpp"
#include "plan/model_file.hpp"

namespace strata::engine {
namespace fs = std::filesystem;

plan::Bundle provisional_bundle(const core::CaseSpec& spec) {
  plan::Bundle bundle;
  const auto& model = spec.model;
  const bool users = plan::is_users(model) && !plan::is_of_package(model);
  const auto colon = model.rfind(':');
  const auto name = users && colon != std::string::npos
                        ? fs::path(model.substr(0, colon)).stem().string() + model.substr(colon)
                    : users ? fs::path(model).filename().string()
                            : model;
  bundle.spec = spec;
  bundle.question = question_of(spec, name);
  bundle.info = {{"case", to_json(spec)}, {"model", {{"name", name}, {"kind", users ? "user" : ""}}}};
  return bundle;
}

double captured_bytes(const fs::path& cache, const std::string& model) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(cache / "bundles", ec)) {
    const auto question = core::case_in(entry.path());
    if (!question || question->model != model) continue;
    double bytes = 0;
    for (const auto& file : fs::recursive_directory_iterator(entry.path(), ec)) {
      std::error_code gone;
      if (file.is_regular_file(gone) && !file.is_symlink(gone)) bytes += static_cast<double>(file.file_size(gone));
    }
    return bytes;
  }
  return 0;
}

Participants participants_of(const Prepared& ready, const plan::Bundle& bundle) {
  Participants result;
  const auto& s = ready.setting;
  for (const auto& level : ready.levels) {
    const auto why =
        plan::cannot_run(level, bundle, bundle.question, s.environment_of(level), s.tools, s.place_of(level));
    if (why)
      result.without.push_back(fmt::format("{}: {}", level.name(), why->what));
    else
      result.names.push_back(level.name());
  }
  return result;
}

}  // namespace strata::engine
