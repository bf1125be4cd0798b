// SPDX-License-Identifier: Apache-2.0
// The stand-in for NVIDIA's libraries, in host memory: convolutions and products as loops, batch norms by strata's own
// kernels. With it all other files of the level cudnn run on any machine.
#include <algorithm>
#include <array>

#include "calls.hpp"
#include "kit_cuda/kernels/bfloat16.hpp"
#include "kit_cuda/kernels/elementwise.hpp"
#include "kit_cuda/kernels/move.hpp"
#include "kit_cuda/kernels/normalisation.hpp"

namespace strata::cudnn {
namespace {

using Direction = ConvolutionShape::Direction;
using Floats = std::vector<float>;
using Three = std::array<Index, 3>;

// A row of the result at a time, its sums in float64.
template <class Factor>
void multiply(const ProductCall& call) {
  using kit_cuda::widened;
  std::vector<double> sums(static_cast<std::size_t>(call.columns));
  double* const sum = sums.data();
  const auto left = call.left, right = call.right;
  const auto *of_left = static_cast<const Factor*>(left.data), *of_right = static_cast<const Factor*>(right.data);
  for (Index i = 0; i < call.batch; ++i)
    for (Index r = 0; r < call.rows; ++r) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (Index k = 0; k < call.inner; ++k) {
        const double factor = widened(of_left[i * left.batch_stride + r * left.row_stride + k * left.column_stride]);
        const Factor* row = of_right + i * right.batch_stride + k * right.row_stride;
        if (right.column_stride == 1) {
#pragma omp simd
          for (Index c = 0; c < call.columns; ++c) sum[c] += factor * widened(row[c]);
        } else {
          for (Index c = 0; c < call.columns; ++c) sum[c] += factor * widened(row[c * right.column_stride]);
        }
      }
      std::copy(sums.begin(), sums.end(), call.to + (i * call.rows + r) * call.columns);
    }
}

Three three(const Dims& all, Index without) {
  Three found{without, without, without};
  std::copy(all.rbegin(), all.rend(), found.rbegin());
  return found;
}
Three spatial(const View& view) {
  return three(Dims(view.extents + 2, view.extents + view.rank), 1);
}
Index product(const Three& all) {
  return all[0] * all[1] * all[2];
}

// A convolution of row-major tensors as products: of an image a matrix is made with a row for each place of the result,
// in which lie the elements of the image that the window there covers, as the elements of a weight lie.
class Unfolded {
 public:
  explicit Unfolded(const ConvolutionCall& call)
      : shape_(call.shape),
        batch_(shape_.image.extents[0]),
        channels_(shape_.weight.extents[1]),
        groups_(shape_.image.extents[1] / channels_),
        outputs_(shape_.weight.extents[0] / groups_),
        places_(product(spatial(shape_.result))),
        window_(channels_ * product(spatial(shape_.weight))) {
    find_places();
  }

  void forward(const ConvolutionCall& call) const {
    const Floats image = read(call.image, shape_.image), weight = read(call.weight, shape_.weight);
    Floats result(static_cast<std::size_t>(shape_.result.count()));
    for (Index one = 0; one < batch_ * groups_; ++one) {
      const Floats rows = unfold(image, one);
      const float* w = weight.data() + one % groups_ * outputs_ * window_;
      // result [outputs, places] = weight rows^T
      const Floats turned = transposed(rows);
      multiply<float>({.batch = 1,
                       .rows = outputs_,
                       .columns = places_,
                       .inner = window_,
                       .left = {.data = w, .batch_stride = 0, .row_stride = window_, .column_stride = 1},
                       .right = {.data = turned.data(), .batch_stride = 0, .row_stride = places_, .column_stride = 1},
                       .to = result.data() + one * outputs_ * places_});
    }
    write(result, call.result, shape_.result);
  }

  void of_input(const ConvolutionCall& call) const {
    const Floats gradient = read(call.result, shape_.result), weight = read(call.weight, shape_.weight);
    std::vector<double> image(static_cast<std::size_t>(shape_.image.count()), 0.0);
    Floats rows(static_cast<std::size_t>(places_ * window_));
    for (Index one = 0; one < batch_ * groups_; ++one) {
      multiply<float>({.batch = 1,
                       .rows = places_,
                       .columns = window_,
                       .inner = outputs_,
                       .left = {.data = gradient.data() + one * outputs_ * places_,
                                .batch_stride = 0,
                                .row_stride = 1,
                                .column_stride = places_},
                       .right = {.data = weight.data() + one % groups_ * outputs_ * window_,
                                 .batch_stride = 0,
                                 .row_stride = window_,
                                 .column_stride = 1},
                       .to = rows.data()});
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (from_[i] >= 0) image[static_cast<std::size_t>(one * image_elements() + from_[i])] += rows[i];
    }
    write({image.begin(), image.end()}, call.image, shape_.image);
  }

