// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "kit_cuda/kernels/device.hpp"

namespace kit_cuda {
namespace {

void check(cudaError_t status, const char* tried) {
  if (status == cudaSuccess) return;
  throw DeviceError(std::string(tried) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")",
                    status == cudaErrorMemoryAllocation);
}

}  // namespace

std::string device_name(std::string* why) {
  cudaDeviceProp properties{};
  auto status = cudaSuccess;
  int device = 0;
  if (status = cudaGetDevice(&device); status == cudaSuccess) status = cudaGetDeviceProperties(&properties, device);
  if (status == cudaSuccess) return properties.name;
  if (why != nullptr) *why = cudaGetErrorString(status);
  return {};
}

int compute_capability() {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "the device");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "the device");
  return 10 * major + minor;
}

void* allocate(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMalloc(&data, bytes == 0 ? 1 : bytes), "memory on the device");
  return data;
}

void* allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, bytes == 0 ? 1 : bytes), "pinned memory");
  return data;
}

void release(void* data) noexcept {
  (void)cudaFree(data);
}
void release_pinned(void* data) noexcept {
  (void)cudaFreeHost(data);
}

Stream make_stream() {
  Stream stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  return stream;
}
void end_stream(Stream stream) noexcept {
  (void)cudaStreamDestroy(stream);
}
void wait_for(Stream stream) {
  check(cudaStreamSynchronize(stream), "the work on the device");
}

void wait_for_device() {
  check(cudaDeviceSynchronize(), "the work on the device");
}

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "a copy to the device");
}
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "a copy from the device");
}
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "a copy on the device");
}
void clear(void* data, std::size_t bytes, Stream stream) {
  check(cudaMemsetAsync(data, 0, bytes, stream), "zeros on the device");
}

void check_launch() {
  check(cudaGetLastError(), "a kernel");
}

}  // namespace kit_cuda
