// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's libraries compute: convolutions in their three directions (cuDNN), products of matrices (cuBLAS). A
// plan is made once, and run on operands wherever these lie. libraries.cpp asks the libraries; nothing else names them.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "kit_cuda/kernels/pooling.hpp"
#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

// What a plan does to its result before it stores it: a bias by channel (or column), a sum with what lies as the result
// does, then a clamp.
struct Epilogue {
  bool bias = false, summand = false;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();

  bool clamps() const {
    return low > -std::numeric_limits<float>::infinity() || high < std::numeric_limits<float>::infinity();
  }
  bool is_empty() const { return !bias && !summand && !clamps(); }
};

enum class Direction : std::uint8_t { forward, data, weights };

// Images N C, then one to three spatial dimensions; the filter K C/groups likewise. Zeros stand `before` the image and
// behind it. An epilogue is for the forward direction.
struct Convolution {
  Direction direction = Direction::forward;
  View image, filter, result;
  Window window;  // its kernel is the filter's
  Index groups = 1;
  Epilogue then;
  bool bfloat16 = false;  // all operands; otherwise float32. Sums are float32
};
// The one that the direction computes is written.
struct ConvolutionOperands {
  void *image = nullptr, *filter = nullptr, *result = nullptr;
  const void *bias = nullptr, *summand = nullptr;
};

// Matrices in the last two dimensions, in any of the two orders; dimensions before them are broadcast to the result's.
struct Product {
  View left, right, result;
  Epilogue then;               // without a sum
  bool bfloat16 = false;       // left and right
  bool gives_float32 = false;  // bias and result, where left and right are bfloat16; else these are as those
};
struct ProductOperands {
  const void *left = nullptr, *right = nullptr, *bias = nullptr;
  void* result = nullptr;
};

class Libraries {
 public:
  explicit Libraries(Stream stream);
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  // Of plans that are made from now on: operands may be rounded to 10 bits of mantissa. Without it all is float32.
  void allow_tf32();
  // nullopt: the library has none, and refusal() says why.
  std::optional<int> plan(const Convolution& how);
  std::optional<int> plan(const Product& how);
  const std::string& refusal() const;
  // Throws what a library says of an error.
  void run(int plan, const ConvolutionOperands& on);
  void run(int plan, const ProductOperands& on);
  // The one memory that all plans share; to be called before the first run.
  void allocate_workspace();
  std::size_t workspace_bytes() const;

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

// "cuDNN 9.26.0 and cuBLAS 13.2.0 on NVIDIA H200"
std::string libraries_name();

}  // namespace kit_cuda
