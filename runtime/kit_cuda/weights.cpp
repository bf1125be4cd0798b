// SPDX-License-Identifier: Apache-2.0
// Weights on the device, in the layouts that calls want; what training changes: parameters and statistics at home in
// one layout, momentum beside them, counts; reading and writing them.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kit_cuda/internals.hpp"
#include "kit_cuda/kernels/move.hpp"

namespace kit {
namespace {

// The layout, or the one that is the same order of elements.
Layout needed(const Shape& shape, Layout layout) {
  return shape.rank < 3 ? Layout::plain : layout;
}

int add_stored(Internals& in, const StoredWeight& stored_weight) {
  in.stored.push_back(stored_weight);
  in.stored.back().offset = in.weight_bytes;
  in.weight_bytes += whole_lines(std::max<std::size_t>(bytes_of(stored_weight.shape, stored_weight.type), 1));
  return static_cast<int>(in.stored.size()) - 1;
}

LoadedWeight* changing(Internals& in, const char* name) {
  for (auto& entry : in.weights)
    if ((entry.trained || entry.changed) && entry.home >= 0 && entry.name == name) return &entry;
  return nullptr;
}

std::int64_t* count_of(Internals& in, const char* name) {
  const auto it = in.training.counts.find(name);
  return it == in.training.counts.end() ? nullptr : &it->second;
}

int number_of(const Internals& in, const LoadedWeight& loaded_weight) {
  return static_cast<int>(&loaded_weight - in.weights.data());
}

// Adam's buffers, where one is written and the other may not be.
void clear_if_new(Internals& in, const LoadedWeight& loaded_weight) {
  if (loaded_weight.has_momentum || !in.training.is_adam) return;
  const auto& where = in.stored[static_cast<std::size_t>(loaded_weight.momentum)];
  const auto bytes = bytes_of(where.shape, where.type);
  device::clear(in.weight_memory.get() + where.offset, bytes, in.stream);
  device::clear(in.second_of(number_of(in, loaded_weight)), bytes, in.stream);
}

}  // namespace

Tensor Internals::packed(Weight weight, Layout layout, Type type) {
  auto& loaded = weights.at(static_cast<std::size_t>(weight.number));
  const StoredWeight described{weight.number, needed(weight.shape, layout), false, 0, weight.shape, type};
  const auto as_tensor = [&](int place) {
    const auto& entry = stored[static_cast<std::size_t>(place)];
    return Tensor{Region::weights, place, weight.shape, entry.layout, entry.type};
  };
  const bool lives = loaded.trained || loaded.changed;
  if (lives && (loaded.home >= 0 || type != Type::float32)) {
    const Tensor own = loaded.home >= 0 ? as_tensor(loaded.home) : packed(weight, layout);
    if (own.layout == described.layout && own.type == type) return own;
    const Tensor copy = temporary(weight.shape, described.layout, type);
    add_copy(own, copy);
    return copy;
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const bool fits = described.layout == Layout::plain || same_shape(stored[i].shape, described.shape);
    if (stored[i].weight == described.weight && stored[i].layout == described.layout &&
        stored[i].type == described.type && !stored[i].is_momentum && fits)
      return as_tensor(static_cast<int>(i));
  }
  const int place = add_stored(*this, described);
  if (lives) loaded.home = place;
  if (loaded.trained) {
    StoredWeight momentum = described;
    momentum.is_momentum = true;
    loaded.momentum = add_stored(*this, momentum);
  }
  add_load_step({{weight.number}, -1, [this, weight, place] {
                   write_stored(stored[static_cast<std::size_t>(place)],
                                weights[static_cast<std::size_t>(weight.number)].data);
                 }});
  return as_tensor(place);
}

Tensor Program::stored(Weight weight) {
  Internals& in = *internals_;
  const auto& loaded = in.weights.at(static_cast<std::size_t>(weight.number));
  if (loaded.permanent) return {Region::weights, loaded.stored, weight.shape, loaded.layout};
  return in.packed(weight, Layout::plain);
}

Weight Program::computed(Shape shape, Layout layout) {
  Internals& in = *internals_;
  const int number = static_cast<int>(in.weights.size());
  auto& loaded = in.weights.emplace_back();
  loaded.shape = shape;
  loaded.layout = layout;
  loaded.permanent = true;
  loaded.stored = add_stored(in, {number, layout, false, 0, shape});
  in.computed.push_back(number);
  return {number, shape};
}

void Program::load_steps() {
  internals_->loading = true;
}

// What was computed on the device may be asked for on the host: by folding, or to be packed otherwise.
void Program::run_steps() {
  Internals& in = *internals_;
  in.loading = false;
  for (const int number : in.computed)
    in.add_load_step({{}, number, [&in, number] {
                        auto& entry = in.weights[static_cast<std::size_t>(number)];
                        if (entry.uses > 0)
                          in.read_stored(in.stored[static_cast<std::size_t>(entry.stored)],
                                         in.allocate_computed(number));
                      }});
  in.computed.clear();
}

void Program::load(const char* weights, const char* constants) {
  Internals& in = *internals_;
  in.load_files(weights, constants, [](int) { return nullptr; });
  device::wait_for(in.stream);
  in.bounce = {};
  in.bounce_bytes = 0;
}

std::byte* Internals::bounce_of(std::size_t bytes) {
  if (bytes > bounce_bytes) {
    device::wait_for(stream);
    bounce = device::memory(bytes);
    bounce_bytes = bytes;
  }
  return bounce.get();
}

void Internals::write_at(std::byte* place, const StoredWeight& where, const float* data) {
  const auto bytes = bytes_of(where.shape, Type::float32);
  if (where.layout == Layout::plain && where.type == Type::float32)
    return device::copy_to_device(place, data, bytes, stream);
  auto* plain = reinterpret_cast<float*>(bounce_of(bytes));
  device::copy_to_device(plain, data, bytes, stream);
  const device::Source source{plain, view_of(where.shape, Layout::plain)};
  const auto view = view_of(where.shape, where.layout);
  if (where.type == Type::bfloat16)
    device::convert(stream, source,
                    device::Strided<device::Bfloat16>{reinterpret_cast<device::Bfloat16*>(place), view});
  else
    device::copy(stream, source, {reinterpret_cast<float*>(place), view});
}

void Internals::read_at(std::byte* at, const StoredWeight& where, float* data) {
  const auto bytes = static_cast<std::size_t>(where.shape.elements()) * sizeof(float);
  auto* place = reinterpret_cast<float*>(at);
  if (where.layout != Layout::plain) {
    auto* plain = reinterpret_cast<float*>(bounce_of(bytes));
    device::copy(stream, {place, view_of(where.shape, where.layout)}, {plain, view_of(where.shape, Layout::plain)});
    place = plain;
  }
  device::copy_to_host(data, place, bytes, stream);
  device::wait_for(stream);
}

const StoredWeight& Internals::home(Weight weight) {
  const auto& loaded = weights[static_cast<std::size_t>(weight.number)];
  if (loaded.home < 0) static_cast<void>(packed(weight, Layout::plain));
  return stored[static_cast<std::size_t>(loaded.home)];
}

void Internals::add_descent(Weight weight, const Tensor& gradient) {
  const auto& loaded = weights[static_cast<std::size_t>(weight.number)];
  const Tensor own{Region::weights, loaded.home, weight.shape, Layout::plain},
      velocity{Region::weights, loaded.momentum, weight.shape, Layout::plain};
  add("update", [this, weight, own, velocity, gradient](Stream on) {
    device::descend(on, rates_of(weight.number), {floats_to(own), floats_to(velocity), second_of(weight.number)},
                    floats(gradient), own.shape.elements());
  });
}

float* Internals::second_of(int weight) {
  const auto it = seconds.find(weight);
  return it == seconds.end() ? nullptr : reinterpret_cast<float*>(it->second.get());
}

// A recorded step has the places of all buffers in it, so that it is recorded anew once there are more.
void Program::set_optimiser(const Adam& adam) {
  Internals& in = *internals_;
  if (!in.training.is_adam) drop_momentum();
  in.training.adam = adam;
  in.training.is_adam = true;
  if (!in.seconds.empty()) return;
  device::wait_for(in.stream);
  for (std::size_t number = 0; number < in.weights.size(); ++number) {
    const auto& entry = in.weights[number];
    if (entry.momentum < 0) continue;
    const auto& where = in.stored[static_cast<std::size_t>(entry.home)];
    const auto bytes = std::max<std::size_t>(bytes_of(where.shape, where.type), sizeof(float));
    auto& second = in.seconds[static_cast<int>(number)] = device::memory(bytes);
    device::clear(second.get(), bytes, in.stream);
  }
  for (auto& record : in.recorded) record = {};
}

void descend(Program& program, const Descend& how) {
  Internals& in = program.internals();
  const auto& home = in.home(how.parameter);
  Tensor gradient = how.gradient.as(how.parameter.shape);
  if (home.layout != Layout::plain) {
    gradient = in.temporary(home.shape, home.layout);
    in.add_copy(how.gradient.as(home.shape), gradient);
  }
  in.add_descent(how.parameter, gradient);
}

void Program::count(const char* name) {
  internals_->training.counts[name];
}

void Program::set_labels(const std::int64_t* labels) {
  internals_->training.labels = labels;
}

bool Program::read(const char* name, void* data) const {
  Internals& in = *internals_;
  if (const auto* count = count_of(in, name)) return std::memcpy(data, count, sizeof *count) != nullptr;
  const auto* entry = changing(in, name);
  if (entry != nullptr) in.read_stored(in.stored[static_cast<std::size_t>(entry->home)], static_cast<float*>(data));
  return entry != nullptr;
}

bool Program::write(const char* name, const void* data) {
  Internals& in = *internals_;
  if (auto* count = count_of(in, name)) return std::memcpy(count, data, sizeof *count) != nullptr;
  const auto* entry = changing(in, name);
  if (entry != nullptr) {
    in.write_stored(in.stored[static_cast<std::size_t>(entry->home)], static_cast<const float*>(data));
    device::wait_for(in.stream);
  }
  return entry != nullptr;
}

bool Program::read_momentum(const char* name, float* data) const {
  Internals& in = *internals_;
  const auto* entry = changing(in, name);
  if (entry == nullptr || !entry->has_momentum) return false;
  in.read_stored(in.stored[static_cast<std::size_t>(entry->momentum)], data);
  return true;
}

bool Program::write_momentum(const char* name, const float* data) {
  Internals& in = *internals_;
  auto* entry = changing(in, name);
  if (entry == nullptr || entry->momentum < 0) return false;
  clear_if_new(in, *entry);
  in.write_stored(in.stored[static_cast<std::size_t>(entry->momentum)], data);
  device::wait_for(in.stream);
  entry->has_momentum = true;
  return true;
}

bool Program::read_square(const char* name, float* data) const {
  Internals& in = *internals_;
  const auto* entry = changing(in, name);
  if (entry == nullptr || !entry->has_momentum || !in.training.is_adam) return false;
  in.read_at(reinterpret_cast<std::byte*>(in.second_of(number_of(in, *entry))),
             in.stored[static_cast<std::size_t>(entry->momentum)], data);
  return true;
}

bool Program::write_square(const char* name, const float* data) {
  Internals& in = *internals_;
  auto* entry = changing(in, name);
  if (entry == nullptr || entry->momentum < 0 || !in.training.is_adam) return false;
  clear_if_new(in, *entry);
  in.write_at(reinterpret_cast<std::byte*>(in.second_of(number_of(in, *entry))),
              in.stored[static_cast<std::size_t>(entry->momentum)], data);
  device::wait_for(in.stream);
  entry->has_momentum = true;
  return true;
}

}  // namespace kit
