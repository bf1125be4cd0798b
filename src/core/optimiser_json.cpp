// SPDX-License-Identifier: Apache-2.0
#include "core/optimiser_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>

#include "common/outside.hpp"

namespace strata::core {
namespace {

using outside::Fields;
using outside::Json;

Result<Schedule> read_schedule(const Json& value, const std::string& where) {
  Fields fields(value, where);
  Schedule schedule;
  const auto name = fields.text("name");
  if (name != "step" && name != "cosine") fields.complain("name", name, "step, cosine");
  if (name == "cosine") schedule.kind = Schedule::Kind::cosine;
  schedule.steps = fields.integer(name == "cosine" ? "steps" : "every", 1, outside::most_whole);
  if (name == "step") schedule.gamma = fields.number("gamma", 0, HUGE_VAL);
  if (fields.error()) return tl::unexpected(*fields.error());
  return schedule;
}

}  // namespace

Result<Optimiser> read_optimiser(const Json& value, const std::string& where) {
  Fields fields(value, where);
  const auto name = fields.text("name", "sgd");
  const auto usual = usual_optimiser(name);
  if (!usual) fields.complain("name", name, fmt::format("{}", fmt::join(optimiser_names, ", ")));
  Optimiser optimiser = usual.value_or(Optimiser());
  optimiser.lr = fields.number("lr", 0, HUGE_VAL, optimiser.lr);
  optimiser.weight_decay = fields.number("weight_decay", 0, HUGE_VAL, optimiser.weight_decay);
  optimiser.clip_norm = fields.number("clip_norm", 0, HUGE_VAL, 0);
  if (auto* sgd = std::get_if<Sgd>(&optimiser.rule)) {
    sgd->momentum = fields.number("momentum", 0, HUGE_VAL, sgd->momentum);
    sgd->dampening = fields.number("dampening", 0, HUGE_VAL, sgd->dampening);
    sgd->nesterov = fields.flag("nesterov", sgd->nesterov);
  } else {
    auto& adam = std::get<Adam>(optimiser.rule);
    adam.beta1 = fields.number("beta1", 0, 1, adam.beta1);
    adam.beta2 = fields.number("beta2", 0, 1, adam.beta2);
    adam.eps = fields.number("eps", 0, HUGE_VAL, adam.eps);
    for (const char* setting : {"amsgrad", "maximize"})
      if (fields.flag(setting, false)) fields.complain(setting, true, "false: strata's Adam has no such setting");
  }
  if (fields.error()) return tl::unexpected(*fields.error());
  if (const Json& schedule = outside::field(value, "schedule"); !schedule.is_null()) {
    optimiser.schedule = STRATA_TRY(read_schedule(schedule, where + ".schedule"));
  }
  return optimiser;
}

Json to_json(const Optimiser& optimiser) {
  Json schedule;
  if (optimiser.schedule && optimiser.schedule->kind == Schedule::Kind::step)
    schedule = {{"name", "step"}, {"every", optimiser.schedule->steps}, {"gamma", optimiser.schedule->gamma}};
  else if (optimiser.schedule)
    schedule = {{"name", "cosine"}, {"steps", optimiser.schedule->steps}};
  Json fields{{"name", name_of(optimiser)},
              {"lr", optimiser.lr},
              {"weight_decay", optimiser.weight_decay},
              {"clip_norm", optimiser.clip_norm},
              {"schedule", std::move(schedule)}};
  if (const auto* sgd = optimiser.sgd())
    fields.update({{"momentum", sgd->momentum}, {"dampening", sgd->dampening}, {"nesterov", sgd->nesterov}});
  else
    fields.update(
        {{"beta1", optimiser.adam()->beta1}, {"beta2", optimiser.adam()->beta2}, {"eps", optimiser.adam()->eps}});
  return fields;
}

}  // namespace strata::core
