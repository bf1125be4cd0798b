// SPDX-License-Identifier: Apache-2.0
// The primitives of this library: a call of oneDNN, and a copy that oneDNN has no call for.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "primitives/primitives.hpp"
#include "tensor.hpp"

namespace strata::onednn {

// One execution of a oneDNN primitive with its arguments in place. The C function is called, since dnnl::primitive
// builds a map of the arguments for each execution.
class Call final : public primitives::Primitive {
 public:
  Call(dnnl::primitive primitive, dnnl::stream stream, std::vector<std::pair<int, memory>> arguments,
       primitives::Description description);
  void execute() override;
  primitives::Description describe() const override { return description_; }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<std::pair<int, memory>> held_;
  std::vector<dnnl_exec_arg_t> arguments_;
  primitives::Description description_;
};

// Work of strata's own, where oneDNN has no call.
class Own final : public primitives::Primitive {
 public:
  Own(primitives::Description description, std::function<void()> run)
      : description_(std::move(description)), run_(std::move(run)) {}
  void execute() override { run_(); }
  primitives::Description describe() const override { return description_; }

 private:
  primitives::Description description_;
  std::function<void()> run_;
};

// Copies 4-byte elements of a strided tensor, strides of 0 among them (a broadcast), to a row-major one.
class Copy final : public primitives::Primitive {
 public:
  Copy(memory from, memory to, primitives::Description description);
  void execute() override;
  primitives::Description describe() const override { return description_; }

 private:
  memory from_, to_;
  Dims dims_, strides_;
  primitives::Description description_;
};

// Copies rows of a row-major table: output row i is table row rows[i], counted from the end if negative. Throws for a
// row that is not there.
class Lookup final : public primitives::Primitive {
 public:
  Lookup(memory table, memory rows, memory to);
  void execute() override;
  primitives::Description describe() const override;

 private:
  memory table_, rows_, to_;
  std::int64_t height_, count_;
  std::size_t row_bytes_;
};

}  // namespace strata::onednn
