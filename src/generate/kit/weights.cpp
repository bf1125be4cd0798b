// SPDX-License-Identifier: Apache-2.0
// Weights of a program: read from files, computed from others, stored in the layouts that calls want.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "kit/internals.hpp"

namespace kit {
namespace {

Weight named(std::vector<LoadedWeight>& weights, const char* name, Shape shape, bool is_constant) {
  const auto found = std::find_if(weights.begin(), weights.end(),
                                  [&](const auto& one) { return one.name == name && one.is_constant == is_constant; });
  const auto number = static_cast<int>(found - weights.begin());
  if (found == weights.end()) {
    weights.emplace_back();
    weights.back().name = name;
    weights.back().is_constant = is_constant;
    weights.back().shape = shape;
  }
  return {number, shape};
}

std::string text_of(const std::vector<long>& shape) {
  std::string text;
  for (const long one : shape) text += (text.empty() ? "" : ", ") + std::to_string(one);
  return "[" + text + "]";
}

// oneDNN's activations and maximum drop NaN, so that wrong results would look sound.
void refuse_nan(const float* data, Extent elements, const LoadedWeight& weight, const std::string& path) {
  int wrong = 0;  // no && of bools, which compilers do not turn into vectors
#pragma omp parallel for simd reduction(| : wrong)
  for (Extent i = 0; i < elements; ++i) wrong |= std::isnan(data[i]) ? 1 : 0;
  if (wrong != 0) throw std::runtime_error("the weight '" + weight.name + "' of " + path + " holds NaN");
}

void read_weight(LoadedWeight& weight, const SafeTensors& file) {
  const FileTensor* found = file.find(weight.name);
  if (found == nullptr) throw std::runtime_error(file.path() + " lacks the weight '" + weight.name + "'");
  const std::vector<long> wanted(weight.shape.begin(), weight.shape.end());
  if (found->type != "F32" || found->shape != wanted)
    throw std::runtime_error("the weight '" + weight.name + "' of " + file.path() + " is " + found->type + " " +
                             text_of(found->shape) + "; F32 " + text_of(wanted) + " is needed");
  weight.data = reinterpret_cast<const float*>(found->data);
  if (reinterpret_cast<std::uintptr_t>(found->data) % alignof(float) != 0) {
    weight.made = allocate(found->bytes);
    std::memcpy(weight.made.get(), found->data, found->bytes);
    weight.data = reinterpret_cast<const float*>(weight.made.get());
  }
  refuse_nan(weight.data, weight.shape.elements(), weight, file.path());
}

// The stored form of a weight in this layout; made if it is not there yet.
int stored_as(Internals& in, int weight, const memory::desc& as_given, const memory::desc& wanted,
              const std::string& packing = "") {
  for (std::size_t i = 0; i < in.stored.size(); ++i)
    if (in.stored[i].weight == weight && in.stored[i].desc == wanted && in.stored[i].as_given == as_given &&
        in.stored[i].packing == packing)
      return static_cast<int>(i);
  in.stored.push_back({weight, as_given, wanted, packing, in.weight_bytes});
  in.weight_bytes += (wanted.get_size() + 63) / 64 * 64;
  return static_cast<int>(in.stored.size()) - 1;
}

}  // namespace

Weight Program::weight(const char* name, Shape shape) {
  return named(internals_->weights, name, shape, false);
}
Weight Program::constant(const char* name, Shape shape) {
  return named(internals_->weights, name, shape, true);
}

Weight Program::parameter(const char* name, Shape shape) {
  const Weight weight = named(internals_->weights, name, shape, false);
  internals_->weights[static_cast<std::size_t>(weight.number)].trained = true;
  return weight;
}
Weight Program::buffer(const char* name, Shape shape) {
  const Weight weight = named(internals_->weights, name, shape, false);
  internals_->weights[static_cast<std::size_t>(weight.number)].changed = true;
  return weight;
}

void Program::keep(const char* name, Weight weight) {
  internals_->kept[name] = weight;
}
Weight Program::kept(const char* name) const {
  return internals_->kept.at(name);
}

Weight Program::computed(Shape shape, Layout layout) {
  Internals& in = *internals_;
  in.weights.emplace_back();
  const int number = static_cast<int>(in.weights.size()) - 1;
  in.weights.back().shape = shape;
  in.weights.back().layout = layout;
  in.weights.back().permanent = true;
  const auto desc = layout == Layout::plain ? row_major({std::max<Extent>(shape.elements(), 1)})
                                            : desc_of({Region::weights, 0, shape, layout});
  in.weights.back().stored = stored_as(in, number, desc, desc);
  return {number, shape};
}

Tensor Program::stored(Weight weight) {
  Internals& in = *internals_;
  auto& loaded = in.weights.at(static_cast<std::size_t>(weight.number));
  if (loaded.trained || loaded.changed) return in.row_major_form(weight);
  if (loaded.stored < 0) {
    const Extent elements = std::max<Extent>(loaded.shape.elements(), 1);
    const auto desc = row_major({elements});
    const int place = loaded.stored = stored_as(in, weight.number, desc, desc);
    in.add_load_step({{weight.number}, -1, [&in, number = weight.number, place, elements] {
                        std::memcpy(in.weight_memory.get() + in.stored[static_cast<std::size_t>(place)].offset,
                                    in.weights[static_cast<std::size_t>(number)].data,
                                    static_cast<std::size_t>(elements) * sizeof(float));
                      }});
  }
  return {Region::weights, loaded.stored, weight.shape, loaded.layout};
}

memory Internals::packed(Weight weight, const memory::desc& as_given, const memory::desc& wanted) {
  auto& loaded = weights[static_cast<std::size_t>(weight.number)];
  const bool lives = loaded.trained || loaded.changed;
  if (lives && loaded.home >= 0) return at_home(weight, as_given, wanted);
  const auto known = stored.size();
  const int place = stored_as(*this, weight.number, as_given, wanted);
  if (lives) loaded.home = place;
  if (loaded.trained) {
    stored.push_back({weight.number, as_given, wanted, "momentum", weight_bytes});
    weight_bytes += (wanted.get_size() + 63) / 64 * 64;
    loaded.momentum = static_cast<int>(stored.size()) - 1;
  }
  if (stored.size() > known) {
    const dnnl::reorder::primitive_desc pd(engine, as_given, engine, wanted, plain_attributes());
    const dnnl::reorder reorder(pd);
    memory source(as_given, engine, nullptr), target(wanted, engine, nullptr);
    const memory shared = scratchpad(pd.scratchpad_desc());
    placed.push_back({target, Region::weights, place, 0});
    add_load_step(
        {{weight.number}, -1, [=, this]() mutable {
           source.set_data_handle(const_cast<float*>(weights[static_cast<std::size_t>(weight.number)].data));
           reorder.execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}, {DNNL_ARG_SCRATCHPAD, shared}});
         }});
  }
  return handle({Region::weights, place, weight.shape, Layout::plain}, wanted);
}

