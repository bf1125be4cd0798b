// SPDX-License-Identifier: Apache-2.0
// The update of a linear layer's weight by a gradient that never lies in memory: a tile of the product of a few rows is
// summed in registers and applied at once. In small batches such a layer waits for memory, and the gradient, as large
// as the weight, would be written and read once more.
#include <algorithm>
#include <stdexcept>

#include "kit/descent.hpp"
#include "kit/training.hpp"
#include "kit/vector.hpp"

namespace kit {
namespace {

using kernels::kBlock;
using kernels::load;
using kernels::store;
using kernels::Vector;

constexpr int kHeight = 4;  // rows of a tile
#ifdef __AVX512F__
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif
constexpr Extent kWidth = kVectors * kBlock;
constexpr Extent kCached = 64 << 10;  // floats of `right` that one turn over the rows reads again from cache

struct DescentByProduct {
  Internals* in;
  int weight;
  memory left, right;
  Extent rows, shared, columns;

  void operator()() const {
    auto& entry = in->weights[static_cast<std::size_t>(weight)];
    const auto step = descending(in->training, entry.has_momentum);
    const Run run{step,
                  static_cast<const float*>(left.get_data_handle()),
                  static_cast<const float*>(right.get_data_handle()),
                  place_of(*in, weight),
                  shared,
                  columns};
    const Extent turn = std::max<Extent>(kCached / std::max<Extent>(shared, 1) / kWidth, 1) * kWidth;
#pragma omp parallel if (rows * columns * (shared + 4) > 65536)
    for (Extent begin = 0; begin < columns; begin += turn) {
      const Extent end = std::min(begin + turn, columns);
#pragma omp for schedule(static) nowait
      for (Extent row = 0; row < rows; row += kHeight)
        run.rows_from(row, std::min<Extent>(kHeight, rows - row), begin, end);
    }
    entry.has_momentum = entry.has_momentum || step.keeps_buffers();
  }

 private:
  struct Run {
    Descending step;
    const float *left, *right;
    Place place;
    Extent shared, columns;

    void rows_from(Extent row, Extent count, Extent begin, Extent end) const {
      // of one or two rows nothing is worth reading again from registers, and one stream is faster than four
      if (shared == 1 || shared == 2) {
        for (; count > 0; --count) stream(row++, begin, end);
        return;
      }
      if (count == kHeight) return tiles<kHeight>(row, begin, end);
      for (; count > 0; --count) tiles<1>(row++, begin, end);
    }

    void stream(Extent row, Extent begin, Extent end) const {
      const Extent at = row * columns + begin;
      const float *first = right + begin, *second = first + columns;
      const float a = left[row * shared], b = left[row * shared + shared - 1];
      if (shared == 1)
        step.by(place.at(at), end - begin, [=](Extent i) { return a * first[i]; });
      else
        step.by(place.at(at), end - begin, [=](Extent i) { return a * first[i] + b * second[i]; });
    }

    template <int Height>
    void tiles(Extent row, Extent begin, Extent end) const {
      Extent column = begin;
      for (; column + kWidth <= end; column += kWidth) tile<Height>(row, column);
      for (Extent r = row; r < row + Height; ++r) rest(r, column, end);
    }

    template <int Height>
    void tile(Extent row, Extent column) const {
      Vector sums[Height][kVectors] = {};
      for (Extent k = 0; k < shared; ++k) {
        Vector factors[kVectors];
        for (int v = 0; v < kVectors; ++v) factors[v] = load(right + k * columns + column + v * kBlock);
        for (int r = 0; r < Height; ++r) {
          const Vector scale = Vector{} + left[(row + r) * shared + k];
          for (int v = 0; v < kVectors; ++v) sums[r][v] += scale * factors[v];
        }
      }
      float gradient[kWidth];
      for (int r = 0; r < Height; ++r) {
        for (int v = 0; v < kVectors; ++v) store(gradient + v * kBlock, sums[r][v]);
        apply(row + r, column, gradient, kWidth);
      }
    }

    // Columns behind the last whole tile.
    void rest(Extent row, Extent column, Extent end) const {
      float gradient[kWidth] = {};
      for (Extent k = 0; k < shared; ++k)
        for (Extent i = column; i < end; ++i) gradient[i - column] += left[row * shared + k] * right[k * columns + i];
      apply(row, column, gradient, end - column);
    }

    void apply(Extent row, Extent column, const float* gradient, Extent count) const {
      step.with(place.at(row * columns + column), gradient, count);
    }
  };
};

}  // namespace

void descend_product(Program& program, const DescendProduct& how) {
  Internals& in = program.internals();
  const Extent rows = how.left.shape[0], shared = how.left.shape[1], columns = how.right.shape[1];
  const int number = how.parameter.number;
  auto& entry = in.weights.at(static_cast<std::size_t>(number));
  if (entry.home < 0) static_cast<void>(in.row_major_form(how.parameter));
  const auto& home = in.stored[static_cast<std::size_t>(entry.home)];
  if (home.desc != home.as_given) throw std::logic_error("a matrix that is not kept row-major");
  in.add_own(DescentByProduct{&in, number, in.handle(how.left, desc_of(how.left)),
                              in.handle(how.right, desc_of(how.right)), rows, shared, columns},
             false, "kit:update by a product");
}

}  // namespace kit
