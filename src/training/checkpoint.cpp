// SPDX-License-Identifier: Apache-2.0
#include "training/checkpoint.hpp"

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/outside.hpp"
#include "common/write_whole.hpp"

namespace strata::training {
namespace fs = std::filesystem;
using Json = nlohmann::json;
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

fs::path state_file(const fs::path& folder, const Owner& owner, int epochs) {
  return folder / fmt::format("{}-e{}.state", prefix_of(owner.level, owner.repeat), epochs);
}

fs::path best_file(const fs::path& folder, const Owner& owner) {
  return folder / (prefix_of(owner.level, owner.repeat) + "-best.state");
}

Json to_json(const Owner& owner) {
  return {{"case", owner.case_key}, {"data", owner.data_sha256}, {"level", owner.level}, {"repeat", owner.repeat}};
}

// What a level's note says, whole and of this training.
Result<Json> read_about(const fs::path& file, const Owner& owner) {
  const auto note = STRATA_TRY(outside::read_file(file));
  const auto& about = outside::field(note, "about");
  if (outside::text_or(note, "sha256") != sha256_hex(about.dump()))
    return fail(fmt::format("{}: its bytes are not those that were written", file.filename().string()));
  if (outside::field(about, "owner") != to_json(owner))
    return fail(fmt::format("{}: it is another training's", file.filename().string()));
  return about;
}

// A state without its optimiser, by the names of PyTorch's state_dict.
Try<void> write_checkpoint(const fs::path& state, const fs::path& to) {
  const auto file = SafeTensors::open(state);
  if (!file) return tl::unexpected(worker::failed_by(file.error()));
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& name : file->names())
    for (const std::string_view kind : {"weight:", "count:"})
      if (name.starts_with(kind)) tensors.emplace_back(name.substr(kind.size()), *file->find(name));
  if (auto written = write_safetensors(to, tensors); !written)
    return tl::unexpected(worker::failed_by(written.error()));
  return {};
}

}  // namespace

LastState last_state(const fs::path& folder, const Owner& owner) {
  LastState last;
  const auto file = about_file(folder, prefix_of(owner.level, owner.repeat));
  std::error_code ec;
  if (!fs::exists(file, ec)) return last;
  const auto about = read_about(file, owner);
  if (!about) {
    last.damage = about.error().what;
    return last;
  }
  if (outside::flag_or(*about, "diverged", false)) {
    last.state = SavedState{.epochs = static_cast<int>(outside::integer_or(*about, "epochs")), .diverged = true};
    return last;
  }
  for (const auto& entry : outside::field(*about, "states")) {
    const auto epochs = static_cast<int>(outside::integer_or(entry, "epochs"));
    const auto path = state_file(folder, owner, epochs);
    const auto sha256 = sha256_of_file(path);
    if (sha256 && *sha256 == outside::text_or(entry, "sha256")) {
      last.state = SavedState{.path = path, .epochs = epochs};
      return last;
    }
    last.damage += fmt::format("{}{}: {}", last.damage.empty() ? "" : "; ", path.filename().string(),
                               sha256 ? "its bytes are not those that were written" : "it cannot be read");
  }
  return last;
}

std::optional<BestState> best_state(const fs::path& folder, const Owner& owner) {
  const auto about = read_about(about_file(folder, prefix_of(owner.level, owner.repeat)), owner);
  if (!about) return std::nullopt;
  const auto& told = outside::field(*about, "best_told");
  BestState best{.path = best_file(folder, owner), .epochs = static_cast<int>(outside::integer_or(told, "epochs"))};
  best.told.samples = outside::integer_or(told, "samples");
  best.told.correct = outside::integer_or(told, "correct");
  best.told.loss_sum = outside::number_or(told, "loss_sum");
  const auto sha256 = sha256_of_file(best.path);
  if (best.epochs < 1 || !sha256 || *sha256 != outside::text_or(told, "sha256")) return std::nullopt;
  return best;
}

Try<void> keep_epoch(const fs::path& folder, const Owner& owner, Learner& learner, const DoneEpoch& done,
                     const EpochResult& result) {
  const int epochs = done.epochs;
  const auto prefix = prefix_of(owner.level, owner.repeat);
  const auto file = about_file(folder, prefix);
  std::error_code ec;
  fs::create_directories(folder, ec);
  const auto before = read_about(file, owner).value_or(Json::object());
  const auto best_before = outside::number_or(before, "best", -1);
  Json about{{"owner", to_json(owner)},
             {"epochs", epochs},
             {"diverged", result.diverged},
             {"best", best_before},
             {"best_told", outside::field(before, "best_told")},
             {"states", Json::array()}};
  if (!result.diverged) {
    const auto state = state_file(folder, owner, epochs);
    STRATA_TRY(learner.write_state(state));
    const auto sha256 = sha256_of_file(state);
    if (!sha256) return tl::unexpected(worker::failed_by(sha256.error()));
    about["states"].push_back({{"epochs", epochs}, {"sha256", *sha256}});
    for (const auto& entry : outside::field(before, "states"))
      if (outside::integer_or(entry, "epochs") == epochs - 1) about["states"].push_back(entry);
    STRATA_TRY(write_checkpoint(state, folder / (prefix + "-last.safetensors")));
    const auto accuracy = result.values.find("test_accuracy");
    if (accuracy != result.values.end() && accuracy->second > best_before) {
      about["best"] = accuracy->second;
      about["best_told"] = {{"epochs", epochs},
                            {"sha256", *sha256},
                            {"samples", done.test.samples},
                            {"correct", done.test.correct},
                            {"loss_sum", done.test.loss_sum}};
      fs::remove(best_file(folder, owner), ec);
      fs::create_hard_link(state, best_file(folder, owner), ec);
      if (ec) fs::copy_file(state, best_file(folder, owner), fs::copy_options::overwrite_existing, ec);
      STRATA_TRY(write_checkpoint(state, folder / (prefix + "-best.safetensors")));
    }
  }
  // The note is what counts: without it the states before are still there.
  const Json signed_note{{"about", about}, {"sha256", sha256_hex(about.dump())}};
  if (auto written = write_whole(file, signed_note.dump() + "\n"); !written)
    return tl::unexpected(worker::failed_by(written.error()));
  if (epochs > 2) fs::remove(state_file(folder, owner, epochs - 2), ec);
  return {};
}

}  // namespace strata::training
