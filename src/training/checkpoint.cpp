// SPDX-License-Identifier: Apache-2.0
#include "training/checkpoint.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "common/outside.hpp"
#include "common/write_whole.hpp"

namespace strata::training {
namespace fs = std::filesystem;
using measure::Failure;
namespace {

std::string prefix_of(const std::string& level, int repeat) {
  std::string name = level;
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  return fmt::format("{}-r{}", name, repeat + 1);
}

fs::path about_file(const fs::path& folder, const std::string& prefix) {
  return folder / (prefix + ".json");
}

tl::unexpected<Failure> failed(const Error& error) {
  return tl::unexpected(Failure{.state = State::failed, .what = error.what, .hint = error.hint});
}

// A state without its optimiser, by the names of PyTorch's state_dict.
Try<void> write_checkpoint(const fs::path& state, const fs::path& to) {
  const auto file = SafeTensors::open(state);
  if (!file) return failed(file.error());
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& name : file->names())
    for (const std::string_view kind : {"weight:", "count:"})
      if (name.starts_with(kind)) tensors.emplace_back(name.substr(kind.size()), *file->find(name));
  if (auto written = write_safetensors(to, tensors); !written) return failed(written.error());
  return {};
}

}  // namespace

std::optional<SavedState> last_state(const fs::path& folder, const std::string& level, int repeat) {
  const auto prefix = prefix_of(level, repeat);
  const auto about = outside::read_file(about_file(folder, prefix));
  if (!about || !about->is_object()) return std::nullopt;
  SavedState saved;
  saved.epochs = static_cast<int>(outside::number_or(*about, "epochs"));
  saved.diverged = outside::flag_or(*about, "diverged", false);
  saved.path = folder / fmt::format("{}-e{}.state", prefix, saved.epochs);
  std::error_code ec;
  if (saved.epochs < 1 || (!saved.diverged && !fs::is_regular_file(saved.path, ec))) return std::nullopt;
  return saved;
}

Try<void> keep_epoch(const fs::path& folder, Learner& learner, int epochs, const EpochResult& result) {
  const auto prefix = prefix_of(learner.participant().name(), learner.repeat());
  std::error_code ec;
  fs::create_directories(folder, ec);
  const auto before = outside::read_file(about_file(folder, prefix));
  const auto best_before = before ? outside::number_or(*before, "best") : -1.0;
  nlohmann::json about{{"epochs", epochs}, {"diverged", result.diverged}, {"best", best_before}};
  const auto state = folder / fmt::format("{}-e{}.state", prefix, epochs);
  if (!result.diverged) {
    STRATA_TRY(learner.write_state(state));
    STRATA_TRY(write_checkpoint(state, folder / (prefix + "-last.safetensors")));
    const auto accuracy = result.values.find("test_accuracy");
    if (accuracy != result.values.end() && accuracy->second > best_before) {
      about["best"] = accuracy->second;
      STRATA_TRY(write_checkpoint(state, folder / (prefix + "-best.safetensors")));
    }
  }
  // The note is what counts: without it the state before is still there.
  if (auto written = write_whole(about_file(folder, prefix), about.dump() + "\n"); !written)
    return failed(written.error());
  if (epochs > 1) fs::remove(folder / fmt::format("{}-e{}.state", prefix, epochs - 1), ec);
  return {};
}

}  // namespace strata::training
