// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/outside.hpp"
#include "core/bundle_info.hpp"
#include "proof/certificate_builder.hpp"
#include "proof/difference.hpp"

namespace strata::proof {

namespace {

using nlohmann::json;
using Kind = OutputVerdict::Kind;

std::string title_of(const std::string& set) {
  if (set == "timed") return "outputs, timed weights";
  return fmt::format("outputs, generic weights {}", set.substr(std::string("generic").size()));
}

// `mode`: ", bf16" where a certificate has lines in more than one.
void add_sets(Lines& lines, const Reference& reference, const std::map<std::string, OutputVerdict>& verdicts,
              const std::string& mode) {
  auto sets = reference.generic_sets();
  sets.emplace_back("timed");
  for (const std::string& set : sets) {
    if (!reference.has_set(set)) continue;
    Line line{.check = title_of(set) + mode, .how = "observed", .bound = fmt::format("{:.0f}", strict_limit)};
    const auto it = verdicts.find(set);
    if (it == verdicts.end()) {
      add_verdict(lines, line, std::nullopt, "the level's outputs were not taken");
      continue;
    }
    const OutputVerdict& verdict = it->second;
    if (verdict.worst_ratio > 0 || verdict.equal_work())
      line.value = fmt::format("{:.2f} of eager's envelope", verdict.worst_ratio);
    if (verdict.kind == Kind::equal_looser) {
      line.bound = fmt::format("{:.0f}", reassociated_limit);
      line.detail = "looser numerics: the level declares an algorithm that adds in another order";
    }
    add_verdict(lines, line, verdict);
  }
}

void add_following(Lines& lines, const Evidence& evidence) {
  Line line{.check = "outputs follow their inputs", .how = "observed"};
  const auto timed = evidence.sets.find("timed");
  if (timed == evidence.sets.end()) {
    line.detail = "the level's outputs were not taken";
  } else if (timed->second.follows_inputs) {
    line.result = "pass";
    line.value = "each matches its own input only";
  } else if (timed->second.equal_work()) {
    line.detail = "the references of the inputs are too alike to tell";
  } else {
    line.result = "fail";
    line.detail = timed->second.reason;
  }
  lines.add(line);
}

// Outputs of two weight sets that match references which differ show that the weights were used.
void add_weights(Lines& lines, const Reference& reference, const Evidence& evidence) {
  const auto passed = [&](const char* set) {
    const auto it = evidence.sets.find(set);
    return it != evidence.sets.end() && it->second.equal_work();
  };
  const char* other = core::is_light(reference.bundle()) ? "timed" : "generic2";
  Line line{.check = "weights are used", .how = "observed", .bound = "2 weight sets"};
  if (passed("generic1") && passed(other)) {
    bool differ = false;
    for (const OutputSpec& output : reference.outputs()) {
      const TensorView* first = reference.expected("generic1", 0, output.name);
      const TensorView* second = reference.expected(other, 0, output.name);
      if (output.tap || !first || !second) continue;
      const Difference d = difference(*second, *first, reference.floor_scale("generic1"));
      differ =
          differ || d.non_finite > 0 || d.error > 2 * strict_limit * reference.envelope("generic1", output.name).error;
    }
    const bool none = reference.bundle().value("weight_bytes", std::int64_t{1}) == 0;
    line.result = differ ? "pass" : "not_checked";
    line.value = differ ? "2 sets, each matches its own reference" : "";
    if (!differ)
      line.detail = none ? "the network has none" : "the references of both weight sets are too alike to tell";
  } else {
    line.how = "assumed";
    line.detail = "not shown by two weight sets";
  }
  lines.add(line);
}

// How good the proof itself is; returns true if it is weak.
bool add_strength(Lines& lines, const Reference& reference, const Power& power, const Evidence& evidence) {
  const bool light = core::is_light(reference.bundle());
  bool weak = power.weak || reference.weaker();
  add_extent(lines, reference.bundle());
  const std::string note = reference.bundle().value("reference_note", std::string());
  lines.add({.check = "reference",
             .how = "observed",
             .result = "pass",
             .value = reference.weaker() ? "eager in float32" : "the module in float64",
             .detail = reference.weaker() ? "weaker: " + note : "",
             .about_level = false});
  const auto* least = least_fault(power.faults);
  Line planted{.check = "planted faults are seen", .how = "observed", .bound = "the bound", .about_level = false};
  if (least != nullptr) {
    planted.value =
        fmt::format("{} faults, the least at {:.2g} times the bound", power.faults.size(), least->times_bound);
    planted.result = least->times_bound >= power_limit ? "pass" : "fail";
    if (planted.result == "fail") planted.detail = power.reason;
  } else {
    planted.detail = light ? kNotPlanted : power.reason;
  }
  lines.add(planted);
  const bool spread = power.input_spread >= spread_limit;
  lines.add({.check = "outputs differ between inputs",
             .how = "observed",
             .result = spread ? "pass" : "fail",
             .value = fmt::format("{:.0f}% of the spread across classes", 100 * power.input_spread),
             .bound = fmt::format("{:.0f}%", 100 * spread_limit),
             .detail = spread ? "" : "a fault that mixes up inputs may stay unseen",
             .about_level = false});
  add_repeatability(lines, evidence, "runs");
  const auto generic = reference.generic_sets();
  weak = weak || generic.size() < (light ? 1 : 2);
  for (const std::string& set : generic) weak = weak || !evidence.sets.contains(set);
  return weak;
}

// A setting that the case fixes. Missing from the answer: not checked.
void add_setting(Lines& lines, const Evidence& evidence, const json& required, const std::string& name,
                 const std::string& title) {
  Line line{.check = title,
            .how = "reported",
            .bound = required.is_null() ? "" : (required.is_string() ? required.get<std::string>() : required.dump())};
  const json settings = evidence.load.is_object() ? evidence.load.value("settings", json::object()) : json::object();
  const json got = settings.is_object() ? settings.value(name, json()) : json();
  if (!got.is_null()) {
    line.value = got.is_string() ? got.get<std::string>() : got.dump();
    line.result = "pass";
    if (!required.is_null() && got != required)
      return lines.fail(line, Kind::unequal,
                        fmt::format("the level runs with {} {}, the case says {}", title, line.value, line.bound),
                        fmt::format("{}: {} instead of {}", title, line.value, line.bound));
  }
  lines.add(line);
}

}  // namespace

void add_verdict(Lines& lines, Line line, const std::optional<OutputVerdict>& verdict, const std::string& note) {
  if (!verdict) {
    line.value = "";
    line.detail = note;
    return lines.add(line);
  }
  line.result = "pass";
  if (!verdict->equal_work()) return lines.refuse(line, *verdict, line.check);
  lines.note(verdict->kind);
  lines.add(line);
}

void add_blocks(Lines& lines, const Evidence& evidence, Line line) {
  line.how = "observed";
  line.bound = "every block";
  if (evidence.blocks_checked > 0) {
    line.value =
        fmt::format("{} of {} blocks", evidence.blocks_checked - evidence.blocks_failed, evidence.blocks_checked);
    line.result = "pass";
  }
  if (!evidence.block_failure) return lines.add(line);
  lines.refuse(line, *evidence.block_failure, "in a timed block");
}

void add_repeatability(Lines& lines, const Evidence& evidence, const char* runs) {
  if (evidence.own_spread <= 0) return;
  lines.add({.check = "repeatability",
             .how = "observed",
             .result = "pass",
             .value = fmt::format("{:.2g} (relative) between its own {}", evidence.own_spread, runs),
             .detail = "not deterministic: its own spread joins the envelope"});
}

void add_extent(Lines& lines, const json& bundle) {
  if (!core::is_light(bundle)) return;
  const bool trains = outside::text_or(outside::field(bundle, "case"), "mode") == "train";
  lines.add(
      {.check = "extent of the proof",
       .how = "observed",
       .result = "pass",
       .value = "light",
       .detail = fmt::format(
           "{}, an envelope of {} runs of eager, no planted faults: the corners of the sweep have the "
           "whole",
           trains ? "one gradient probe" : "one generic weight set", core::has_few_runs(bundle) ? "three" : "all"),
       .about_level = false});
}

void add_read_back(Lines& lines, const std::filesystem::path& bundle, const json& about, const Evidence& evidence) {
  const auto changing =
      about.value("writes_buffers", std::set<std::string>());  // by every call: not the file's any more
  Line line{.check = "weights read back",
            .how = "observed",
            .bound = "SHA-256",
            .detail = "the level cannot read them back; the two weight sets stand for them"};
  if (about.value("weight_bytes", std::int64_t{1}) == 0) line.detail = "the network has none";
  std::size_t equal = 0, held = 0;
  std::string wrong;
  for (const auto& [set, hashes] : evidence.read_back) {
    const auto bundled = weight_hashes(bundle, set);
    if (!bundled) {
      line.detail = bundled.error().what;
      continue;
    }
    held += bundled->size();
    for (const auto& [name, hash] : hashes) {
      if (changing.contains(name)) continue;
      const auto it = bundled->find(name);
      if (it != bundled->end() && it->second == hash)
        ++equal;
      else if (wrong.empty())
        wrong = it == bundled->end() ? fmt::format("'{}' is no tensor of the {} weights", name, set)
                                     : fmt::format("'{}' of the {} weights is not what the file holds", name, set);
    }
  }
  if (equal == 0 && wrong.empty()) return lines.add(line);
  line.value = fmt::format("{} of {} tensors", equal, held);
  line.result = "pass";
  line.detail = wrong;
  if (wrong.empty()) return lines.add(line);
  lines.fail(line, Kind::unequal, fmt::format("weights read back: {}", wrong), "weights are not those of the file");
}

void add_parameters(Lines& lines, const json& bundle, const Evidence& evidence) {
  const auto bundled = bundle.value("parameters", std::int64_t{0});
  Line line{.check = "parameter count", .how = "reported", .bound = fmt::format("{}", bundled)};
  const json count = evidence.load.is_object() ? evidence.load.value("parameters", json()) : json();
  if (count.is_number_integer() && count.get<std::int64_t>() > 0) {
    const auto held = count.get<std::int64_t>();
    line.value = fmt::format("{}", held);
    line.result = "pass";
    // Folding BatchNorm into convolutions leaves fewer; more would be another network.
    if (held < bundled) line.detail = "fewer than the module has: folded or shared";
    if (held > bundled)
      return lines.fail(line, Kind::unequal,
                        fmt::format("the level holds {} parameters, the module has {}", held, bundled),
                        "more parameters than the module has");
  } else {
    line.detail = "the level cannot tell";
  }
  lines.add(line);
}

// Decides nothing: no input that is proven or timed holds one.
void add_specials(Lines& lines, const Evidence& evidence) {
  if (!evidence.specials) return;
  const bool kept = evidence.specials->empty();
  lines.add({.check = "NaN and infinity in an input",
             .how = "observed",
             .result = kept ? "pass" : "fail",
             .value = kept ? "no numbers where eager gives none" : "",
             .detail = *evidence.specials,
             .about_level = false});
}

void add_settings(Lines& lines, const core::Case& question, const Evidence& evidence) {
  add_setting(lines, evidence, question.threads, "threads", "threads");
  add_setting(lines, evidence, name_of(question.precision), "precision", "precision");
  for (const char* name : {"layout", "inference_mode", "autotune", "freezing", "graph"}) {
    std::string title = name;
    std::replace(title.begin(), title.end(), '_', ' ');
    add_setting(lines, evidence, json(), name, title);
  }
}

void add_work(Lines& lines, const Evidence& evidence) {
  if (evidence.flops || !evidence.uncounted.empty())
    lines.add(
        {.check = "floating-point operations",
         .how = "assumed",
         .value = fmt::format("{:.3g} of the captured network{}{}", evidence.flops.value_or(0),
                              evidence.uncounted.empty() ? "" : ", without ", fmt::join(evidence.uncounted, ", ")),
         .detail = "not counted in the level; what its kernels do is not seen"});
  Line line{.check = "time is plausible", .how = "observed"};
  if (evidence.iteration_ms && evidence.limit_ms && *evidence.limit_ms > 0) {
    line.value = fmt::format("{:.3g} ms", *evidence.iteration_ms);
    line.bound = fmt::format("at least {:.2g} ms", *evidence.limit_ms / implausible);
    line.detail = fmt::format("a tenth of the {:.3g} ms that the measured peak allows", *evidence.limit_ms);
    line.result = "pass";
    if (*evidence.iteration_ms < *evidence.limit_ms / implausible)
      return lines.fail(line, Kind::mistrusted,
                        fmt::format("an iteration took {:.3g} ms where this machine's measured peak needs {:.3g} ms "
                                    "for its arithmetic: it was not done (a memo?)",
                                    *evidence.iteration_ms, *evidence.limit_ms),
                        "faster than the machine can compute it");
    if (evidence.latency_ms && *evidence.latency_ms < *evidence.limit_ms / implausible)
      return lines.fail(line, Kind::mistrusted,
                        fmt::format("run and wait took {:.3g} ms of an iteration's {:.3g} ms, where this machine's "
                                    "measured peak needs {:.3g} ms for its arithmetic: it is done elsewhere",
                                    *evidence.latency_ms, *evidence.iteration_ms, *evidence.limit_ms),
                        "the work is not done in run");
  } else {
    line.detail = evidence.limit_note.empty() ? "the machine's limit was not measured" : evidence.limit_note;
  }
  lines.add(line);
}

void add_clock(Lines& lines, const Evidence& evidence) {
  const auto& clock = evidence.clock;
  Line line{.check = "times are the driver's", .how = "observed", .detail = "no pair of requests of different length"};
  if (clock.checked()) {
    line = {.check = "times are the driver's",
            .how = "observed",
            .result = "pass",
            .value = fmt::format("{:.3g} us of an iteration untold", clock.unreported_ns() * 1e-3),
            .bound = fmt::format("{:.3g} us", clock.allowed_ns() * 1e-3),
            .detail = "what longer requests take more, by the driver's clock, than the level tells"};
  }
  lines.add_unless(line, clock.complaint(), "its times are not the driver's");
}

void add_new_inputs(Lines& lines, const Evidence& evidence) {
  Line line{.check = "every timed input is new", .how = "reported", .bound = "every block"};
  const int all = evidence.blocks_of_new_inputs + evidence.blocks_of_old_inputs;
  if (evidence.blocks_of_new_inputs > 0 && evidence.blocks_of_old_inputs == 0) {
    line.result = "pass";
    line.value = fmt::format("{} blocks", all);
    line.detail =
        "the iteration's number stands in the last bits of a few values: an answer that is kept fits no other";
  } else if (all > 0) {
    line.detail = "the level leaves its inputs as they are, or they hold no floating-point value that can be changed";
  }
  lines.add(line);
}

Certificate Lines::certificate(bool none, bool weak,
                               std::initializer_list<const std::map<std::string, OutputVerdict>*> verdicts,
                               const std::optional<OutputVerdict>& last) const {
  std::string first_difference;
  std::optional<double> worst;
  const auto look = [&](const OutputVerdict& verdict) {
    if (first_difference.empty()) first_difference = verdict.first_difference;
  };
  for (const auto* some : verdicts)
    for (const auto& [set, verdict] : *some) {
      look(verdict);
      worst = std::max(worst.value_or(0), verdict.worst_ratio);
    }
  if (last) look(*last);
  return {.proof = {.verdict = none ? "none" : std::string(to_string(kind_)),
                    .weak = weak,
                    .observed = count("observed"),
                    .reported = count("reported"),
                    .assumed = count("assumed"),
                    .first_difference = first_difference,
                    .worst_ratio = worst && std::isfinite(*worst) ? worst : std::nullopt,
                    .lines = proof_lines()},
          .kind = kind_,
          .none = none,
          .reason = reason_,
          .reason_short = brief_};
}

std::string Evidence::note_clock(const ClockEvidence& seen) {
  auto why = seen.complaint();
  if (clock.complaint().empty() && (!why.empty() || !clock.checked() || seen.unreported_ns() > clock.unreported_ns()))
    clock = seen;
  return why;
}

void Evidence::add_block(const OutputVerdict& verdict) {
  ++blocks_checked;
  if (verdict.equal_work()) return;
  ++blocks_failed;
  if (!block_failure) block_failure = verdict;
}

Certificate certificate(const Reference& reference, const Power& power, const Evidence& evidence,
                        const Reference* in_mode) {
  Lines lines;
  const auto mode = in_mode ? ", " + in_mode->precision() : std::string();
  add_sets(lines, reference, evidence.sets, in_mode ? ", strict float32" : "");
  if (in_mode) {
    add_sets(lines, *in_mode, evidence.in_mode, mode);
    add_precision(lines, in_mode->precision(), evidence.precision);
  }
  add_blocks(lines, evidence, {.check = "outputs while timing" + mode, .how = "observed"});
  add_following(lines, evidence);
  add_weights(lines, reference, evidence);
  add_read_back(lines, reference.folder(), reference.bundle(), evidence);
  add_parameters(lines, reference.bundle(), evidence);
  add_settings(lines, (in_mode ? *in_mode : reference).question(), evidence);
  add_work(lines, evidence);
  add_clock(lines, evidence);
  add_new_inputs(lines, evidence);
  add_conduct(lines, evidence);
  add_unseen(lines, evidence);
  add_references(lines, evidence);
  add_specials(lines, evidence);
  const bool weak = add_strength(lines, reference, power, evidence);
  // Equal in float32 alone proves nothing about the mode that is timed.
  const auto& shown = in_mode && lines.equal() ? evidence.in_mode : evidence.sets;
  return lines.certificate(shown.empty() && evidence.blocks_checked == 0, weak, {&evidence.sets, &evidence.in_mode},
                           evidence.block_failure);
}

}  // namespace strata::proof
