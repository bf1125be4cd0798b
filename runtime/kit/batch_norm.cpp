// SPDX-License-Identifier: Apache-2.0
// Batch norm in training, on images in blocks of channels, or channels last. A thread takes whole blocks, so that all
// passes over a block (its mean, its variance, its result) find it in the core's own cache. Sums run in float32 over
// short pieces and in float64 over these.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "kit/blocks.hpp"
#include "kit/descent.hpp"
#include "kit/threads.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

using namespace kernels;

// An image batch in blocks of channels, and how far apart its images, blocks and pixels lie.
struct Image {
  Extent images = 0, channels = 0, blocks = 0, pixels = 1;
  Extent image_step = 0, block_step = 0, pixel_step = 0;
  Extent count() const { return images * pixels; }

  // How many neighbouring blocks a thread takes at once: channels last, where a block of a pixel is a cache line of
  // its own, those beside it are near.
  int width() const {
    if (pixel_step == kBlock) return 1;
    for (const int width : {4, 2})
      if (blocks % width == 0 && blocks / width >= most_threads()) return width;
    return 1;
  }
};

// one(first, width) for all groups of blocks, the width as a constant.
template <class F>
void for_each_group(const Image& image, const F& f) {
  const auto run = [&](auto width) {
#pragma omp parallel for schedule(static)
    for (Extent first = 0; first < image.blocks; first += width()) f(first, width);
  };
  switch (image.width()) {
    case 4:
      return run(std::integral_constant<int, 4>{});
    case 2:
      return run(std::integral_constant<int, 2>{});
    default:
      return run(std::integral_constant<int, 1>{});
  }
}

Image image_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  Image image{shape[0], shape[1], (shape[1] + kBlock - 1) / kBlock};
  for (int d = 2; d < shape.rank; ++d) image.pixels *= shape[d];
  const bool in_blocks = tensor.layout == own_layout;
  image.image_step = image.blocks * image.pixels * kBlock;
  image.block_step = in_blocks ? image.pixels * kBlock : kBlock;
  image.pixel_step = in_blocks ? kBlock : image.channels;
  return image;
}

float* data_of(const memory& tensor) {
  return tensor ? static_cast<float*>(tensor.get_data_handle()) : nullptr;
}

// Sums over all pixels of `width` blocks: f(at, b, sums) adds what the pixel at offset `at`, of the block b of them,
// gives to `count` vectors.
template <int count, int width, class F>
KIT_INLINE void sum_up(const Image& image, const F& f, double (&total)[width][count][kBlock]) {
  constexpr Extent piece = 256;
  constexpr int ways = 4 / width;  // chains of sums, since one addition waits for the one before
  for (Extent n = 0; n < image.images; ++n)
    for (Extent first = 0; first < image.pixels; first += piece) {
      Vector sums[ways][width][count] = {};
      const Extent end = std::min(first + piece, image.pixels), begin = n * image.image_step;
      const auto add = [&](Extent p, int way) {
        const Extent at = begin + p * image.pixel_step;
        for (int b = 0; b < width; ++b) f(at + b * image.block_step, b, sums[way][b]);
      };
      Extent p = first;
      for (; p + ways <= end; p += ways)
        for (int way = 0; way < ways; ++way) add(p + way, way);
      for (; p < end; ++p) add(p, 0);
      for (int b = 0; b < width; ++b)
        for (int i = 0; i < count; ++i) {
          Vector together = sums[0][b][i];
          if constexpr (ways == 2) together += sums[1][b][i];
          if constexpr (ways == 4) together = (together + sums[1][b][i]) + (sums[2][b][i] + sums[3][b][i]);
          for (int lane = 0; lane < kBlock; ++lane) total[b][i][lane] += static_cast<double>(together[lane]);
        }
    }
}

template <int width, class F>
KIT_INLINE void for_each_pixel(const Image& image, const F& f) {
  for (Extent n = 0; n < image.images; ++n)
    for (Extent p = 0; p < image.pixels; ++p) {
      const Extent at = n * image.image_step + p * image.pixel_step;
      for (int b = 0; b < width; ++b) f(at + b * image.block_step, b);
    }
}

