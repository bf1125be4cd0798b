// SPDX-License-Identifier: Apache-2.0
// The requests `data`, `steps` and `evaluate` (docs/protocol.md) as typed calls.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "session/session.hpp"
#include "worker/answers.hpp"

namespace strata::session {
namespace {

constexpr std::int64_t kMostImages = 1'000'000'000;

std::int64_t sum(const std::vector<std::int64_t>& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}

}  // namespace

Try<void> Session::labels(const std::filesystem::path& path, int ring) {
  auto loaded = STRATA_TRY(call("set_labels", {{"path", path.string()}}));
  return counts(loaded, "set_labels", ring);
}

Try<std::map<std::string, std::int64_t>> Session::data(const SplitFiles& files) {
  if (!offers("steps") || !offers("evaluate"))
    return tl::unexpected(Failure{.state = State::unsupported,
                                  .what = "the level has no operations `data`, `steps` and `evaluate`",
                                  .hint = "docs/protocol.md, \"Operations for training\"; strata's SDKs have them"});
  Json paths = Json::object();
  for (const auto& [name, path] : files.paths) paths[name] = path.string();
  auto answer = STRATA_TRY(call("data", {{"splits", paths}, {"mean", files.mean}, {"deviation", files.deviation}}));
  auto reader = fields(answer, "data");
  outside::Fields counts(reader.object("counts"), reader.where() + ": \"counts\"", reader.hint());
  std::map<std::string, std::int64_t> images;
  for (const auto& [name, path] : files.paths) images[name] = counts.integer(name.c_str(), 1, kMostImages);
  if (reader.error() || counts.error()) return tl::unexpected(broken(reader.error() ? reader : counts));
  return images;
}

Try<StepsAnswer> Session::train_steps(const std::string& split, const std::filesystem::path& order, std::int64_t first,
                                      std::int64_t count) {
  const double queued = waited_for_core_ns();
  auto answer =
      STRATA_TRY(call("steps", {{"split", split}, {"order", order.string()}, {"first", first}, {"count", count}}));
  auto reader = fields(answer, "steps");
  StepsAnswer out;
  const Json& losses = reader.array("loss");
  if (losses.empty() || losses.size() > static_cast<std::size_t>(count))
    reader.complain("loss", losses, fmt::format("a list of 1 to {} losses", count));
  for (const Json& loss : losses) {
    out.losses.push_back(loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN());
    if (!std::isfinite(out.losses.back()) && &loss != &losses.back())
      reader.complain("loss", losses, "a list whose last entry alone may be null");
  }
  if (out.losses.size() < static_cast<std::size_t>(count) && !out.losses.empty() && std::isfinite(out.losses.back()))
    reader.complain("loss", losses, fmt::format("{} losses, or fewer where the last is null", count));
  out.wall_ns = reader.integers("wall_ns", losses.size(), 1, worker::longest_ns);
  out.waited_ns = reader.integers("waited_ns", losses.size(), 0, worker::longest_ns);
  out.gathered_ns = reader.integers("gathered_ns", losses.size(), 0, worker::longest_ns);
  if (reader.error()) return tl::unexpected(broken(reader));
  steps_ += static_cast<std::int64_t>(losses.size());
  const auto reported_ns = static_cast<double>(sum(out.wall_ns) + sum(out.waited_ns));
  note_timed(losses.size(), reported_ns, queued);
  if (const auto why = proof::impossible_sum("the steps took", reported_ns, static_cast<double>(waited_ns_));
      !why.empty())
    return tl::unexpected(impossible("steps", why));
  return out;
}

Try<std::vector<core::LayerSize>> Session::norms(const std::string& split, const std::filesystem::path& order,
                                                 std::int64_t step) {
  auto answer = STRATA_TRY(call("norms", {{"split", split}, {"order", order.string()}, {"step", step}}));
  auto reader = fields(answer, "norms");
  std::vector<core::LayerSize> out;
  const auto size = [](const Json& layer, const char* key) -> std::optional<double> {
    const Json& value = outside::field(layer, key);
    return value.is_number() && std::isfinite(value.get<double>()) ? std::optional(value.get<double>()) : std::nullopt;
  };
  for (const Json& layer : reader.array("layers")) {
    const auto name = outside::text_or(layer, "name");
    if (name.empty()) reader.complain("layers", layer, "objects with a name");
    out.push_back({.layer = name,
                   .activation = size(layer, "activation"),
                   .gradient = size(layer, "gradient"),
                   .weight = size(layer, "weight")});
  }
  if (reader.error()) return tl::unexpected(broken(reader));
  return out;
}

Try<SplitScore> Session::evaluate(const std::string& split, std::int64_t first, std::int64_t count) {
  const double queued = waited_for_core_ns();
  auto answer = STRATA_TRY(call("evaluate", {{"split", split}, {"first", first}, {"count", count}}));
  auto reader = fields(answer, "evaluate");
  SplitScore score;
  score.samples = reader.integer("samples", count, count);
  score.correct = reader.integer("correct", 0, count);
  const Json& loss = outside::field(answer, "loss_sum");
  score.loss_sum = loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN();
  const auto walls = reader.integers("wall_ns", std::nullopt, 1, worker::longest_ns);
  score.wall_ns = sum(walls);
  if (reader.error()) return tl::unexpected(broken(reader));
  note_timed(walls.size(), static_cast<double>(score.wall_ns), queued);
  if (const auto why = proof::impossible_sum("the batches took", static_cast<double>(score.wall_ns),
                                             static_cast<double>(waited_ns_));
      !why.empty())
    return tl::unexpected(impossible("evaluate", why));
  return score;
}

}  // namespace strata::session
