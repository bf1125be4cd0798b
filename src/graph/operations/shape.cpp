// SPDX-License-Identifier: Apache-2.0
// What moves elements: joining, padding, rolling, gathering.
#include <algorithm>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

std::vector<Described> cat(const Call& call) {
  const auto tensors = call.all("tensors");
  need(!tensors.empty() && std::none_of(tensors.begin(), tensors.end(), [](auto* t) { return t == nullptr; }),
       "nothing to join");
  Described output{tensors.front()->type, tensors.front()->shape};
  const auto axis = axis_of(call.node().integer("dim"), output.shape.size());
  need(!output.shape.empty(), "scalars cannot be joined");
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    Shape rest = tensors[i]->shape;
    need(rest.size() == output.shape.size() && tensors[i]->type == output.type, "{} {} is joined to {} {}",
         name_of(tensors[i]->type), to_string(rest), name_of(output.type), to_string(output.shape));
    const auto extent = std::exchange(rest[axis], output.shape[axis]);
    need(rest == output.shape, "{} is joined to {} along axis {}", to_string(tensors[i]->shape),
         to_string(output.shape), axis);
    output.shape[axis] += extent;
  }
  return {output};
}

std::vector<Described> stack(const Call& call) {
  const auto tensors = call.all("tensors");
  need(!tensors.empty() && tensors.front() != nullptr, "nothing to stack");
  for (const auto* tensor : tensors)
    need(tensor != nullptr && tensor->shape == tensors.front()->shape && tensor->type == tensors.front()->type,
         "tensors of different shapes or types are stacked");
  Shape shape = tensors.front()->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis_of(call.node().integer("dim"), shape.size() + 1)),
               static_cast<std::int64_t>(tensors.size()));
  return {{tensors.front()->type, shape}};
}

// `pad` has two numbers an axis, the last axis first; negative ones cut off.
std::vector<Described> pad(const Call& call) {
  Shape shape = call.self().shape;
  const auto amounts = call.node().ints("pad");
  need(amounts.size() % 2 == 0 && amounts.size() / 2 <= shape.size(), "{} is padded by {}", to_string(shape),
       to_string(amounts));
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    auto& extent = shape[shape.size() - 1 - i];
    extent += amounts[2 * i] + amounts[2 * i + 1];
    need(extent >= 0, "{} is padded by {}", to_string(call.self().shape), to_string(amounts));
  }
  return {{call.self().type, shape}};
}

std::vector<Described> roll(const Call& call) {
  const auto dims = call.node().ints("dims");
  need(dims.empty() || dims.size() == call.node().ints("shifts").size(), "shifts and dims have different lengths");
  for (const auto dim : dims) axis_of(dim, call.self().shape.size());
  return same_as_self(call);
}

// self[i, :, j]: the indices are broadcast; their axes come first unless they are neighbours.
std::vector<Described> index(const Call& call) {
  const auto& self = call.self();
  const auto indices = call.all("indices");
  need(indices.size() <= self.shape.size(), "{} indices into {}", indices.size(), to_string(self.shape));
  Shape gathered, before, after;
  int groups = 0;
  bool inside = false;
  for (std::size_t axis = 0; axis < self.shape.size(); ++axis) {
    const auto* index_tensor = axis < indices.size() ? indices[axis] : nullptr;
    if (index_tensor != nullptr) {
      need(!is_floating(index_tensor->type) && index_tensor->type != Type::boolean,
           "index {} is {}; only integers give a fixed shape", axis, name_of(index_tensor->type));
      gathered = broadcast(gathered, index_tensor->shape);
      if (!inside) ++groups;
    } else {
      (groups == 0 ? before : after).push_back(self.shape[axis]);
    }
    inside = index_tensor != nullptr;
  }
  need(groups > 0, "no index is given");
  Shape shape = groups == 1 ? before : gathered;
  const auto& middle = groups == 1 ? gathered : before;
  shape.insert(shape.end(), middle.begin(), middle.end());
  shape.insert(shape.end(), after.begin(), after.end());
  return {{self.type, shape}};
}

