// SPDX-License-Identifier: Apache-2.0
#include "strata/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/optimiser_json.hpp"
#include "strata/timed_loop.hpp"

namespace strata {

using nlohmann::json;

namespace {

// A misspelled field would silently be a default. `whole`: what the rule, or the schedule, has.
void only(const json& object, const json& whole) {
  for (const auto& [name, value] : object.items()) {
    if (whole.contains(name)) continue;
    std::vector<std::string> allowed;
    for (const auto& [known, otherwise] : whole.items()) allowed.push_back(known);
    throw Failure("bad_request", fmt::format("the optimiser has no field '{}'", name),
                  fmt::format("allowed: {}", fmt::join(allowed, ", ")));
  }
}

// What each field may be by itself, and no level can do.
void check_rule(const core::Optimiser& optimiser) {
  if (const auto* sgd = optimiser.sgd(); sgd != nullptr && sgd->nesterov && (sgd->momentum == 0 || sgd->dampening != 0))
    throw Failure("bad_request", fmt::format("nesterov needs a momentum above 0 and dampening 0, got {} and {}",
                                             sgd->momentum, sgd->dampening));
  if (const auto* adam = optimiser.adam(); adam != nullptr && (adam->beta1 >= 1 || adam->beta2 >= 1))
    throw Failure("bad_request",
                  fmt::format("\"beta1\" and \"beta2\" must be below 1, got {} and {}", adam->beta1, adam->beta2));
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
  json known = core::to_json(*usual);
  for (const char* setting : {"amsgrad", "maximize"}) {
    if (usual->adam() == nullptr) continue;
    known[setting] = false;
    if (const json value = fields.value(setting, json(false)); value != json(false))
      throw Failure("unsupported", fmt::format("the optimiser's '{}' is {}, no level runs it", setting, value.dump()));
  }
  only(fields, known);
  auto read = core::read_optimiser(fields, "the optimiser");
  if (!read) throw Failure("bad_request", read.error().what, read.error().hint);
  check_rule(*read);
  if (read->schedule) only(fields["schedule"], core::to_json(*read)["schedule"]);
  return *std::move(read);
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
