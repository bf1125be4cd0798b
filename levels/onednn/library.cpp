// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "builder.hpp"
#include "call.hpp"
#include "graph/calculation.hpp"
#include "guarded.hpp"
#include "operations.hpp"
#include "typed.hpp"

namespace strata::onednn {
namespace {

constexpr std::size_t alignment_bytes = 64;

bool is_known(graph::Type type) {
  return type == graph::Type::float32 || type == graph::Type::int64 || type == graph::Type::int32 ||
         type == graph::Type::uint8 || type == graph::Type::boolean;
}

}  // namespace

std::shared_ptr<std::byte> aligned_bytes(std::size_t bytes) {
  const auto rounded = (bytes + alignment_bytes) / alignment_bytes * alignment_bytes;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(alignment_bytes, rounded));
  if (data == nullptr) throw std::bad_alloc();
  return {data, [](std::byte* p) { std::free(p); }};
}

Library::Library(Layouts layouts) : layouts_(layouts), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

std::vector<std::string> known_operations() {
  std::vector<std::string> names;
  for (const auto& [name, make] : operations()) names.emplace_back(name);
  return names;
}

Result<void> Library::declare(const graph::Graph& graph, int value) {
  const auto& described = graph.value(value);
  if (!is_known(described.type)) return {};  // an error only for an operation that reads it
  return guarded([&] {
    storages_.push_back(std::make_shared<Storage>());
    tensors_[value] = {typed_desc(described.type, described.shape), storages_.back(), 0,
                       described.origin != graph::Origin::input};
  });
}

Result<void> Library::create(const graph::Graph& graph, const graph::Node& node, primitives::Steps& steps) {
  return guarded([&] {
    Builder builder(*this, graph, node, steps);
    const auto typed = graph::is_typed(graph, node) ? typed_operation(builder.operation()) : nullptr;
    (typed != nullptr ? typed : strata::onednn::operations().find(builder.operation())->second)(builder);
    builder.finish();
  });
}

Result<void> Library::publish(const graph::Graph& graph, int value, primitives::Steps& steps) {
  return guarded([&] {
    if (const auto type = graph.value(value).type; type != graph::Type::float32) {
      const Tensor& output = typed(graph, value);
      published_.insert_or_assign(value, output.elsewhere() ? reordered(output, output.desc, steps) : output);
      return;
    }
    const Tensor& output = tensor(graph, value);
    const auto plain = row_major(output.dims(), output.desc.get_data_type());
    const bool lies_so = !output.elsewhere() && is_row_major(output.desc);
    published_.insert_or_assign(value, lies_so ? output : reordered(output, plain, steps));
  });
}

void Library::finish() {
  for (auto& storage : storages_)
    if (!storage->row_major_dims.empty() && !storage->owned) settle(*storage, row_major(storage->row_major_dims));
  shared_scratchpad_ = aligned_bytes(scratchpad_bytes_);
  for (auto& scratchpad : scratchpads_) scratchpad.set_data_handle(shared_scratchpad_.get());
  held_.buffer_bytes += static_cast<std::int64_t>(scratchpad_bytes_);
}

void Library::bind(int value, const std::byte* data) {
  const auto it = tensors_.find(value);
  if (it == tensors_.end()) return;  // of a type that nothing here reads
  Storage& storage = *it->second.storage;
  storage.data = const_cast<std::byte*>(data);
  for (auto& [handle, offset] : storage.followers) handle.set_data_handle(storage.data + offset);
}

void Library::read(int value, std::byte* into) const {
  const Tensor& tensor = published_.at(value);
  std::memcpy(into, tensor.storage->data + tensor.offset, tensor.desc.get_size());
}

const Storage::Form* Library::whole_form(int value) const {
  const auto it = tensors_.find(value);
  if (it == tensors_.end() || !it->second.weight) return nullptr;
  const auto bytes = it->second.desc.get_size();
  const auto& forms = it->second.storage->forms;
  // dimensions split or joined (groups) leave the row-major order of the elements as it is
  const auto whole = std::find_if(forms.begin(), forms.end(), [&](const auto& form) {
    return form.how.empty() && form.offset == 0 && is_row_major(form.from) && form.from.get_size() == bytes;
  });
  return whole == forms.end() ? nullptr : &*whole;
}

