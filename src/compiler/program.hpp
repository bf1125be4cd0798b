// SPDX-License-Identifier: Apache-2.0
// A captured graph on its way to a static program: the graph's nodes become steps, passes (passes.hpp) fuse, fold and
// order them, give every value a layout and a place in one arena, and the generator (src/generate) writes what is left
// as C++. Plain data; no library, no PyTorch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace strata::compiler {

// How the elements of a value lie in memory. Of four dimensions N, C, H, W:
enum class Layout : std::uint8_t {
  plain,          // row-major: N C H W
  channels_last,  // N H W C
  blocked,        // N C/b H W b, channels padded with zeros to whole blocks of Program::block
};
std::string_view name_of(Layout layout);

// What a step does to its result before it is stored, in this order. `value`: what a sum or product takes, -1 for none;
// it lies in the layout of the result and broadcasts to it.
struct PostOp {
  enum class Kind : std::uint8_t { activation, add, multiply };
  Kind kind = Kind::activation;
  std::string operation;       // of an activation, below; "add"; "mul"
  double alpha = 0, beta = 0;  // of an activation
  int value = -1;
};
// Activations, x the result so far: relu; leaky_relu: alpha x where x < 0; elu: alpha (exp x - 1) where x < 0; clamp:
// to [alpha, beta]; hardswish: x min(max(x / 6 + 1/2, 0), 1); hardsigmoid: the second factor; sigmoid; tanh; silu: x
// sigmoid x; gelu: x Phi(x); gelu_tanh: its approximation by tanh.

enum class When : std::uint8_t { load, run };  // once for every weight set; in every run

// Which part of a training step a step belongs to; all of inference is `forward`. Parameters change in `backward`.
enum class Phase : std::uint8_t { forward, loss, backward };

// Who computes a step: the library that programs call, or a kernel that strata ships with them (runtime/kit).
enum class Kernel : std::uint8_t { library, winograd, direct };
std::string_view name_of(Kernel kernel);

// One call of the program: a node of the graph (or one that a pass made, "strata.*", step_builder.hpp), with what was
// fused.
struct Step {
  graph::Node node;  // its outputs are those after the posts
  std::vector<PostOp> posts;
  When when = When::run;
  Kernel kernel = Kernel::library;
  Phase phase = Phase::forward;
  bool view = false;   // nothing is to be done: the output is the bytes of the first operand under another shape
  bool typed = false;  // it reads or writes what is neither float32 nor bfloat16, which no library calculates with
  bool again = false;  // repeats a step of the forward phase, whose results were not kept (passes/recompute.cpp)
  std::vector<std::string> graph_nodes;  // names of the graph's nodes whose work it does, its own first
};

// Where a value lies. Values of one storage share bytes: views, and results written in place.
struct Place {
  // caller: inputs and outputs; weights: what load steps and files give; none: nobody writes or reads it any more
  enum class In : std::uint8_t { none, caller, weights, arena };
  In in = In::none;
  Layout layout = Layout::plain;
  std::int64_t bytes = 0;    // with padding
  int storage = -1;          // index of the value that owns the bytes: itself, unless it is a view or in place
  std::int64_t offset = -1;  // of the storage in the arena
};

// What a program runs on, and with it the library that it calls: oneDNN and the kit's own kernels; cuDNN and cuBLAS,
// for which nothing lies in blocks.
enum class Target : std::uint8_t { cpu, cuda };
// What the arena of a training step may take at most.
struct MemoryBudget {
  std::int64_t bytes = 0;
  double share = 0;  // if not 0, in place of bytes: of what the arena takes where every result is kept
};

// Kernels by the names of nodes.
using Kernels = std::map<std::string, Kernel>;

struct Program {
  graph::Graph graph;       // values, inputs, weights and outputs; values that passes made come last. `nodes` is empty,
                            // and so are the values' producers and consumers: use_def.hpp finds them
  std::vector<Step> steps;  // in the order in which they run; those of `load` first
  std::vector<Place> places;  // by value
  Target target = Target::cpu;
  graph::Type type = graph::Type::float32;  // of what the library's layers read and write; or bfloat16, in inference
  std::int64_t block = 16;                  // channels in a block of Layout::blocked: 16 for AVX-512, else 8
  Kernels requested_kernels;                // go before the rules of kernels.hpp, for steps that they can run
  std::optional<MemoryBudget> budget;
  std::int64_t arena_bytes = 0;
  std::int64_t least_arena_bytes = 0;  // the largest sum of what must be kept at any one step: no plan can be smaller

  const graph::Value& value(int index) const { return graph.value(index); }
  Place& place(int index) { return places.at(static_cast<std::size_t>(index)); }
  const Place& place(int index) const { return places.at(static_cast<std::size_t>(index)); }
  // Whether two values share bytes.
  bool same_storage(int a, int b) const { return place(a).storage == place(b).storage; }
};

// float32 or bfloat16.
bool is_computed_with(graph::Type type);
// A float32 or bfloat16 tensor of four dimensions: only these may lie in another layout than plain.
bool has_layouts(const graph::Value& value);
// Bytes with padding; nullopt: more than 64 bits can count, or the value cannot lie so.
std::optional<std::int64_t> bytes_in(const graph::Value& value, Layout layout, std::int64_t block);
// Whether the elements lie in the same order in both layouts, so that a reorder has nothing to do.
bool same_bytes(const graph::Value& value, Layout a, Layout b, std::int64_t block);

// The values that a step reads: its arguments in their order, then those of its posts; each once.
std::vector<int> operands_of(const Step& step);
// For messages: what graph::Node::where says, or which nodes a made step serves.
std::string where(const Step& step);

}  // namespace strata::compiler
