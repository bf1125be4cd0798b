// SPDX-License-Identifier: Apache-2.0
// The device as host memory, for tests on machines without one.
#include <cstdlib>
#include <cstring>
#include <new>

#include "kit_cuda/kernels/device.hpp"
#include "kit_cuda/kernels/host.hpp"

namespace kit_cuda {

namespace {

thread_local Work* recording = nullptr;

}  // namespace

void perform(std::function<void()> work) {
  if (recording == nullptr) return work();
  recording->push_back(std::move(work));
}

void record_into(Work* list) {
  recording = list;
}

std::string device_name(std::string*) {
  return "host memory";
}

int compute_capability() {
  constexpr int hopper = 90;  // so that nothing is refused
  return hopper;
}

void* allocate(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  auto* data = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void* allocate_pinned(std::size_t bytes) {
  return allocate(bytes);
}
void release(void* data) noexcept {
  std::free(data);
}
void release_pinned(void* data) noexcept {
  std::free(data);
}

Stream make_stream() {
  return nullptr;
}
void end_stream(Stream) noexcept {}
void wait_for(Stream) {}
void wait_for_device() {}

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream) {
  perform([=] { std::memmove(to, from, bytes); });
}
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream) {
  perform([=] { std::memmove(to, from, bytes); });
}
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream) {
  perform([=] { std::memmove(to, from, bytes); });
}
void clear(void* data, std::size_t bytes, Stream) {
  perform([=] { std::memset(data, 0, bytes); });
}

void check_launch() {}

}  // namespace kit_cuda
