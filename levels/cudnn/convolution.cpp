// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions and their gradients, one call of cuDNN each; the bias is a kernel of strata's
// behind the call, as in PyTorch.
#include "kit_cuda/kernels/elementwise.hpp"
#include "kit_cuda/kernels/move.hpp"
#include "kit_cuda/kernels/reduction.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

using kit_cuda::Stream;
using Direction = ConvolutionShape::Direction;

// cuDNN knows no convolution along one dimension: it gets another one of one element.
View with_two(const View& view) {
  if (view.rank != 3) return view;
  View image{4, {view.extents[0], view.extents[1], 1, view.extents[2]}, {}};
  const Index strides[] = {view.strides[0], view.strides[1], view.extents[2] * view.strides[2], view.strides[2]};
  std::copy(std::begin(strides), std::end(strides), image.strides);
  return image;
}

Dims with_two(Dims all, std::int64_t other) {
  if (all.size() == 1) all.insert(all.begin(), other);
  return all;
}

// The window with padding alike on both sides: `more` is what the image needs behind it for that.
struct Even {
  primitives::Window window;
  Dims more;
  bool pads = false;
};
Even even_window(Builder& b, const Dims& weight) {
  Even even{b.convolution_window(weight), {}, false};
  for (std::size_t i = 0; i < even.window.before.size(); ++i) {
    even.more.push_back(even.window.after[i] - even.window.before[i]);
    even.pads = even.pads || even.more.back() != 0;
  }
  return even;
}

// With zeros behind it, for a window that pads one side more than the other.
Dims padded_dims(Dims dims, const Even& even) {
  for (std::size_t i = 0; i < even.more.size(); ++i) dims[i + 2] += even.more[i];
  return dims;
}
Tensor inner_part(Tensor tensor, const Dims& dims) {
  for (std::size_t i = 2; i < dims.size(); ++i) tensor = part_of(tensor, i, 0, dims[i]);
  return tensor;
}
Tensor padded(Builder& b, const Tensor& image, const Even& even) {
  if (!even.pads) return b.image(image);
  const Tensor to = b.filled(b.image_view(padded_dims(image.dims(), even)), 0);  // no run writes the frame
  b.move(image, inner_part(to, image.dims()));
  return to;
}

void convolve(Builder& b, Direction direction, const Even& even, const Tensor& image, const Tensor& weight,
              const Tensor& result) {
  const auto& window = even.window;
  const ConvolutionShape shape{.direction = direction,
                               .image = with_two(image.view),
                               .weight = with_two(weight.view),
                               .result = with_two(result.view),
                               .stride = with_two(window.stride, 1),
                               .dilation = with_two(window.dilation, 1),
                               .padding = with_two(window.before, 0),
                               .bfloat16 = b.rounds()};
  const Tensor& to = direction == Direction::forward ? result : direction == Direction::of_input ? image : weight;
  const Tensor& from = direction == Direction::forward ? image : result;
  // as autocast; cuDNN, asked without a device, names no plan of bfloat16 with a result in float32
  const auto own = [&](const Tensor& tensor) {
    return &tensor != &to ? b.operand(tensor) : b.rounds() ? b.temporary(tensor.view, Type::bfloat16) : tensor;
  };
  const Tensor x = own(image), w = own(weight), y = own(result);
  b.call(b.calls().convolution({.shape = shape, .image = x.begin(), .weight = w.begin(), .result = y.begin()}),
         from.view, to.view);
  if (b.rounds()) b.move(&to == &result ? y : &to == &image ? x : w, to);
}

void convolution(Builder& b) {
  const Tensor unpadded = b.tensor("input"), weight = b.image(b.tensor("weight"));
  if (unpadded.dims().size() != weight.dims().size()) throw Unsupported("a convolution of an input without a batch");
  const Even even = even_window(b, weight.dims());
  const Tensor image = padded(b, unpadded, even), result = b.result(b.image_view(b.shape()));
  convolve(b, Direction::forward, even, image, weight, result);
  const auto bias = b.optional("bias");
  if (!bias) return;
  b.own([=, shift = bias->data()](
            Stream stream) { kit_cuda::scale_shift(stream, result.source(), nullptr, shift, result.target()); },
        result.view, result.view);
}

// The sum over all but the channels.
void of_bias(Builder& b, const Tensor& gradient, std::size_t output) {
  Dims dims(gradient.dims().size(), 1);
  dims[1] = gradient.dims()[1];
  const Tensor to = b.result(row_major(dims), output);
  b.own([=](Stream stream) { kit_cuda::reduce(stream, gradient.source(), kit_cuda::Reduction::sum, to.target()); },
        gradient.view, to.view);
}

void backward(Builder& b) {
  if (b.flag("transposed")) throw Unsupported("a transposed convolution");
  const auto mask = b.flags("output_mask");
  const Tensor gradient = b.image(b.tensor("grad_output")), weight = b.image(b.tensor("weight"));
  const Dims input = b.tensor("input").dims();
  const Even even = even_window(b, weight.dims());
  std::size_t output = 0;
  if (mask.at(0)) {
    const Tensor to = b.temporary(b.image_view(padded_dims(input, even)));
    convolve(b, Direction::of_input, even, to, weight, gradient);
    b.is(inner_part(to, input), output++);
  }
  if (mask.at(1))
    convolve(b, Direction::of_weight, even, padded(b, b.tensor("input"), even),
             b.result(b.image_view(weight.dims()), output++), gradient);
  if (mask.at(2)) of_bias(b, gradient, output);
}

}  // namespace

void add_convolutions(Operations& table) {
  for (const char* name : {"conv1d", "conv2d", "conv3d"}) table[name] = convolution;
  table["convolution_backward"] = backward;
}

}  // namespace strata::cudnn
