// SPDX-License-Identifier: Apache-2.0
#include "measure/repeated_steps.hpp"

#include <cstring>
#include <deque>

#include "proof/late_step.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kDraws = 4;

// A state with every weight moved up or down by about a unit in the last place; momentum as it is.
Result<void> write_moved(const fs::path& path, const SafeTensors& state, std::uint64_t draw) {
  stats::Random random(draw);
  std::deque<std::vector<float>> held;
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& name : state.names()) {
    const TensorView& tensor = *state.find(name);
    if (!name.starts_with("weight:") || tensor.dtype != "F32") {
      tensors.emplace_back(name, tensor);
      continue;
    }
    auto& values = held.emplace_back(static_cast<std::size_t>(tensor.elements()));
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    for (float& value : values) value *= random.below(2) == 0 ? 1 + 0x1p-23F : 1 - 0x1p-23F;
    tensors.emplace_back(name, TensorView{.dtype = "F32",
                                          .shape = tensor.shape,
                                          .data = reinterpret_cast<const std::byte*>(values.data()),
                                          .bytes = tensor.bytes});
  }
  return write_safetensors(path, tensors);
}

}  // namespace

Try<StepsVerdict> judge_steps(Session& session, const proof::TrainReference& reference, const CompletedSteps& completed,
                              double spread, const std::function<Try<RepeatedSteps>(const fs::path&)>& repeat) {
  const auto before = SafeTensors::open(*completed.before->file);
  if (!before) return tl::unexpected(worker::failed_by(before.error()));
  const auto again = STRATA_TRY(repeat(*completed.before->file));
  const proof::LateStep of_again{&*before, &again.after.tensors, again.losses};
  proof::LateStep of_completed{&*before, completed.after, again.losses};
  for (const auto& [step, loss] : completed.losses) of_completed.losses[step] = loss;
  StepsVerdict least;
  for (std::uint64_t draw = 1; draw <= kDraws && (!least || !least->equal_work()); ++draw) {
    const auto path = session.new_file();
    if (const auto written = write_moved(path, *before, draw); !written)
      return tl::unexpected(worker::failed_by(written.error()));
    const auto moved_start = SafeTensors::open(path);
    const auto moved = repeat(path);
    std::error_code ignored;
    fs::remove(path, ignored);
    if (!moved_start) return tl::unexpected(worker::failed_by(moved_start.error()));
    if (!moved) return tl::unexpected(moved.error());
    const proof::LateStep of_moved{&*moved_start, &moved->after.tensors, moved->losses};
    if (again.losses.size() > 1 && !(proof::moved_share(of_again, of_moved) <= proof::rough_share)) return std::nullopt;
    auto verdict = proof::check_late_step(reference, of_completed, of_again, of_moved, spread, completed.before->step);
    if (!least || verdict.equal_work() || verdict.worst_ratio < least->worst_ratio) least = std::move(verdict);
  }
  return least;
}

}  // namespace strata::measure
