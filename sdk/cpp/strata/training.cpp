// SPDX-License-Identifier: Apache-2.0
#include "strata/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

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

void read_schedule(const json& schedule, Optimiser& into) {
  if (schedule.is_null()) return;
  const json name = schedule.is_object() ? schedule.value("name", json()) : json();
  if (name == "step") {
    into.schedule = Optimiser::Schedule::step;
    into.period = period(schedule, "every");
    into.gamma = number(schedule, "gamma");
    only(schedule, {"name", "every", "gamma"});
  } else if (name == "cosine") {
    into.schedule = Optimiser::Schedule::cosine;
    into.period = period(schedule, "steps");
    only(schedule, {"name", "steps"});
  } else {
    refuse("schedule", R"(null, {"name":"step",...} or {"name":"cosine",...})", schedule);
  }
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

Failure cannot_train() {
  return {"unsupported", "this level does not train"};
}

}  // namespace

double Optimiser::rate(std::int64_t step) const {
  if (schedule == Schedule::step) return sgd.rate * std::pow(gamma, static_cast<double>(step / period));
  if (schedule == Schedule::cosine) {
    const auto part = static_cast<double>(step) / static_cast<double>(period);
    return sgd.rate * (1 + std::cos(std::numbers::pi * part)) / 2;
  }
  return sgd.rate;
}

Optimiser read_optimiser(const json& object) {
  if (!object.is_object() && !object.is_null())
    throw Failure("bad_request", fmt::format("the optimiser must be an object, got {}", object.dump()));
  const json fields = object.is_null() ? json::object() : object;
  if (const json name = fields.value("name", json("sgd")); name != "sgd")
    throw Failure("unsupported", fmt::format("optimiser {} is not one of: \"sgd\"", name.dump()));
  only(fields, {"name", "lr", "momentum", "dampening", "weight_decay", "nesterov", "schedule"});
  Optimiser result;
  result.sgd.rate = number(fields, "lr", result.sgd.rate);
  result.sgd.momentum = number(fields, "momentum", result.sgd.momentum);
  result.sgd.dampening = number(fields, "dampening", result.sgd.dampening);
  result.sgd.weight_decay = number(fields, "weight_decay", result.sgd.weight_decay);
  const json nesterov = fields.value("nesterov", json(false));
  if (!nesterov.is_boolean()) refuse("nesterov", "true or false", nesterov);
  result.sgd.nesterov = nesterov.get<bool>();
  if (result.sgd.nesterov && (result.sgd.momentum == 0 || result.sgd.dampening != 0))
    throw Failure("bad_request", fmt::format("nesterov needs a momentum above 0 and dampening 0, got {} and {}",
                                             result.sgd.momentum, result.sgd.dampening));
  read_schedule(fields.value("schedule", json()), result);
  return result;
}

void Stepper::start(const Optimiser& optimiser) {
  Sgd first = optimiser.sgd;
  first.rate = optimiser.rate(0);
  level_.set_optimiser(first);
  optimiser_ = optimiser;
  rate_ = first.rate;
  steps_ = 0;
}

void Stepper::set_mode(bool training, bool dropout) {
  level_.set_mode(training, dropout);
  training_ = training;
}

void Stepper::go_to(std::int64_t step) {
  steps_ = step;
}

// A rate that stays is not set again: without a schedule a step costs no more than the level's own.
void Stepper::prepare_step() {
  const double rate = optimiser_.rate(steps_);
  if (rate == rate_) return;
  level_.set_rate(rate);
  rate_ = rate;
}

void Stepper::run() {
  if (!training_) return level_.run();
  prepare_step();
  level_.run();
  ++steps_;
}

void Stepper::run_marked(const PhaseEnded& ended) {
  prepare_step();
  level_.run_marked(ended);
  ++steps_;
}

void Level::set_mode(bool, bool) {
  throw cannot_train();
}

void Level::set_optimiser(const Sgd&) {
  throw cannot_train();
}

void Level::set_rate(double) {
  throw cannot_train();
}

State Level::state() const {
  throw cannot_train();
}

void Level::load_state(const SafeTensors&) {
  throw cannot_train();
}

void Level::run_marked(const PhaseEnded&) {
  throw cannot_train();
}

std::unique_ptr<Stopwatch> Level::stopwatch() const {
  return std::make_unique<HostStopwatch>();
}

}  // namespace strata
