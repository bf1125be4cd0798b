// SPDX-License-Identifier: Apache-2.0
// Where a tensor lies and in which layout of oneDNN's: memory, an offset into it, a descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "primitives/arguments.hpp"

namespace strata::onednn {

using dnnl::memory;
using primitives::Dims, primitives::product, primitives::Unsupported;

struct Storage;

// `desc` says how the bytes from `offset` on are to be read. A copy is another view of the same bytes.
struct Tensor {
  memory::desc desc;
  std::shared_ptr<Storage> storage;
  std::size_t offset = 0;  // bytes
  bool weight = false;     // (a view of) bytes that are there only while weights are loaded
  bool trained = false;    // (a view of) what training changes, described row-major; it lies as Storage::home says

  // Whether these bytes cannot be read as `desc` says: Builder::in() gives a tensor that can.
  bool elsewhere() const { return weight || trained; }
  Dims dims() const { return desc.get_dims(); }
};

// Bytes of its own, 64-byte aligned, or the caller's, which change their place.
struct Storage {
  std::shared_ptr<std::byte> owned;
  std::byte* data = nullptr;
  std::vector<std::pair<memory, std::size_t>> followers;  // of the caller's bytes: to be moved, with their offsets

  memory::desc home;    // of a trained tensor, once the first reader has chosen it
  Dims row_major_dims;  // of a trained tensor, as the graph has them

  // The same values in another layout, made by a reorder once for all that want it; or what else is made of them once.
  struct Form {
    std::size_t offset;
    memory::desc from;
    Tensor converted;
    std::string how = {};  // empty: by a reorder
  };
  std::vector<Form> forms;
};

// Row-major float32 (or `type`); a scalar is {1}, since oneDNN knows no tensor without dimensions.
memory::desc row_major(Dims dims, memory::data_type type = memory::data_type::f32);
// Described by strides alone: no blocks, no padding.
bool is_strided(const memory::desc& desc);
bool is_row_major(const memory::desc& desc);
bool is_padded(const memory::desc& desc);  // blocks that are not full
// Neither gaps nor elements that share bytes; blocks may be padded.
bool is_dense(const memory::desc& desc);
// oneDNN's way to write a layout: "abcd" is row-major, "aBcd8b" has channels in blocks of 8.
std::string layout_name(const memory::desc& desc);
// `dims` with ones in front up to `rank`; strides alike. Only for strided tensors.
memory::desc with_rank(const memory::desc& desc, std::size_t rank);

// A view whose dimension i is dimension order[i].
Tensor permuted(const Tensor& tensor, const std::vector<std::size_t>& order);
// Of strided tensors: `length` elements of a dimension from `begin` on, in steps; one of its dimensions, of extent 1,
// left out, unless it is the only one.
Tensor part_of(const Tensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t length, std::int64_t step = 1);
Tensor without(const Tensor& tensor, std::size_t dim);

}  // namespace strata::onednn
