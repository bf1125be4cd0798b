// SPDX-License-Identifier: Apache-2.0
#include "strata/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "strata/timed_loop.hpp"

namespace strata {

using nlohmann::json;

namespace {

[[noreturn]] void refuse(const char* name, const char* allowed, const json& got) {
  throw Failure("bad_request", fmt::format("the optimiser's '{}' must be {}, got {}", name, allowed, got.dump()));
}

double number(const json& object, const char* name, std::optional<double> otherwise = {}) {
  const json value = object.value(name, json());
  if (value.is_null() && otherwise) return *otherwise;
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
    refuse(name, "a number of at least 0", value);
  return value.get<double>();
}

std::int64_t period(const json& object, const char* name) {
  const json value = object.value(name, json());
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1) refuse(name, "an integer of at least 1", value);
  return value.get<std::int64_t>();
}

// A misspelled field would silently be a default.
void only(const json& object, const std::vector<std::string>& allowed) {
  for (const auto& [name, value] : object.items())
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
      throw Failure("bad_request", fmt::format("the optimiser has no field '{}'", name),
                    fmt::format("allowed: {}", fmt::join(allowed, ", ")));
}

std::optional<core::Schedule> read_schedule(const json& schedule) {
  using core::Schedule;
  if (schedule.is_null()) return std::nullopt;
  const json name = schedule.is_object() ? schedule.value("name", json()) : json();
  if (name == "step") {
    only(schedule, {"name", "every", "gamma"});
    return Schedule{Schedule::Kind::step, period(schedule, "every"), number(schedule, "gamma")};
  }
  if (name == "cosine") {
    only(schedule, {"name", "steps"});
    return Schedule{Schedule::Kind::cosine, period(schedule, "steps")};
  }
  refuse("schedule", R"(null, {"name":"step",...} or {"name":"cosine",...})", schedule);
}

core::Sgd read_sgd(const json& fields) {
  only(fields, {"name", "lr", "momentum", "dampening", "weight_decay", "nesterov", "schedule"});
  core::Sgd sgd;
  sgd.momentum = number(fields, "momentum", sgd.momentum);
  sgd.dampening = number(fields, "dampening", sgd.dampening);
  const json nesterov = fields.value("nesterov", json(false));
  if (!nesterov.is_boolean()) refuse("nesterov", "true or false", nesterov);
  sgd.nesterov = nesterov.get<bool>();
  if (sgd.nesterov && (sgd.momentum == 0 || sgd.dampening != 0))
    throw Failure("bad_request", fmt::format("nesterov needs a momentum above 0 and dampening 0, got {} and {}",
                                             sgd.momentum, sgd.dampening));
  return sgd;
}

core::Adam read_adam(const json& fields, core::Adam adam) {
  for (const char* setting : {"amsgrad", "maximize"})
    if (const json value = fields.value(setting, json(false)); value != json(false))
      throw Failure("unsupported", fmt::format("the optimiser's '{}' is {}, no level runs it", setting, value.dump()));
  only(fields, {"name", "lr", "beta1", "beta2", "eps", "weight_decay", "schedule", "amsgrad", "maximize"});
  adam.eps = number(fields, "eps", adam.eps);
  for (const auto& [name, beta] : {std::pair{"beta1", &adam.beta1}, {"beta2", &adam.beta2}}) {
    *beta = number(fields, name, *beta);
    if (*beta >= 1) refuse(name, "a number of at least 0 and below 1", *beta);
  }
  return adam;
}

class HostStopwatch final : public Stopwatch {
 public:
  void mark() override { marks_.push_back(now_ns()); }
  std::vector<std::int64_t> between_ns() override {
    std::vector<std::int64_t> result;
    for (std::size_t i = 1; i < marks_.size(); ++i) result.push_back(marks_[i] - marks_[i - 1]);
    return result;
  }

 private:
  std::vector<std::int64_t> marks_;
};

}  // namespace

Optimiser read_optimiser(const json& object) {
  if (!object.is_object() && !object.is_null())
    throw Failure("bad_request", fmt::format("the optimiser must be an object, got {}", object.dump()));
  const json fields = object.is_null() ? json::object() : object;
  const json name = fields.value("name", json("sgd"));
  const auto usual = core::usual_optimiser(name.is_string() ? name.get<std::string>() : std::string());
  if (!usual)
    throw Failure("unsupported", fmt::format("optimiser {} is not one of: \"{}\"", name.dump(),
                                             fmt::join(core::optimiser_names, "\", \"")));
  Optimiser result = *usual;
  if (usual->adam() != nullptr)
    result.rule = read_adam(fields, *usual->adam());
  else
    result.rule = read_sgd(fields);
  result.lr = number(fields, "lr", result.lr);
  result.weight_decay = number(fields, "weight_decay", result.weight_decay);
  result.schedule = read_schedule(fields.value("schedule", json()));
  return result;
}

void Stepper::start(const Optimiser& optimiser) {
  Optimiser first = optimiser;
  first.lr = core::learning_rate(optimiser, 0);
  first.schedule.reset();
  trained_.set_optimiser(first);
  optimiser_ = optimiser;
  rate_ = first.lr;
  steps_ = 0;
}

void Stepper::set_mode(bool training, bool dropout) {
  trained_.set_mode(training, dropout);
  training_ = training;
}

void Stepper::go_to(std::int64_t step) {
  steps_ = step;
}

// A rate that stays is not set again: without a schedule a step costs no more than the level's own.
void Stepper::prepare_step() {
  const double rate = core::learning_rate(optimiser_, steps_);
  if (rate == rate_) return;
  trained_.set_rate(rate);
  rate_ = rate;
}

void Stepper::run() {
  if (!training_) return level_.run();
  prepare_step();
  level_.run();
  ++steps_;
}

void Stepper::run_marked(Profiled& profiled, const PhaseEnded& ended) {
  prepare_step();
  profiled.run_marked(ended);
  ++steps_;
}

std::unique_ptr<Stopwatch> Profiled::stopwatch() const {
  return std::make_unique<HostStopwatch>();
}

}  // namespace strata
