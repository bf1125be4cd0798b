// SPDX-License-Identifier: Apache-2.0
// The primitives of this library: a call of oneDNN, and a copy that oneDNN has no call for.
#pragma once

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

// Rows of a row-major table by a list of int64 numbers, counted from the end if negative. Numbers of rows that are not
// there throw.
class Rows {
 public:
  Rows(const memory& table, memory numbers);
  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }               // elements of a row
  std::int64_t elements() const { return height_ * width_; }  // of the table
  std::int64_t first_of(std::int64_t i) const;                // where the row begins that number i means

 private:
  memory numbers_;
  std::int64_t height_, width_, count_;
};

}  // namespace strata::onednn
