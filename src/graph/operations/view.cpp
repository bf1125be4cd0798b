// SPDX-License-Identifier: Apache-2.0
// Other views of the same elements: reshapes, and what strides can express.
#include <algorithm>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// `wanted` with its -1 filled in.
Shape filled(const Shape& target, std::int64_t count) {
  Shape shape = target;
  std::int64_t known = 1;
  auto open = shape.end();
  for (auto it = shape.begin(); it != shape.end(); ++it) {
    need(*it >= -1 && (*it != -1 || open == shape.end()), "the shape {} has more than one -1, or a negative extent",
         to_string(target));
    if (*it == -1)
      open = it;
    else
      known = times(known, *it);
  }
  if (open != shape.end()) {
    need(known != 0 && count % known == 0, "{} elements do not fill {}", count, to_string(target));
    *open = count / known;
  }
  need(elements(shape) == count, "{} elements do not fill {}", count, to_string(target));
  return shape;
}

std::vector<Described> view(const Call& call) {
  const auto target = call.node().ints(call.node().find("size") != nullptr ? "size" : "shape");
  return {{call.self().type, filled(target, call.self().elements())}};
}

std::vector<Described> flatten(const Call& call) {
  const auto& self = call.self();
  const auto first = axis_of(call.node().integer("start_dim"), self.shape.size()),
             last = axis_of(call.node().integer("end_dim"), self.shape.size());
  need(first <= last, "flattened from axis {} to {}", first, last);
  if (self.shape.empty()) return {{self.type, {1}}};
  Shape shape(self.shape.begin(), self.shape.begin() + static_cast<std::ptrdiff_t>(first));
  std::int64_t joined = 1;
  for (auto i = first; i <= last; ++i) joined *= self.shape[i];
  shape.push_back(joined);
  shape.insert(shape.end(), self.shape.begin() + static_cast<std::ptrdiff_t>(last) + 1, self.shape.end());
  return {{self.type, shape}};
}

std::vector<Described> unflatten(const Call& call) {
  const auto& self = call.self();
  const auto axis = axis_of(call.node().integer("dim"), self.shape.size());
  const auto parts = filled(call.node().ints("sizes"), self.shape.at(axis));
  Shape shape = self.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), parts.begin(), parts.end());
  return {{self.type, shape}};
}

std::vector<Described> squeeze(const Call& call) {
  const auto& self = call.self();
  std::vector<std::int64_t> dims;
  if (const auto* dim = call.node().find("dim"))
    dims = dim->plain.is_array() ? call.node().ints("dim") : std::vector{call.node().integer("dim")};
  const auto chosen = axes_of(dims, self.shape.size());
  Shape shape;
  for (std::size_t i = 0; i < self.shape.size(); ++i)
    if (!chosen[i] || self.shape[i] != 1) shape.push_back(self.shape[i]);
  return {{self.type, shape}};
}

std::vector<Described> unsqueeze(const Call& call) {
  Shape shape = call.self().shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis_of(call.node().integer("dim"), shape.size() + 1)), 1);
  return {{call.self().type, shape}};
}

std::vector<Described> permute(const Call& call) {
  const auto& self = call.self();
  const auto dims = call.node().ints("dims");
  need(dims.size() == self.shape.size(), "{} axes are permuted by {}", self.shape.size(), to_string(dims));
  axes_of(dims, self.shape.size());
  Shape shape;
  for (const auto dim : dims) shape.push_back(self.shape[axis_of(dim, self.shape.size())]);
  return {{self.type, shape}};
}

std::vector<Described> transpose(const Call& call) {
  Shape shape = call.self().shape;
  const auto a = axis_of(call.node().integer("dim0"), shape.size()),
             b = axis_of(call.node().integer("dim1"), shape.size());
  if (!shape.empty()) std::swap(shape[a], shape[b]);
  return {{call.self().type, shape}};
}

std::vector<Described> turned(const Call& call) {
  Shape shape = call.self().shape;
  need(shape.size() <= 2, "t() of {}", to_string(shape));
  std::reverse(shape.begin(), shape.end());
  return {{call.self().type, shape}};
}

std::vector<Described> select(const Call& call) {
  Shape shape = call.self().shape;
  need(!shape.empty(), "a scalar has no part to select");
  const auto axis = axis_of(call.node().integer("dim"), shape.size());
  const auto index = call.node().integer("index");
  need(index >= -shape[axis] && index < shape[axis], "index {} is out of range for {}", index, to_string(shape));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return {{call.self().type, shape}};
}

std::vector<Described> slice(const Call& call) {
  Shape shape = call.self().shape;
  need(!shape.empty(), "a scalar has no slices");
  auto& extent = shape[axis_of(call.node().integer("dim"), shape.size())];
  const auto step = call.node().integer("step");
  need(step > 0, "a step of {}", step);
  const auto placed = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
  const auto begin = placed(call.node().maybe_integer("start").value_or(0)),
             end = placed(call.node().maybe_integer("end").value_or(extent));
  extent = end <= begin ? 0 : (end - begin - 1) / step + 1;
  return {{call.self().type, shape}};
}

// `extents` of consecutive parts along an axis.
std::vector<Described> parts(const Call& call, std::size_t axis, const std::vector<std::int64_t>& extents) {
  std::vector<Described> outputs;
  Shape shape = call.self().shape;
  for (const auto extent : extents) {
    shape[axis] = extent;
    outputs.push_back({call.self().type, shape});
  }
  return outputs;
}

