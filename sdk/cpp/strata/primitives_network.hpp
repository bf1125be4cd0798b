// SPDX-License-Identifier: Apache-2.0
// The forward pass of a captured network on a library of primitives, with memory of its own: what a level or one of its
// clients runs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "primitives/runner.hpp"
#include "strata/level.hpp"

namespace strata::primitives {

// The answer to the driver: `unsupported` where the environment or the library lacks something, else `failed`.
Failure failure_of(const Error& error);

// What a call is, for who asks about operations.
OperationFacts facts_of(const Called& call, const graph::Graph& graph);

// A library at work on nothing yet: each network has one of its own.
using MakeLibrary = std::function<std::unique_ptr<Primitives>()>;

// All functions throw Failure.
class Network : public Iterated {
 public:
  // `outputs`: those wanted, by their names among the graph's.
  Network(const graph::Graph& graph, const MakeLibrary& library, const std::vector<Declared>& outputs);

  const Runner& runner() const { return runner_; }
  void load(const SafeTensors& weights, const SafeTensors& constants);
  // From wherever the weights lie: `bytes` gives those of a parameter or buffer by its name.
  void load(const std::function<const std::byte*(const std::string&)>& bytes, const SafeTensors& constants);
  void set_input(std::span<const HostTensor> inputs) override;
  void run() override { runner_.run(); }
  void record(Spans* spans) { runner_.record(spans); }
  std::vector<OperationFacts> recorded() const;
  void wait() override { runner_.wait(); }
  void outputs(std::vector<HostTensor>& results) override;

 private:
  Runner runner_;
  std::vector<std::pair<Declared, std::size_t>> outputs_;  // with their index among the graph's
};

}  // namespace strata::primitives
