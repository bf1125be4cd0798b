// SPDX-License-Identifier: Apache-2.0
// Weights of a program, stored in the layouts that calls want.
#include <algorithm>
#include <cstring>

#include "kit/internals.hpp"

namespace kit {
namespace {

// The stored form of a weight in this layout; made if it is not there yet.
int stored_as(Internals& in, int weight, const memory::desc& as_given, const memory::desc& packed_desc,
              const std::string& packing = "") {
  for (std::size_t i = 0; i < in.stored.size(); ++i)
    if (in.stored[i].weight == weight && in.stored[i].desc == packed_desc && in.stored[i].as_given == as_given &&
        in.stored[i].packing == packing)
      return static_cast<int>(i);
  in.stored.push_back({weight, as_given, packed_desc, packing, in.weight_bytes});
  in.weight_bytes += (packed_desc.get_size() + 63) / 64 * 64;
  return static_cast<int>(in.stored.size()) - 1;
}

}  // namespace

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
  auto& entry = in.weights.at(static_cast<std::size_t>(weight.number));
  if (entry.trained || entry.changed) return in.row_major_form(weight);
  if (entry.stored < 0) {
    const Extent elements = std::max<Extent>(entry.shape.elements(), 1);
    const auto desc = row_major({elements});
    const int place = entry.stored = stored_as(in, weight.number, desc, desc);
    in.add_load_step({{weight.number}, -1, [&in, number = weight.number, place, elements] {
                        std::memcpy(in.weight_memory.get() + in.stored[static_cast<std::size_t>(place)].offset,
                                    in.weights[static_cast<std::size_t>(number)].data,
                                    static_cast<std::size_t>(elements) * sizeof(float));
                      }});
  }
  return {Region::weights, entry.stored, weight.shape, entry.layout};
}

memory Internals::packed(Weight weight, const memory::desc& as_given, const memory::desc& packed_desc) {
  auto& entry = weights[static_cast<std::size_t>(weight.number)];
  const bool lives = entry.trained || entry.changed;
  if (lives && entry.home < 0 && packed_desc.get_data_type() != memory::data_type::f32)
    static_cast<void>(packed(weight, as_given, as_given));  // it is rounded in every step, and changed as it is
  if (lives && entry.home >= 0) return at_home(weight, as_given, packed_desc);
  const auto known = stored.size();
  const int place = stored_as(*this, weight.number, as_given, packed_desc);
  if (lives) entry.home = place;
  if (entry.trained) {
    stored.push_back({weight.number, as_given, packed_desc, "momentum", weight_bytes});
    weight_bytes += (packed_desc.get_size() + 63) / 64 * 64;
    entry.momentum = static_cast<int>(stored.size()) - 1;
  }
  if (stored.size() > known) {
    const dnnl::reorder::primitive_desc pd(engine, as_given, engine, packed_desc, plain_attributes());
    const dnnl::reorder reorder(pd);
    memory source(as_given, engine, nullptr), target(packed_desc, engine, nullptr);
    const memory shared = scratchpad(pd.scratchpad_desc());
    placed.push_back({target, Region::weights, place, 0});
    add_load_step(
        {{weight.number}, -1, [=, this]() mutable {
           source.set_data_handle(const_cast<float*>(weights[static_cast<std::size_t>(weight.number)].data));
           reorder.execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}, {DNNL_ARG_SCRATCHPAD, shared}});
         }});
  }
  return handle({Region::weights, place, weight.shape, Layout::plain}, packed_desc);
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

void Program::load(const char* weights, const char* constants) {
  Internals& in = *internals_;
  in.load_files(weights, constants, [&in](int number) {
    const auto place = static_cast<std::size_t>(in.weights[static_cast<std::size_t>(number)].stored);
    return reinterpret_cast<const float*>(in.weight_memory.get() + in.stored[place].offset);
  });
  in.loaded = true;
}

}  // namespace kit