// The channels of a block of something by channel; `none` where there is no channel, or nothing is given.
Vector channels_of(const float* data, const Image& image, Extent block, float none) {
  Vector v = Vector{} + none;
  for (int lane = 0; data != nullptr && lane < kBlock; ++lane)
    v[lane] = block * kBlock + lane < image.channels ? data[block * kBlock + lane] : 0.0F;
  return v;
}
int lanes_of(const Image& image, Extent block) {
  return static_cast<int>(std::min<Extent>(kBlock, image.channels - block * kBlock));
}

struct Forward {
  Image image;
  memory source, scale, shift, running_mean, running_variance, result, mean, deviation, summand;
  Activation activation;
  double momentum, epsilon;
  bool fixed_statistics;

  void operator()() const {
    for_each_group(image, [this](Extent first, auto width) { normalise<width()>(first); });
  }

  template <int width>
  void normalise(Extent first) const {
    const Extent offset = first * image.block_step;
    const float* from = data_of(source) + offset;
    if (fixed_statistics)
      take_fixed(first, width);
    else
      keep_of_batch<width>(first, from);
    Vector middle[width], factor[width], beta[width];
    for (int b = 0; b < width; ++b) {
      middle[b] = channels_of(data_of(mean), image, first + b, 0);
      factor[b] =
          channels_of(data_of(scale), image, first + b, 1) * channels_of(data_of(deviation), image, first + b, 0);
      beta[b] = channels_of(data_of(shift), image, first + b, 0);
    }
    float* to = data_of(result) + offset;
    const float* more = summand ? data_of(summand) + offset : nullptr;
    if (more != nullptr)
      for_each_pixel<width>(image, [&](Extent at, int b) {
        store(to + at, activate((load(from + at) - middle[b]) * factor[b] + beta[b] + load(more + at), activation));
      });
    else
      for_each_pixel<width>(image, [&](Extent at, int b) {
        store(to + at, activate((load(from + at) - middle[b]) * factor[b] + beta[b], activation));
      });
  }

  // Mean and deviation of the batch, and the running statistics after it.
  template <int width>
  void keep_of_batch(Extent first, const float* from) const {
    const auto count = static_cast<double>(image.count());
    double sum[width][1][kBlock] = {}, squares[width][1][kBlock] = {};
    // differences to one of the values, so that a mean that is large beside the deviation costs no digits
    Vector about[width] = {}, middle[width] = {};
    for (int b = 0; b < width && image.count() > 0; ++b) about[b] = load(from + b * image.block_step);
    sum_up<1, width>(
        image, [&](Extent at, int b, Vector(&s)[1]) { s[0] += load(from + at) - about[b]; }, sum);
    for (int b = 0; b < width; ++b)
      for (int lane = 0; lane < kBlock; ++lane)
        middle[b][lane] = static_cast<float>(static_cast<double>(about[b][lane]) + sum[b][0][lane] / count);
    sum_up<1, width>(
        image,
        [&](Extent at, int b, Vector(&s)[1]) {
          const Vector d = load(from + at) - middle[b];
          s[0] += d * d;
        },
        squares);
    for (int b = 0; b < width; ++b)
      for (int lane = 0; lane < lanes_of(image, first + b); ++lane) {
        const Extent channel = (first + b) * kBlock + lane;
        const double variance = squares[b][0][lane] / count;
        data_of(mean)[channel] = middle[b][lane];
        data_of(deviation)[channel] = static_cast<float>(1 / std::sqrt(variance + epsilon));
        run_on(data_of(running_mean), channel, static_cast<double>(middle[b][lane]));
        run_on(data_of(running_variance), channel, count > 1 ? variance * count / (count - 1) : variance);
      }
  }

  void take_fixed(Extent first, int width) const {
    const Extent end = std::min((first + width) * kBlock, image.channels);
    for (Extent channel = first * kBlock; channel < end; ++channel) {
      data_of(mean)[channel] = data_of(running_mean)[channel];
      data_of(deviation)[channel] =
          static_cast<float>(1 / std::sqrt(static_cast<double>(data_of(running_variance)[channel]) + epsilon));
    }
  }

