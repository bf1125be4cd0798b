// SPDX-License-Identifier: Apache-2.0
// Runs a captured graph on a library of primitives: every call is made once, every buffer allocated once, and a run
// executes the calls in the order of the graph. Shared by all levels of that kind; knows no library.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "primitives/primitives.hpp"
#include "strata/spans.hpp"

namespace strata::primitives {

// What a call does, and for which node; null: for none, to hand an output over.
struct Called {
  const graph::Node* node;
  Description description;
};
std::vector<Called> described(const Steps& steps, const graph::Graph& graph);

// Executes calls `from` to `to`, which it does not reach; where there are `spans`, each adds when it began and ended.
inline void execute(const Steps& steps, std::size_t from, std::size_t to, Spans* spans) {
  if (spans == nullptr) {
    for (std::size_t i = from; i < to; ++i) steps.in_run[i]->execute();
    return;
  }
  for (std::size_t i = from; i < to; ++i) {
    const auto begin = now_ns();
    steps.in_run[i]->execute();
    spans->push_back({begin, now_ns()});
  }
}

class Runner {
 public:
  // Makes all calls. Errors: an operation that the library lacks, or a case of it, with its place in the model.
  static Result<Runner> make(graph::Graph graph, std::unique_ptr<Primitives> library);

  // Puts a weight set in: parameters and persistent buffers from `weights`, what is not there from `constants` (may be
  // null). Names, types and shapes must fit. The files need not stay open.
  Result<void> load(const SafeTensors& weights, const SafeTensors* constants);
  // The same from wherever the weights lie: `bytes` gives those of a parameter or buffer by its name, row-major.
  Result<void> load(const std::function<const std::byte*(const std::string&)>& bytes, const SafeTensors* constants);
  // Input i of the graph, contiguous; the bytes must live until the run has ended.
  void set_input(std::size_t i, const std::byte* data) { library_->bind(graph_.inputs[i].value, data); }
  void run() { execute(steps_, 0, steps_.in_run.size(), spans_); }
  // From now on run() appends when each call began and ended; nullptr: no more.
  void record(Spans* spans) { spans_ = spans; }
  void wait() { library_->wait(); }
  // Output i of the graph after a run, contiguous.
  void read(std::size_t i, std::byte* into) const { library_->read(graph_.outputs[i].value, into); }

  const graph::Graph& graph() const { return graph_; }
  // Parameters and buffers that can be read back, by PyTorch's names; and one of them.
  std::vector<std::string> readable_weights() const;
  Result<void> read_weight(const std::string& name, std::byte* into) const;
  // {"primitives":n,"reorders":n,"reorder_bytes":n,"reference_kernels":n,"weight_bytes":n,"buffer_bytes":n,
  // "kernels":{"conv2d jit:avx2":n}}: counts of the calls of a run, those that only move bytes, those of slow kernels.
  nlohmann::json report() const;
  // What each call of a run does, in order.
  std::vector<Called> describe() const { return described(steps_, graph_); }

 private:
  Runner(graph::Graph graph, std::unique_ptr<Primitives> library)
      : graph_(std::move(graph)), library_(std::move(library)) {}
  Result<void> create();

  graph::Graph graph_;
  std::unique_ptr<Primitives> library_;
  Steps steps_;
  Spans* spans_ = nullptr;
};

// Ok if the library knows all operations of the graph; else names them, with the place of the first of each.
Result<void> check_supported_ops(const graph::Graph& graph, const std::vector<std::string>& known);
// Makes the calls of one node. Errors have its place.
Result<void> create_calls(Primitives& library, const graph::Graph& graph, const graph::Node& node, Steps& steps);
// {"primitives":n,...} as Runner::report() has it.
nlohmann::json report_of(const Steps& steps, const Held& held);

}  // namespace strata::primitives
