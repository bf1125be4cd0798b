// SPDX-License-Identifier: Apache-2.0
// What goes to the device beside the running program: by way of pinned memory and a stream of its own, in two buffers,
// so that the next data can come while those before are still read.
#pragma once

#include "kit_cuda/graph.hpp"

namespace kit_cuda {

class Staging {
 public:
  Staging(std::size_t bytes, Stream copies);
  // Takes the bytes along; the caller may change them when this returns.
  void put(const void* data);
  // In the stream's order: what was put last goes to its place. Nothing, where it is there already.
  void take(void* place, Stream stream);

 private:
  struct Buffer {
    PinnedMemory pinned;
    Memory device;
    Event arrived, taken;
  };
  std::size_t bytes_;
  Stream copies_;
  Buffer buffers_[2];
  int next_ = 0, full_ = -1;
};

}  // namespace kit_cuda