  void run_on(float* running, Extent channel, double now) const {
    if (running == nullptr) return;
    running[channel] = static_cast<float>((1 - momentum) * static_cast<double>(running[channel]) + momentum * now);
  }
};

// A parameter by channel that the step updates.
struct Trained {
  Internals* in = nullptr;
  int weight = -1;
};

struct Backward {
  Image image;
  memory gradient, summand, activated, source, mean, deviation, scale, result, of_scale, of_shift, masked;
  float low, high;
  Trained trained_scale, trained_shift;
  bool fixed_statistics;

  void operator()() const {
    if (activated)
      summand ? run<true, true>() : run<true, false>();
    else
      summand ? run<false, true>() : run<false, false>();
    descend(trained_scale, data_of(of_scale));
    descend(trained_shift, data_of(of_shift));
  }

  void descend(const Trained& trained, const float* gradients) const {
    if (trained.in != nullptr) descend_all(*trained.in, trained.weight, gradients);
  }

  template <bool is_masked, bool is_sum>
  void run() const {
    for_each_group(image, [this](Extent first, auto width) { differentiate<is_masked, is_sum, width()>(first); });
  }

  template <bool is_masked, bool is_sum, int width>
  void differentiate(Extent first_block) const {
    const Extent offset = first_block * image.block_step;
    const float *first = data_of(gradient) + offset, *second = is_sum ? data_of(summand) + offset : nullptr;
    const float *shown = is_masked ? data_of(activated) + offset : nullptr, *from = data_of(source) + offset;
    float* masked_data = masked ? data_of(masked) + offset : nullptr;
    const auto gradient_at = [&](Extent at) {
      Vector g = load(first + at);
      if constexpr (is_sum) g += load(second + at);
      if constexpr (is_masked) {
        const Vector y = load(shown + at);
        g = y > low ? g : Vector{};
        g = y < high ? g : Vector{};
      }
      return g;
    };
    Vector middle[width], inverse[width], factor[width];
    for (int b = 0; b < width; ++b) {
      middle[b] = channels_of(data_of(mean), image, first_block + b, 0);
      inverse[b] = channels_of(data_of(deviation), image, first_block + b, 0);
      factor[b] = channels_of(data_of(scale), image, first_block + b, 1) * inverse[b];
    }
    double sums[width][2][kBlock] = {};
    const auto with_source = [&](Extent at, int b, const Vector& g, Vector(&s)[2]) {
      s[0] += g;
      s[1] += g * (load(from + at) - middle[b]);
    };
    if (masked_data != nullptr)
      sum_up<2, width>(
          image,
          [&](Extent at, int b, Vector(&s)[2]) {
            const Vector g = gradient_at(at);
            store(masked_data + at, g);
            with_source(at, b, g, s);
          },
          sums);
    else
      sum_up<2, width>(
          image, [&](Extent at, int b, Vector(&s)[2]) { with_source(at, b, gradient_at(at), s); }, sums);
    const auto count = static_cast<double>(image.count());
    Vector average[width] = {}, slope[width] = {};
    for (int b = 0; b < width; ++b)
      for (int lane = 0; lane < kBlock; ++lane) {
        const auto r = static_cast<double>(inverse[b][lane]);
        average[b][lane] = fixed_statistics ? 0.0F : static_cast<float>(sums[b][0][lane] / count);
        slope[b][lane] = fixed_statistics ? 0.0F : static_cast<float>(sums[b][1][lane] * r * r / count);
        if (lane >= lanes_of(image, first_block + b)) continue;
        const Extent channel = (first_block + b) * kBlock + lane;
        data_of(of_scale)[channel] = static_cast<float>(sums[b][1][lane] * r);
        data_of(of_shift)[channel] = static_cast<float>(sums[b][0][lane]);
      }
    float* to = data_of(result) + offset;
    if (masked_data != nullptr)
      for_each_pixel<width>(image, [&](Extent at, int b) {
        store(to + at, (load(masked_data + at) - average[b] - (load(from + at) - middle[b]) * slope[b]) * factor[b]);
      });
    else
      for_each_pixel<width>(image, [&](Extent at, int b) {
        store(to + at, (gradient_at(at) - average[b] - (load(from + at) - middle[b]) * slope[b]) * factor[b]);
      });
  }
};

