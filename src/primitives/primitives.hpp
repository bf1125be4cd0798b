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
};

// Bytes that the library holds, for weights in its layouts and for everything else.
struct Held {
  std::int64_t weight_bytes = 0, buffer_bytes = 0;
};

// SGD as PyTorch defines it (docs/protocol.md, "Operations for training"), for one step.
struct Sgd {
  double rate = 0, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

// The update of one parameter by its gradient, with its momentum buffer. Bytes are handed over row-major.
class Update {
 public:
  virtual ~Update() = default;
  virtual void execute(const Sgd& sgd) = 0;
  virtual bool has_momentum() const = 0;
  virtual void drop_momentum() = 0;
  virtual void read_momentum(std::byte* into) const = 0;
  virtual void write_momentum(const std::byte* data) = 0;
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
  virtual Result<void> keep(const graph::Graph& graph, int value);
  virtual void write_kept(int value, const std::byte* data);  // row-major, as PyTorch has it
  virtual void read_kept(int value, std::byte* into) const;
  // Appends what makes the kept `to` hold the value `from`.
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
