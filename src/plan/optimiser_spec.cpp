// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/nearest.hpp"
#include "common/text.hpp"
#include "core/case.hpp"
#include "plan/option_values.hpp"

namespace strata::plan {
namespace {

using nlohmann::json;

tl::unexpected<Error> bad_optimiser(const std::string& text, const std::string& why) {
  return fail(fmt::format("--optimiser {}: {}", text, why),
              "write sgd:lr=0.01,momentum=0.9,weight_decay=0.0001 and, optionally, dampening=0, nesterov=true; or "
              "adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0, or adamw:..., whose weight decay (0.01) is "
              "apart from the gradient; each with clip_norm=1, schedule=step/30/0.1 or schedule=cosine/100, optionally",
              Exit::usage);
}

Result<json> schedule_of(const std::string& whole, const std::string& text) {
  const auto parts = split(text, '/');
  const auto steps = number<int>(parts.size() > 1 ? parts[1] : std::string());
  const auto name = parts.empty() ? std::string() : parts[0];
  if (name != "step" && name != "cosine") {
    const auto near = nearest(name, {"step", "cosine"});
    return bad_optimiser(whole, fmt::format("unknown schedule '{}'{}; allowed: step/STEPS/FACTOR, cosine/STEPS", name,
                                            near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
  }
  if (!steps || *steps < 1)
    return bad_optimiser(
        whole, fmt::format("schedule {}: the number of optimiser steps is missing or not a whole number from 1", text));
  if (name == "cosine") {
    if (parts.size() != 2) return bad_optimiser(whole, fmt::format("schedule {}: allowed: cosine/STEPS", text));
    return json{{"name", "cosine"}, {"steps", *steps}};
  }
  const auto gamma = parts.size() == 3 ? number<double>(parts[2]) : std::nullopt;
  if (!gamma || *gamma <= 0 || *gamma > 1)
    return bad_optimiser(
        whole, fmt::format("schedule {}: allowed: step/STEPS/FACTOR with a factor above 0 and at most 1", text));
  return json{{"name", "step"}, {"every", *steps}, {"gamma", *gamma}};
}

// One field=value into `out`.
Result<void> set_field(json& out, const std::string& whole, const std::string& field, const std::string& value) {
  if (field == "schedule") {
    out[field] = STRATA_TRY(schedule_of(whole, value));
    return {};
  }
  if (field == "nesterov") {
    if (value != "true" && value != "false")
      return bad_optimiser(whole, fmt::format("nesterov={}: allowed: true, false", value));
    out[field] = value == "true";
    return {};
  }
  const bool below_one = field == "momentum" || field == "dampening" || field == "beta1" || field == "beta2",
             above_zero = field == "lr" || field == "eps" || field == "clip_norm";
  const auto got = number<double>(value);
  const bool fits = got && (above_zero ? *got > 0 : *got >= 0) && (!below_one || *got < 1);
  if (!fits)
    return bad_optimiser(whole, fmt::format("{}={}: allowed: {}", field, value,
                                            above_zero  ? "numbers above 0"
                                            : below_one ? "numbers from 0 to below 1"
                                                        : "numbers from 0"));
  out[field] = *got;
  return {};
}

}  // namespace

Result<core::Optimiser> parse_optimiser(const std::string& text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto usual = core::usual_optimiser(name);
  if (!usual) {
    const auto near = nearest(name, {core::optimiser_names.begin(), core::optimiser_names.end()});
    return bad_optimiser(text, fmt::format("unknown optimiser '{}'{}; allowed: {}", name,
                                           near ? fmt::format(" (did you mean '{}'?)", *near) : "",
                                           fmt::join(core::optimiser_names, ", ")));
  }
  json out = to_json(*usual);
  std::vector<std::string> known;
  for (const auto& [field, value] : out.items())
    if (field != "name") known.push_back(field);
  std::set<std::string> seen;
  for (const auto& part :
       colon == std::string::npos ? std::vector<std::string>() : split(text.substr(colon + 1), ',')) {
    const auto equals = part.find('=');
    const auto field = part.substr(0, equals);
    if (usual->adam() != nullptr && (field == "amsgrad" || field == "maximize"))
      return bad_optimiser(text, fmt::format("{} is not offered: no level runs it", field));
    if (std::find(known.begin(), known.end(), field) == known.end()) {
      const auto near = nearest(field, known);
      return bad_optimiser(
          text, fmt::format("unknown field '{}'{}; allowed: {}", field,
                            near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", ")));
    }
    if (equals == std::string::npos) return bad_optimiser(text, fmt::format("{} has no value", field));
    if (!seen.insert(field).second) return bad_optimiser(text, fmt::format("{} is given twice", field));
    STRATA_TRY(set_field(out, text, field, part.substr(equals + 1)));
  }
  if (usual->sgd() != nullptr && out["nesterov"] == true && (out["momentum"] == 0.0 || out["dampening"] != 0.0))
    return bad_optimiser(text, "nesterov needs a momentum above 0 and dampening 0");
  return core::read_optimiser(out, "--optimiser");
}

}  // namespace strata::plan
