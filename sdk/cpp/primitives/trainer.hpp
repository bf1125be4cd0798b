// SPDX-License-Identifier: Apache-2.0
// Runs training steps of a captured graph on a library of primitives: forward, loss, backward and update, every call
// made once, every buffer allocated once. Parameters, buffers and the optimiser's buffers live in the library, in its
// layouts.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/backward/backward.hpp"
#include "primitives/primitives.hpp"
#include "primitives/runner.hpp"

namespace strata::primitives {

class Trainer {
 public:
  // Makes all calls. Errors: an operation that the library lacks, or a case of it, with its place in the model.
  static Result<Trainer> make(graph::TrainingGraph training, std::unique_ptr<Primitives> library);

  // Parameters and buffers under `prefix` + their names; names, types and shapes must fit. The optimiser's buffers stay
  // as they are.
  Result<void> load(const SafeTensors& weights, const SafeTensors* constants, const std::string& prefix = {});
  // No buffers, step 0. Error: one that clips, of a library that does not.
  Result<void> set_optimiser(const core::Optimiser& optimiser);
  void set_rate(double rate) { optimiser_.lr = rate; }
  // Replaces all of the optimiser's buffers by those of the file, after `step` steps. One of SGD's that it lacks is
  // dropped, one of Adam's is 0.
  Result<void> load_buffers(const SafeTensors& state, std::int64_t step);
  void drop_buffers();  // step 0
  // Buffers that count (one int64), by `prefix` + name; those that the file lacks stay.
  Result<void> load_counts(const SafeTensors& state, const std::string& prefix);
  std::vector<graph::Named> counts() const;

  // Input i of the network, contiguous, or the labels; the bytes must live until the step has ended.
  void set_input(std::size_t i, const std::byte* data) { library_->bind(graph().inputs[i].value, data); }
  void set_labels(const std::byte* data) { library_->bind(training_.labels, data); }
  void set_dropout(bool on) { library_->set_dropout(on); }
  std::optional<std::uint64_t> draws() const { return library_->draws(); }
  void set_draws(std::uint64_t count) { library_->set_draws(count); }

  // A step is these four in this order.
  void forward() { execute(0, forward_end_); }
  void loss() { execute(forward_end_, loss_end_); }
  void backward() { execute(loss_end_, backward_end_); }
  void update();
  void wait() { library_->wait(); }

  void read_loss(std::byte* into) const { library_->read(training_.loss, into); }
  // A parameter or buffer of the graph, or the optimiser's of a parameter that has them, row-major.
  void read(const graph::Named& named, std::byte* into) const { library_->read_trained(named.value, into); }
  std::vector<graph::Named> with_buffers() const;
  void read_buffer(const std::string& parameter, std::size_t which, std::byte* into) const;
  const core::Optimiser& optimiser() const { return optimiser_; }

  // From now on a step appends when each of its calls and updates began and ended; nullptr: no more.
  void record(Spans* spans) { spans_ = spans; }
  // What the calls of a step do, in order; where it clips, that follows, then the parameters that it updates.
  std::vector<Called> describe() const { return described(steps_, graph()); }
  bool clips() const { return optimiser_.clip_norm > 0; }
  std::vector<std::string> updated() const;

  const graph::Graph& graph() const { return training_.graph; }
  nlohmann::json report() const;  // as Runner's, of a whole step; `updates`: parameters

 private:
  Trainer(graph::TrainingGraph training, std::unique_ptr<Primitives> library)
      : training_(std::move(training)), library_(std::move(library)) {}
  Result<void> create();
  Result<void> create_updates();
  void execute(std::size_t from, std::size_t to) { primitives::execute(steps_, from, to, spans_); }
  double clipped_share() const;  // what gradients are multiplied by

  struct Trained {
    graph::Named parameter;
    std::unique_ptr<Update> update;
  };

  graph::TrainingGraph training_;
  std::unique_ptr<Primitives> library_;
  Steps steps_;
  std::size_t forward_end_ = 0, loss_end_ = 0, backward_end_ = 0;  // of steps_.in_run; the rest belongs to the update
  std::vector<Trained> trained_;
  core::Optimiser optimiser_;
  std::int64_t steps_done_ = 0;
  Spans* spans_ = nullptr;
};

}  // namespace strata::primitives
