// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "kit_cuda/graph.hpp"

namespace kit_cuda {
namespace {

void check(cudaError_t status, const char* tried) {
  if (status == cudaSuccess) return;
  throw DeviceError(std::string(tried) + ": " + cudaGetErrorString(status), status == cudaErrorMemoryAllocation);
}

cudaEvent_t event_of(void* event) {
  return static_cast<cudaEvent_t>(event);
}

}  // namespace

Event::Event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  event_ = event;
}
Event::~Event() {
  (void)cudaEventDestroy(event_of(event_));
}
void Event::record(Stream stream) {
  check(cudaEventRecord(event_of(event_), stream), "an event");
}
void Event::hold(Stream stream) const {
  check(cudaStreamWaitEvent(stream, event_of(event_), 0), "the order of two streams");
}
void Event::wait() const {
  check(cudaEventSynchronize(event_of(event_)), "the work on the device");
}

struct Graph::Recorded {
  cudaGraphExec_t graph = nullptr;
  ~Recorded() {
    if (graph != nullptr) (void)cudaGraphExecDestroy(graph);
  }
};

Graph::Graph() : recorded_(std::make_unique<Recorded>()) {}
Graph::~Graph() = default;
bool Graph::is_recorded() const {
  return recorded_->graph != nullptr;
}

void Graph::record(Stream stream, const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  // other threads' programs may allocate meanwhile, so the mode is not the global one
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a graph");
  try {
    work();
  } catch (...) {
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "recording a graph");
  const auto status = cudaGraphInstantiate(&recorded_->graph, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(status, "making a graph");
}

void Graph::launch(Stream stream) const {
  check(cudaGraphLaunch(recorded_->graph, stream), "a graph");
}

}  // namespace kit_cuda
