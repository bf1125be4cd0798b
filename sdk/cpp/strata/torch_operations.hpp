// SPDX-License-Identifier: Apache-2.0
// Operations of a C++ level on PyTorch, timed one by one: the outermost calls of PyTorch's operators in this thread, by
// the names of these. Which module they belong to is not known here.
#pragma once

#include <ATen/record_function.h>

#include <optional>
#include <string>
#include <vector>

#include "strata/level.hpp"

namespace strata {

// What a level derives from beside TorchLevel. Works where operators are called by PyTorch's dispatcher.
class TorchOperations : public TimesOperations {
 public:
  ~TorchOperations() override { record(nullptr); }
  void record(Spans* spans) final;
  std::vector<OperationFacts> recorded() const final;

 private:
  friend struct OperationObserver;
  Spans* spans_ = nullptr;
  std::vector<std::string> names_;  // of the last run
  int depth_ = 0;
  std::int64_t begin_ns_ = 0;
  std::optional<at::CallbackHandle> callback_;
};

}  // namespace strata
