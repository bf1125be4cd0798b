// SPDX-License-Identifier: Apache-2.0
// What training changes: parameters and buffers at home in one layout, the optimiser, counts; reading and writing them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "kit/descent.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

LoadedWeight* changing(Internals& in, const char* name) {
  for (auto& entry : in.weights)
    if ((entry.trained || entry.changed) && entry.home >= 0 && entry.name == name) return &entry;
  return nullptr;
}

// Between a row-major form and the home, outside of a run.
void copy(Internals& in, const StoredWeight& home, const float* from, float* to, bool into_home) {
  memory source(into_home ? home.as_given : home.desc, in.engine, const_cast<float*>(from));
  memory destination(into_home ? home.desc : home.as_given, in.engine, to);
  dnnl::reorder(source, destination).execute(in.stream, source, destination);
  in.stream.wait();
}

float* bytes_of(const Internals& in, int place) {
  return reinterpret_cast<float*>(in.weight_memory.get() + in.stored[static_cast<std::size_t>(place)].offset);
}

std::size_t bytes_of_home(const Internals& in, const LoadedWeight& loaded_weight) {
  return in.stored[static_cast<std::size_t>(loaded_weight.home)].desc.get_size();
}

// Adam's buffers, where one is written and the other may not be.
void clear_if_new(Internals& in, LoadedWeight& loaded_weight) {
  if (loaded_weight.has_momentum || !in.training.is_adam) return;
  std::memset(bytes_of(in, loaded_weight.momentum), 0, bytes_of_home(in, loaded_weight));
  std::memset(loaded_weight.second.get(), 0, bytes_of_home(in, loaded_weight));
}

struct Count {
  std::int64_t* count;
  void operator()() const { ++*count; }
};

// As torch.nn.utils.clip_grad_norm_ has it, summed in float64.
struct Clipping {
  const TrainingState* training;
  std::vector<std::pair<memory, Extent>> gradients;
  memory share;
  void operator()() const {
    double squares = 0;
    if (training->clip_norm > 0)
      for (const auto& [gradient, count] : gradients)
        squares += squares_of(static_cast<const float*>(gradient.get_data_handle()), count);
    const double clipped = training->clip_norm > 0 ? training->clip_norm / (std::sqrt(squares) + 1e-6) : 1;
    *static_cast<float*>(share.get_data_handle()) = static_cast<float>(std::min(clipped, 1.0));  // NaN stays
  }

 private:
  static double squares_of(const float* values, Extent count) {
    double squares = 0;
#pragma omp parallel for simd reduction(+ : squares) schedule(static) if (count > 16384)
    for (Extent i = 0; i < count; ++i) squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    return squares;
  }
};

}  // namespace

Tensor Internals::row_major_form(Weight weight) {
  auto& entry = weights[static_cast<std::size_t>(weight.number)];
  const auto desc = row_major({std::max<Extent>(entry.shape.elements(), 1)});
  if (entry.home < 0) static_cast<void>(packed(weight, desc, desc));
  const auto home = stored[static_cast<std::size_t>(entry.home)];
  const Tensor place{Region::weights, entry.home, weight.shape, Layout::plain};
  if (home.desc == home.as_given) return place;
  const Tensor copy = temporary(weight.shape);
  add_reorder(handle(place, home.desc), handle(copy, home.as_given));
  return copy;
}

memory Internals::at_home(Weight weight, const memory::desc& as_given, const memory::desc& to) {
  const auto& entry = weights[static_cast<std::size_t>(weight.number)];
  const auto home = stored[static_cast<std::size_t>(entry.home)];
  const Tensor place{Region::weights, entry.home, weight.shape, Layout::plain};
  if (home.desc == to) return handle(place, to);
  // where groups are split in one form alone: by way of the row-major one
  const bool alike = home.desc.get_dims() == to.get_dims();
  const memory from = alike ? handle(place, home.desc) : handle(row_major_form(weight), as_given);
  if (from.get_desc() == to) return from;
  const memory destination = handle(temporary_bytes(to.get_size()), to);
  add_reorder(from, destination);
  return destination;
}

const memory::desc& Internals::home_of(Weight weight) const {
  return stored[static_cast<std::size_t>(weights[static_cast<std::size_t>(weight.number)].home)].desc;
}

float* Internals::home(int weight) const {
  return bytes_of(*this, weights[static_cast<std::size_t>(weight)].home);
}

float* Internals::momentum(int weight) {
  return bytes_of(*this, weights[static_cast<std::size_t>(weight)].momentum);
}