memory Internals::packed(Weight weight, const std::string& packing, std::size_t floats,
                         std::function<void(const float*, float*)> pack) {
  const auto known = stored.size();
  const auto desc = row_major({static_cast<memory::dim>(floats)});
  const int place = stored_as(*this, weight.number, desc, desc, packing);
  if (stored.size() > known)
    add_load_step({{weight.number}, -1, [this, weight, place, pack = std::move(pack)] {
                     const auto offset = stored[static_cast<std::size_t>(place)].offset;
                     pack(weights[static_cast<std::size_t>(weight.number)].data,
                          reinterpret_cast<float*>(weight_memory.get() + offset));
                   }});
  return handle({Region::weights, place, weight.shape, Layout::plain}, desc);
}

float* Internals::made(int weight) {
  auto& one = weights.at(static_cast<std::size_t>(weight));
  one.made = allocate(static_cast<std::size_t>(one.shape.elements()) * sizeof(float));
  one.data = reinterpret_cast<const float*>(one.made.get());
  return reinterpret_cast<float*>(one.made.get());
}

void Internals::add_load_step(LoadStep added) {
  for (const int weight : added.reads) ++weights.at(static_cast<std::size_t>(weight)).uses;
  load_steps.push_back(std::move(added));
}

void Program::load(const char* weights, const char* constants) {
  Internals& in = *internals_;
  const SafeTensors file(weights);
  std::unique_ptr<SafeTensors> second;
  for (auto& weight : in.weights) {
    weight.left = weight.uses;
    if (weight.permanent) {
      weight.data = reinterpret_cast<const float*>(in.weight_memory.get() +
                                                   in.stored[static_cast<std::size_t>(weight.stored)].offset);
    } else if (!weight.name.empty()) {
      if (weight.is_constant && constants == nullptr)
        throw std::runtime_error("a file of constants is needed, for '" + weight.name + "'");
      if (weight.is_constant && !second) second = std::make_unique<SafeTensors>(constants);
      read_weight(weight, weight.is_constant ? *second : file);
    }
  }
  for (auto& [name, count] : in.training.counts)
    if (const FileTensor* found = file.find(name); found != nullptr && found->bytes == sizeof count)
      std::memcpy(&count, found->data, sizeof count);
  for (const auto& step : in.load_steps) {
    step.run();
    for (const int read : step.reads)
      if (auto& weight = in.weights[static_cast<std::size_t>(read)]; --weight.left == 0) weight.made.reset();
  }
  for (auto& weight : in.weights) {
    weight.made.reset();
    weight.data = nullptr;
  }
  in.loaded = true;
}

}  // namespace kit
