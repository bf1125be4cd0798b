// SPDX-License-Identifier: Apache-2.0
#include "strata/torch_operations.hpp"

#include <string_view>

namespace strata {
namespace {

// PyTorch's callbacks carry nothing of their own.
thread_local TorchOperations* observed = nullptr;

}  // namespace

struct OperationObserver {
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    auto& of = *observed;
    if (of.depth_++ > 0) return nullptr;
    if (of.spans_->empty()) of.names_.clear();
    of.names_.emplace_back(function.name());
    of.begin_ns_ = now_ns();
    return nullptr;
  }
  static void end(const at::RecordFunction&, at::ObserverContext*) {
    auto& of = *observed;
    if (--of.depth_ == 0) of.spans_->push_back({of.begin_ns_, now_ns()});
  }
};

void TorchOperations::record(Spans* spans) {
  if (callback_) at::removeCallback(*callback_);
  callback_.reset();
  spans_ = spans;
  depth_ = 0;
  if (spans == nullptr) return;
  observed = this;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(OperationObserver::begin, OperationObserver::end).scopes({at::RecordScope::FUNCTION}));
}

std::vector<OperationFacts> TorchOperations::recorded() const {
  std::vector<OperationFacts> all;
  for (const auto& name : names_) {
    constexpr std::string_view aten = "aten::";
    all.push_back({.operation = name.starts_with(aten) ? name.substr(aten.size()) : name, .layer = {}});
  }
  return all;
}

}  // namespace strata
