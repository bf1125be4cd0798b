// SPDX-License-Identifier: Apache-2.0
// A client with a network of its own whose calls are made for a number of OpenMP threads: what `serve` runs of levels
// without PyTorch. For levels that link OpenMP.
#pragma once

#include <omp.h>

#include <utility>

#include "strata/level.hpp"

namespace strata {

// `Network` has set_input, run and outputs as Client has.
template <class Network>
class NetworkClient final : public Client {
 public:
  NetworkClient(Network network, int threads) : network_(std::move(network)), threads_(threads) {}
  void enter() override { omp_set_num_threads(threads_); }  // OpenMP keeps the number by thread
  void set_input(std::span<const HostTensor> inputs) override { network_.set_input(inputs); }
  void run() override { network_.run(); }
  void outputs(std::vector<HostTensor>& results) override { network_.outputs(results); }

 private:
  Network network_;
  int threads_;
};

}  // namespace strata
