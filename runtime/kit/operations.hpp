// SPDX-License-Identifier: Apache-2.0
// What a stage of a program is made of: each function adds one operation, with its tensors, to the program. Layouts of
// activations are as given; weights are stored as the library likes them best. Tensors are float32. Convolutions,
// products, activations, arithmetic, poolings with windows of one size, means, softmax, layer norms, attention and what
// only moves elements also read and write bfloat16; calculate() and what only moves elements have all types.
#pragma once

#include <vector>

#include "kit/elements.hpp"
#include "kit/function.hpp"
#include "kit/program.hpp"
#include "kit/recurrence.hpp"
#include "kit/resize.hpp"

namespace kit {

// What happens to a result before it is stored: a function, or a sum or product with another tensor.
struct PostOp {
  enum class Kind : std::uint8_t { function, add, multiply };
  PostOp(Function applied) : function(applied) {}  // implicit: a list of posts reads {relu()}
  PostOp(Kind what, const Tensor& tensor) : kind(what), with(tensor) {}
  Kind kind = Kind::function;
  Function function;
  Tensor with;
};
inline PostOp plus(const Tensor& tensor) {
  return {PostOp::Kind::add, tensor};
}
inline PostOp times(const Tensor& tensor) {
  return {PostOp::Kind::multiply, tensor};
}
using PostOps = std::vector<PostOp>;

// Images N C D H W with any number of spatial dimensions; `before`, `after`: padding. dilation 1 is none.
struct Convolution {
  Tensor source;
  Weight weight, bias;  // bias: may be left out
  Tensor result;
  Shape stride, dilation, before, after;
  Extent groups = 1;
  PostOps then = {};
};
void convolution(Program& program, const Convolution& how);
// The gradient of a convolution's input as a layer (ConvTranspose): weight [inputs, outputs / groups, ...], `before`
// and `after` the padding of that convolution. No posts.
void transposed_convolution(Program& program, const Convolution& how);
// A convolution by the kit's own kernels (winograd.hpp, direct.hpp), for images in blocks. `then`: a sum with a tensor
// that lies as the result does and may be it, then relu or clip to bounds that hold 0; each may be left out.
void winograd_convolution(Program& program, const Convolution& how);  // 3x3, stride 1, padding 0, 1 or 2
void direct_convolution(Program& program, const Convolution& how);

// Rows of `source` times the transposed weight [outputs, inputs].
struct Linear {
  Tensor source;
  Weight weight, bias;
  Tensor result;
  PostOps then = {};
};
void linear(Program& program, const Linear& how);
// The same by the kit's own kernel: `source` is an image in blocks, read as if it were flattened from row-major;
// outputs must fill whole blocks. `then` as for direct_convolution.
void direct_linear(Program& program, const Linear& how);

// Matrices in the last two dimensions; those before are broadcast. `transposed`: the right one, as it lies;
// `left_transposed` likewise.
struct MatrixProduct {
  Tensor left, right, result;
  bool transposed = false, left_transposed = false;
  PostOps then = {};
};
void matrix_product(Program& program, const MatrixProduct& how);

struct Pool {
  enum class Kind : std::uint8_t { max, average, average_with_padding };
  Tensor source, result;
  Shape kernel, stride, dilation, before, after;
};
void max_pool(Program& program, const Pool& how);
void average_pool(Program& program, const Pool& how);               // divides by the places inside the image
void average_pool_with_padding(Program& program, const Pool& how);  // divides by all places of the window

// Windows of unequal size, along the last dimensions of a row-major tensor: that of output o is [begin, end), its sum
// divided by `count`, the product over the dimensions.
struct Span {
  Extent begin, end, count;
};
struct UnevenPool {
  Tensor source, result;
  std::vector<std::vector<Span>> spans;
  float divisor = 0;  // 0: as the spans say
};
void uneven_average_pool(Program& program, const UnevenPool& how);

// An image brought to the result's height and width; both lie in one layout. `row_scale`, `column_scale`: old pixels a
// new one, 0: as the extents say. `corners`: the outermost pixels lie on each other.
struct ResizeImage {
  Tensor source, result;
  Resizing how = Resizing::nearest;
  double row_scale = 0, column_scale = 0;
  bool corners = false;
};
void resize(Program& program, const ResizeImage& how);
// Its gradient: `source` is that of the new image, `result` that of the old one; the rest is said of the new one.
void resize_backward(Program& program, const ResizeImage& how);

// Images taken apart into windows, [..., C, rows, columns] -> [..., C kernel, windows], and put together again, where
// what comes from one pixel is added. Row-major; two numbers each.
struct Columns {
  Tensor source, result;
  Shape kernel, dilation, padding, stride;
};
void take_apart(Program& program, const Columns& how);
void put_together(Program& program, const Columns& how);

// scale x + shift by channel, with scale and shift of one element a channel.
struct ScaleShift {
  Tensor source;
  Weight scale, shift;
  Tensor result;
  PostOps then = {};
};
void scale_shift(Program& program, const ScaleShift& how);

// y = (x - mean) deviation scale + shift with the batch's mean and 1 / sqrt(variance + epsilon) by channel, which are
// kept in `mean` and `deviation`, if these are given; `then`: a sum with a tensor, then relu or clip to bounds that
// hold 0. Running statistics: (1 - momentum) old + momentum new, of the unbiased variance. Scale, shift and running
// ones may be left out.
struct BatchNorm {
  Tensor source;
  Weight scale, shift, running_mean, running_variance;
  Tensor result, mean, deviation;
  double momentum = 0, epsilon = 0;
  bool fixed_statistics = false;  // the running statistics in place of the batch's; they stay as they are
  PostOps then = {};
};
void batch_norm(Program& program, const BatchNorm& how);

// (x - mean) / sqrt(variance + epsilon) * scale + shift over the last dimensions, `over` elements of them. Training
// keeps the mean and 1 / sqrt(variance + epsilon) of each row.
struct LayerNorm {
  Tensor source;
  Weight scale, shift;  // may be left out
  Tensor result, mean = {}, deviation = {};
  Extent over = 1;
  float epsilon = 0;
};
void layer_norm(Program& program, const LayerNorm& how);
inline Extent rows_of(const Tensor& source, Extent over) {
  return over == 0 ? 0 : source.shape.elements() / over;
}

struct Apply {
  Tensor source;
  Function function;
  Tensor result;
  PostOps then = {};
};
void apply(Program& program, const Apply& how);

// left and right, of which `right` may be broadcast (extents of 1, or fewer dimensions).
struct Combine {
  Tensor left, right, result;
  PostOps then = {};
  float factor = 1;  // of `right`
};
void add(Program& program, const Combine& how);
void subtract(Program& program, const Combine& how);
void multiply(Program& program, const Combine& how);
void divide(Program& program, const Combine& how);

// A tensor or a number.
struct Operand {
  Operand() = default;
  Operand(const Tensor& of) : tensor(of) {}  // implicit, as of numbers
  Operand(double value) : is_number(true), number(value) {}
  Operand(std::int64_t value) : is_number(true), whole(value), number(static_cast<double>(value)) {}
  Operand(int value) : Operand(static_cast<std::int64_t>(value)) {}
  Tensor tensor;
  bool is_number = false;
  std::int64_t whole = 0;
  double number = 0;
  explicit operator bool() const { return is_number || tensor; }
};

// Row-major tensors of any type but bfloat16, which are broadcast to the result's shape (elements.hpp). `in_float`: it
// is calculated in float32, else in int64.
struct Calculate {
  Calculation how;
  Operand left, right, third;
  Tensor result;
  bool in_float = false;
};
void calculate(Program& program, const Calculate& how);

struct Softmax {
  Tensor source, result;
  int axis = 0;
};
void softmax(Program& program, const Softmax& how);
void log_softmax(Program& program, const Softmax& how);

// `result` has extents of 1 where it is reduced.
struct Reduce {
  Tensor source, result;
};
// The mean over all places of an image N C D H W, in any layout; `result` is row-major, one element a channel.
void mean_of_places(Program& program, const Reduce& how);
void sum(Program& program, const Reduce& how);
void mean(Program& program, const Reduce& how);
void largest(Program& program, const Reduce& how);
void smallest(Program& program, const Reduce& how);
void euclidean_norm(Program& program, const Reduce& how);

struct Concatenate {
  std::vector<Tensor> sources;
  int axis = 0;
  Tensor result;
};
void concatenate(Program& program, const Concatenate& how);

// From one layout, or type, to another.
struct Reorder {
  Tensor source, result;
};
void reorder(Program& program, const Reorder& how);

// The rest is of row-major tensors. `order`: dimension i of the result is dimension order[i] of the source.
struct Permute {
  Tensor source;
  Shape order;
  Tensor result;
};
void permute(Program& program, const Permute& how);

// A box: `length` elements in each dimension, of the source from `from` on in steps, to the result from `to` on in
// steps. What is left out: from 0, in steps of 1.
struct Copy {
  Tensor source;
  Shape from, step;
  Shape length;
  Tensor result;
  Shape to, result_step;
};
void copy(Program& program, const Copy& how);

struct Expand {
  Tensor source, result;
};
void expand(Program& program, const Expand& how);  // writes a broadcast tensor out

// The source's parts along its first dimension that `rows` names, int64 or int32, one behind the other; a number below
// 0 counts from the end, and one of a part that is not there throws while the program runs.
struct LookUp {
  Tensor source, rows, result;
};
void look_up(Program& program, const LookUp& how);

// Elements of any type by numbers, int64 or int32, of each axis of the source; a tensor that is none leaves its axis
// whole. The numbers are broadcast to each other; their axes stand in the result where the first is, or in front where
// whole axes lie between. A number out of range throws while the program runs.
struct Pick {
  Tensor source;
  std::vector<Tensor> numbers;
  Tensor result;
};
void pick(Program& program, const Pick& how);

// result[..., i, ...] = source[..., numbers[..., i, ...], ...] along an axis.
struct Gather {
  Tensor source, numbers;
  int axis = 0;
  Tensor result;
};
void gather(Program& program, const Gather& how);

// Of row-major tensors of any type.
struct AlongAxis {
  Tensor source;
  int axis = 0;
  Tensor result;
};
void running_sum(Program& program, const AlongAxis& how);
// int64, without the axis (or of extent 1 there); the first of equal ones.
void place_of_largest(Program& program, const AlongAxis& how);
void place_of_smallest(Program& program, const AlongAxis& how);

// Elements in order along an axis and their places (int64), each of which may be left out: all, equal ones as they
// were; or the `most` largest (descending) or smallest, in order if `sorted`.
struct Sort {
  Tensor source;
  int axis = 0;
  bool descending = false, sorted = true;
  Extent most = -1;
  Tensor values = {}, places = {};
};
void sort(Program& program, const Sort& how);

// `self` with, or increased by, elements of `source` at the places along an axis that numbers name (int64 or int32);
// `source` may be larger than these. A number out of range throws while the program runs.
struct Scatter {
  Tensor self, source, numbers;
  int axis = 0;
  Tensor result;
  bool adds = false;
};
void scatter(Program& program, const Scatter& how);

// The reverse of pick(): `self` with, or increased by, values at the places that it would read.
struct Put {
  Tensor self, values;
  std::vector<Tensor> numbers;
  Tensor result;
  bool adds = false;
};
void put(Program& program, const Put& how);

struct Fill {
  Tensor result;
  float value = 0;
};
void fill(Program& program, const Fill& how);

// softmax(scale query key^T + mask) value, over the last two dimensions.
struct Attention {
  Tensor query, key, value, mask;  // mask: may be left out
  Tensor result;
  float scale = 1;
  bool causal = false;
};
void attention(Program& program, const Attention& how);

// A layer of a recurrent network in one direction: source [steps, batch, inputs], result [steps, batch, hidden], states
// and of an LSTM cells [batch, hidden]. Weights and the order of gates are PyTorch's: `inner` and its bias of the
// source, `outer` of the state; biases may be left out. `workspace`: what the gradient reads; left out in inference.
struct RecurrentLayer {
  Recurrence kind = Recurrence::tangent;
  bool reverse = false;  // from the last step to the first
  Tensor source, state, cell;
  Weight inner, outer, inner_bias, outer_bias;
  Tensor result, last_state, last_cell, workspace = {};
};
void recurrent_layer(Program& program, const RecurrentLayer& how);

// Steps of load().

// weight scale / sqrt(variance + epsilon) by output channel, in float64 and rounded once. Left out: weight or scale
// of 1.
struct ScaleWeight {
  Weight weight, scale, variance;
  double epsilon = 0;
};
Weight scale_weight(Program& program, const ScaleWeight& how);

// (bias - mean) scale / sqrt(variance + epsilon) + shift. Each but mean and variance may be left out.
struct ShiftBias {
  Weight bias, mean, scale, variance, shift;
  double epsilon = 0;
};
Weight shift_bias(Program& program, const ShiftBias& how);

}  // namespace kit
