// SPDX-License-Identifier: Apache-2.0
// cuDNN, cuBLAS and strata's own kernels behind the seam of sdk/cpp/primitives: holds every tensor of a graph on the
// device and hands nodes to the family that knows them (operations.hpp). One stream; every buffer is there from the
// start.
#pragma once

#include <functional>
#include <unordered_map>

#include "calls.hpp"
#include "kit_cuda/kernels/dropout.hpp"
#include "primitives/primitives.hpp"

namespace strata::cudnn {

// ATen names without overload that the library knows, sorted.
std::vector<std::string> known_operations();

// What a copy of elements is called.
primitives::Description reorder(const Tensor& from, const Tensor& to);

// What convolutions and products calculate with: float32; factors that they may round to TF32; or factors that are
// rounded to bfloat16 by calls of their own, as autocast does it. All else, and every sum, is float32.
enum class Precision : std::uint8_t { float32, tf32, bfloat16 };

class Library final : public primitives::Primitives {
 public:
  Library(Layouts layouts, Precision precision);

  std::vector<std::string> operations() const override { return known_operations(); }
  Result<void> declare(const graph::Graph& graph, int value) override;
  Result<void> create(const graph::Graph& graph, const graph::Node& node, primitives::Steps& steps) override;
  Result<void> publish(const graph::Graph& graph, int value, primitives::Steps& steps) override;
  void finish() override;
  void wait() override { kit_cuda::wait_for(stream()); }
  void bind(int value, const std::byte* data) override;
  void read(int value, std::byte* into) const override;
  bool holds_weight(int value) const override { return homes_.contains(value); }
  void read_weight(int value, std::byte* into) const override { download(homes_.at(value), into); }
  primitives::Held held() const override { return held_; }
  Result<void> declare_trained(const graph::Graph& graph, int value) override { return declare(graph, value); }
  void write_trained(int value, const std::byte* data) override { upload(homes_.at(value), data); }
  void read_trained(int value, std::byte* into) const override { download(homes_.at(value), into); }
  Result<void> assign(const graph::Graph& graph, int to, int from, primitives::Steps& steps) override;
  Result<std::unique_ptr<primitives::Update>> update(const graph::Graph& graph, int parameter, int gradient,
                                                     primitives::Steps& steps) override;
  void set_dropout(bool on) override;
  std::optional<std::uint64_t> draws() const override;
  void set_draws(std::uint64_t count) override;

  // Row-major bytes of the host to where the tensor lies, and back; done when these return.
  void upload(const Tensor& tensor, const std::byte* data) const;
  void download(const Tensor& tensor, std::byte* into) const;

  // For Builder.
  kit_cuda::Stream stream() const { return stream_.get(); }
  Calls& calls() { return *calls_; }
  Layouts layouts() const { return layouts_; }
  Precision precision() const { return precision_; }
  // The tensor of a value, which is float32, or int64. Throws Unsupported for one of another type.
  const Tensor& tensor(const graph::Graph& graph, int value) const;
  const Tensor& integers(const graph::Graph& graph, int value) const;
  void set_tensor(int value, Tensor tensor) { tensors_.insert_or_assign(value, std::move(tensor)); }
  Tensor allocate(const View& view, Type type = Type::float32);
  // The tensor as `to` lies, or of another type, by a copy: of a weight when it is loaded, else in every run. Made once
  // for all that want it.
  Tensor reordered(const Tensor& tensor, const View& to, primitives::Steps& steps, Type type = Type::float32);

  // What a forward call leaves for its backward call beside the graph's tensors, by the value that stands for it there:
  // bytes for indices or a mask, which lie as `view` says.
  struct Left {
    std::uint8_t* bytes;
    View view;
  };
  void leave(int value, Left left) { left_.insert_or_assign(value, std::move(left)); }
  const Left& left(int value) const;
  Left allocate_bytes(const View& view);
  // The state of all dropouts, with the call that counts steps before the first of them.
  const kit_cuda::DropoutState* dropout(primitives::Steps& steps);
  // Where a kernel tells of a fault: 1 + the place among `indices` of one that is not there. `what` says it to a
  // person.
  Index* fault(Tensor indices, std::function<std::string(std::int64_t)> what);

 private:
  struct EndStream {
    void operator()(kit_cuda::Stream stream) const noexcept { kit_cuda::end_stream(stream); }
  };
  struct Form {
    Tensor from, converted;
  };
  struct Fault {
    Tensor indices;
    std::function<std::string(std::int64_t)> what;
    Index* place;
  };
  void check_faults() const;  // throws std::out_of_range
  // Of all dropouts, from the device and back.
  kit_cuda::DropoutState dropout_state() const;
  void set_dropout_state(const kit_cuda::DropoutState& state);
  std::byte* hold(std::size_t bytes);  // on the device, as long as this lives

  Layouts layouts_;
  Precision precision_;
  std::unique_ptr<CUstream_st, EndStream> stream_;
  std::vector<kit_cuda::Memory> memory_;
  std::unique_ptr<Calls> calls_;
  std::unordered_map<int, Tensor> tensors_;  // by value
  std::unordered_map<int, Tensor> homes_;    // of parameters and buffers: where they lie, whatever is made of them
  std::vector<Form> forms_;
  primitives::Held held_;
  std::unordered_map<int, Left> left_;
  std::vector<Fault> faults_;
  kit_cuda::DropoutState* dropout_ = nullptr;
};

}  // namespace strata::cudnn
