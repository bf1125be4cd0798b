// SPDX-License-Identifier: Apache-2.0
// What a family of operations is given to make the calls of one node: its arguments by ATen's names, tensors in the
// layouts that a call wants, memory for results. Anything that cannot be done is thrown as Unsupported.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library.hpp"
#include "primitives/arguments.hpp"

namespace strata::onednn {

class Builder : public primitives::Arguments {
 public:
  Builder(Library& library, const graph::Graph& graph, const graph::Node& node, primitives::Steps& steps)
      : Arguments(graph, node), library_(library), steps_(steps) {}

  // Arguments. A tensor that is missing or null throws, but for `optional`.
  Tensor tensor(std::string_view argument) const;
  std::optional<Tensor> optional(std::string_view argument) const;
  std::vector<Tensor> tensors(std::string_view argument) const;
  // What the forward call left for the value that this argument names.
  const Library::Left& left(std::string_view argument) const { return library_.left(node_.tensor(argument)); }
  // Leaves something for the backward call that reads output `i`.
  void leave(std::size_t i, Library::Left left) { library_.leave(node_.outputs.at(i), std::move(left)); }
  std::shared_ptr<Dropout> dropout() const { return library_.dropout(); }
  // An int64 tensor as pairs of s32, row-major and to stay.
  Tensor rows(std::string_view argument);

  // The tensor in exactly this layout; a reorder where it lies otherwise. Weights get memory of their own.
  Tensor in(const Tensor& tensor, const memory::desc& desc);
  Tensor plain(const Tensor& tensor) { return in(tensor, row_major(tensor.dims())); }
  // As it lies, if nothing but its order or blocks differs from row-major; else row-major.
  Tensor dense(const Tensor& tensor);
  // As it lies, if strides alone describe it; else row-major.
  Tensor strided(const Tensor& tensor);
  // The same elements in row-major order as another shape: a view where the layout allows, else after a reorder.
  Tensor reshaped(const Tensor& tensor, const Dims& dims);
  // Broadcast to `dims`, of at least its rank, and written out where that repeats elements.
  Tensor expanded(const Tensor& tensor, const Dims& dims);
  // A slice of a strided tensor: a view, or a copy where oneDNN has no description of it; and the reverse, a part moved
  // into its place in a row-major tensor.
  Tensor sliced(const Tensor& tensor, std::size_t dim, const primitives::Slice& slice);
  void move_into(const Tensor& part, const Tensor& whole, std::size_t dim, const primitives::Slice& slice);
  // A tensor whose strides may be 0, written out row-major.
  Tensor written_out(const Tensor& tensor);

  // A reorder into a part of another tensor, which is row-major otherwise.
  void move(const Tensor& from, const Tensor& to) {
    library_.reorder(from.elsewhere() ? plain(from) : from, to, steps_);
  }

  // Memory for output `i` in this layout; for something in between.
  Tensor result(const memory::desc& desc, std::size_t i = 0);
  Tensor temporary(const memory::desc& desc) { return library_.allocate(desc); }
  // A tensor with these values, made now: a mask, an averaging matrix.
  Tensor constant(const Dims& dims, const std::vector<float>& values);
  // A tensor that a function of strata's, which `how` names, computes from others (one at least), row-major; once for
  // all that want it. If all of these are weights, when weights are loaded, and it is a weight itself until it is
  // brought into another layout; else in every run.
  Tensor prepared(const std::string& how, const memory::desc& desc, const std::vector<Tensor>& from,
                  std::function<void(const std::vector<const float*>&, float*)> compute);
  // Row-major, whatever `like` is.
  Tensor filled_like(const Dims& dims, const Tensor& like, float value);
  Tensor temporary_like(const Tensor& like) { return temporary(row_major(like.dims())); }
  // Output `i` is (a view of) this tensor: nothing is computed.
  void is(const Tensor& tensor, std::size_t i = 0);
  // Memory for the result of a primitive whose description is `pd`, viewed as the output's shape.
  Tensor result_of(const dnnl::primitive_desc_base& pd) { return result(pd.query_md(dnnl::query::dst_md)); }

  // A call. `arguments` are DNNL_ARG_... with their tensors.
  template <class Primitive>
  void call(const typename Primitive::primitive_desc& pd, std::initializer_list<std::pair<int, Tensor>> arguments) {
    add(Primitive(pd), pd, {arguments.begin(), arguments.end()});
  }
  void add(dnnl::primitive primitive, const dnnl::primitive_desc_base& pd,
           std::vector<std::pair<int, Tensor>> arguments);
  // A call of strata's own.
  void add(std::unique_ptr<primitives::Primitive> own) { steps_.in_run.push_back(std::move(own)); }
  void own(std::string layouts, std::function<void()> run);
  memory handle(const Tensor& tensor) const { return library_.handle(tensor); }
  // Strict float32, and a scratchpad that calls share.
  static dnnl::primitive_attr attr();
  const dnnl::engine& engine() const { return library_.engine(); }

  Library& library() { return library_; }
  const graph::Graph& graph() const { return graph_; }
  const graph::Node& node() const { return node_; }

  // Brings outputs back to row-major where the layouts are to be PyTorch's.
  void finish();

 private:
  Library& library_;
  primitives::Steps& steps_;
  std::vector<std::size_t> computed_;  // outputs with memory of their own
};

}  // namespace strata::onednn