std::vector<Described> embedding(const Call& call) {
  const auto& weight = call.in("weight");
  const auto& indices = call.in("indices");
  need(weight.shape.size() == 2 && !is_floating(indices.type), "the table is {}, the indices {}",
       to_string(weight.shape), name_of(indices.type));
  Shape shape = indices.shape;
  shape.push_back(weight.shape[1]);
  return {{weight.type, shape}};
}

std::vector<Described> index_select(const Call& call) {
  Shape shape = call.self().shape;
  need(!shape.empty() && call.in("index").shape.size() <= 1, "{} elements of {}", to_string(call.in("index").shape),
       to_string(shape));
  shape[axis_of(call.node().integer("dim"), shape.size())] = call.in("index").elements();
  return {{call.self().type, shape}};
}

std::vector<Described> gather(const Call& call) {
  const auto &self = call.self().shape, &index = call.in("index").shape;
  const auto axis = axis_of(call.node().integer("dim"), self.size());
  need(index.size() == self.size(), "{} by {}", to_string(self), to_string(index));
  for (std::size_t i = 0; i < self.size(); ++i)
    need(i == axis || index[i] <= self[i], "{} by {}", to_string(self), to_string(index));
  return {{call.self().type, index}};
}

// What `index` names along an axis is written from `src`, which may be larger in any other.
std::vector<Described> scatter(const Call& call) {
  const auto &self = call.self().shape, &index = call.in("index").shape;
  const auto axis = axis_of(call.node().integer("dim"), self.size());
  const auto* source = call.maybe_in("src");
  need(index.size() == self.size() && (source == nullptr || source->shape.size() == self.size()), "{} by {}",
       to_string(self), to_string(index));
  for (std::size_t i = 0; i < self.size(); ++i)
    need((i == axis || index[i] <= self[i]) && (source == nullptr || index[i] <= source->shape[i]), "{} by {}",
         to_string(self), to_string(index));
  need(source == nullptr || source->type == call.self().type, "{} into {}", name_of(source->type),
       name_of(call.self().type));
  return same_as_self(call);
}

std::vector<Described> repeat(const Call& call) {
  const auto often = call.node().ints("repeats");
  Shape shape = call.self().shape;
  need(often.size() >= shape.size(), "{} is repeated {} times", to_string(shape), to_string(often));
  shape.insert(shape.begin(), often.size() - shape.size(), 1);
  for (std::size_t i = 0; i < often.size(); ++i) {
    need(often[i] >= 0, "{} is repeated {} times", to_string(shape), to_string(often));
    shape[i] = times(shape[i], often[i]);
  }
  return {{call.self().type, shape}};
}

// of the table only what is gathered
std::int64_t gathered_bytes(const Call& call) {
  std::int64_t bytes = call.out().bytes();
  if (call.node().find("weight") != nullptr) return bytes + call.in("indices").bytes();
  for (const auto* index : call.all("indices"))
    if (index != nullptr) bytes += index->bytes();
  return bytes;
}

}  // namespace

std::span<const Operation> shape_operations() {
  static constexpr Operation all[] = {{"cat", cat},
                                      {"constant_pad_nd", pad},
                                      {"gather", gather},
                                      {"index_put", same_as_self},
                                      {"index_select", index_select},
                                      {"repeat", repeat},
                                      {"embedding", embedding, nullptr, Aliasing::none, gathered_bytes},
                                      {"index", index, nullptr, Aliasing::none, gathered_bytes},
                                      {"pad", pad},
                                      {"roll", roll},
                                      {"scatter", scatter},
                                      {"scatter_add", scatter},
                                      {"select_scatter", same_as_self},
                                      {"slice_scatter", same_as_self},
                                      {"stack", stack}};
  return all;
}

}  // namespace strata::graph
