// SPDX-License-Identifier: Apache-2.0
// Mean and variance of each channel of a batch of images. oneDNN 3.2 sums them in float32, one pixel after the other:
// at 112x112 its variance is off by up to 5e-6, many times what eager's is (docs/results). Here sums run in float32
// over short pieces and in float64 over these.
#pragma once

#include <optional>

#include "tensor.hpp"

namespace strata::onednn {

// How a tensor N C ... lies: element c of pixel p of image n is at n image_step + c / width * block_step + c % width +
// p pixel_step.
struct ChannelOrder {
  std::int64_t images = 0, channels = 0, pixels = 0;
  std::int64_t image_step = 0, pixel_step = 0, block_step = 0, width = 1;
};

// nullopt: it lies in another order; row-major, channels last and blocks of channels do not.
std::optional<ChannelOrder> channel_order(const memory::desc& desc);

// One value a channel; the variance is the biased one.
void channel_statistics(const ChannelOrder& order, const float* data, float* mean, float* variance);

}  // namespace strata::onednn
