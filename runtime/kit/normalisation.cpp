// SPDX-License-Identifier: Apache-2.0
// Operations along dimensions: softmax, layer norm, sums and means; attention, which consists of such.
#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "kit/post_ops.hpp"
#include "kit/sums.hpp"

namespace kit {
namespace {

using dnnl::algorithm;

void add_softmax(Program& program, algorithm kind, const Softmax& how) {
  Internals& in = program.internals();
  const dnnl::softmax_forward::primitive_desc pd(in.engine, dnnl::prop_kind::forward_inference, kind,
                                                 desc_of(how.source), desc_of(how.result), how.axis,
                                                 plain_attributes());
  in.add(dnnl::softmax_forward(pd), pd,
         {{DNNL_ARG_SRC, in.handle(how.source, pd.src_desc())}, {DNNL_ARG_DST, in.handle(how.result, pd.dst_desc())}});
}

// Row-major, dimensions next to each other: [outer, count, inner] to [outer, inner]. oneDNN has but a slow kernel for
// sums over rows, as of a bias.
struct Reduced {
  memory source, result;
  Extent outer = 1, count = 1, inner = 1;
  double factor = 1;

  void operator()() const {
    const auto* from = static_cast<const float*>(source.get_data_handle());
    auto* to = static_cast<float*>(result.get_data_handle());
    if (inner == 1) {
#pragma omp parallel for schedule(static)
      for (Extent o = 0; o < outer; ++o) {
        const float* row = from + o * count;
        to[o] = static_cast<float>(factor * sum_of(count, [&](Extent i) { return row[i]; }));
      }
      return;
    }
    const Extent parts = (inner + columns_of_sum - 1) / columns_of_sum;
#pragma omp parallel for schedule(static)
    for (Extent part = 0; part < outer * parts; ++part) {
      const Extent o = part / parts, first = part % parts * columns_of_sum,
                   columns = std::min(columns_of_sum, inner - first);
      const float* begin = from + o * count * inner + first;
      double totals[columns_of_sum];
      sum_columns(
          count, columns, [&](Extent row) { return [values = begin + row * inner](Extent i) { return values[i]; }; },
          totals);
      for (Extent i = 0; i < columns; ++i) to[o * inner + first + i] = static_cast<float>(factor * totals[i]);
    }
  }
};

// nullopt: dimensions between those that are reduced stay, or the tensors are of another kind.
std::optional<Reduced> own_reduction(const Reduce& how) {
  const Shape &from = how.source.shape, &to = how.result.shape;
  const auto is_plain = [](const Tensor& tensor) {
    return tensor.layout == Layout::plain && tensor.type == Type::float32;
  };
  if (!is_plain(how.source) || !is_plain(how.result) || from.rank != to.rank) return std::nullopt;
  Reduced result;
  for (int d = 0; d < from.rank; ++d) {
    if (from[d] == 1) continue;
    const bool reduced = to[d] != from[d];
    if (reduced && result.inner != 1) return std::nullopt;
    (reduced ? result.count : result.count == 1 ? result.outer : result.inner) *= from[d];
  }
  return result;
}

void reduce(Program& program, algorithm kind, const Reduce& how) {
  Internals& in = program.internals();
  const auto from = desc_of(how.source), to = desc_of(how.result);
  if (from.get_dims() == to.get_dims())
    return reorder(program, {how.source, how.result});  // oneDNN refuses to reduce nothing
  if (auto own = own_reduction(how); own && (kind == algorithm::reduction_sum || kind == algorithm::reduction_mean)) {
    own->source = in.handle(how.source, from);
    own->result = in.handle(how.result, to);
    if (kind == algorithm::reduction_mean) own->factor = 1 / static_cast<double>(own->count);
    return in.add_own(std::move(*own), false, "kit:sum");
  }
  const dnnl::reduction::primitive_desc pd(in.engine, kind, from, to, 0, 0, plain_attributes());
  in.add(dnnl::reduction(pd), pd,
         {{DNNL_ARG_SRC, in.handle(how.source, from)}, {DNNL_ARG_DST, in.handle(how.result, to)}});
}

// Minus infinity above the diagonal of each matrix.
struct Causal {
  memory scores;
  Extent matrices, rows, columns;
  void operator()() const {
    auto* data = static_cast<float*>(scores.get_data_handle());
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < matrices * rows; ++row)
      for (Extent c = row % rows + 1; c < columns; ++c)
        data[row * columns + c] = -std::numeric_limits<float>::infinity();
  }
};

}  // namespace

void softmax(Program& program, const Softmax& how) {
  add_softmax(program, algorithm::softmax_accurate, how);
}
void log_softmax(Program& program, const Softmax& how) {
  add_softmax(program, algorithm::softmax_log, how);
}
void sum(Program& program, const Reduce& how) {
  reduce(program, algorithm::reduction_sum, how);
}
void mean(Program& program, const Reduce& how) {
  reduce(program, algorithm::reduction_mean, how);
}
void largest(Program& program, const Reduce& how) {
  reduce(program, algorithm::reduction_max, how);
}
void smallest(Program& program, const Reduce& how) {
  reduce(program, algorithm::reduction_min, how);
}

// Three calls, since oneDNN has but a slow kernel for norms.
void euclidean_norm(Program& program, const Reduce& how) {
  const Tensor squares = program.internals().temporary(how.source.shape);
  apply(program, {how.source, square(), squares});
  sum(program, {squares, how.result});
  apply(program, {how.result, square_root(), how.result});
}

void attention(Program& program, const Attention& how) {
  Internals& in = program.internals();
  const int rank = how.query.shape.rank;
  Shape shape = how.query.shape;
  shape[rank - 1] = how.key.shape[rank - 2];
  const Type type = how.query.type;
  const Tensor scaled = in.temporary(how.query.shape, Layout::plain, type), scores = in.temporary(shape),
               shares = type == Type::float32 ? scores : in.temporary(shape, Layout::plain, type);
  apply(program, {how.query, line(how.scale, 0), scaled});
  matrix_product(program, {.left = scaled, .right = how.key, .result = scores, .transposed = true});
  if (how.causal)
    in.add_own(Causal{in.handle(scores, desc_of(scores)), shape.elements() / (shape[rank - 2] * shape[rank - 1]),
                      shape[rank - 2], shape[rank - 1]},
               false, "kit:causal");
  if (how.mask) add(program, {scores, how.mask, scores});
  softmax(program, {scores, shares, rank - 1});
  matrix_product(program, {.left = shares, .right = how.value, .result = how.result});
}

}  // namespace kit
