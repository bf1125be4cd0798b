// SPDX-License-Identifier: Apache-2.0
// The calls of cuDNN and cuBLAS. Batch norms are cuDNN's older ones, which PyTorch uses too: they take any layout of
// float32, where a graph of one batch norm has no kernels for inference.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "calls.hpp"
#include "nvidia_convolution.hpp"

namespace strata::cudnn {
namespace {

void check(cudnnStatus_t status, const char* tried) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw kit_cuda::DeviceError(fmt::format("cuDNN: {}: {}", tried, cudnnGetErrorString(status)), false);
}
void check(cublasStatus_t status, const char* tried) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw kit_cuda::DeviceError(fmt::format("cuBLAS: {}: {}", tried, cublasGetStatusString(status)),
                                status == CUBLAS_STATUS_ALLOC_FAILED);
}

constexpr float one = 1, zero = 0;
constexpr auto by_channel = CUDNN_BATCHNORM_SPATIAL;

// Of an image, and of the vectors of its channels.
class Descriptions {
 public:
  explicit Descriptions(const View& view) {
    check(cudnnCreateTensorDescriptor(&image), "a description");
    check(cudnnCreateTensorDescriptor(&channels), "a description");
    std::vector<int> extents(view.extents, view.extents + view.rank), strides(view.strides, view.strides + view.rank);
    check(cudnnSetTensorNdDescriptor(image, CUDNN_DATA_FLOAT, view.rank, extents.data(), strides.data()),
          "the description of an image");
    check(cudnnDeriveBNTensorDescriptor(channels, image, by_channel), "the description of channels");
  }
  ~Descriptions() {
    (void)cudnnDestroyTensorDescriptor(image);
    (void)cudnnDestroyTensorDescriptor(channels);
  }
  Descriptions(const Descriptions&) = delete;
  Descriptions& operator=(const Descriptions&) = delete;

  cudnnTensorDescriptor_t image = nullptr, channels = nullptr;
};

// How cuBLAS, which counts by columns, reads a matrix of rows: as its transpose where columns have stride 1.
struct Matrix {
  cublasOperation_t operation;
  int leading;
};
Matrix matrix_of(const ProductCall::Operand& operand, Index rows, Index columns) {
  const bool by_rows = operand.column_stride == 1 && operand.row_stride >= columns;
  const Index leading = by_rows ? operand.row_stride : operand.column_stride;
  return {by_rows ? CUBLAS_OP_N : CUBLAS_OP_T,
          static_cast<int>(std::max({leading, by_rows ? columns : rows, Index{1}}))};
}

class NvidiaCalls final : public Calls {
 public:
  NvidiaCalls(kit_cuda::Stream stream, bool tf32) : tf32_(tf32) {
    check(cudnnCreate(&dnn_), "a handle");
    check(cudnnSetStream(dnn_, stream), "a stream");
    check(cublasCreate(&blas_), "a handle");
    check(cublasSetStream(blas_, stream), "a stream");
  }
  ~NvidiaCalls() override {
    (void)cublasDestroy(blas_);
    (void)cudnnDestroy(dnn_);
  }
  NvidiaCalls(const NvidiaCalls&) = delete;
  NvidiaCalls& operator=(const NvidiaCalls&) = delete;

  BoundCall convolution(const ConvolutionCall& call) override {
    auto plan = std::make_shared<ConvolutionPlan>(dnn_, call.shape, tf32_);
    workspace_bytes_ = std::max(workspace_bytes_, plan->workspace_bytes());
    const auto name = plan->name();
    return {[this, plan = std::move(plan), call] { plan->run(dnn_, call, workspace_.get()); }, name};
  }

  BoundCall product(const ProductCall& call) override {
    const auto left = matrix_of(call.left, call.rows, call.inner),
               right = matrix_of(call.right, call.inner, call.columns);
    // to^T = right^T left^T, which are what cuBLAS sees
    const auto factor = call.bfloat16 ? CUDA_R_16BF : CUDA_R_32F;
    const auto sum = tf32_ ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const auto run = [this, call, left, right, factor, sum] {
      check(cublasGemmStridedBatchedEx(blas_, right.operation, left.operation, static_cast<int>(call.columns),
                                       static_cast<int>(call.rows), static_cast<int>(call.inner), &one, call.right.data,
                                       factor, right.leading, call.right.batch_stride, call.left.data, factor,
                                       left.leading, call.left.batch_stride, &zero, call.to, CUDA_R_32F,
                                       static_cast<int>(call.columns), call.rows * call.columns,
                                       static_cast<int>(call.batch), sum, CUBLAS_GEMM_DEFAULT),
            "a product");
    };
    return {run, "cublasGemmStridedBatchedEx"};
  }

  BoundCall batch_norm(const BatchNormCall& call) override {
    const auto shapes = std::make_shared<Descriptions>(call.view);
    const auto run = [this, call, shapes] {
      check(cudnnBatchNormalizationForwardTraining(dnn_, by_channel, &one, &zero, shapes->image, call.x, shapes->image,
                                                   call.y, shapes->channels, call.scale, call.shift, 0, nullptr,
                                                   nullptr, call.epsilon, call.mean, call.deviation),
            "a batch norm");
    };
    return {run, "cudnnBatchNormalizationForwardTraining"};
  }

  BoundCall batch_norm(const BatchNormInferenceCall& call) override {
    const auto shapes = std::make_shared<Descriptions>(call.view);
    const auto run = [this, call, shapes] {
      check(cudnnBatchNormalizationForwardInference(dnn_, by_channel, &one, &zero, shapes->image, call.x, shapes->image,
                                                    call.y, shapes->channels, call.scale, call.shift, call.mean,
                                                    call.variance, call.epsilon),
            "a batch norm");
    };
    return {run, "cudnnBatchNormalizationForwardInference"};
  }

  BoundCall batch_norm(const BatchNormBackwardCall& call) override {
    const auto shapes = std::make_shared<Descriptions>(call.view);
    const auto run = [this, call, shapes] {
      check(cudnnBatchNormalizationBackward(dnn_, by_channel, &one, &zero, &one, &zero, shapes->image, call.x,
                                            shapes->image, call.gradient, shapes->image, call.of_x, shapes->channels,
                                            call.scale, call.of_scale, call.of_shift, call.epsilon, call.mean,
                                            call.deviation),
            "the gradients of a batch norm");
    };
    return {run, "cudnnBatchNormalizationBackward"};
  }

  std::size_t finish() override {
    workspace_ = kit_cuda::memory(workspace_bytes_);
    return workspace_bytes_;
  }

 private:
  bool tf32_;
  cudnnHandle_t dnn_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  kit_cuda::Memory workspace_;
};

std::string dotted(std::size_t version, std::size_t major_unit, std::size_t minor_unit) {
  return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / minor_unit, version % minor_unit);
}

}  // namespace

std::unique_ptr<Calls> make_calls(kit_cuda::Stream stream, bool tf32) {
  return std::make_unique<NvidiaCalls>(stream, tf32);
}

std::map<std::string, std::string> versions() {
  int runtime = 0;
  (void)cudaRuntimeGetVersion(&runtime);
  std::map<std::string, std::string> result;
  result["cudnn"] = dotted(cudnnGetVersion(), 10000, 100);
  result["cuda"] = fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10);
  const auto device = kit_cuda::device_name();
  if (!device.empty()) result["cuda_device"] = device;
  return result;
}

}  // namespace strata::cudnn
