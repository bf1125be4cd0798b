// SPDX-License-Identifier: Apache-2.0
// The tests of the kernels on a device: the heap lies in managed memory, which host and device see, and each launch is
// waited for (CUDA_LAUNCH_BLOCKING). Skips all, with CUDA's reason, where there is no device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "kit_cuda/kernels/device.hpp"

namespace {

// One piece, taken from front to back and never given back: the tests need a few MB.
constexpr std::size_t kBytes = std::size_t{256} << 20, kAlignment = 64;
std::byte* heap = nullptr;
std::size_t taken = 0;

void* take(std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (heap == nullptr || whole > kBytes - taken) return std::malloc(bytes);
  void* piece = heap + taken;
  taken += whole;
  return piece;
}

void give_back(void* piece) noexcept {
  const auto* place = static_cast<std::byte*>(piece);
  if (heap == nullptr || place < heap || place >= heap + kBytes) std::free(piece);
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* piece = take(bytes)) return piece;
  throw std::bad_alloc();
}
void operator delete(void* piece) noexcept {
  give_back(piece);
}
void operator delete(void* piece, std::size_t) noexcept {
  give_back(piece);
}

int main(int count, char** words) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);  // before CUDA starts
  testing::InitGoogleTest(&count, words);
  std::string why;
  if (kit_cuda::device_name(&why).empty()) {
    std::printf("skipped: no CUDA device: %s\n", why.c_str());
    return 77;
  }
  void* memory = nullptr;
  if (const auto status = cudaMallocManaged(&memory, kBytes); status != cudaSuccess) {
    std::printf("no managed memory: %s\n", cudaGetErrorString(status));
    return 1;
  }
  heap = static_cast<std::byte*>(memory);
  return RUN_ALL_TESTS();
}
