// SPDX-License-Identifier: Apache-2.0
// One convolution of oneDNN with fused bias, residual sum and ReLU, source and destination in the blocked layout of the
// kit, weights in the layout that it asks for, in several copies so that they need not be in the cache.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "layers.hpp"

namespace bench {

class OneDnnConvolution {
 public:
  // Throws dnnl::error where oneDNN has no such convolution. `channels_last`: N H W C instead of blocks.
  OneDnnConvolution(const Layer& layer, dnnl::algorithm algorithm, bool channels_last, float* source,
                    const float* weights, float* bias, float* residual, float* destination, int copies);
  // The same as oneDNN's inner product, for 1x1 images: rows of channels.
  static OneDnnConvolution linear(const Layer& layer, float* source, const float* weights, float* bias,
                                  float* destination, int copies);
  void run(int iteration);
  const std::string& kernel() const { return kernel_; }

 private:
  OneDnnConvolution() = default;
  void keep(const dnnl::memory::desc& target, dnnl::memory plain, const std::unordered_map<int, dnnl::memory>& others,
            int copies);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> weights_;
  std::vector<std::unordered_map<int, dnnl::memory>> arguments_;
  std::string kernel_;
};

}  // namespace bench