  void of_weight(const ConvolutionCall& call) const {
    const Floats gradient = read(call.result, shape_.result), image = read(call.image, shape_.image);
    std::vector<double> weight(static_cast<std::size_t>(shape_.weight.count()), 0.0);
    Floats part(static_cast<std::size_t>(outputs_ * window_));
    for (Index one = 0; one < batch_ * groups_; ++one) {
      const Floats rows = unfold(image, one);
      multiply<float>({.batch = 1,
                       .rows = outputs_,
                       .columns = window_,
                       .inner = places_,
                       .left = {.data = gradient.data() + one * outputs_ * places_,
                                .batch_stride = 0,
                                .row_stride = places_,
                                .column_stride = 1},
                       .right = {.data = rows.data(), .batch_stride = 0, .row_stride = window_, .column_stride = 1},
                       .to = part.data()});
      for (std::size_t i = 0; i < part.size(); ++i)
        weight[static_cast<std::size_t>(one % groups_ * outputs_ * window_) + i] += part[i];
    }
    write({weight.begin(), weight.end()}, call.weight, shape_.weight);
  }

 private:
  Index image_elements() const { return channels_ * product(spatial(shape_.image)); }

  // For each element of the matrix its place in the image of one group; -1: it lies in the padding.
  void find_places() {
    const Three in = spatial(shape_.image), kernel = spatial(shape_.weight), out = spatial(shape_.result),
                stride = three(shape_.stride, 1), dilation = three(shape_.dilation, 1),
                padding = three(shape_.padding, 0);
    for (Index place = 0; place < places_; ++place)
      for (Index element = 0; element < window_; ++element) {
        Index at = element / product(kernel), p = place, e = element % product(kernel), behind = 1, found = 0;
        bool inside = true;
        for (std::size_t d = 3; d-- > 0;) {
          const Index i = p % out[d] * stride[d] + e % kernel[d] * dilation[d] - padding[d];
          inside = inside && i >= 0 && i < in[d];
          found += i * behind;
          behind *= in[d];
          p /= out[d];
          e /= kernel[d];
        }
        from_.push_back(inside ? at * behind + found : -1);
      }
  }

  Floats unfold(const Floats& image, Index one) const {
    Floats rows(from_.size());
    const float* data = image.data() + one * image_elements();
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = from_[i] < 0 ? 0 : data[from_[i]];
    return rows;
  }
  Floats transposed(const Floats& rows) const {
    Floats turned(rows.size());
    for (Index p = 0; p < places_; ++p)
      for (Index e = 0; e < window_; ++e)
        turned[static_cast<std::size_t>(e * places_ + p)] = rows[static_cast<std::size_t>(p * window_ + e)];
    return turned;
  }

  static Tensor row_major_of(Floats& plain, const View& view) {
    return {.memory = reinterpret_cast<std::byte*>(plain.data()),
            .offset = 0,
            .view = kit_cuda::row_major(view.extents, view.rank)};
  }
  Tensor operand(void* data, const View& view) const {
    return {.memory = static_cast<std::byte*>(data),
            .offset = 0,
            .view = view,
            .type = shape_.bfloat16 ? Type::bfloat16 : Type::float32};
  }
  Floats read(void* data, const View& view) const {
    Floats plain(static_cast<std::size_t>(view.count()));
    copy(nullptr, operand(data, view), row_major_of(plain, view));
    return plain;
  }
  void write(Floats plain, void* data, const View& view) const {
    copy(nullptr, row_major_of(plain, view), operand(data, view));
  }

  ConvolutionShape shape_;
  Index batch_, channels_, groups_, outputs_, places_, window_;  // of one group, but the batch
  std::vector<Index> from_;
};

class HostCalls final : public Calls {
 public:
  BoundCall convolution(const ConvolutionCall& call) override {
    const auto run = call.shape.direction == Direction::forward    ? &Unfolded::forward
                     : call.shape.direction == Direction::of_input ? &Unfolded::of_input
                                                                   : &Unfolded::of_weight;
    return {[run, call, unfolded = std::make_shared<Unfolded>(call)] { (*unfolded.*run)(call); }, "host"};
  }
  BoundCall product(const ProductCall& call) override {
    return {[call] { call.bfloat16 ? multiply<kit_cuda::Bfloat16>(call) : multiply<float>(call); }, "host"};
  }
  BoundCall batch_norm(const BatchNormCall& call) override {
    kit_cuda::BatchNorm how{
        .x = {call.x, call.view}, .scale = call.scale, .shift = call.shift, .epsilon = call.epsilon};
    how.mean = call.mean;
    how.deviation = call.deviation;
    how.y = {call.y, call.view};
    return {[how] { kit_cuda::batch_norm(nullptr, how); }, "host"};
  }
  BoundCall batch_norm(const BatchNormInferenceCall& call) override {
    return {[call] {
              kit_cuda::normalise(nullptr, {call.x, call.view},
                                  {.mean = call.mean,
                                   .variance = call.variance,
                                   .scale = call.scale,
                                   .shift = call.shift,
                                   .epsilon = call.epsilon},
                                  {call.y, call.view});
            },
            "host"};
  }
  BoundCall batch_norm(const BatchNormBackwardCall& call) override {
    kit_cuda::BatchNormBackward how{.gradient = {call.gradient, call.view}, .x = {call.x, call.view}};
    how.mean = call.mean;
    how.deviation = call.deviation;
    how.scale = call.scale;
    how.of_x = {call.of_x, call.view};
    how.of_scale = call.of_scale;
    how.of_shift = call.of_shift;
    return {[how] { kit_cuda::batch_norm_backward(nullptr, how); }, "host"};
  }
  std::size_t finish() override { return 0; }
};

}  // namespace

std::unique_ptr<Calls> make_calls(kit_cuda::Stream, bool) {
  return std::make_unique<HostCalls>();
}

std::map<std::string, std::string> versions() {
  return {};
}

}  // namespace strata::cudnn
