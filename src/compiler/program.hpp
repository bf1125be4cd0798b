// SPDX-License-Identifier: Apache-2.0
// A captured graph on its way to a static program: the graph's nodes become steps, passes (passes.hpp) fuse, fold and
// order them, give every value a layout and a place in one arena, and the generator (src/generate) writes what is left
// as C++. Plain data; no library, no PyTorch.
#pragma once

#include <cstdint>
#include <string>
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

// What a step does to its result before it is stored, in this order. `value`: what a sum or product takes, -1 for none.
struct Post {
  enum class Kind : std::uint8_t { activation, add, multiply };
  Kind kind = Kind::activation;
  std::string operation;  // ATen's: "relu", "hardtanh", "hardswish", "hardsigmoid", "silu", "sigmoid", "gelu"; "add"
  double alpha = 0, beta = 0;  // as in oneDNN's eltwise: the bounds of hardtanh, ...
  int value = -1;
};

enum class When : std::uint8_t { load, run };  // once for every weight set; in every run

// One call of the program: a node of the graph (or one that a pass made, "strata.*"), with what was fused into it.
struct Step {
  graph::Node node;  // its outputs are those after the posts
  std::vector<Post> posts;
  When when = When::run;
  std::vector<std::string> covers;  // names of the graph's nodes whose work it does, its own first
};

// Where a value lies. Values of one storage share bytes: views, and results written in place.
struct Place {
  enum class In : std::uint8_t { caller, weights, arena };  // inputs and outputs; what load steps and files give; the plan
  In in = In::arena;
  Layout layout = Layout::plain;
  std::int64_t bytes = 0;    // with padding
  int storage = -1;          // index of the value that owns the bytes: itself, unless it is a view or in place
  std::int64_t offset = -1;  // of the storage in the arena
};

struct Program {
  graph::Graph graph;         // values, inputs, weights and outputs; values that passes made come last. `nodes` is empty
  std::vector<Step> steps;    // in the order in which they run; those of `load` first
  std::vector<Place> places;  // by value
  std::int64_t block = 16;    // channels in a block of Layout::blocked: 16 for AVX-512, else 8
  std::int64_t arena_bytes = 0;
  std::int64_t least_arena_bytes = 0;  // the largest sum of what must be kept at any one step: no plan can be smaller
};

}  // namespace strata::compiler
