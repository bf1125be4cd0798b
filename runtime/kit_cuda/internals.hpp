// SPDX-License-Identifier: Apache-2.0
// What the operations of the kit on CUDA share: calls that give work to a stream, and who owns which bytes of the
// device. Included by the kit alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kit/loading.hpp"
#include "kit/training.hpp"
#include "kit_cuda/graph.hpp"
#include "kit_cuda/kernels/descent.hpp"
#include "kit_cuda/kernels/dropout.hpp"
#include "kit_cuda/kernels/view.hpp"
#include "kit_cuda/libraries.hpp"
#include "kit_cuda/staging.hpp"

namespace kit {

namespace device = kit_cuda;
using device::Stream;

// Gives its work to the stream; where tensors lie is asked then, when all memory is there.
struct Call {
  std::function<void(Stream)> run;
  const char* step = "";
  std::string kernel;
  bool moves_only = false;
};

// Bytes of a weight for as long as the program lives, in the layout that its reader wants; or a parameter's momentum.
struct StoredWeight {
  int weight = -1;
  Layout layout = Layout::plain;
  bool is_momentum = false;
  std::size_t offset = 0;
  Shape shape;
  Type type = Type::float32;
};

// What a part of a tensor begins with, in elements, and how it lies.
struct Part {
  device::View view;
  Extent first = 0;
};

struct Internals : Loading {
  Internals();
  ~Internals();

  // Where a tensor lies, once all memory is there.
  std::byte* address(const Tensor& tensor) const;
  device::Source source(const Tensor& tensor) const;
  device::Target target(const Tensor& tensor) const;
  const float* floats(const Tensor& tensor) const;
  float* floats_to(const Tensor& tensor) const;

  // The weight in this layout and type, as an operand; made, or found among those that are. One that training changes
  // lies as its first reader wants it, in float32, and is copied for others and for other types in every run.
  Tensor packed(Weight weight, Layout layout, Type type = Type::float32);
  // The place that training changes. A parameter that no forward step has asked for lies row-major.
  const StoredWeight& home(Weight weight);
  // Adam's second buffer of a weight; null: it has none.
  float* second_of(int weight);
  // A parameter's update by a gradient that lies as its home does, as a call.
  void add_descent(Weight weight, const Tensor& gradient);
  // Memory of the current step alone.
  Tensor temporary(Shape shape, Layout layout = Layout::plain, Type type = Type::float32);
  Tensor temporary_bytes(std::size_t bytes);
  // Bytes that kernels read and nobody changes: where they will be in `table_memory`.
  std::size_t table(const void* data, std::size_t bytes);
  void add(std::string kernel, std::function<void(Stream)> run, bool moves_only = false);
  // To another place, layout or type, of the same shape; at once, or as a call.
  void copy(Stream on, const Tensor& from, const Part& source, const Tensor& to, const Part& result) const;
  void add_copy(const Tensor& from, const Tensor& to);
  // The tensor, or a copy of it in float32.
  Tensor as_float32(const Tensor& tensor);

  void allocate_all();
  // Between host memory, row-major, and the place of a weight, in the stream's order.
  void write_stored(const StoredWeight& where, const float* data) {
    write_at(weight_memory.get() + where.offset, where, data);
  }
  void read_stored(const StoredWeight& where, float* data) { read_at(weight_memory.get() + where.offset, where, data); }
  void write_at(std::byte* place, const StoredWeight& where, const float* data);
  void read_at(std::byte* place, const StoredWeight& where, float* data);
  std::byte* bounce_of(std::size_t bytes);  // memory between the two
  // What changes from step to step without the step's being recorded anew, on the device: DropoutState, then Rates of
  // each weight by its number.
  void send_control(bool begins_step);
  device::DropoutState* dropout_state() const;
  const device::Rates* rates_of(int weight) const;
  void send_labels();
  // All that a run reads from the host.
  void send(bool begins_step);
  // The calls of a phase, or all (`phase` < 0): the first time one by one, from then on as a graph.
  void play(int phase);
  void begin(int phase);  // with what goes to the device before, and the results behind
  void end_step();        // of training: what is counted on the host

  Stream stream = nullptr, copies = nullptr;
  std::unique_ptr<device::Libraries> libraries;
  std::vector<Call> calls;
  std::vector<std::size_t> phase_ends;  // of a training step, as numbers of calls
  bool loading = false;                 // calls go to load()
  const char* step = "";
  std::vector<StoredWeight> stored;
  std::vector<std::byte> tables;
  int labels = 0, classes = 0;  // of a training step: how many, and how many there may be
  std::vector<int> computed;    // weights of the load steps that are being added

  std::vector<std::size_t> input_offsets, input_bytes, output_offsets;
  std::size_t arena_bytes = 0, weight_bytes = 0, temporary_bytes_most = 0, temporary_now = 0;
  std::size_t inputs_bytes = 0, output_bytes = 0;
  device::Memory arena, weight_memory, scratch, inputs, outputs, table_memory, control_memory, label_memory, bounce;
  std::size_t bounce_bytes = 0;
  std::map<int, device::Memory> seconds;  // Adam's second buffers, by weight
  device::PinnedMemory results;
  std::vector<std::unique_ptr<device::Staging>> staged;  // of each input
  std::unique_ptr<device::Staging> staged_control, staged_labels;
  std::vector<std::byte> sent;  // of the control, last

  struct Recorded {
    bool ran = false;
    std::unique_ptr<device::Graph> graph;
  };
  Recorded recorded[4];  // all calls, and each phase's
};

device::View view_of(const Shape& shape, Layout layout);
device::View view_of(const Tensor& tensor);
bool same_shape(const Shape& a, const Shape& b);
std::size_t bytes_of(const Shape& shape, Type type);
std::size_t whole_lines(std::size_t bytes);  // so that what follows is aligned

}  // namespace kit
