// SPDX-License-Identifier: Apache-2.0
// Memory and order on a CUDA device: allocate, copy, wait. device.cu asks CUDA; device_host.cpp does the same in host
// memory, where work is done when the call returns, so that all else can be tested without a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

struct CUstream_st;

namespace kit_cuda {

using Stream = CUstream_st*;  // cudaStream_t

// CUDA's own text, behind what was tried.
struct DeviceError : std::runtime_error {
  DeviceError(const std::string& what, bool memory) : std::runtime_error(what), out_of_memory(memory) {}
  bool out_of_memory;
};

// A name for reports; empty: there is no device, or no driver. `why` (may be null) is then told CUDA's text.
std::string device_name(std::string* why = nullptr);

int compute_capability();  // of the device at hand: 90 is 9.0

void* allocate(std::size_t bytes);  // aligned to at least 256 bytes
void* allocate_pinned(std::size_t bytes);
void release(void* data) noexcept;
void release_pinned(void* data) noexcept;

struct Release {
  void operator()(void* data) const noexcept { release(data); }
};
struct ReleasePinned {
  void operator()(void* data) const noexcept { release_pinned(data); }
};
using Memory = std::unique_ptr<std::byte, Release>;
using PinnedMemory = std::unique_ptr<std::byte, ReleasePinned>;
inline Memory memory(std::size_t bytes) {
  return Memory(static_cast<std::byte*>(allocate(bytes)));
}
inline PinnedMemory pinned_memory(std::size_t bytes) {
  return PinnedMemory(static_cast<std::byte*>(allocate_pinned(bytes)));
}

Stream make_stream();
void end_stream(Stream stream) noexcept;
void wait_for(Stream stream);  // reports what went wrong in the work before it

void wait_for_device();  // for all streams

// In order with the stream's other work. Host memory must stay until that is done, unless it is pageable.
void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream);
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream);
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream);
void clear(void* data, std::size_t bytes, Stream stream);  // to zero bytes

void check_launch();  // throws if the last kernel could not be launched

}  // namespace kit_cuda
