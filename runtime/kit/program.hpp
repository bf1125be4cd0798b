// SPDX-License-Identifier: Apache-2.0
// A static program: calls of a library, made once at start with their memory in place and executed in order. Stages
// (stages/*.cpp) add the calls by the functions of operations.hpp; a run allocates and looks up nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kit/tensor.hpp"

namespace kit {

struct Internals;
struct Loading;

// Bytes that a program holds, and what a run consists of.
struct Facts {
  std::int64_t arena_bytes = 0, weight_bytes = 0, scratch_bytes = 0, output_bytes = 0;
  int calls = 0;              // in a run
  int moves = 0;              // of these: reorders and copies, which compute nothing
  int reference_kernels = 0;  // of these: the library's slow ones, which oneDNN calls `ref`
};

// What a call of a run is: the layer that it belongs to, and what computes it.
struct CallFacts {
  const char* step;
  const char* operation;  // "convolution"
  const char* kernel;
  bool moves_only;  // a reorder or copy
};

inline std::int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// SGD as PyTorch defines it.
struct Sgd {
  float rate = 0, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

// Adam as PyTorch defines it; with decoupled decay AdamW. In double, since the bias correction takes 1 - beta.
struct Adam {
  double rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
};

// The library that programs call, its version and what it runs on: "oneDNN 3.2.0 with AVX-512".
std::string library();
// Threads for the calling thread's programs; 0: as many as the system says. Gives how many there are.
int use_threads(int threads);

class Program {
 public:
  // `inputs`, `outputs`: bytes of each.
  Program(std::int64_t arena_bytes, const std::vector<Extent>& inputs, const std::vector<Extent>& outputs);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Of a program on a GPU, before anything else: convolutions and products round their operands to 10 bits of mantissa.
  void allow_tf32();
  // Before anything else: the program has tensors in bfloat16. Throws where what it runs on cannot calculate with them.
  void need_bfloat16();
  // For stages, until finish(). A weight by its name in the file of weights or of constants; asking twice is no matter.
  Weight weight(const char* name, Shape shape);
  Weight constant(const char* name, Shape shape);
  // What is no float32 likewise; it stays as it is in the file.
  Tensor listed(const char* name, Type type, Shape shape);
  Tensor constant_listed(const char* name, Type type, Shape shape);
  // In a training step: a parameter that is trained, a buffer that the step changes.
  Weight parameter(const char* name, Shape shape);
  Weight buffer(const char* name, Shape shape);
  // An integer buffer that counts steps.
  void count(const char* name);
  // The weight as an operand of a run: row-major, unless it was computed in another layout.
  Tensor stored(Weight weight);
  // Memory for what is computed from weights; reads as a weight and, by stored(), as an operand.
  Weight computed(Shape shape, Layout layout = Layout::plain);
  // A weight for a later stage, by a name.
  void save(const char* name, Weight weight);
  Weight saved(const char* name) const;
  // Names what follows in errors and profiles. `name` must live as long as the program.
  void step(const char* name);
  // Calls that follow belong to load() until run_steps().
  void load_steps();
  void run_steps();
  // What follows belongs to the next phase: forward, loss, backward and update.
  void end_phase();
  // Allocates all memory and binds the calls to it.
  void finish();

  // Puts a weight set in; `constants` may be null where the network has none. Throws with what is missing or of
  // another shape or type.
  void load(const char* weights, const char* constants);
  // Contiguous, of the input's type, which must live until the run has ended.
  void set_input(int number, const void* data);
  // A run; on a GPU it is done, and the results are there, only when wait() returns.
  void start();
  void wait();
  // Of a training step, `phase` 0, 1 and 2 in this order; done when it returns.
  void run_phase(int phase);
  void set_labels(const std::int64_t* labels);
  void set_dropout(bool on);
  // How many masks were drawn, from which the next ones follow; false: the step has no dropout.
  bool draws(std::uint64_t& count) const;
  void set_draws(std::uint64_t count);
  // From the next step on. The other one begins without buffers. Adam's second buffers are allocated when it first is
  // set.
  void set_optimiser(const Sgd& sgd);
  void set_optimiser(const Adam& adam);
  // The largest norm of all gradients together, of a program that clips them; 0: as they are.
  void set_clip_norm(double norm);
  // All buffers of the optimiser, and the count of steps that Adam's bias correction goes by.
  void drop_momentum();
  void set_steps(std::int64_t done);
  // A parameter, buffer or count, row-major; false: there is none. `data` is float32, of a count int64.
  bool read(const char* name, void* data) const;
  bool write(const char* name, const void* data);
  // The momentum of a parameter, of Adam the mean of gradients; false: it has none (yet).
  bool read_momentum(const char* name, float* data) const;
  bool write_momentum(const char* name, const float* data);
  // Adam's mean of squares likewise.
  bool read_square(const char* name, float* data) const;
  bool write_square(const char* name, const float* data);
  // Result `number` of the last run, contiguous.
  const void* output(int number) const;
  Facts facts() const;
  // Of call `number` of a run, in the order in which they run.
  CallFacts call(int number) const;
  // A run, or a whole training step, done when it returns: `times`, two for each call, gets when it began and ended, in
  // nanoseconds of the monotonic clock. On a GPU each call is waited for.
  void run_timed(std::int64_t* times);

  Internals& internals() { return *internals_; }
  Loading& loading() const;

 private:
  std::unique_ptr<Internals> internals_;
};

}  // namespace kit
