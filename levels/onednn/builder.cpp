// SPDX-License-Identifier: Apache-2.0
#include "builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "call.hpp"

namespace strata::onednn {
namespace {

// oneDNN refuses strides that look as if elements overlapped: the last of a slice in steps may end the dimension.
bool describable(const Tensor& whole, std::size_t dim, const primitives::Slice& slice) {
  return slice.length * slice.step <= whole.dims()[dim];
}

}  // namespace

Tensor Builder::tensor(std::string_view argument) const {
  return library_.tensor(graph_, node_.tensor(argument));
}

std::optional<Tensor> Builder::optional(std::string_view argument) const {
  if (!has(argument)) return std::nullopt;
  return tensor(argument);
}

std::vector<Tensor> Builder::tensors(std::string_view argument) const {
  std::vector<Tensor> all;
  for (const int value : values(argument)) all.push_back(library_.tensor(graph_, value));
  return all;
}

Tensor Builder::rows(std::string_view argument) {
  const int value = node_.tensor(argument);
  if (graph_.value(value).type != graph::Type::int64) throw Unsupported("numbers of rows that are not int64");
  const Tensor& tensor = library_.typed(graph_, value);
  return in(tensor, tensor.desc);
}

Tensor Builder::in(const Tensor& tensor, const memory::desc& desc) {
  if (tensor.elsewhere() || tensor.desc != desc) return library_.reordered(tensor, desc, steps_);
  // Equal layouts may have other strides where an extent is 1, of which oneDNN 3.2's binary makes another order of
  // elements.
  Tensor same = tensor;
  same.desc = desc;
  return same;
}

Tensor Builder::dense(const Tensor& tensor) {
  return is_dense(tensor.desc) ? in(tensor, tensor.desc) : plain(tensor);
}

Tensor Builder::strided(const Tensor& tensor) {
  return is_strided(tensor.desc) && !tensor.trained ? tensor : plain(tensor);
}

Tensor Builder::reshaped(const Tensor& tensor, const Dims& dims) {
  const Dims target = dims.empty() ? Dims{1} : dims;
  if (tensor.dims() == target) return tensor;
  Tensor view = tensor;
  view.desc = row_major(target);
  if (is_row_major(tensor.desc)) return view;
  // oneDNN 3.2 reshapes a dimension of extent 1 away even where it is padded, and the padding with it
  if (const memory::desc reshaped_desc = tensor.desc.reshape(target, true);
      !is_padded(tensor.desc) && reshaped_desc.get(true) != nullptr) {
    view.desc = reshaped_desc;
    return view;
  }
  view = plain(tensor);
  view.desc = row_major(target);
  return view;
}

Tensor Builder::expanded(const Tensor& tensor, const Dims& dims) {
  Dims own = tensor.dims();
  own.insert(own.begin(), dims.size() - own.size(), 1);
  Tensor x = reshaped(tensor, own);
  if (own == dims) return x;
  x = strided(x);
  Dims strides = x.desc.get_strides();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (own[i] != dims[i]) strides[i] = 0;
  x.desc = memory::desc(dims, x.desc.get_data_type(), strides);
  return written_out(x);
}

Tensor Builder::sliced(const Tensor& tensor, std::size_t dim, const primitives::Slice& slice) {
  const auto& [begin, length, step] = slice;
  if (length <= 1 || describable(tensor, dim, slice)) return part_of(tensor, dim, begin, length, length > 1 ? step : 1);
  Dims dims = tensor.dims();
  dims[dim] = length;
  const Tensor to = temporary(row_major(dims));
  move(part_of(tensor, dim, begin, length - 1, step), part_of(to, dim, 0, length - 1));
  move(part_of(tensor, dim, begin + (length - 1) * step, 1), part_of(to, dim, length - 1, 1));
  return to;
}

void Builder::move_into(const Tensor& part, const Tensor& whole, std::size_t dim, const primitives::Slice& slice) {
  const auto& [begin, length, step] = slice;
  if (length <= 1 || describable(whole, dim, slice))
    return move(part, part_of(whole, dim, begin, length, length > 1 ? step : 1));
  const Tensor from = strided(part);
  move(part_of(from, dim, 0, length - 1), part_of(whole, dim, begin, length - 1, step));
  move(part_of(from, dim, length - 1, 1), part_of(whole, dim, begin + (length - 1) * step, 1));
}

Tensor Builder::written_out(const Tensor& tensor) {
  const auto to = row_major(tensor.dims());
  Tensor converted = library_.allocate(to, tensor.weight);
  primitives::Description what{.operation = "copy",
                               .kernel = "strata",
                               .layouts = fmt::format("{} -> {}", layout_name(tensor.desc), layout_name(to)),
                               .moves_only = true,
                               .bytes_moved = static_cast<std::int64_t>(to.get_size())};
  (tensor.weight ? steps_.at_load : steps_.in_run)
      .push_back(std::make_unique<Copy>(library_.handle(tensor), library_.handle(converted), std::move(what)));
  return converted;
}

Tensor Builder::result(const memory::desc& desc, std::size_t i) {
  Tensor allocated = library_.allocate(desc);
  // a call may see fewer dimensions than the network (layer norm over rows), but only in an order that needs no reorder
  const Dims dims = shape(i);
  if (allocated.dims() != dims && !is_row_major(allocated.desc))
    throw Unsupported(fmt::format("a result in the layout {}", layout_name(allocated.desc)));
  library_.set_tensor(node_.outputs.at(i), reshaped(allocated, dims));
  computed_.push_back(i);
  return allocated;
}

Tensor Builder::constant(const Dims& dims, const std::vector<float>& values) {
  Tensor allocated = library_.allocate(row_major(dims));
  std::memcpy(allocated.storage->data, values.data(), values.size() * sizeof(float));
  return allocated;
}

Tensor Builder::prepared(const std::string& how, const memory::desc& desc, const std::vector<Tensor>& from,
                         std::function<void(const std::vector<const float*>&, float*)> compute) {
  const Tensor& first = from.front();
  std::string key = how;
  for (const auto& tensor : from) key += fmt::format(" {}+{}", fmt::ptr(tensor.storage.get()), tensor.offset);
  for (const auto& form : first.storage->forms)
    if (form.how == key && form.from == first.desc && form.converted.desc == desc) return form.converted;
  const bool at_load =
      std::all_of(from.begin(), from.end(), [](const Tensor& t) { return t.weight && is_row_major(t.desc); });
  Tensor to = library_.allocate(desc, at_load);
  to.weight = at_load;
  std::vector<memory> handles;
  for (const auto& tensor : from) handles.push_back(library_.handle(at_load ? tensor : plain(tensor)));
  primitives::Description what{.operation = std::string(operation()),
                               .kernel = "strata",
                               .layouts = "weights",
                               .moves_only = true,
                               .bytes_moved = static_cast<std::int64_t>(desc.get_size())};
  (at_load ? steps_.at_load : steps_.in_run)
      .push_back(std::make_unique<primitives::FunctionCall>(
          std::move(what), [data = std::vector<const float*>(handles.size()), handles, into = library_.handle(to),
                            compute = std::move(compute)]() mutable {
            for (std::size_t i = 0; i < data.size(); ++i)
              data[i] = static_cast<const float*>(handles[i].get_data_handle());
            compute(data, static_cast<float*>(into.get_data_handle()));
          }));
  first.storage->forms.push_back({first.offset, first.desc, to, key});
  return to;
}

Tensor Builder::filled_like(const Dims& dims, const Tensor& /*like*/, float value) {
  return constant(dims, std::vector<float>(static_cast<std::size_t>(product(dims)), value));
}

void Builder::is(const Tensor& tensor, std::size_t i) {
  library_.set_tensor(node_.outputs.at(i), tensor);
}

void Builder::add(dnnl::primitive primitive, const dnnl::primitive_desc_base& pd,
                  std::vector<std::pair<int, Tensor>> arguments) {
  std::vector<std::pair<int, memory>> handles;
  memory::desc from, to;
  for (const auto& [which, tensor] : arguments) {
    handles.emplace_back(which, library_.handle(tensor));
    if (which == DNNL_ARG_SRC || which == DNNL_ARG_MULTIPLE_SRC) from = tensor.desc;
    if (which == DNNL_ARG_DST) to = tensor.desc;
  }
  if (const auto scratchpad = pd.query_md(dnnl::query::scratchpad_md); scratchpad.get_size() > 0)
    handles.emplace_back(DNNL_ARG_SCRATCHPAD, library_.scratchpad(scratchpad));
  steps_.in_run.push_back(std::make_unique<Call>(
      std::move(primitive), library_.stream(), std::move(handles),
      primitives::Description{.operation = std::string(operation()),
                              .kernel = pd.impl_info_str(),
                              .layouts = fmt::format("{} -> {}", layout_name(from), layout_name(to)),
                              .moves_only = false,
                              .bytes_moved = 0}));
}

void Builder::own(std::string layouts, std::function<void()> run) {
  add(std::make_unique<primitives::FunctionCall>(primitives::Description{.operation = std::string(operation()),
                                                                         .kernel = "strata",
                                                                         .layouts = std::move(layouts),
                                                                         .moves_only = false,
                                                                         .bytes_moved = 0},
                                                 std::move(run)));
}

dnnl::primitive_attr Builder::attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attr;
}

void Builder::finish() {
  if (library_.layouts() != Layouts::contiguous) return;
  for (const auto i : computed_) {
    const int value = node_.outputs[i];
    library_.set_tensor(value, plain(library_.tensor(graph_, value)));
  }
}

}  // namespace strata::onednn
