// SPDX-License-Identifier: Apache-2.0
// oneDNN behind the seam of sdk/cpp/primitives: holds every tensor of a graph, makes reorders, and hands nodes to the
// family that knows them (operations.hpp). One engine and one in-order stream; calls share one scratchpad.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "primitives/primitives.hpp"
#include "tensor.hpp"

namespace strata::onednn {

// Layouts of what operations compute: as oneDNN chooses them, or row-major again after each operation, as in PyTorch.
enum class Layouts { chosen, contiguous };

// What all dropouts of a graph share.
struct Dropout {
  bool present = false, on = true;
  std::uint64_t draws = 0;  // masks drawn, counted from where the seed began
};

// ATen names without overload that the library knows, sorted.
std::vector<std::string> known_operations();

class Library final : public primitives::Primitives {
 public:
  explicit Library(Layouts layouts);

  std::vector<std::string> operations() const override { return known_operations(); }
  Result<void> declare(const graph::Graph& graph, int value) override;
  Result<void> create(const graph::Graph& graph, const graph::Node& node, primitives::Steps& steps) override;
  Result<void> publish(const graph::Graph& graph, int value, primitives::Steps& steps) override;
  void finish() override;
  void bind(int value, const std::byte* data) override;
  void read(int value, std::byte* into) const override;
  bool holds_weight(int value) const override { return whole_form(value) != nullptr; }
  void read_weight(int value, std::byte* into) const override;
  primitives::Held held() const override { return held_; }
  Result<void> declare_trained(const graph::Graph& graph, int value) override;
  void write_trained(int value, const std::byte* data) override;
  void read_trained(int value, std::byte* into) const override;
  Result<void> assign(const graph::Graph& graph, int to, int from, primitives::Steps& steps) override;
  Result<std::unique_ptr<primitives::Update>> update(const graph::Graph& graph, int parameter, int gradient,
                                                     primitives::Steps& steps) override;
  void set_dropout(bool on) override { dropout_->on = on; }
  std::optional<std::uint64_t> draws() const override {
    return dropout_->present ? std::optional(dropout_->draws) : std::nullopt;
  }
  void set_draws(std::uint64_t count) override { dropout_->draws = count; }

  // For Builder.
  const dnnl::engine& engine() const { return engine_; }
  const dnnl::stream& stream() const { return stream_; }
  Layouts layouts() const { return layouts_; }
  // The tensor of a value, which is float32. Throws Unsupported for one of another type.
  const Tensor& tensor(const graph::Graph& graph, int value) const;
  // That of a value of another type, which lies row-major as typed_desc() says.
  const Tensor& typed(const graph::Graph& graph, int value) const;
  void set_tensor(int value, Tensor tensor) { tensors_.insert_or_assign(value, std::move(tensor)); }
  // Bytes of its own for a tensor of this layout.
  Tensor allocate(const memory::desc& desc, bool for_weight = false);
  // oneDNN's handle of a tensor, which follows the caller's bytes.
  memory handle(const Tensor& tensor) const;
  // The tensor in another layout, by a reorder: of a weight when it is loaded, else in every run.
  Tensor reordered(const Tensor& tensor, const memory::desc& to, primitives::Steps& steps);
  // A reorder of a tensor into (a part of) another.
  void reorder(const Tensor& from, const Tensor& to, primitives::Steps& steps);
  // What a forward call leaves for its backward call beside the graph's tensors, by the value that stands for it there:
  // the batch's variance for 1 / deviation, a workspace for indices, bytes for a mask.
  struct Left {
    Tensor tensor;
    memory::desc from, to;  // layouts of the forward call
    double epsilon = 0;     // of a norm whose backward node does not have it
  };
  void leave(int value, Left left) { left_.insert_or_assign(value, std::move(left)); }
  const Left& left(int value) const;
  std::shared_ptr<Dropout> dropout() const { return dropout_; }
  // A handle for a call's scratchpad, which lies in memory that all calls share.
  memory scratchpad(const memory::desc& desc);

 private:
  // A form of a weight that has all its elements; null: there is none.
  const Storage::Form* whole_form(int value) const;
  // Memory for a trained tensor in this layout, unless it has some.
  void settle(Storage& storage, const memory::desc& desc);
  // A trained tensor as `to`, which its first reader makes its home.
  Tensor fetched(const Tensor& tensor, const memory::desc& to, primitives::Steps& steps);
  Tensor form_of(const Tensor& tensor, const memory::desc& to, primitives::Steps& steps);

  Layouts layouts_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::unordered_map<int, Tensor> tensors_;         // by value
  std::unordered_map<int, Tensor> published_;       // row-major, by value
  std::vector<std::shared_ptr<Storage>> storages_;  // oneDNN's handles do not own the bytes
  std::vector<memory> scratchpads_;
  std::size_t scratchpad_bytes_ = 0;
  std::shared_ptr<std::byte> shared_scratchpad_;
  primitives::Held held_;
  std::unordered_map<int, Left> left_;
  std::shared_ptr<Dropout> dropout_ = std::make_shared<Dropout>();
};

// 64-byte aligned. Throws std::bad_alloc.
std::shared_ptr<std::byte> aligned_bytes(std::size_t bytes);

}  // namespace strata::onednn
