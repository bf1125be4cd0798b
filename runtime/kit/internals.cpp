// SPDX-License-Identifier: Apache-2.0
#include "kit/internals.hpp"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kit {

memory::dims dims_of(const Shape& shape) {
  return shape.rank == 0 ? memory::dims{1} : memory::dims(shape.begin(), shape.end());
}

memory::dims row_major_strides(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<Extent>(dims[i], 1);
  return strides;
}

memory raw_handle(Internals& in, const Tensor& tensor) {
  if (tensor.layout != Layout::plain) throw std::logic_error("bytes of a tensor that is not row-major");
  return in.handle(tensor, memory::desc({tensor.bytes()}, memory::data_type::u8, memory::dims{1}));
}

memory::data_type data_type_of(Type type) {
  switch (type) {
    case Type::float32:
      return memory::data_type::f32;
    case Type::bfloat16:
      return memory::data_type::bf16;
    case Type::int32:
      return memory::data_type::s32;
    case Type::uint8:
    case Type::boolean:
      return memory::data_type::u8;
    default:
      throw std::logic_error("int64 where oneDNN is called");
  }
}

memory::desc row_major(const memory::dims& dims, Type type) {
  return {dims, data_type_of(type), row_major_strides(dims)};
}

memory handle_of(Internals& in, const Tensor& tensor) {
  return tensor ? in.handle(tensor, desc_of(tensor)) : memory();
}

memory stored_handle(Program& program, const Weight& weight) {
  return weight ? handle_of(program.internals(), program.stored(weight)) : memory();
}

memory::desc any(const memory::dims& dims, Type type) {
  return {dims, data_type_of(type), memory::format_tag::any};
}

memory::desc desc_of(const Tensor& tensor) {
  using tag = memory::format_tag;
  const auto dims = dims_of(tensor.shape);
  if (tensor.layout == Layout::plain) return row_major(dims, tensor.type);
  if (dims.size() < 3 || dims.size() > 5) throw std::logic_error("a layout of images for a tensor that is none");
  constexpr tag tags[3][3] = {{tag::acb, tag::aBc8b, tag::aBc16b},
                              {tag::acdb, tag::aBcd8b, tag::aBcd16b},
                              {tag::acdeb, tag::aBcde8b, tag::aBcde16b}};
  return {dims, data_type_of(tensor.type), tags[dims.size() - 3][static_cast<int>(tensor.layout) - 1]};
}

Tensor in_type(Internals& in, const Tensor& tensor, Type type) {
  if (tensor.type == type) return tensor;
  const Tensor converted = in.temporary(tensor.shape, tensor.layout, type);
  in.add_reorder(in.handle(tensor, desc_of(tensor)), in.handle(converted, desc_of(converted)));
  return converted;
}

memory::dims counted_from_zero(const Shape& dilation) {
  auto dims = dims_of(dilation);
  for (auto& dim : dims) --dim;
  return dims;
}

memory::dims grouped(const Shape& weight, Extent groups) {
  auto dims = dims_of(weight);
  if (groups != 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  return dims;
}

bool is_reference(const char* kernel) {
  return std::strncmp(kernel, "ref", 3) == 0;
}

dnnl::primitive_attr plain_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

void execute(const Call& call, dnnl_stream_t stream) {
  if (call.own != nullptr) return call.own(call.context);
  const auto status = dnnl_primitive_execute(call.primitive, stream, call.count, call.arguments);
  if (status != dnnl_success)
    throw std::runtime_error(std::string("oneDNN failed in ") + call.step + " (" + call.kernel + ")");
}

memory Internals::handle(const Tensor& tensor, const memory::desc& desc, std::size_t offset_bytes) {
  memory view(desc, engine, nullptr);
  if (tensor.region == Region::input)
    readers.at(static_cast<std::size_t>(tensor.at)).emplace_back(view, offset_bytes);
  else
    placed.push_back({view, tensor.region, tensor.at, offset_bytes});
  return view;
}

Tensor Internals::temporary_bytes(std::size_t bytes) {
  const Tensor tensor{Region::scratch, static_cast<std::int64_t>(temporary_now), {}, Layout::plain};
  temporary_now += (bytes + 63) / 64 * 64;
  temporary_bytes_most = std::max(temporary_bytes_most, temporary_now);
  return tensor;
}

Tensor Internals::temporary(Shape shape, Layout layout, Type type) {
  Tensor tensor{Region::scratch, 0, shape, layout, type};
  tensor.at = temporary_bytes(desc_of(tensor).get_size()).at;
  return tensor;
}

memory Internals::scratchpad(const memory::desc& desc) {
  scratchpad_bytes = std::max(scratchpad_bytes, desc.get_size());
  return scratchpads.emplace_back(memory(desc, engine, nullptr));
}

void Internals::add(dnnl::primitive primitive, const dnnl::primitive_desc_base& pd,
                    std::vector<std::pair<int, memory>> operands, bool moves_only) {
  if (const auto desc = pd.scratchpad_desc(); desc.get_size() > 0)
    operands.emplace_back(DNNL_ARG_SCRATCHPAD, scratchpad(desc));
  auto& list = arguments.emplace_back(std::make_unique<std::vector<dnnl_exec_arg_t>>());
  for (const auto& [which, argument] : operands) list->push_back({which, argument.get()});
  held.push_back(std::move(operands));
  primitives.push_back(primitive);
  Call call;
  call.primitive = primitive.get();
  call.arguments = list->data();
  call.count = static_cast<int>(list->size());
  call.step = step;
  call.moves_only = moves_only;
  auto kind = dnnl_undefined_primitive;
  dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_primitive_kind, 0, &kind);
  call.operation = dnnl_prim_kind2str(kind);
  // the primitive's own description lives as long as it does, `pd` does not
  dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &call.kernel);
  add_call(call);
}

void Internals::add_reorder(const memory& source, const memory& result) {
  const auto from = source.get_desc(), to = result.get_desc();
  const dnnl::reorder::primitive_desc pd(engine, from, engine, to, plain_attributes(), true);
  if (pd) return add(dnnl::reorder(pd), pd, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, result}}, true);
  // between some formats of weights there is no call: by way of the row-major one
  const auto plain = row_major(from.get_dims());
  if (from == plain || to == plain) throw std::runtime_error(std::string("oneDNN has no reorder for ") + step);
  const memory between = handle(temporary_bytes(plain.get_size()), plain);
  add_reorder(source, between);
  add_reorder(between, result);
}

void Internals::add_call(const Call& call) {
  if (!loading) return calls.push_back(call);
  add_load_step({{}, -1, [this, call] { execute(call, stream.get()); }});
}

}  // namespace kit
