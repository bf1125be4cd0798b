// SPDX-License-Identifier: Apache-2.0
// A client with a network of its own: what `serve` runs of levels without PyTorch.
#pragma once

#include <functional>
#include <utility>

#include "strata/level.hpp"

namespace strata {

// `Network` is a movable Iterated.
template <class Network>
class NetworkClient final : public Client {
 public:
  // `enter`: what a library keeps by thread, such as OpenMP's number of threads
  NetworkClient(Network network, std::function<void()> enter)
      : network_(std::move(network)), enter_(std::move(enter)) {}
  void enter() override { enter_(); }
  void set_input(std::span<const HostTensor> inputs) override { network_.set_input(inputs); }
  void run() override { network_.run(); }
  void wait() override { network_.wait(); }
  void outputs(std::vector<HostTensor>& results) override { network_.outputs(results); }

 private:
  Network network_;
  std::function<void()> enter_;
};

}  // namespace strata
