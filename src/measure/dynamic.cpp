// SPDX-License-Identifier: Apache-2.0
#include "measure/dynamic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/interrupt.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {
namespace {

constexpr double kVisitNs = 300e6;  // of settled iterations in one visit
constexpr int kSettling = 3;        // unrecorded iterations before them: TorchScript's executor profiles twice
constexpr int kMostCalls = 100;
const std::vector<int> kEntries{0, 1};  // of each size's ring

void fill_failure(store::OpenBatchRecord& out, const Failure& why) {
  out.state = std::string(to_string(why.state));
  out.reason = why.what;
  out.hint = why.hint;
}

}  // namespace

Result<DynamicPass> DynamicPass::open(const plan::Bundle& dynamic, const proof::Reference& fixed, std::uint64_t seed) {
  DynamicPass pass(dynamic, fixed);
  if (!dynamic.question.open_batch)
    return fail(fmt::format("{} names no range of batches", (dynamic.folder / "bundle.json").string()));
  const auto& listed = dynamic.question.open_batch->sizes;
  const std::vector<int> sizes(listed.begin(), listed.end());
  for (const int size : sizes) {
    auto reference = STRATA_TRY(proof::Reference::open(dynamic.folder / "sizes" / std::to_string(size)));
    pass.sizes_.emplace(size, std::move(reference));
  }
  stats::Random random(seed);
  for (int lap = 0; lap < 2; ++lap) {
    auto order = sizes;
    random.shuffle(order);
    pass.order_.insert(pass.order_.end(), order.begin(), order.end());
  }
  return pass;
}

Try<void> DynamicPass::judge(const Participant& participant, const SafeTensors& outputs, int size,
                             const std::vector<int>& indices, store::SizeVisit& visit) const {
  const auto verdict = proof::check_outputs(sizes_.at(size), "timed", outputs, indices, participant.tolerance());
  visit.worst_ratio = std::max(visit.worst_ratio, verdict.worst_ratio);
  if (!verdict.equal_work())
    return tl::unexpected(
        Failure{.state = state_of(verdict), .what = fmt::format("batch {}: {}", size, verdict.reason)});
  return {};
}

// The open artefact's weights are proven at the case's own batch, as those of the fixed one.
Try<void> DynamicPass::prove_weights(const Participant& participant, Session& session) const {
  auto sets = fixed_->generic_sets();
  sets.emplace_back("timed");
  for (const std::string& set : sets) {
    STRATA_TRY(session.weights(set));
    auto outputs = STRATA_TRY(session.prove(kEntries));
    const auto verdict = proof::check_outputs(*fixed_, set, outputs, kEntries, participant.tolerance());
    if (!verdict.equal_work())
      return tl::unexpected(
          Failure{.state = state_of(verdict), .what = fmt::format("weights {}: {}", set, verdict.reason)});
  }
  return {};
}

Try<void> DynamicPass::visit(const Participant& participant, Session& session, int size, int number,
                             store::OpenBatchRecord& out) const {
  const auto folder = bundle_->folder / "sizes" / std::to_string(size);
  STRATA_TRY(session.inputs(folder / "inputs.safetensors", static_cast<int>(kEntries.size())));
  store::SizeVisit evidence{.size = size, .lap = number};
  const auto run = [&](int head, int iterations) -> Try<std::vector<std::int64_t>> {
    BlockPlan plan{.iterations = iterations, .head = head, .indices = {}, .retain = {iterations - 1}};
    for (int i = 0; i < iterations; ++i)
      plan.indices.push_back(kEntries[static_cast<std::size_t>(i) % kEntries.size()]);
    auto block = STRATA_TRY(session.measure(plan));
    const auto last = STRATA_TRY(session.result(iterations - 1));
    STRATA_TRY(judge(participant, last.output, size, {plan.indices.back()}, evidence));
    return block.wall_ns;
  };
  const auto first = STRATA_TRY(run(0, 1));
  auto outputs = STRATA_TRY(session.prove(kEntries));
  STRATA_TRY(judge(participant, outputs, size, kEntries, evidence));
  const auto sized = STRATA_TRY(run(kSettling, 1));
  const auto settled =
      run(0, std::clamp(static_cast<int>(kVisitNs / static_cast<double>(std::max<std::int64_t>(1, sized.front()))), 3,
                        kMostCalls));
  if (!settled) return tl::unexpected(settled.error());
  evidence.first_ns = first.front();
  evidence.wall_ns = *settled;
  out.visits.push_back(std::move(evidence));
  return {};
}

Try<void> DynamicPass::serve(const Participant& participant, Session& session, store::OpenBatchRecord& out) const {
  STRATA_TRY(session.load("timed"));
  STRATA_TRY(session.warm_up(10, std::chrono::milliseconds(100)));
  STRATA_TRY(prove_weights(participant, session));
  auto before = STRATA_TRY(session.report());
  for (std::size_t i = 0; i < order_.size() && !interrupted(); ++i)
    STRATA_TRY(visit(participant, session, order_[i], i < sizes_.size() ? 0 : 1, out));
  auto after = STRATA_TRY(session.report());
  out.reported = {before, after};
  return {};
}

Result<store::OpenBatchRecord> DynamicPass::run(const Participant& participant, const Job& job,
                                                const std::vector<std::string>& command, const InterleavePlan& turns,
                                                const Progress& progress) const {
  const auto& range = *bundle_->question.open_batch;
  store::OpenBatchRecord out{.low = static_cast<int>(range.low),
                             .high = static_cast<int>(range.high),
                             .own = static_cast<int>(bundle_->question.batch),
                             .state = "measured"};
  progress.status(fmt::format("{} with an open batch", participant.name()), -1);
  const auto prepared = session::prepare(job, command);
  if (!prepared) {
    fill_failure(out, prepared.error());
    return out;
  }
  out.prepare_ms = *prepared;
  auto session = Session::open(job, {});
  const auto served = session ? serve(participant, **session, out) : Try<void>(tl::unexpected(session.error()));
  if (!served) {
    fill_failure(out, served.error());
    return out;
  }
  (*session)->end();
  session->reset();
  // The same level twice: with the fixed size, and with the open one at that size.
  std::vector<Participant> pair{participant, participant};
  for (auto& twin : pair) {
    twin.row.blocks.clear();
    twin.row.start_up.clear();
  }
  pair[1].job = job;
  progress.status(fmt::format("{}: open against fixed", participant.name()), -1);
  STRATA_TRY(run_interleaved(pair, ProofReferences{fixed_, nullptr}, turns, progress));
  const auto state = pair[1].row.state;
  if (!pair[1].active && (state == State::unequal || state == State::mistrusted))
    fill_failure(out, Failure{.state = state, .what = pair[1].row.reason, .hint = pair[1].row.hint});
  else if (interrupted())
    out.turns_note = "interrupted";
  else if (const auto lost =
               std::find_if(pair.begin(), pair.end(), [](const Participant& twin) { return !twin.active; });
           lost != pair.end())
    out.turns_note = fmt::format("{} artefact: {}", lost == pair.begin() ? "fixed" : "open",
                                 lost->row.reason);  // what the visits gave stays
  else
    out.turns = {pair[0].row.blocks, pair[1].row.blocks};
  return out;
}

}  // namespace strata::measure
