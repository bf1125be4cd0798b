// SPDX-License-Identifier: Apache-2.0
// Sums, differences, products and quotients of two tensors (each may be broadcast), or of a tensor and a number.
#include <algorithm>

#include "kit_cuda/kernels/elementwise.hpp"
#include "kit_cuda/kernels/move.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Binary;
using kit_cuda::Stream;

// In the layout of an operand that is not broadcast.
View view_of_both(const Dims& dims, const Tensor& x, const Tensor& y) {
  return Builder::view_like(dims, x.dims() == dims ? x.view : y.view);
}

void combine_into(Builder& b, const Tensor& x, Binary how, const Tensor& y, double alpha, const Tensor& to) {
  b.own(
      [=](Stream stream) {
        kit_cuda::combine(stream, x.source(), how, y.source(), static_cast<float>(alpha), to.target());
      },
      x.view, to.view);
}

void combine(Builder& b, Binary how, double alpha = 1) {
  const Tensor x = b.tensor("self"), y = b.tensor("other");
  combine_into(b, x, how, y, alpha, b.result(view_of_both(b.shape(), x, y)));
}

void line(Builder& b, double alpha, double beta) {
  const Tensor x = b.tensor("self"), y = b.result_like(x);
  const auto f = kit::line(static_cast<float>(alpha), static_cast<float>(beta));
  b.own([=](Stream stream) { kit_cuda::apply(stream, x.source(), f, y.target()); }, x.view, y.view);
}

double alpha_of(Builder& b) {
  return b.has("alpha") ? b.number("alpha") : 1;
}

// The count of batches that a batch norm has seen.
void add_integers(Builder& b) {
  if (b.is_tensor("other") || alpha_of(b) != 1) throw Unsupported("a sum of two integer tensors");
  const Tensor x = b.int64_tensor("self"), to = b.library().allocate(x.view, Type::int64);
  const auto term = static_cast<std::int64_t>(b.number("other"));
  b.own([=](Stream stream) { kit_cuda::add_number(stream, x.int64_data(), term, to.int64_data(), to.view.count()); },
        x.view, to.view);
  b.is(to);
}

void add(Builder& b) {
  if (b.gives_integers()) return add_integers(b);
  if (!b.is_tensor("other")) return line(b, 1, alpha_of(b) * b.number("other"));
  combine(b, Binary::add, alpha_of(b));
}
void subtract(Builder& b) {
  if (!b.is_tensor("other")) return line(b, 1, -alpha_of(b) * b.number("other"));
  combine(b, Binary::subtract, alpha_of(b));
}
void subtract_from(Builder& b) {
  if (b.is_tensor("other") || alpha_of(b) != 1) throw Unsupported("rsub of two tensors, or with a factor");
  line(b, -1, b.number("other"));
}
void negate(Builder& b) {
  line(b, -1, 0);
}
void multiply_by(Builder& b) {
  if (!b.is_tensor("other")) return line(b, b.number("other"), 0);
  combine(b, Binary::multiply);
}
void divide(Builder& b) {
  if (!b.text("rounding_mode").empty()) throw Unsupported("div with rounding");
  if (!b.is_tensor("other")) return line(b, 1 / b.number("other"), 0);
  combine(b, Binary::divide);
}

// Of tensors that may lie as they like, along a dimension: a copy each.
void join(Builder& b, const std::vector<Tensor>& parts, std::size_t axis) {
  const Tensor to = b.result_like(parts.front());
  Index begin = 0;
  for (const auto& part : parts) {
    const auto length = part.dims()[axis];
    if (length > 0) b.move(part, part_of(to, axis, begin, length));
    begin += length;
  }
}

void concatenate(Builder& b) {
  auto parts = b.tensors("tensors");
  const Dims dims = b.shape();
  // PyTorch lets empty lists be joined with anything
  std::erase_if(parts, [&](const Tensor& part) { return part.dims().size() != dims.size(); });
  join(b, parts, b.dimension("dim", dims.size()));
}

void stack(Builder& b) {
  auto parts = b.tensors("tensors");
  Dims dims = b.shape();
  const auto axis = b.dimension("dim", dims.size());
  dims[axis] = 1;
  for (auto& part : parts) part = b.reshaped(part, dims);
  join(b, parts, axis);
}

}  // namespace

Tensor along_line(Builder& b, const Tensor& x, double alpha, double beta) {
  const Tensor y = b.temporary(Builder::view_like(x.dims(), x.view));
  const auto f = kit::line(static_cast<float>(alpha), static_cast<float>(beta));
  b.own([=](Stream stream) { kit_cuda::apply(stream, x.source(), f, y.target()); }, x.view, y.view);
  return y;
}

Tensor sum_of(Builder& b, const Tensor& x, const Tensor& y, bool into_result) {
  const View view = Builder::view_like(x.dims(), x.view);
  const Tensor to = into_result ? b.result(view) : b.temporary(view);
  combine_into(b, x, Binary::add, y, 1, to);
  return to;
}

void add_arithmetic(Operations& table) {
  table["add"] = add;
  table["sub"] = subtract;
  table["rsub"] = subtract_from;
  table["mul"] = multiply_by;
  table["neg"] = negate;
  table["div"] = divide;
  table["cat"] = concatenate;
  table["stack"] = stack;
}

}  // namespace strata::cudnn
