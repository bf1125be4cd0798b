// SPDX-License-Identifier: Apache-2.0
// The forward pass of a captured network, with memory of its own: what the level or one of several clients runs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "library.hpp"
#include "primitives/runner.hpp"
#include "strata/level.hpp"

namespace strata::onednn {

// The answer to the driver: `unsupported` where the environment or the library lacks something, else `failed`.
Failure failure_of(const Error& error);

// oneDNN's ReLU, clip and maximum turn NaN into a number, where PyTorch hands it on: then results that look sound would
// be wrong. Throws unsupported.
void refuse_nan(const SafeTensors& weights);

// All functions throw Failure.
class Network {
 public:
  // `outputs`: those wanted, by their names among the graph's.
  Network(const graph::Graph& graph, Layouts layouts, const std::vector<Declared>& outputs);

  const primitives::Runner& runner() const { return runner_; }
  void load(const SafeTensors& weights, const SafeTensors& constants);
  // From wherever the weights lie: `bytes` gives those of a parameter or buffer by its name.
  void load(const std::function<const std::byte*(const std::string&)>& bytes, const SafeTensors& constants);
  void set_input(std::span<const HostTensor> inputs);
  void run() { runner_.run(); }
  void outputs(std::vector<HostTensor>& results) const;

 private:
  primitives::Runner runner_;
  std::vector<std::pair<Declared, std::size_t>> outputs_;  // with their index among the graph's
};

}  // namespace strata::onednn
