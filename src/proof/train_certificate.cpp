// SPDX-License-Identifier: Apache-2.0
#include "proof/train_certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/bundle_info.hpp"
#include "proof/certificate_builder.hpp"

namespace strata::proof {

namespace {

using Kind = OutputVerdict::Kind;

// `mode`: ", amp-bf16" where a certificate has lines in more than one.
void add_steps(Lines& lines, const TrainReference& reference, const TrainEvidence& training, const std::string& mode) {
  for (const auto& set : reference.sets()) {
    const auto weights = set == "timed" ? "timed weights" : "probe weights " + set.substr(5);
    const auto title = fmt::format("loss, gradients and statistics, {}", weights);
    const auto it = training.steps.find(set);
    Line line{.check = title + mode, .how = "observed", .bound = fmt::format("{:.0f}", strict_limit)};
    if (it == training.steps.end()) {
      add_verdict(lines, line, std::nullopt, "the level did not get that far");
      continue;
    }
    line.value =
        std::isfinite(it->second.worst_ratio) ? fmt::format("{:.2f} of eager's envelope", it->second.worst_ratio) : "";
    if (it->second.kind == Kind::equal_looser) {
      line.bound = fmt::format("{:.0f}", reassociated_limit);
      line.detail = "looser numerics: the level declares an algorithm that adds in another order";
    }
    add_verdict(lines, line, it->second);
  }
}

void add_ring(Lines& lines, const TrainEvidence& training, const std::string& mode) {
  add_verdict(lines, {.check = "losses follow inputs and labels" + mode, .how = "observed", .bound = "80"},
              training.losses, "the level did not get that far");
}

void add_rules(Lines& lines, const TrainReference& reference, const TrainEvidence& training) {
  if (core::is_light(reference.bundle()))
    return add_verdict(lines, {.check = "optimiser by differences", .how = "observed", .bound = "1"}, std::nullopt,
                       "rule by rule at the corners alone; here by the step after timing");
  for (const auto& rule : training.rules)
    add_verdict(lines,
                {.check = "optimiser: " + rule.name,
                 .how = "observed",
                 .value = rule.verdict ? fmt::format("{:.2g} of what rounding allows", rule.verdict->worst_ratio) : "",
                 .bound = "1"},
                rule.verdict, rule.note);
  if (training.rules.empty())
    add_verdict(lines, {.check = "optimiser by differences", .how = "observed", .bound = "1"}, std::nullopt,
                "the level did not get that far");
}

void add_update(Lines& lines, const TrainEvidence& training) {
  Line line{.check = "a step after timing", .how = "observed", .bound = "every restart"};
  if (training.updates_checked > 0) {
    line.value =
        fmt::format("{} of {} restarts", training.updates_checked - training.updates_failed, training.updates_checked);
    line.result = "pass";
    line.detail = std::isfinite(training.rate_error)
                      ? fmt::format("sees a learning rate that is wrong by {:.1g}%",
                                    100 * std::max(6 * training.rate_error, 1e-5))
                      : "weights moved too little to see the learning rate; the momentum buffers were compared";
  }
  if (!training.update_failure) return lines.add(line);
  lines.refuse(line, *training.update_failure, line.check);
}

void add_replays(Lines& lines, const TrainEvidence& training) {
  Line line{.check = "timed steps, made again one at a time",
            .how = "observed",
            .detail = training.rough_replays > 0 ? "rounding carries too far over so few steps"
                                                 : "no two states were read that lie so few steps apart"};
  if (training.replayed_steps > 0) {
    line.result = "pass";
    line.value = fmt::format("{} steps", training.replayed_steps);
    line.detail = fmt::format("drawn from {:.2g}% of the timed steps, which the level could not foresee",
                              100.0 * static_cast<double>(training.comparable_steps) /
                                  static_cast<double>(std::max<std::int64_t>(1, training.timed_steps)));
  }
  if (!training.replay_failure) return lines.add(line);
  lines.refuse(line, *training.replay_failure);
}

// Of both passes, where there are two.
void add_counts(Lines& lines, const TrainEvidence& training, const TrainEvidence* strict) {
  const int checked = training.counts_checked + (strict ? strict->counts_checked : 0);
  const auto& wrong = strict && !strict->counts_wrong.empty() ? strict->counts_wrong : training.counts_wrong;
  Line line{.check = "steps done and learning rate", .how = "reported", .bound = "as requested", .detail = wrong};
  if (checked > 0) {
    line.result = "pass";
    line.value = fmt::format("{} states", checked);
  }
  if (wrong.empty())
    lines.add(line);
  else
    lines.fail(line, Kind::unequal, wrong, "another number of steps or rate");
}

void add_losses(Lines& lines, const Evidence& evidence, const TrainEvidence& training) {
  Line line{.check = "losses while timing are finite", .how = "observed"};
  if (training.begun_again > 0)
    line.detail = fmt::format(
        "the training diverged {} times and began again from the case's weights: those blocks count for nothing",
        training.begun_again);
  add_blocks(lines, evidence, line);
}

void add_dropout(Lines& lines, const TrainReference& reference, const TrainEvidence& training,
                 const std::string& mode) {
  if (!reference.has_dropout()) return;
  if (core::is_light(reference.bundle()))
    return add_verdict(lines, {.check = "dropout" + mode, .how = "observed"}, std::nullopt,
                       "not looked at in a light proof");
  add_verdict(lines,
              {.check = "dropout" + mode,
               .how = "observed",
               .value = fmt::format("{} losses scatter as eager's do", reference.dropout_losses().size()),
               .bound = "|z| < 4, scatter within 2"},
              training.dropout,
              training.dropout_note.empty() ? "the level did not get that far" : training.dropout_note);
  const auto& visible = reference.dropout_visible();
  add_verdict(
      lines,
      {.check = "dropout probability" + mode,
       .how = "observed",
       .value = training.variances ? fmt::format("{} gradients, {:.2f} of what chance allows",
                                                 reference.dropout_groups() * reference.dropout_group(),
                                                 training.variances->worst_ratio)
                                   : "",
       .bound = "one false alarm in a million",
       .detail = std::isfinite(visible.error)
                     ? fmt::format("sees a probability that is wrong by {:.2g} ({})", visible.error, visible.layer)
                     : fmt::format("the probability of {} shows in no gradient", visible.layer)},
      training.variances, training.dropout ? "no gradient shows it" : "the level did not get that far");
  add_verdict(
      lines,
      {.check = "eval mode leaves dropout out" + mode, .how = "observed", .value = "two runs are the same bytes"},
      training.evaluation, training.evaluation_note);
}

bool add_strength(Lines& lines, const TrainReference& reference, const Evidence& evidence,
                  const TrainEvidence& training) {
  add_extent(lines, reference.bundle());
  lines.add({.check = "reference",
             .how = "observed",
             .result = "pass",
             .value = "one step of the module in float64",
             .about_level = false});
  const double widest = reference.widest_gradient_envelope();
  lines.add({.check = "gradients are sharp",
             .how = "observed",
             .result = widest <= weak_gradient ? "pass" : "fail",
             .value = fmt::format("{:.2g} (relative) between legitimate runs", widest),
             .bound = fmt::format("{:.0e}", weak_gradient),
             .detail = widest <= weak_gradient ? "" : "weak gradient proof",
             .about_level = false});
  Line planted{.check = "planted faults are seen",
               .how = "observed",
               .bound = fmt::format("{:.0f} times the bound", training_power_limit),
               .detail = core::is_light(reference.bundle()) ? kNotPlanted : "no fault could be planted in this network",
               .about_level = false};
  if (const auto* least = least_fault(reference.faults())) {
    planted.value =
        fmt::format("{} faults, the least at {:.2g} times the bound", reference.faults().size(), least->times_bound);
    planted.result = least->times_bound >= training_power_limit ? "pass" : "fail";
    planted.detail = planted.result == "fail" ? least->sentence : "";
  }
  lines.add(planted);
  add_repeatability(lines, evidence, "gradients");
  bool weak = train_power(reference).weak;
  for (const auto& set : reference.sets()) weak = weak || !training.steps.contains(set);
  return weak;
}

}  // namespace

void TrainEvidence::add_update(const UpdateVerdict& update) {
  rate_error = updates_checked++ == 0 ? update.rate_error : std::max(rate_error, update.rate_error);
  if (update.verdict.equal_work()) return;
  ++updates_failed;
  if (!update_failure) update_failure = update.verdict;
}

TrainPower train_power(const TrainReference& reference) {
  TrainPower out;
  const auto* least = least_fault(reference.faults());
  if (!reference.weak().empty())
    out.reason = reference.weak();
  else if (const double widest = reference.widest_gradient_envelope(); widest > weak_gradient)
    out.reason = fmt::format("weak gradient proof: legitimate runs of eager part by {:.2g}, where {:.0e} is wanted",
                             widest, weak_gradient);
  else if (!least && !core::is_light(reference.bundle()))
    out.reason = "no fault could be planted in this network";
  else if (least && least->times_bound < training_power_limit)
    out.reason = fmt::format("the planted fault '{}' reaches only {:.2g} times the bound, where {:.0f} are needed",
                             least->name, least->times_bound, training_power_limit);
  out.weak = !out.reason.empty();
  return out;
}

Certificate train_certificate(const TrainReference& reference, const Evidence& evidence, const TrainEvidence& training,
                              const StrictTraining* strict) {
  Lines lines;
  const auto mode = strict ? ", " + reference.precision() : std::string(), in_float32 = std::string(", strict float32");
  const auto& structure = strict ? strict->training : training;
  if (strict) {
    add_steps(lines, strict->reference, structure, in_float32);
    add_ring(lines, structure, in_float32);
    add_dropout(lines, reference, structure, in_float32);
  }
  add_steps(lines, reference, training, mode);
  if (strict) add_precision(lines, reference.precision(), evidence.precision);
  add_ring(lines, training, mode);
  add_rules(lines, reference, structure);
  add_update(lines, training);
  if (!core::is_light(reference.bundle())) add_replays(lines, training);
  add_counts(lines, training, strict ? &strict->training : nullptr);
  add_losses(lines, evidence, training);
  add_dropout(lines, reference, training, mode);
  add_read_back(lines, reference.folder(), reference.bundle(), evidence);
  add_parameters(lines, reference.bundle(), evidence);
  add_settings(lines, reference.question(), evidence);
  add_work(lines, evidence);
  add_clock(lines, evidence);
  add_new_inputs(lines, evidence);
  add_conduct(lines, evidence);
  add_references(lines, evidence);
  const bool weak = add_strength(lines, strict ? strict->reference : reference, evidence, structure);
  // Equal in float32 alone proves nothing about the mode that is timed.
  return lines.certificate((lines.equal() ? training : structure).steps.empty(), weak,
                           {&structure.steps, &training.steps}, training.update_failure);
}

}  // namespace strata::proof