float* Internals::square(int weight) {
  return reinterpret_cast<float*>(weights[static_cast<std::size_t>(weight)].second.get());
}

void Program::set_optimiser(const Adam& adam) {
  Internals& in = *internals_;
  if (!in.training.is_adam) drop_momentum();
  in.training.adam = adam;
  in.training.is_adam = true;
  for (auto& weight : in.weights)
    if (weight.momentum >= 0 && !weight.second) weight.second = allocate(bytes_of_home(in, weight));
}

void Program::count(const char* name) {
  internals_->add_own(Count{&internals_->training.counts[name]}, false, "kit:count");
}

void Program::set_labels(const std::int64_t* labels) {
  internals_->training.labels = labels;
}

bool Program::read(const char* name, void* data) const {
  Internals& in = *internals_;
  if (const auto count = in.training.counts.find(name); count != in.training.counts.end()) {
    std::memcpy(data, &count->second, sizeof count->second);
    return true;
  }
  const auto* entry = changing(in, name);
  if (entry == nullptr) return false;
  copy(in, in.stored[static_cast<std::size_t>(entry->home)], bytes_of(in, entry->home), static_cast<float*>(data),
       false);
  return true;
}

bool Program::write(const char* name, const void* data) {
  Internals& in = *internals_;
  if (const auto count = in.training.counts.find(name); count != in.training.counts.end()) {
    std::memcpy(&count->second, data, sizeof count->second);
    return true;
  }
  const auto* entry = changing(in, name);
  if (entry == nullptr) return false;
  copy(in, in.stored[static_cast<std::size_t>(entry->home)], static_cast<const float*>(data), bytes_of(in, entry->home),
       true);
  return true;
}

bool Program::read_momentum(const char* name, float* data) const {
  Internals& in = *internals_;
  const auto* entry = changing(in, name);
  if (entry == nullptr || !entry->has_momentum) return false;
  copy(in, in.stored[static_cast<std::size_t>(entry->momentum)], bytes_of(in, entry->momentum), data, false);
  return true;
}

bool Program::write_momentum(const char* name, const float* data) {
  Internals& in = *internals_;
  auto* entry = changing(in, name);
  if (entry == nullptr || entry->momentum < 0) return false;
  clear_if_new(in, *entry);
  copy(in, in.stored[static_cast<std::size_t>(entry->momentum)], data, bytes_of(in, entry->momentum), true);
  entry->has_momentum = true;
  return true;
}

bool Program::read_square(const char* name, float* data) const {
  Internals& in = *internals_;
  const auto* entry = changing(in, name);
  if (entry == nullptr || !entry->has_momentum || !in.training.is_adam) return false;
  copy(in, in.stored[static_cast<std::size_t>(entry->home)], reinterpret_cast<const float*>(entry->second.get()), data,
       false);
  return true;
}

bool Program::write_square(const char* name, const float* data) {
  Internals& in = *internals_;
  auto* entry = changing(in, name);
  if (entry == nullptr || !entry->second || !in.training.is_adam) return false;
  clear_if_new(in, *entry);
  copy(in, in.stored[static_cast<std::size_t>(entry->home)], data, reinterpret_cast<float*>(entry->second.get()), true);
  entry->has_momentum = true;
  return true;
}

void clip_gradients(Program& program, const ClipGradients& how) {
  Internals& in = program.internals();
  Clipping clipping{&in.training, {}, in.handle(how.share, row_major({1}))};
  for (const auto& gradient : how.gradients) {
    const auto count = gradient.shape.elements();
    clipping.gradients.emplace_back(in.handle(gradient, row_major({std::max<Extent>(count, 1)})), count);
  }
  in.add_own(std::move(clipping), false, "kit:norm of gradients");
}

void descend(Program& program, const Descend& how) {
  Internals& in = program.internals();
  const int number = how.parameter.number;
  if (in.weights[static_cast<std::size_t>(number)].home < 0) static_cast<void>(in.row_major_form(how.parameter));
  const auto home = in.stored[static_cast<std::size_t>(in.weights[static_cast<std::size_t>(number)].home)];
  memory gradient = in.handle(how.gradient, home.as_given);
  if (home.desc != home.as_given) {
    const memory blocked = in.handle(in.temporary_bytes(home.desc.get_size()), home.desc);
    in.add_reorder(gradient, blocked);
    gradient = blocked;
  }
  const memory share = how.share ? in.handle(how.share, row_major({1})) : memory();
  in.add_own(Descent{&in, number, gradient, share}, false, "kit:update");
}

}  // namespace kit
