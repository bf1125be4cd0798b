// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "common/interrupt.hpp"
#include "measure/train_steps.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {
using proof::TrainReference;
namespace {

constexpr double kInflatedRate = 0.1;  // small rates vanish in the weights' rounding
constexpr double kInflatedDecay = 0.1;

// Buffers of the driver's choice: as large as the weights, so that what the optimiser makes of them is far above
// rounding.
class Buffers {
 public:
  Buffers(const TrainReference& reference, const SafeTensors& state, bool zero) : list_(weights_in(state)) {
    stats::Random random(1);
    for (const auto& parameter : reference.parameters()) {
      const TensorView* weight = state.find("weight:" + parameter);
      if (!weight) continue;
      const auto values = to_doubles(*weight);
      double squares = 0;
      for (const double w : values) squares += w * w;
      const double size = squares > 0 ? std::sqrt(3 * squares / static_cast<double>(values.size())) : 0.1;
      auto& buffer = held_.emplace_back(values.size());
      for (float& v : buffer)
        v = zero ? 0.0F : static_cast<float>(size * (static_cast<double>(random.below(1 << 24)) * 0x1p-23 - 1));
      list_.emplace_back("momentum:" + parameter, TensorView{.dtype = "F32",
                                                             .shape = weight->shape,
                                                             .data = reinterpret_cast<const std::byte*>(buffer.data()),
                                                             .bytes = buffer.size() * sizeof(float)});
    }
  }
  const std::vector<std::pair<std::string, TensorView>>& list() const { return list_; }

 private:
  std::deque<std::vector<float>> held_;
  std::vector<std::pair<std::string, TensorView>> list_;
};

// Where the rules of every optimiser begin: the weights of probe1, in train mode, without dropout.
Try<TrainState> start_of_rules(Session& session) {
  STRATA_TRY(session.weights("probe1"));
  STRATA_TRY(session.set_mode("train", false));
  return session.state();
}

// SGD by differences, each rule from the same weights (probe1), so that the gradient cancels.
class Rules {
 public:
  Rules(Participant& participant, Session& session, const TrainReference& reference)
      : participant_(participant), session_(session), reference_(reference) {}

  Try<void> run() {
    auto start = STRATA_TRY(start_of_rules(session_));
    const StateFile base(session_, weights_in(start.tensors)),
        buffered(session_, Buffers(reference_, start.tensors, false).list()),
        zeroed(session_, Buffers(reference_, start.tensors, true).list());
    for (const auto* file : {&base, &buffered, &zeroed})
      if (file->error()) return tl::unexpected(*file->error());
    const auto loaded = buffered.open();
    if (!loaded) return tl::unexpected(worker::failed_by(loaded.error()));
    const auto plain = with(proof::probe_optimiser(), &core::Optimiser::lr, kInflatedRate),
               decay = with(plain, &core::Optimiser::weight_decay, kInflatedDecay);
    const auto first = STRATA_TRY(step(base, plain));
    const auto again = STRATA_TRY(step(base, plain));
    check_counts(participant_, session_, again, plain);
    spread_ = std::max(participant_.evidence.own_spread,
                       proof::gradient_spread(reference_, "probe1", {first.tensors, again.tensors}));
    for (const auto& parameter : reference_.parameters()) weights_.push_back("weight:" + parameter);
    auto decayed = STRATA_TRY(step(base, decay));
    judge("weight decay",
          {.before = &start.tensors,
           .a = &first.tensors,
           .b = &decayed.tensors,
           .term = &start.tensors,
           .prefix = "weight:",
           .scale = kInflatedRate * kInflatedDecay},
          "weight decay is not that of SGD");
    auto pushed = STRATA_TRY(step(buffered, plain));
    judge("momentum",
          {.before = &start.tensors,
           .a = &first.tensors,
           .b = &pushed.tensors,
           .term = &*loaded,
           .prefix = "momentum:",
           .scale = kInflatedRate * 0.9},
          "momentum is not that of SGD");
    const auto slow = STRATA_TRY(step(buffered, decay));
    const auto fast = STRATA_TRY(step(buffered, with(decay, &core::Optimiser::lr, 2 * kInflatedRate)));
    judge("learning rate", {.before = &start.tensors, .a = &slow.tensors, .b = &fast.tensors, .factor = 2},
          "updates are not proportional to the learning rate");
    STRATA_TRY(clipping(base, plain, start, first));
    STRATA_TRY(optional("dampening", zeroed, with(decay, &core::Sgd::dampening, 0.5), start, decayed, 0.5,
                        "dampening is not that of SGD"));
    return optional("Nesterov", base, with(decay, &core::Sgd::nesterov, true), start, decayed, 1.9,
                    "Nesterov's momentum is not that of SGD");
  }

