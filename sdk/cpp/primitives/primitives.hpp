// SPDX-License-Identifier: Apache-2.0
// The seam between a captured graph and a library of primitives (oneDNN, cuDNN, ...): the library makes calls for nodes
// and owns all memory and layouts; Runner (runner.hpp) knows values by number and runs the calls in order. A further
// library is one class that implements Primitives. Nothing here allocates or looks anything up while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/safetensors.hpp"
#include "core/optimiser.hpp"
#include "graph/graph.hpp"

namespace strata::primitives {

// What a call does, for reports.
struct Description {
  std::string operation;         // "conv2d", "reorder", "copy"
  std::string kernel;            // what the library says it runs, "jit:avx2"; empty: it does not say
  std::string layouts;           // "nchw -> nChw8c", as the library writes them
  bool moves_only = false;       // a reorder or copy: it computes nothing
  std::int64_t bytes_moved = 0;  // written by a call that moves only
};

// One call of the library with its tensors bound, made once and executed in every run.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual void execute() = 0;  // throws what the library throws
  virtual Description describe() const = 0;
};

// Work that is a function: a kernel of strata's own, where the library has no call.
class FunctionCall final : public Primitive {
 public:
  FunctionCall(Description description, std::function<void()> run)
      : description_(std::move(description)), run_(std::move(run)) {}
  void execute() override { run_(); }
  Description describe() const override { return description_; }

 private:
  Description description_;
  std::function<void()> run_;
};

// Calls in order. `at_load`: after weights have been put in; `in_run`: in every run.
struct Steps {
  std::vector<std::unique_ptr<Primitive>> at_load, in_run;
  std::vector<std::ptrdiff_t> nodes;  // of each call in a run, by its place in the graph; shorter by those of no node
};

// Bytes that the library holds, for weights in its layouts and for everything else.
struct Held {
  std::int64_t weight_bytes = 0, buffer_bytes = 0;
};

// One element of Adam's step number `step` (from 1): m = beta1 m + share1 d, v = beta2 v + share2 d d with d = g +
// decay w; w = decay_factor w - rate m / (sqrt(v) / root + eps). Decay of the gradient or of the weight is 0 or 1 where
// the other is the case's.
struct AdamStep {
  float beta1, share1, beta2, share2, decay, decay_factor, rate, root, eps;

  AdamStep(const core::Optimiser& optimiser, std::int64_t step);
};

// The update of one parameter by its gradient, with its buffers: as many as core::buffer_prefixes, in that order. Bytes
// are handed over row-major.
class Update {
 public:
  virtual ~Update() = default;
  // What execute() is to do, from the next step on; new buffers that it takes are allocated here.
  virtual void prepare(const core::Optimiser& optimiser) = 0;
  // From 1; the optimiser prepared for. `clipped`: what the gradient is multiplied by.
  virtual void execute(const core::Optimiser& optimiser, std::int64_t step, float clipped) = 0;
  // The sum of the gradient's squares, for clipping; nullopt: the library does not offer it.
  virtual std::optional<double> gradient_squares() const { return std::nullopt; }
  virtual bool has_buffers() const = 0;
  virtual void drop_buffers() = 0;  // they are 0, or what a first step makes them
  virtual void read_buffer(std::size_t which, std::byte* into) const = 0;
  virtual void write_buffer(std::size_t which, const std::byte* data) = 0;
};

// A library of primitives at work on one graph, whose values it knows by their index.
class Primitives {
 public:
  virtual ~Primitives() = default;
  // ATen names without overload ("conv2d") that create() knows, sorted.
  virtual std::vector<std::string> operations() const = 0;
  // Makes a value known that no node computes: an input, or what weight sets give.
  virtual Result<void> declare(const graph::Graph& graph, int value) = 0;
  // Appends the calls that a node takes, reorders of its inputs among them. Errors say what the library lacks, without
  // the place.
  virtual Result<void> create(const graph::Graph& graph, const graph::Node& node, Steps& steps) = 0;
  // Appends what brings a value into a contiguous host tensor, which read() then copies from.
  virtual Result<void> publish(const graph::Graph& graph, int value, Steps& steps) = 0;
  // Called once after all of these: memory that calls share is allocated here.
  virtual void finish() = 0;
  // Until all calls that were executed are done: a device works beside the host.
  virtual void wait() {}

  // The bytes of an input (contiguous, until the next run has ended) or of a weight (until at_load has run).
  virtual void bind(int value, const std::byte* data) = 0;
  // A published value's bytes, contiguous, into `into`.
  virtual void read(int value, std::byte* into) const = 0;
  // Whether the library holds all of a weight, and if so the weight as PyTorch has it, back from the library's layout.
  virtual bool holds_weight(int value) const = 0;
  virtual void read_weight(int value, std::byte* into) const = 0;
  virtual Held held() const = 0;

  // Training (trainer.hpp); a library for inference alone leaves these out.
  // Makes a parameter or buffer known that lives here and changes; its layout is what the first call that reads it
  // likes.
  virtual Result<void> declare_trained(const graph::Graph& graph, int value);
  virtual void write_trained(int value, const std::byte* data);  // row-major, as PyTorch has it
  virtual void read_trained(int value, std::byte* into) const;
  // Appends what makes the trained `to` hold the value `from`.
  virtual Result<void> assign(const graph::Graph& graph, int to, int from, Steps& steps);
  // Appends what brings a gradient into its parameter's layout; the update itself is for the caller to execute.
  virtual Result<std::unique_ptr<Update>> update(const graph::Graph& graph, int parameter, int gradient, Steps& steps);
  // Off: dropout hands everything on, as with probability 0.
  virtual void set_dropout(bool on);
  // How many masks were drawn, from which and their places the next ones follow; nullopt: no dropout in the graph.
  virtual std::optional<std::uint64_t> draws() const;
  virtual void set_draws(std::uint64_t count);
};

}  // namespace strata::primitives
