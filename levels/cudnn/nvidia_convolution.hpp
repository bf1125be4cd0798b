// SPDX-License-Identifier: Apache-2.0
// A convolution of cuDNN's as a graph of one operation, planned for the device at hand; or, from the description of
// another device, whether there would be a plan. The only file that includes cudnn-frontend, which takes long to
// compile.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>
#include <vector>

#include "calls.hpp"

namespace strata::cudnn {

class ConvolutionPlan {
 public:
  // Throws Unsupported with cuDNN's text where there is no plan.
  ConvolutionPlan(cudnnHandle_t handle, const ConvolutionShape& shape, bool tf32);
  ~ConvolutionPlan();
  ConvolutionPlan(ConvolutionPlan&&) noexcept;

  const std::string& name() const { return name_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Throws kit_cuda::DeviceError.
  void run(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
  std::string name_;
  std::size_t workspace_bytes_ = 0;
};

// What cuDNN says of a device that it is shown, and the kernel that it would run there. Both throw.
std::vector<std::uint8_t> describe_device();
std::string kernel_on(const std::vector<std::uint8_t>& description, int compute_capability,
                      const ConvolutionShape& shape, bool tf32);

}  // namespace strata::cudnn