void Library::read_weight(int value, std::byte* into) const {
  const auto* form = whole_form(value);
  memory source(form->converted.desc, engine_, form->converted.storage->data), target(form->from, engine_, into);
  dnnl::stream stream(engine_);
  dnnl::reorder(source, target).execute(stream, source, target);
}

const Tensor& Library::tensor(const graph::Graph& graph, int value) const {
  const auto& described = graph.value(value);
  if (described.type != graph::Type::float32)
    throw Unsupported(fmt::format("the tensor '{}' is of type {}, calculations are in float32", described.name,
                                  name_of(described.type)));
  return tensors_.at(value);
}

const Tensor& Library::typed(const graph::Graph& graph, int value) const {
  const auto& described = graph.value(value);
  const auto it = tensors_.find(value);
  if (it == tensors_.end())
    throw Unsupported(fmt::format("the tensor '{}' of type {}", described.name, name_of(described.type)));
  return it->second;
}

Tensor Library::allocate(const memory::desc& desc, bool for_weight) {
  const auto& storage = storages_.emplace_back(std::make_shared<Storage>());
  storage->owned = aligned_bytes(desc.get_size());
  storage->data = storage->owned.get();
  // padding of blocks is never written by some calls and read by others
  std::memset(storage->data, 0, desc.get_size());
  (for_weight ? held_.weight_bytes : held_.buffer_bytes) += static_cast<std::int64_t>(desc.get_size());
  return {desc, storage, 0, false};
}

memory Library::handle(const Tensor& tensor) const {
  if (tensor.trained) throw Unsupported("a parameter where its layout is not asked for");
  memory result(tensor.desc, engine_, tensor.storage->data == nullptr ? nullptr : tensor.storage->data + tensor.offset);
  if (!tensor.storage->owned) tensor.storage->followers.emplace_back(result, tensor.offset);
  return result;
}

Tensor Library::reordered(const Tensor& tensor, const memory::desc& to, primitives::Steps& steps) {
  return tensor.trained ? fetched(tensor, to, steps) : form_of(tensor, to, steps);
}

Tensor Library::form_of(const Tensor& tensor, const memory::desc& to, primitives::Steps& steps) {
  for (const auto& form : tensor.storage->forms)
    if (form.how.empty() && form.offset == tensor.offset && form.from == tensor.desc && form.converted.desc == to)
      return form.converted;
  Tensor converted = allocate(to, tensor.weight);
  reorder(tensor, converted, steps);
  tensor.storage->forms.push_back({tensor.offset, tensor.desc, converted});
  return converted;
}

void Library::reorder(const Tensor& from, const Tensor& to, primitives::Steps& steps) {
  const dnnl::reorder::primitive_desc pd(engine_, from.desc, engine_, to.desc, Builder::attr());
  std::vector<std::pair<int, memory>> arguments{{DNNL_ARG_FROM, handle(from)}, {DNNL_ARG_TO, handle(to)}};
  if (pd.scratchpad_desc().get_size() > 0)
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratchpad(pd.scratchpad_desc()));
  primitives::Description what{"reorder", pd.impl_info_str(),
                               fmt::format("{} -> {}", layout_name(from.desc), layout_name(to.desc)), true,
                               product(to.dims()) * 4};
  (from.weight ? steps.at_load : steps.in_run)
      .push_back(std::make_unique<Call>(dnnl::reorder(pd), stream_, std::move(arguments), std::move(what)));
}

memory Library::scratchpad(const memory::desc& desc) {
  scratchpad_bytes_ = std::max(scratchpad_bytes_, desc.get_size());
  return scratchpads_.emplace_back(memory(desc, engine_, nullptr));
}

}  // namespace strata::onednn
