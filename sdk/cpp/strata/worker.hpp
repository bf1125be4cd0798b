// SPDX-License-Identifier: Apache-2.0
// The worker of a C++ level, inside the SDK: its state between requests. worker.cpp has the loop and the operations
// for inference, worker_train.cpp those for training.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "strata/bundle.hpp"
#include "strata/fresh_inputs.hpp"
#include "strata/level.hpp"
#include "strata/level_json.hpp"
#include "strata/training.hpp"
#include "strata/training_data.hpp"

namespace strata {

// A field of a request. Throws bad_request if it is missing or of another type.
template <class T>
T field(const nlohmann::json& request, const char* name) {
  const auto it = request.find(name);
  if (it == request.end()) throw Failure("bad_request", fmt::format("the request has no field '{}'", name));
  try {
    return it->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Failure("bad_request", fmt::format("field '{}' has the wrong type, got {}", name, it->dump()));
  }
}

// An integer of at least `least`.
std::int64_t count_field(const nlohmann::json& request, const char* name, std::int64_t least);

using Named = std::vector<std::pair<std::string, TensorView>>;
// Writes a safetensors file. Throws failed.
void write(const std::filesystem::path& path, const Named& named);

// What `data` named.
struct TrainingData {
  BatchMaker maker;
  std::map<std::string, DataSplit> splits;
};

class Worker {
 public:
  Worker(std::function<std::unique_ptr<Level>()> make, Build build, int out);
  int serve();

 private:
  using json = nlohmann::json;
  using Operation = json (Worker::*)(const json&);
  using Operations = std::map<std::string, Operation, std::less<>>;
  static const Operations& operations();
  static const Operations& training_operations();

  json answer(const std::string& line);
  json run(const json& request);
  void send(const json& message);
  void tell(const std::string& what);  // a line of progress before the answer

  json hello(const json&);
  json load(const json&);
  json weights(const json&);
  json read_weights(const json&);
  json inputs(const json&);
  json prove(const json&);
  json warm_up(const json&);
  json measure(const json&);
  json result(const json&);
  json time_operations(const json&);
  void exchange(const json& request, FreshInputs& fresh, std::vector<HostTensor>& unseen);
  json memory(const json&);
  json serve_clients(const json&);
  json report(const json&);
  json unload(const json&);
  json bye(const json&);

  json set_labels(const json&);
  json set_mode(const json&);
  json set_optimiser(const json&);
  json state(const json&);
  json load_state(const json&);
  json profile(const json&);

  json data(const json&);
  json train_steps(const json&);
  json evaluate(const json&);
  const DataSplit& split_of(const json& request);

  Level& level();
  const LevelJson& level_json();
  // What the level can do besides; nullptr: it cannot.
  template <class Capability>
  Capability* can() {
    return dynamic_cast<Capability*>(&level());
  }
  bool trains();                     // it can, and level.json says so: what it derives from may do more
  bool offers(std::string_view op);  // an operation of one of the tables
  Failure explain(const std::exception& error) const;
  void need_loaded() const;
  void need_inputs() const;
  std::vector<std::size_t> indices(const json& request) const;
  std::vector<std::size_t> indices_for(const json& request, std::int64_t iterations) const;
  Failure outside_ring(std::string_view field, const json& index) const;
  void check_case(const Case& run_case);
  void note_first(std::int64_t wall_ns) { first_ns_ = first_ns_.value_or(wall_ns); }
  void iterate_guarded(std::size_t index, std::vector<HostTensor>& results);
  bool restore_inputs(std::size_t index, const std::vector<std::vector<std::byte>>& before);

  // Training: stepper_ exists while a case of mode train is loaded.
  Stepper& stepper();
  bool steps() const { return stepper_ && stepper_->training(); }  // an iteration is a step
  void start_training(const Case& run_case);
  Iterated& iterated();
  const std::vector<Declared>& declared() const;  // what an iteration gives
  void check_results(const std::vector<HostTensor>& results) const;
  void name_results(Named& named, std::size_t index, const std::vector<HostTensor>& results) const;

  std::function<std::unique_ptr<Level>()> make_;
  Build build_;
  int out_;
  std::int64_t library_ns_;
  std::optional<LevelJson> level_json_;  // once it was asked
  std::unique_ptr<Level> level_;
  std::optional<Bundle> bundle_;  // empty: nothing is loaded
  std::optional<Stepper> stepper_;
  std::unique_ptr<TrainingData> data_;
  bool on_device_ = false;
  Ring ring_;
  // Of the last measure: whose input each iteration had, and the results that stay.
  std::vector<std::size_t> timed_;
  std::map<std::size_t, std::vector<HostTensor>> retained_;
  bool labelled_ = false;                 // every entry of the ring ends with its labels
  std::optional<std::int64_t> first_ns_;  // wall time of the first iteration since load
  std::optional<json> telling_;           // id of the request whose progress may be told
  bool ended_ = false;
};

}  // namespace strata