 private:
  Try<TrainState> step(const StateFile& from, const core::Optimiser& optimiser) {
    if (interrupted()) return tl::unexpected(Failure{.state = State::failed, .what = "interrupted"});
    return step_from(session_, from, optimiser, 0, weights_);
  }
  void judge(const std::string& name, const proof::Pair& pair, const std::string& fault, double more_spread = 0) {
    participant_.training.rules.push_back(
        {name, proof::check_pair(reference_.parameters(), pair, spread_ + more_spread, fault), ""});
  }
  // To half of what the gradients' norm is, and to twice of it, which changes nothing.
  Try<void> clipping(const StateFile& base, const core::Optimiser& plain, const TrainState& start,
                     const TrainState& first) {
    if (reference_.optimiser().clip_norm <= 0) return {};
    const double size = proof::gradient_norm(first.tensors);
    for (const double times : {0.5, 2.0}) {
      const auto how = with(plain, &core::Optimiser::clip_norm, times * size);
      const auto after = STRATA_TRY(step(base, how));
      judge("gradient clipping",
            {.before = &start.tensors,
             .a = &first.tensors,
             .b = &after.tensors,
             .factor = 0,
             .term = &first.tensors,
             .prefix = "momentum:",
             .scale = kInflatedRate * core::clipped_share(how, size)},
            "gradients are not clipped to their norm", proof::strict_limit * reference_.norm_error("probe1"));
    }
    return {};
  }
  // A rule that the case may not use: a level that refuses it is not accused.
  Try<void> optional(const std::string& name, const StateFile& from, const core::Optimiser& optimiser,
                     const TrainState& start, const TrainState& plain, double factor, const std::string& fault) {
    auto after = step(from, optimiser);
    if (after) {
      judge(name, {.before = &start.tensors, .a = &plain.tensors, .b = &after->tensors, .factor = factor}, fault);
    } else if (after.error().state == State::unsupported) {
      participant_.training.rules.push_back({name, std::nullopt, after.error().what});
    } else {
      return tl::unexpected(after.error());
    }
    return {};
  }

  Participant& participant_;
  Session& session_;
  const TrainReference& reference_;
  std::vector<std::string> weights_;  // what is read of a state once the gradient was seen; empty: all
  double spread_ = 0;
};

// Adam by steps from chosen states. Its first step hides all of a gradient but the sign, so that later steps follow,
// from buffers of the driver's own: means of any sign and squares of 0.01 and more, beside which neither eps nor the
// gradient's rounding counts.
class AdamRules {
 public:
  AdamRules(Participant& participant, Session& session, const TrainReference& reference)
      : participant_(participant), session_(session), reference_(reference) {}

