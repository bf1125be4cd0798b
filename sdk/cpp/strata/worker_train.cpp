// SPDX-License-Identifier: Apache-2.0
// The worker's operations for training (docs/protocol.md), and what an iteration is in a case of mode train.
#include <fmt/format.h>

#include <numeric>
#include <set>

#include "strata/worker.hpp"

namespace strata {

using nlohmann::json;

const Worker::Operations& Worker::training_operations() {
  static const Operations table{{"set_labels", &Worker::set_labels},
                                {"set_mode", &Worker::set_mode},
                                {"set_optimiser", &Worker::set_optimiser},
                                {"state", &Worker::state},
                                {"load_state", &Worker::load_state},
                                {"profile", &Worker::profile},
                                {"data", &Worker::data},
                                {"steps", &Worker::train_steps},
                                {"evaluate", &Worker::evaluate}};
  return table;
}

Stepper& Worker::stepper() {
  need_loaded();
  if (!stepper_)
    throw Failure("bad_request", "the case that is loaded is of mode infer", "load a case of mode train first");
  return *stepper_;
}

void Worker::start_training(const Case& run_case) {
  const Optimiser optimiser = read_optimiser(run_case.json.value("optimiser", json()));
  stepper_.emplace(level(), *can<Trainable>());
  stepper_->set_mode(true, true);
  stepper_->start(optimiser);
}

Iterated& Worker::iterated() {
  return stepper_ ? static_cast<Iterated&>(*stepper_) : level();
}

const std::vector<Declared>& Worker::declared() const {
  static const std::vector<Declared> loss{{.name = "loss", .dtype = "F32", .shape = {}}};
  return steps() ? loss : bundle_->outputs;
}

json Worker::set_labels(const json& request) {
  stepper();
  if (ring_.empty()) throw Failure("bad_request", "there are no inputs", "send inputs before set_labels");
  const auto labels = read_labels(*bundle_, field<std::string>(request, "path"), ring_.size());
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    if (labelled_) ring_[i].pop_back();
    ring_[i].push_back(labels[i]);
  }
  labelled_ = true;
  return {{"count", ring_.size()}};
}

json Worker::set_mode(const json& request) {
  Stepper& training = stepper();
  const auto mode = field<std::string>(request, "mode");
  if (mode != "train" && mode != "eval")
    throw Failure("bad_request", fmt::format("mode '{}' is not one of: train, eval", mode));
  training.set_mode(mode == "train", request.contains("dropout") ? field<bool>(request, "dropout") : true);
  return json::object();
}

json Worker::set_optimiser(const json& request) {
  stepper().start(read_optimiser(field<json>(request, "optimiser")));
  return json::object();
}

json Worker::state(const json& request) {
  const Stepper& training = stepper();
  std::optional<std::set<std::string>> names;  // all, where it asks for none by name
  if (request.contains("names")) names = field<std::set<std::string>>(request, "names");
  const State tensors = can<Trainable>()->state();
  Named named;
  for (const auto& [name, tensor] : tensors)
    if (!names || names->erase(name) > 0) named.emplace_back(name, tensor.view);
  if (names && !names->empty())
    throw Failure("bad_request", fmt::format("the state has no {}", *names->begin()),
                  "`names` are those that `state` writes without it");
  write(field<std::string>(request, "out"), named);
  return {{"step", training.steps()}, {"lr", training.next_rate()}};
}

json Worker::load_state(const json& request) {
  Stepper& training = stepper();
  const auto step = count_field(request, "step", 0);
  auto file = SafeTensors::map(field<std::string>(request, "path"));
  if (!file) throw Failure("failed", file.error().what, file.error().hint);
  auto& trained = *can<Trainable>();
  trained.load_state(*file, step);
  if (request.contains("seed")) trained.seed_dropout(static_cast<std::uint64_t>(count_field(request, "seed", 0)));
  training.go_to(step);
  return json::object();
}

json Worker::profile(const json& request) {
  Stepper& training = stepper();
  need_inputs();
  if (!training.training())
    throw Failure("bad_request", "only training steps have phases, the mode is eval", "send set_mode with mode train");
  const auto entries = indices_for(request, count_field(request, "iterations", 1));
  auto& profiled = *can<Profiled>();
  // set_input takes the caller's memory as it is, or copies it to the device
  const std::string before = on_device_ ? "to_device" : "input";
  std::map<std::string, std::vector<std::int64_t>> phases;
  std::vector<HostTensor> results;
  for (const auto index : entries) {
    const auto watch = profiled.stopwatch();
    std::vector<std::string> names{before};
    watch->mark();
    training.set_input(ring_[index]);
    watch->mark();
    training.run_marked(profiled, [&](std::string_view phase) {
      watch->mark();
      names.emplace_back(phase);
    });
    training.wait();
    training.outputs(results);
    const auto times = watch->between_ns();
    for (std::size_t i = 0; i < names.size(); ++i) phases[names[i]].push_back(times[i]);
    if (index == entries.front()) note_first(std::accumulate(times.begin(), times.end(), std::int64_t{0}));
  }
  json result{{"phases", phases}};
  auto joined = profiled.joined_phases();
  if (on_device_) joined["to_device"] = {"input", "to_device"};
  if (!joined.empty()) result["joined"] = joined;
  return result;
}

}  // namespace strata
