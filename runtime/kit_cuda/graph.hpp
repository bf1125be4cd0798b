// SPDX-License-Identifier: Apache-2.0
// Order between streams, and work that is recorded once and then started as a whole: a CUDA graph. graph.cu asks CUDA;
// in host memory (device_host.cpp) what is recorded is a list of the same work, with the arguments that it had then.
#pragma once

#include <functional>
#include <memory>

#include "kit_cuda/kernels/device.hpp"

namespace kit_cuda {

// A point in a stream's work.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Stream stream);      // all that was given to the stream so far
  void hold(Stream stream) const;  // what the stream is given from now on waits for that
  void wait() const;               // the caller waits for it; not at all where nothing was recorded

 private:
  [[maybe_unused]] void* event_ = nullptr;  // none where the host stands for a device
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  bool is_recorded() const;
  // What `work` gives to the stream, which is not done now.
  void record(Stream stream, const std::function<void()>& work);
  void launch(Stream stream) const;

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace kit_cuda
