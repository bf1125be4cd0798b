// SPDX-License-Identifier: Apache-2.0
// Training on a data set (docs/protocol.md, data, steps, evaluate): the harness gathers batches, the level sees what it
// sees in a step on its ring.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "strata/level.hpp"

namespace strata {

// Images of one split, mapped: uint8 [n, channels, height, width], and a label each.
struct DataSplit {
  SafeTensors file;
  const TensorView *images = nullptr, *labels = nullptr;
  std::int64_t count = 0, channels = 0, height = 0, width = 0;
};

// Which samples make which batch, and what is done to each: tensors `samples` I64 [steps, batch] and, if wanted, `flip`
// U8 [steps, batch] and `shift` I8 [steps, batch, 2] (rows, columns; what comes in from outside is 0).
class BatchOrder {
 public:
  // Throws bad_request: a tensor of another shape or type, a sample that the split has not.
  static BatchOrder open(const std::filesystem::path& path, std::int64_t batch, std::int64_t count);
  std::int64_t steps() const { return steps_; }

  struct Sample {
    std::int64_t index = 0;
    bool flip = false;
    int down = 0, right = 0;
  };
  Sample at(std::int64_t step, std::int64_t place) const;

 private:
  SafeTensors file_;
  const TensorView *samples_ = nullptr, *flip_ = nullptr, *shift_ = nullptr;
  std::int64_t steps_ = 0, batch_ = 0;
};

// Turns samples into a level's input: (value / 255 - mean) / deviation by channel, computed in float64 and rounded once
// to float32. An image of one channel fills all channels of the network.
class BatchMaker {
 public:
  // Throws unsupported where the network does not take one float32 image, bad_request where the split has other sizes.
  BatchMaker(const Bundle& bundle, std::span<const double> mean, std::span<const double> deviation);

  DataSplit open_split(const std::filesystem::path& path) const;
  std::int64_t batch() const { return shape_[0]; }
  std::int64_t classes() const { return classes_; }
  // Memory of one batch: the input, and its labels.
  std::vector<HostTensor> allocate_entry() const;
  // `sample(place)` for every place of the batch.
  void fill(const DataSplit& split, const std::function<BatchOrder::Sample(std::int64_t)>& sample,
            std::vector<HostTensor>& entry) const;

 private:
  void write_image(const DataSplit& split, const BatchOrder::Sample& sample, float* to) const;

  std::vector<std::int64_t> shape_;  // [batch, channels, height, width] of the network
  std::int64_t classes_ = 0;
  std::vector<std::array<float, 256>> values_;  // by the network's channel
};

// The sum of the losses of the first `samples` rows of a network's output, in float64, and how many rows have their
// label as the largest entry (the first of equal ones). `loss`: cross_entropy, or nll of log-probabilities.
struct Score {
  double loss = 0;
  std::int64_t correct = 0;
};
Score score(const HostTensor& output, const HostTensor& labels, std::int64_t samples, std::string_view loss);

}  // namespace strata