std::vector<std::int64_t> equal_parts(std::int64_t extent, std::int64_t size) {
  need(size > 0, "parts of {}", size);
  std::vector<std::int64_t> extents;
  for (std::int64_t begin = 0; begin < extent; begin += size) extents.push_back(std::min(size, extent - begin));
  return extents.empty() ? std::vector<std::int64_t>{0} : extents;
}

std::vector<Described> chunk(const Call& call) {
  const auto axis = axis_of(call.node().integer("dim"), call.self().shape.size());
  const auto count = call.node().integer("chunks"), extent = call.self().shape.at(axis);
  need(count > 0, "{} chunks", count);
  return parts(call, axis, equal_parts(extent, std::max<std::int64_t>(extent / count + (extent % count != 0), 1)));
}

std::vector<Described> split(const Call& call) {
  const auto axis = axis_of(call.node().integer("dim"), call.self().shape.size());
  const auto extent = call.self().shape.at(axis);
  for (const char* arg : {"split_size", "split_sizes"}) {
    const auto* sections = call.node().find(arg);
    if (sections == nullptr) continue;
    if (sections->plain.is_number()) return parts(call, axis, equal_parts(extent, call.node().integer(arg)));
    const auto sizes = call.node().ints(arg);
    std::int64_t total = 0;
    for (const auto size : sizes) {
      need(size >= 0 && size <= extent - total, "parts {} of {}", to_string(sizes), extent);
      total += size;
    }
    need(total == extent, "parts {} of {}", to_string(sizes), extent);
    return parts(call, axis, sizes);
  }
  throw ShapeError("no size of the parts is given");
}

// Into equal parts as far as that goes, the first ones larger by one; or before each of some places.
std::vector<Described> tensor_split(const Call& call) {
  const auto axis = axis_of(call.node().integer("dim"), call.self().shape.size());
  const auto extent = call.self().shape.at(axis);
  std::vector<std::int64_t> extents;
  if (const auto* count = call.node().find("sections")) {
    need(count->plain.is_number_integer() && count->plain.get<std::int64_t>() > 0, "{} parts", count->plain.dump());
    const auto sections = count->plain.get<std::int64_t>();
    for (std::int64_t i = 0; i < sections; ++i) extents.push_back(extent / sections + (i < extent % sections ? 1 : 0));
    return parts(call, axis, extents);
  }
  std::int64_t begin = 0;
  for (auto end : call.node().ints("indices")) {
    end = std::clamp<std::int64_t>(end < 0 ? end + extent : end, 0, extent);
    extents.push_back(std::max<std::int64_t>(end - begin, 0));
    begin = end;
  }
  extents.push_back(extent - begin);
  return parts(call, axis, extents);
}

std::vector<Described> shaped_as(const Call& call) {
  return {{call.self().type, filled(call.in("other").shape, call.self().elements())}};
}

std::vector<Described> unbind(const Call& call) {
  Shape shape = call.self().shape;
  need(!shape.empty(), "a scalar has no parts");
  const auto axis = axis_of(call.node().integer("dim"), shape.size());
  const auto count = static_cast<std::size_t>(shape[axis]);
  need(count == call.node().outputs.size(), "{} along the axis, {} outputs", count, call.node().outputs.size());
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return std::vector<Described>(count, {call.self().type, shape});
}

Shape expanded(const Shape& own, const Shape& target) {
  need(target.size() >= own.size(), "{} cannot be expanded to {}", to_string(own), to_string(target));
  Shape shape = target;
  const auto ahead = target.size() - own.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && i >= ahead) shape[i] = own[i - ahead];
    need(shape[i] >= 0 && (i < ahead || own[i - ahead] == 1 || own[i - ahead] == shape[i]),
         "{} cannot be expanded to {}", to_string(own), to_string(target));
  }
  return shape;
}

std::vector<Described> expand(const Call& call) {
  return {
      {call.self().type, expanded(call.self().shape, call.node().find("other") != nullptr ? call.in("other").shape
                                                                                          : call.node().ints("size"))}};
}

constexpr Operation reshape_like(std::string_view name, OutputRule rule) {
  return {name, rule, nullptr, Aliasing::reshape};
}
constexpr Operation strided(std::string_view name, OutputRule rule) {
  return {name, rule, nullptr, Aliasing::strided};
}

}  // namespace

std::span<const Operation> view_operations() {
  static constexpr Operation all[] = {strided("chunk", chunk),
                                      reshape_like("detach", same_as_self),
                                      strided("expand", expand),
                                      strided("expand_as", expand),
                                      reshape_like("flatten", flatten),
                                      strided("permute", permute),
                                      reshape_like("reshape", view),
                                      strided("select", select),
                                      strided("slice", slice),
                                      strided("split", split),
                                      strided("split_with_sizes", split),
                                      reshape_like("reshape_as", shaped_as),
                                      reshape_like("view_as", shaped_as),
                                      strided("tensor_split", tensor_split),
                                      reshape_like("squeeze", squeeze),
                                      strided("t", turned),
                                      strided("transpose", transpose),
                                      strided("unbind", unbind),
                                      reshape_like("unflatten", unflatten),
                                      reshape_like("unsqueeze", unsqueeze),
                                      reshape_like("view", view)};
  return all;
}

}  // namespace strata::graph