// Channels last are blocks, too, where the last one is full.
bool has_blocks(const Tensor& tensor) {
  return tensor.layout == own_layout || (tensor.layout == Layout::channels_last && tensor.shape[1] % kBlock == 0);
}

// The tensor as an image with blocks: itself, or a copy. What a kernel writes into a copy, `write_back` brings home.
// All tensors of a call lie alike.
Tensor in_blocks(Program& program, const Tensor& tensor, bool is_read) {
  if (!tensor || has_blocks(tensor)) return tensor;
  Shape shape{tensor.shape[0], tensor.shape[1], 1, 1};
  for (int d = 2; d < tensor.shape.rank; ++d) shape[2] *= tensor.shape[d];
  if (tensor.layout != Layout::plain) shape = tensor.shape;
  const Tensor copy = program.internals().temporary(shape, own_layout);
  if (is_read) reorder(program, {tensor.as(shape), copy});
  return copy;
}
void write_back(Program& program, const Tensor& copy, const Tensor& tensor) {
  if (tensor && !has_blocks(tensor)) reorder(program, {copy, tensor.as(copy.shape)});
}

}  // namespace

void batch_norm(Program& program, const BatchNorm& how) {
  Internals& in = program.internals();
  Tensor summand;
  Activation activation;
  for (const PostOp& post : how.then) {
    if (post.kind == PostOp::Kind::add)
      summand = post.with;
    else if (post.function.kind == Function::Kind::relu)
      activation.kind = Activation::Kind::relu;
    else if (post.function.kind == Function::Kind::clip)
      activation = {Activation::Kind::clamp, post.function.alpha, post.function.beta};
    else
      throw std::logic_error("a post that a batch norm in training lacks");
  }
  const Tensor source = in_blocks(program, how.source, true), result = in_blocks(program, how.result, false);
  const Shape channels{how.source.shape[1]};
  const Tensor mean = how.mean ? how.mean : in.temporary(channels),
               deviation = how.deviation ? how.deviation : in.temporary(channels);
  summand = in_blocks(program, summand, true);
  in.add_own(Forward{image_of(source), handle_of(in, source), stored_handle(program, how.scale),
                     stored_handle(program, how.shift), stored_handle(program, how.running_mean),
                     stored_handle(program, how.running_variance), handle_of(in, result), handle_of(in, mean),
                     handle_of(in, deviation), handle_of(in, summand), activation, how.momentum, how.epsilon,
                     how.fixed_statistics},
             false, "kit:batch_norm");
  write_back(program, result, how.result);
}

void batch_norm_backward(Program& program, const BatchNormBackward& how) {
  Internals& in = program.internals();
  const Tensor source = in_blocks(program, how.source, true), gradient = in_blocks(program, how.gradient, true),
               summand = in_blocks(program, how.summand, true), activated = in_blocks(program, how.activated, true),
               result = in_blocks(program, how.result, false), masked = in_blocks(program, how.masked, false);
  Trained scale, shift;
  if (how.trains_scale) scale = {&in, how.scale.number};
  if (how.trains_shift) shift = {&in, how.shift.number};
  in.add_own(Backward{image_of(source), handle_of(in, gradient), handle_of(in, summand), handle_of(in, activated),
                      handle_of(in, source), handle_of(in, how.mean), handle_of(in, how.deviation),
                      stored_handle(program, how.scale), handle_of(in, result), handle_of(in, how.of_scale),
                      handle_of(in, how.of_shift), handle_of(in, masked), how.low, how.high, scale, shift,
                      how.fixed_statistics},
             false, "kit:batch_norm_backward");
  write_back(program, result, how.result);
  write_back(program, masked, how.masked);
}

}  // namespace kit
