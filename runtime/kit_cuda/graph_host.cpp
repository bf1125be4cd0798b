// SPDX-License-Identifier: Apache-2.0
// Graphs in host memory (kernels/host.hpp), where streams are always done.
#include "kit_cuda/graph.hpp"
#include "kit_cuda/kernels/host.hpp"

namespace kit_cuda {

Event::Event() = default;
Event::~Event() = default;
void Event::record(Stream) {}
void Event::hold(Stream) const {}
void Event::wait() const {}

struct Graph::Recorded {
  Work work;
};

Graph::Graph() : recorded_(std::make_unique<Recorded>()) {}
Graph::~Graph() = default;
bool Graph::is_recorded() const {
  return !recorded_->work.empty();
}

void Graph::record(Stream, const std::function<void()>& work) {
  record_into(&recorded_->work);
  try {
    work();
  } catch (...) {
    record_into(nullptr);
    throw;
  }
  record_into(nullptr);
}

void Graph::launch(Stream) const {
  for (const auto& call : recorded_->work) call();
}

}  // namespace kit_cuda
