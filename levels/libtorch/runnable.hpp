// SPDX-License-Identifier: Apache-2.0
// What the level runs: a network written by hand (network.hpp), or the program that was generated for another one.
#pragma once

#include <memory>
#include <vector>

#include "strata/bundle.hpp"
#include "strata/torch_level.hpp"

// All functions throw strata::Failure.
class Runnable {
 public:
  virtual ~Runnable() = default;
  virtual void to(at::Device device) = 0;
  // Results in the bundle's order. Keeps nothing, so that several threads may call it in eval mode.
  virtual std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) = 0;
  // By PyTorch's names; buffers are those that weight sets hold.
  virtual strata::NamedTensors parameters() const = 0;
  virtual strata::NamedTensors buffers() const = 0;
  virtual bool is_frozen(const std::string& parameter) const = 0;
  virtual void set_mode(bool training, bool dropout) = 0;
};

std::unique_ptr<Runnable> make_hand_written(const strata::Case& run_case, const strata::Bundle& bundle);
// From <cache>/network.so, which the prepare command made.
std::unique_ptr<Runnable> make_generated(const strata::Bundle& bundle, const std::filesystem::path& cache);
