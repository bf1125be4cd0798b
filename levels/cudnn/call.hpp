// SPDX-License-Identifier: Apache-2.0
// The primitive of this library: a function that starts work in the stream, and what it does.
#pragma once

#include <functional>
#include <utility>

#include "primitives/primitives.hpp"

namespace strata::cudnn {

class Call final : public primitives::Primitive {
 public:
  Call(primitives::Description description, std::function<void()> run)
      : description_(std::move(description)), run_(std::move(run)) {}
  void execute() override { run_(); }
  primitives::Description describe() const override { return description_; }

 private:
  primitives::Description description_;
  std::function<void()> run_;
};

}  // namespace strata::cudnn
