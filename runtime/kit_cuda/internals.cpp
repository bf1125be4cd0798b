// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/internals.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kit_cuda/kernels/move.hpp"

namespace kit {

std::size_t bytes_of(const Shape& shape, Type type) {
  return static_cast<std::size_t>(shape.elements()) *
         (type == Type::bfloat16 ? sizeof(device::Bfloat16) : sizeof(float));
}

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

device::View view_of(const Shape& shape, Layout layout) {
  if (layout == Layout::blocked8 || layout == Layout::blocked16) throw std::logic_error("blocks of channels on a GPU");
  if (layout == Layout::channels_last) return device::channels_last(shape.extents, shape.rank);
  if (shape.rank <= device::most_dims) return device::row_major(shape.extents, shape.rank);
  throw std::logic_error("a tensor of more than 6 dimensions");
}
device::View view_of(const Tensor& tensor) {
  return view_of(tensor.shape, tensor.layout);
}

bool same_shape(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

Internals::Internals()
    : stream(device::make_stream()),
      copies(device::make_stream()),
      libraries(std::make_unique<device::Libraries>(stream)) {}

Internals::~Internals() {
  try {  // nothing may read memory that is given back
    device::wait_for(copies);
    device::wait_for(stream);
  } catch (const device::DeviceError&) {  // told by the call that failed
  }
  libraries.reset();
  device::end_stream(copies);
  device::end_stream(stream);
}

std::byte* Internals::address(const Tensor& tensor) const {
  const auto at = static_cast<std::size_t>(tensor.at);
  switch (tensor.region) {
    case Region::arena:
      return arena.get() + at;
    case Region::input:
      return inputs.get() + input_offsets.at(at);
    case Region::output:
      return outputs.get() + output_offsets.at(at);
    case Region::weights:
      return weight_memory.get() + stored.at(at).offset;
    case Region::scratch:
      return scratch.get() + at;
    case Region::listed:  // numbers of rows, which lie in tables
    case Region::none:
      break;
  }
  return nullptr;
}

const float* Internals::floats(const Tensor& tensor) const {
  return reinterpret_cast<const float*>(address(tensor));
}
float* Internals::floats_to(const Tensor& tensor) const {
  return reinterpret_cast<float*>(address(tensor));
}
device::Source Internals::source(const Tensor& tensor) const {
  return tensor ? device::Source{floats(tensor), view_of(tensor)} : device::Source{};
}
device::Target Internals::target(const Tensor& tensor) const {
  return tensor ? device::Target{floats_to(tensor), view_of(tensor)} : device::Target{};
}

Tensor Internals::temporary_bytes(std::size_t bytes) {
  const Tensor temporary_tensor{Region::scratch, static_cast<std::int64_t>(temporary_now), {}, Layout::plain};
  temporary_now += whole_lines(bytes);
  temporary_bytes_most = std::max(temporary_bytes_most, temporary_now);
  return temporary_tensor;
}

Tensor Internals::temporary(Shape shape, Layout layout, Type type) {
  Tensor temporary_tensor = temporary_bytes(bytes_of(shape, type));
  temporary_tensor.shape = shape;
  temporary_tensor.layout = layout;
  temporary_tensor.type = type;
  return temporary_tensor;
}

std::size_t Internals::table(const void* data, std::size_t bytes) {
  const auto offset = tables.size();
  tables.resize(offset + whole_lines(bytes));
  std::memcpy(tables.data() + offset, data, bytes);
  return offset;
}

void Internals::add(std::string kernel, std::function<void(Stream)> run, bool moves_only) {
  if (loading) return add_load_step({{}, -1, [this, run = std::move(run)] { run(stream); }});
  calls.push_back({std::move(run), step, std::move(kernel), moves_only});
}

namespace {

template <class T>
device::Strided<T> strided(std::byte* data, const Part& part) {
  return {reinterpret_cast<T*>(data) + part.first, part.view};
}

template <class From>
void copy_from(Stream on, device::Strided<const From> source, std::byte* to, Type type, const Part& result) {
  if (type == Type::bfloat16)
    device::convert(on, source, strided<device::Bfloat16>(to, result));
  else
    device::convert(on, source, strided<float>(to, result));
}

}  // namespace

void Internals::copy(Stream on, const Tensor& from, const Part& source, const Tensor& to, const Part& result) const {
  if (from.type == Type::bfloat16)
    copy_from(on, strided<const device::Bfloat16>(address(from), source), address(to), to.type, result);
  else
    copy_from(on, strided<const float>(address(from), source), address(to), to.type, result);
}

void Internals::add_copy(const Tensor& from, const Tensor& to) {
  add(
      "copy", [this, from, to](Stream on) { copy(on, from, {view_of(from)}, to, {view_of(to)}); }, true);
}

Tensor Internals::as_float32(const Tensor& tensor) {
  if (tensor.type == Type::float32) return tensor;
  const Tensor copied = temporary(tensor.shape, tensor.layout);
  add_copy(tensor, copied);
  return copied;
}

void Internals::allocate_all() {
  arena = device::memory(arena_bytes);
  weight_memory = device::memory(weight_bytes);
  scratch = device::memory(temporary_bytes_most);
  inputs = device::memory(inputs_bytes);
  outputs = device::memory(output_bytes);
  results = device::pinned_memory(output_bytes);
  table_memory = device::memory(tables.size());
  device::copy_to_device(table_memory.get(), tables.data(), tables.size(), stream);
  // what a kernel multiplies by zero must not be NaN
  device::clear(weight_memory.get(), weight_bytes, stream);
  for (const auto bytes : input_bytes) staged.push_back(std::make_unique<device::Staging>(bytes, copies));
  const auto control_bytes = sizeof(device::DropoutState) + weights.size() * sizeof(device::Rates);
  control_memory = device::memory(control_bytes);
  staged_control = std::make_unique<device::Staging>(control_bytes, copies);
  if (labels > 0) {
    const auto bytes = static_cast<std::size_t>(labels) * sizeof(std::int64_t);
    label_memory = device::memory(bytes);
    staged_labels = std::make_unique<device::Staging>(bytes, copies);
  }
  libraries->allocate_workspace();
  device::wait_for(stream);
}

device::DropoutState* Internals::dropout_state() const {
  return reinterpret_cast<device::DropoutState*>(control_memory.get());
}
const device::Rates* Internals::rates_of(int weight) const {
  return reinterpret_cast<const device::Rates*>(control_memory.get() + sizeof(device::DropoutState)) + weight;
}

void Internals::send_control(bool begins_step) {
  if (begins_step && training.dropout) ++training.draws;
  const device::DropoutState state{training.dropouts > 0 ? training.draws : 0, training.dropout ? 1U : 0U};
  std::vector<std::byte> now(sizeof state + weights.size() * sizeof(device::Rates));
  std::memcpy(now.data(), &state, sizeof state);
  const Sgd& sgd = training.sgd;
  const Adam& adam = training.adam;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto rates =
        training.is_adam
            ? device::rates_of(
                  device::Adam{adam.rate, adam.beta1, adam.beta2, adam.eps, adam.weight_decay, adam.decoupled},
                  training.steps, weights[i].has_momentum)
            : device::rates_of(device::Sgd{sgd.rate, sgd.momentum, sgd.dampening, sgd.weight_decay, sgd.nesterov},
                               weights[i].has_momentum);
    std::memcpy(now.data() + sizeof state + i * sizeof rates, &rates, sizeof rates);
  }
  if (now != sent) staged_control->put(now.data());
  sent = std::move(now);
  staged_control->take(control_memory.get(), stream);
}

void Internals::send_labels() {
  if (labels == 0) return;
  if (training.labels == nullptr) throw std::logic_error("no labels are set");
  std::vector<std::int64_t> staged(static_cast<std::size_t>(labels));
  std::memcpy(staged.data(), training.labels, staged.size() * sizeof(std::int64_t));  // it need not be aligned
  for (const auto label : staged)
    if (label < 0 || label >= classes)
      throw std::out_of_range("the label " + std::to_string(label) + " of " + std::to_string(classes) + " classes");
  staged_labels->put(staged.data());
  staged_labels->take(label_memory.get(), stream);
}

void Internals::send(bool begins_step) {
  send_control(begins_step);
  if (!begins_step) return;
  send_labels();
  for (std::size_t i = 0; i < staged.size(); ++i) staged[i]->take(inputs.get() + input_offsets[i], stream);
}

void Internals::play(int phase) {
  const auto which = static_cast<std::size_t>(std::max(phase, 0));
  const auto begin = which == 0 ? 0 : phase_ends.at(which - 1), end = phase < 0 ? calls.size() : phase_ends.at(which);
  const auto all = [&] {
    for (auto i = begin; i < end; ++i) calls[i].run(stream);
  };
  auto& record = recorded[phase + 1];
  // the libraries load kernels when these are first used, which a recording does not allow
  if (!record.ran) {
    all();
    record.ran = true;
    return;
  }
  if (record.graph == nullptr) {
    record.graph = std::make_unique<device::Graph>();
    record.graph->record(stream, all);
  }
  record.graph->launch(stream);
}

void Internals::begin(int phase) {
  send(phase <= 0);
  play(phase);
  device::copy_to_host(results.get(), outputs.get(), output_bytes, stream);
  const bool ends = phase < 0 || static_cast<std::size_t>(phase) + 1 == phase_ends.size();
  if (ends) end_step();
}

void Internals::end_step() {
  for (auto& [name, count] : training.counts) ++count;
  ++training.steps;
  const bool keeps = training.is_adam || training.sgd.momentum != 0;
  for (auto& weight : weights) weight.has_momentum = weight.momentum >= 0 && (weight.has_momentum || keeps);
}

}  // namespace kit
