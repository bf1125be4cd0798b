// SPDX-License-Identifier: Apache-2.0
// What the operations share: oneDNN's engine, calls with their arguments in place, and who owns which bytes. Included
// by the kit alone, since oneDNN's header takes long to read.
#pragma once

#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kit/loading.hpp"

namespace kit {

using dnnl::memory;

// One execution: of a oneDNN primitive with its arguments (the C function takes them as they lie here), or of a
// function of the kit's own.
struct Call {
  dnnl_primitive_t primitive = nullptr;
  const dnnl_exec_arg_t* arguments = nullptr;
  int count = 0;
  void (*own)(const void* context) = nullptr;
  const void* context = nullptr;
  const char* step = "";
  const char* operation = "";  // "convolution"
  const char* kernel = "";
  bool moves_only = false;
};

// Bytes of a weight for as long as the program lives, in the layout that its reader wants: that of `desc`, or one of
// the kit's own, which `packing` names.
struct StoredWeight {
  int weight = -1;
  memory::desc as_given, desc;
  std::string packing;
  std::size_t offset = 0;
};

struct Internals : Loading {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  // A handle whose bytes are set by finish(), or by set_input for an input.
  memory handle(const Tensor& tensor, const memory::desc& desc, std::size_t offset_bytes = 0);
  // The weight in the layout that a call wants, from `as_given`, its row-major form (groups may be split).
  memory packed(Weight weight, const memory::desc& as_given, const memory::desc& packed_desc);
  // The weight as `pack(given, floats)` makes it for a kernel of the kit; what has the same `packing` is made once.
  memory packed(Weight weight, const std::string& packing, std::size_t floats,
                std::function<void(const float*, float*)> pack);
  // Where a weight that training changes lies: in the layout that its first reader wants; the handle is of its form
  // `to`, which is made in scratch memory where it differs.
  Tensor row_major_form(Weight weight);
  memory at_home(Weight weight, const memory::desc& as_given, const memory::desc& to);
  const memory::desc& home_of(Weight weight) const;
  // Bytes of the home, or of the buffers beside it (null: there is no such), while the program runs.
  float* home(int weight) const;
  float* momentum(int weight);
  float* square(int weight);
  // Memory that all calls share, one after the other.
  memory scratchpad(const memory::desc& desc);
  // Memory of the current step alone.
  Tensor temporary(Shape shape, Layout layout = Layout::plain, Type type = Type::float32);
  Tensor temporary_bytes(std::size_t bytes);  // without a shape, for handle()
  void add(dnnl::primitive primitive, const dnnl::primitive_desc_base& pd,
           std::vector<std::pair<int, memory>> arguments, bool moves_only = false);
  void add_reorder(const memory& source, const memory& result);
  template <class Context>
  void add_own(Context context, bool moves_only, const char* kernel);
  void add_call(const Call& call);

  std::vector<Call> calls;
  std::vector<std::size_t> phase_ends;  // of a training step, as numbers of calls
  bool loading = false;                 // calls go to load()
  const char* step = "";
  std::vector<StoredWeight> stored;

  struct Placed {
    memory handle;
    Region region;
    std::int64_t at;
    std::size_t offset;
  };
  std::vector<Placed> placed;
  std::vector<std::vector<std::pair<memory, std::size_t>>> readers;  // of each input
  std::vector<std::size_t> output_offsets;
  std::size_t arena_bytes = 0, weight_bytes = 0, scratchpad_bytes = 0, temporary_bytes_most = 0, output_bytes = 0;
  std::size_t temporary_now = 0;
  std::vector<memory> scratchpads;
  Bytes arena, weight_memory, scratch, outputs;
  bool finished = false, loaded = false;

  // what calls point to
  std::vector<dnnl::primitive> primitives;
  std::vector<std::vector<std::pair<int, memory>>> held;
  std::vector<std::unique_ptr<std::vector<dnnl_exec_arg_t>>> arguments;
  std::vector<std::shared_ptr<const void>> contexts;
};

template <class Context>
void Internals::add_own(Context context, bool moves_only, const char* kernel) {
  auto kept_context = std::make_shared<const Context>(std::move(context));
  Call call;
  call.own = [](const void* it) { (*static_cast<const Context*>(it))(); };
  call.context = kept_context.get();
  call.step = step;
  // what is not named after what it does is a way to convolve
  call.operation = std::string_view(kernel).starts_with("kit:") ? kernel + 4 : "convolution";
  call.kernel = kernel;
  call.moves_only = moves_only;
  contexts.push_back(std::move(kept_context));
  add_call(call);
}

// The bytes of a row-major tensor of any type.
memory raw_handle(Internals& in, const Tensor& tensor);
// Row-major; a scalar is {1}, since oneDNN knows no tensor without dimensions.
memory::dims dims_of(const Shape& shape);
memory::dims row_major_strides(const memory::dims& dims);
memory::data_type data_type_of(Type type);  // throws for int64, which oneDNN does not know
memory::desc row_major(const memory::dims& dims, Type type = Type::float32);
memory::desc desc_of(const Tensor& tensor);
// The tensor, or what it is in the other type, made in scratch memory.
Tensor in_type(Internals& in, const Tensor& tensor, Type type);
// Of what may be left out: no memory then.
memory handle_of(Internals& in, const Tensor& tensor);
memory stored_handle(Program& program, const Weight& weight);  // row-major
memory::desc any(const memory::dims& dims, Type type = Type::float32);
memory::dims counted_from_zero(const Shape& dilation);  // as oneDNN has it
// A convolution's weight with a dimension for its groups, if there are several.
memory::dims grouped(const Shape& weight, Extent groups);
// A kernel that oneDNN calls `ref`: a slow one.
bool is_reference(const char* kernel);
// Strict float32, and a scratchpad that calls share.
dnnl::primitive_attr plain_attributes();
void execute(const Call& call, dnnl_stream_t stream);  // throws with the step's name

inline std::vector<Extent> extents_of(const Tensor& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

// With the step's name in what the work throws.
template <class Work>
void in_step(const char* step, const Work& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(step) + ": " + error.what());
  }
}

}  // namespace kit
