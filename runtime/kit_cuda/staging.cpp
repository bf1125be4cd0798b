// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/staging.hpp"

#include <cstring>

namespace kit_cuda {

Staging::Staging(std::size_t bytes, Stream copies) : bytes_(bytes), copies_(copies) {
  for (auto& buffer : buffers_) {
    buffer.pinned = pinned_memory(bytes);
    buffer.device = memory(bytes);
  }
}

void Staging::put(const void* data) {
  auto& buffer = buffers_[next_];
  buffer.arrived.wait();
  std::memcpy(buffer.pinned.get(), data, bytes_);
  buffer.taken.hold(copies_);
  copy_to_device(buffer.device.get(), buffer.pinned.get(), bytes_, copies_);
  buffer.arrived.record(copies_);
  full_ = next_;
  next_ = 1 - next_;
}

void Staging::take(void* place, Stream stream) {
  if (full_ < 0) return;
  auto& buffer = buffers_[full_];
  buffer.arrived.hold(stream);
  copy_on_device(place, buffer.device.get(), bytes_, stream);
  buffer.taken.record(stream);
  full_ = -1;
}

}  // namespace kit_cuda
