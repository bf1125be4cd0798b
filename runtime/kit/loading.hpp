// SPDX-License-Identifier: Apache-2.0
// How weights come into a program: read from files, computed from others in host memory, handed to what keeps them.
// Equal for all libraries that a program can call; where and how weights are kept is the library's (weights.cpp).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kit/program.hpp"

namespace kit {

// Bytes that end with the object.
struct FreeBytes {
  std::size_t mapped = 0;  // bytes to give back to the system; 0: to the heap
  void operator()(std::byte* data) const;
};
using Bytes = std::unique_ptr<std::byte[], FreeBytes>;
// Zeros, 64-byte aligned; whole pages of 2 MB where the system has such, which it gives when they are first written.
// Throws std::bad_alloc.
Bytes allocate(std::size_t bytes);
// The same of any content, for what is written whole and soon given back.
Bytes allocate_unwritten(std::size_t bytes);

// A weight while weights are loaded. `data` is in the file, in `owned`, or null until it has been computed.
struct LoadedWeight {
  std::string name;  // empty: computed
  bool is_constant = false;
  Shape shape;
  Layout layout = Layout::plain;  // another one only where it is permanent
  const float* data = nullptr;
  Bytes owned;
  int stored = -1;                        // its row-major bytes among what the kit stores, if it has such
  bool permanent = false;                 // computed by calls, into its stored bytes
  int uses = 0, left = 0;                 // steps of loading that read it
  bool trained = false, changed = false;  // by training: a parameter, a buffer
  int home = -1, momentum = -1;           // of what training changes: its one place among these
  bool has_momentum = false;              // and, of Adam, its second buffer
  Bytes second;                           // that, where it is in host memory
};

// A tensor that is no float32, which stays as the file has it.
struct LoadedList {
  std::string name;
  bool is_constant = false;
  Type type = Type::int64;
  Shape shape;
  Bytes bytes;
};

// A step of load(): reads weights, writes one (`makes`), or stored bytes.
struct LoadStep {
  std::vector<int> reads;
  int makes = -1;
  std::function<void()> run;
};

// What a training step reads beside tensors.
struct TrainingState {
  Sgd sgd;
  Adam adam;
  bool is_adam = false;
  double clip_norm = 0;    // 0: gradients are not clipped
  std::int64_t steps = 0;  // done, by which Adam corrects its bias
  bool dropout = true;
  int dropouts = 0;         // of the program
  std::uint64_t draws = 0;  // masks drawn; the next ones follow from it
  const std::int64_t* labels = nullptr;
  std::map<std::string, std::int64_t> counts;
};

struct Loading {
  // A weight by its name in a file; asking twice is no matter.
  Weight named(const char* name, Shape shape, bool is_constant);
  Tensor named_list(const char* name, Type type, Shape shape, bool is_constant);
  void add_load_step(LoadStep added);
  float* allocate_computed(int weight);  // memory for a weight that the running load step computes
  // Reads the files and runs all steps; what they hold in host memory ends with them. Throws with what is missing, or
  // of another shape or type, or holds NaN.
  // `permanent(n)`: where the kit keeps weight n, which calls compute.
  void load_files(const char* weights_file, const char* constants_file,
                  const std::function<const float*(int)>& permanent);

  std::vector<LoadedWeight> weights;
  std::vector<LoadedList> lists;
  std::vector<LoadStep> load_steps;
  std::map<std::string, Weight> saved;
  TrainingState training;
};

}  // namespace kit
