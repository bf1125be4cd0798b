// SPDX-License-Identifier: Apache-2.0
// --profile: how long each operation takes at each level, in a process of its own that is not timed otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/operation_layers.hpp"
#include "common/interrupt.hpp"
#include "graph/check.hpp"
#include "graph/load.hpp"
#include "measure/passes/pass.hpp"
#include "measure/train.hpp"

namespace strata::measure {
namespace {

constexpr int kRounds = 5;
constexpr double kRoundNs = 0.1e9;  // of each kind
constexpr int kMostIterations = 20;

// Of values by iteration, those of the faster half of the iterations.
class FasterHalf {
 public:
  explicit FasterHalf(const std::vector<std::int64_t>& wall_ns) : places_(wall_ns.size()) {
    std::iota(places_.begin(), places_.end(), std::size_t{0});
    std::stable_sort(places_.begin(), places_.end(), [&](auto a, auto b) { return wall_ns[a] < wall_ns[b]; });
    places_.resize((places_.size() + 1) / 2);
  }
  double mean_ms(const std::vector<std::int64_t>& ns) const {
    double sum = 0;
    for (const auto place : places_) sum += static_cast<double>(ns[place]);
    return sum / static_cast<double>(places_.size()) * 1e-6;
  }

 private:
  std::vector<std::size_t> places_;
};

void append(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

bool same_operations(const session::RecordedOperations& a, const session::RecordedOperations& b) {
  return std::equal(a.operations.begin(), a.operations.end(), b.operations.begin(), b.operations.end(),
                    [](const auto& x, const auto& y) { return x.operation == y.operation && x.layer == y.layer; });
}

store::OperationProfile profile_of(const session::RecordedOperations& recorded,
                                   const std::vector<std::int64_t>& plain) {
  const FasterHalf faster(recorded.wall_ns);
  store::OperationProfile profile{.after_ms = faster.mean_ms(recorded.after_ns),
                                  .profiled_ms = faster.mean_ms(recorded.wall_ns),
                                  .plain_ms = FasterHalf(plain).mean_ms(plain),
                                  .iterations = static_cast<std::int64_t>(recorded.wall_ns.size())};
  for (const auto& each : recorded.operations)
    profile.operations.push_back({.operation = each.operation,
                                  .kernel = each.kernel,
                                  .layer = each.layer,
                                  .shapes = each.shapes,
                                  .moves_only = each.moves_only,
                                  .ms = faster.mean_ms(each.ns),
                                  .gap_ms = faster.mean_ms(each.gap_ns)});
  return profile;
}

store::OperationProfile without(std::string why) {
  return {.note = std::move(why)};
}

// Iterations of both kinds in turns, so that what the machine does meanwhile is in both.
Try<store::OperationProfile> profile_loaded(Session& session, double iteration_ns, int ring) {
  const int count = std::clamp(static_cast<int>(kRoundNs / std::max(1.0, iteration_ns)), 1, kMostIterations);
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) indices.push_back(i % std::max(1, ring));
  session::RecordedOperations all;
  std::vector<std::int64_t> plain;
  for (int round = 0; round <= kRounds && !interrupted(); ++round) {
    auto recorded = STRATA_TRY(session.operations(indices));
    if (!recorded.refusal.empty()) return without(recorded.refusal);
    const auto block = STRATA_TRY(session.measure({.iterations = count, .indices = indices, .fresh = false}));
    if (round == 0) {  // the first start of a recorder takes long
      all = {.operations = recorded.operations};
      for (auto& each : all.operations) each.ns.clear(), each.gap_ns.clear();
      continue;
    }
    if (!same_operations(all, recorded)) return without("its operations differ from one iteration to another");
    append(plain, block.wall_ns);
    append(all.wall_ns, recorded.wall_ns);
    append(all.after_ns, recorded.after_ns);
    for (std::size_t i = 0; i < all.operations.size(); ++i) {
      append(all.operations[i].ns, recorded.operations[i].ns);
      append(all.operations[i].gap_ns, recorded.operations[i].gap_ns);
    }
  }
  if (plain.empty()) return without("interrupted");
  return profile_of(all, plain);
}

Try<store::OperationProfile> profile_level(const Participant& participant, const ProofReferences& judge) {
  auto session = STRATA_TRY(Session::open(participant.job, {}));
  if (!session->offers("operations")) return without("the level does not time its operations");
  STRATA_TRY(session->load("timed"));
  STRATA_TRY(session->warm_up(5, std::chrono::nanoseconds(0)));
  if (judge.training) STRATA_TRY(start_training(*session, *judge.training));
  const auto ring = participant.job.bundle->info.value("ring", 1);
  auto profile = STRATA_TRY(profile_loaded(*session, participant.iteration_ns, ring));
  session->end();
  return profile;
}

// Empty where the network has no graph.
std::vector<analysis::GraphOperation> operations_of(const plan::Bundle& bundle) {
  std::vector<analysis::GraphOperation> all;
  const auto graph = graph::load(bundle.folder);
  if (!graph) return all;
  const auto checked = graph::check(*graph);
  const auto precision = bundle.question.precision;
  const bool is_float32 = precision == core::Precision::fp32 || precision == core::Precision::tf32;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const auto& node = graph->nodes[i];
    const auto work = checked ? checked->nodes[i] : graph::Work();
    const double bytes = is_float32 && work.known ? static_cast<double>(work.bytes_read + work.bytes_written) : 0;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& argument : node.args)
      for (const int value : argument.values)
        if (value >= 0) shapes.push_back(graph->value(value).shape);
    all.push_back({.operation = node.operation(),
                   .layer = node.module,
                   .flops = static_cast<double>(work.flops),
                   .bytes = bytes,
                   .shapes = std::move(shapes)});
  }
  return all;
}

}  // namespace

Result<void> profile_levels(CaseRun& point) {
  const auto graph = operations_of(point.bundle);
  for (auto& participant : point.participants) {
    if (!participant.active || participant.job.level.harness || interrupted()) continue;
    point.progress.status(fmt::format("timing the operations of {}", participant.name()), -1);
    auto profile = profile_level(participant, point.references.judge());
    if (interrupted()) break;
    if (profile) analysis::assign_layers(*profile, graph);
    if (profile && point.bundle.question.mode == core::Mode::infer) analysis::assign_work(*profile, graph);
    participant.row.info.profile = profile ? *std::move(profile) : without(profile.error().what);
    if (const auto& note = participant.row.info.profile->note; !note.empty())
      point.progress.note(fmt::format("{}: no profile: {}", participant.name(), note));
    STRATA_TRY(point.sink.row(participant.row));
  }
  return {};
}

}  // namespace strata::measure