  Try<void> run() {
    auto start = STRATA_TRY(start_of_rules(session_));
    const StateFile base(session_, weights_in(start.tensors)), chosen(session_, buffers(start.tensors));
    for (const auto* file : {&base, &chosen})
      if (file->error()) return tl::unexpected(*file->error());
    STRATA_TRY(read_gradient(base));
    auto usual = with(with(reference_.optimiser(), &core::Optimiser::lr, kInflatedRate), &core::Optimiser::weight_decay,
                      kInflatedDecay);
    usual.schedule.reset();
    usual.clip_norm = 0;
    auto other = usual;
    other.lr = 2 * kInflatedRate, other.weight_decay = 0;
    other.rule = core::Adam{.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-4, .decoupled = usual.adam()->decoupled};
    STRATA_TRY(step("first step", base, usual, 0));
    for (const int t : {1, 10, 1000})
      STRATA_TRY(step(fmt::format("step {} from chosen buffers", t), chosen, usual, t - 1));
    STRATA_TRY(step("place of eps", chosen, with(usual, &core::Adam::eps, kInflatedEps), 9));
    if (reference_.optimiser().clip_norm > 0)
      STRATA_TRY(step("gradient clipping", chosen,
                      with(usual, &core::Optimiser::clip_norm, proof::gradient_norm(gradient_) / 2), 9));
    return step("other settings", chosen, other, 2);
  }

 private:
  static constexpr double kInflatedEps = 0.1;  // of the size of the roots of chosen squares

  std::vector<std::pair<std::string, TensorView>> buffers(const SafeTensors& state) {
    auto list = weights_in(state);
    stats::Random random(1);
    const auto drawn = [&] { return static_cast<double>(random.below(1 << 24)) * 0x1p-24; };
    for (const auto& parameter : reference_.parameters()) {
      const TensorView* weight = state.find("weight:" + parameter);
      if (!weight) continue;
      auto& means = held_.emplace_back(static_cast<std::size_t>(weight->elements()));
      for (float& mean : means) mean = static_cast<float>(0.1 * (2 * drawn() - 1));
      auto& squares = held_.emplace_back(means.size());
      for (float& square : squares) square = static_cast<float>(0.01 + 0.03 * drawn());
      for (const auto& [prefix, values] : {std::pair("exp_avg:", &means), std::pair("exp_avg_sq:", &squares)})
        list.emplace_back(prefix + parameter, TensorView{.dtype = "F32",
                                                         .shape = weight->shape,
                                                         .data = reinterpret_cast<const std::byte*>(values->data()),
                                                         .bytes = values->size() * sizeof(float)});
    }
    return list;
  }

  // By the probe's optimiser, twice, which shows how far the level repeats itself.
  Try<void> read_gradient(const StateFile& base) {
    const auto probe = proof::probe_optimiser();
    std::vector<SafeTensors> files;
    for (int i = 0; i < 2; ++i) {
      auto after = STRATA_TRY(step_from(session_, base, probe));
      if (i == 1) check_counts(participant_, session_, after, probe);
      files.push_back(after.tensors);
    }
    spread_ = std::max(participant_.evidence.own_spread, proof::gradient_spread(reference_, "probe1", files));
    gradient_ = std::move(files.front());
    return {};
  }

  Try<void> step(const std::string& name, const StateFile& from, const core::Optimiser& optimiser, std::int64_t done) {
    if (interrupted()) return tl::unexpected(Failure{.state = State::failed, .what = "interrupted"});
    const auto before = from.open();
    if (!before) return tl::unexpected(worker::failed_by(before.error()));
    const auto after = STRATA_TRY(step_from(session_, from, optimiser, done));
    check_counts(participant_, session_, after, optimiser);
    participant_.training.rules.push_back(
        {name,
         proof::check_update(reference_.parameters(), *before, gradient_, after.tensors, optimiser, optimiser.lr,
                             spread_, done, reference_.norm_error("probe1"))
             .verdict,
         ""});
    return {};
  }

  Participant& participant_;
  Session& session_;
  const TrainReference& reference_;
  std::deque<std::vector<float>> held_;
  SafeTensors gradient_;
  double spread_ = 0;
};

}  // namespace

Try<void> prove_rules(Participant& participant, Session& session, const TrainReference& reference) {
  if (reference.optimiser().adam() != nullptr) return AdamRules(participant, session, reference).run();
  return Rules(participant, session, reference).run();
}

}  // namespace strata::measure
