// SPDX-License-Identifier: Apache-2.0
// Judges single training steps of a level, always from a state that was loaded or read, never by trajectory: two
// correct trajectories part by themselves. Pure functions on the tensors that `prove` and `state` write
// (docs/protocol.md). Formulas, bounds and the experiments behind them: docs/proof_of_training.md.
#pragma once

#include "proof/outputs.hpp"
#include "proof/precision.hpp"
#include "proof/train_reference.hpp"

namespace strata::proof {

// The optimiser of the gradient probe: the first step of a parameter without a buffer leaves its gradient in
// `momentum:`.
core::Optimiser probe_optimiser();
// One that moves no weight.
core::Optimiser still_optimiser();

// What of a probe step differs by more than its bound. `what`: "loss", "grad:<p>", "stat:<b>", "step:<p>" (w' is not w
// - v').
struct Deviation {
  std::string what;
  double ratio;  // in units of the envelope; infinite: missing, of another shape, or not finite
};

// One probe step on input 0 of `set`, with dropout off: `loss` as prove wrote it, `after` the state. Within 8
// envelopes: loss |L - L64| / |L64|; gradient ||g - g64|| / (||g64|| + 0.01 R sqrt(n)); BatchNorm statistic ||s - s64||
// / ||s64||; and w' = w - v' in every element, to 4 units in the last place of |w| + |v'|.
OutputVerdict check_gradients(const TrainReference& reference, std::string_view set, const SafeTensors& loss,
                              const SafeTensors& after, Tolerance tolerance = {});

// Whether the gradients of a probe step on `set` were computed in the precision of `in_mode`: the medians over the
// parameters whose gradients show it (precision.hpp), since single ones may be exact by luck. `strict`: in float32.
PrecisionShare gradient_precision(const TrainReference& strict, const TrainReference& in_mode, std::string_view set,
                                  const SafeTensors& after);

// Losses `<i>/loss` of the ring from the weights of `probe1`, dropout off: that of every entry must be the reference's,
// since gradients are compared on input 0 alone. The envelope is input 0's, so ten times the bound is allowed (80
// envelopes); losses of other data part by percents.
OutputVerdict check_losses(const TrainReference& reference, const SafeTensors& losses, Tolerance tolerance = {});

// Largest gradient_error between repetitions of one probe step and the first: how far a level that is not deterministic
// parts from itself.
double gradient_spread(const TrainReference& reference, std::string_view set, const std::vector<SafeTensors>& states);

// The norm of all gradients together, of a state whose `momentum:` holds them.
double gradient_norm(const SafeTensors& gradients);
// What clipping multiplied gradients by, of `due`: as `fitted` to the step, where that is within 8 of eager's own
// errors of the norm, which frameworks add up in float32.
double clipped_within(double due, double fitted, double norm_error);

// One step of the case's optimiser between two states. `gradient`: a state whose `momentum:` holds the gradient at
// `before`; of every parameter, not of `parameters` alone, where the optimiser clips them. g is that, clipped. v' = mu
// v + (1 - dampening)(g + wd w), w' = w - lr (nesterov ? g + wd w + mu v' : v'). Each v' within 8 2^-24 (mu ||v|| +
// ||g|| + wd ||w||) + (1e-5 + 4 spread) ||g||; each element of w' to 4 units in the last place, given v' as read. The
// learning rate in use is <w - w', u> / <u, u> over the elements that move by more than 8 units in the last place,
// where rounding is not biased; it must be lr within 6 standard errors of that rounding, or 1e-5. Adam's step, whose
// number `done` says: adam_update.hpp.
struct UpdateVerdict {
  OutputVerdict verdict;
  double rate = 0,
         rate_error =
             0;  // learning rate seen and its relative standard error; 0 and infinite: nothing moved far enough
};
UpdateVerdict check_update(const std::vector<std::string>& parameters, const SafeTensors& before,
                           const SafeTensors& gradient, const SafeTensors& after, const core::Optimiser& optimiser,
                           double lr, double spread, std::int64_t done, double norm_error = 0);

// Two steps from the same weights, so that the gradient cancels: with U = w - w', U_b - factor U_a must be `scale`
// times the tensor `prefix`<p> of `term` (nullptr: zero). Allowed per tensor: 8 2^-24 ((1 + factor) ||w|| + ||U_b|| +
// factor ||U_a||) + 1e-5 ||term|| + spread (||U_a|| + ||U_b||).
struct Pair {
  const SafeTensors *before, *a, *b;
  double factor = 1;
  const SafeTensors* term = nullptr;
  std::string prefix{};
  double scale = 0;
};
OutputVerdict check_pair(const std::vector<std::string>& parameters, const Pair& pair, double spread,
                         const std::string& fault);

// Losses of one input with dropout as given, against eager's: mean by |z| < 4 (false alarms 1e-4), standard deviation
// within a factor 2 (ln of the ratio of two variances of 64 has a deviation of 0.25 for normal losses and 0.35 at
// kurtosis 5, so ln 4 lies 3.9 off: under 1e-4), and consecutive losses that are equal at most a quarter of the pairs
// more often than eager's. Means may also lie as far apart as a loss may be off by `rounding` (absolute); nullopt:
// eager's own scatter by no more than that, so that they show nothing.
std::optional<OutputVerdict> check_dropout(const std::vector<double>& eager, const std::vector<double>& level,
                                           double rounding = 0);

// Variances of gradients under dropout (TrainReference::dropout_variances) against eager's. Masks that scale what they
// keep change no mean, but the variance goes with p / (1 - p). The logarithm of the ratio of the means, over its
// standard error, lies within Student's t (Welch); at most a millionth of sound levels is accused, two-sided, over all
// parameters that are watched. nullopt: nothing is watched.
std::optional<OutputVerdict> check_variances(const TrainReference::Variances& eager,
                                             const TrainReference::Variances& level);

// Why a probe step may have failed: what the deviating tensors look like instead. Empty sentence: nothing is known.
struct StepCause {
  std::string sentence, brief;
};
StepCause step_cause(const TrainReference& reference, std::string_view set, const SafeTensors& loss,
                     const SafeTensors& after, const std::vector<Deviation>& failing);

}  // namespace strata::proof
