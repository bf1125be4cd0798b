// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernels.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "compiler/op_traits.hpp"
#include "kit/winograd_cost.hpp"

namespace strata::compiler {
namespace {

// Where the direct kernel was faster than oneDNN's, in all batches measured. A linear layer of one row whose weights
// come from memory waits for it in both; between one row and 32 nothing was measured.
constexpr std::int64_t largest_tiny_image = 4, largest_strided_image = 14, least_rows = 32;
constexpr std::int64_t largest_cached_weight = 8 << 20;  // bytes

bool is_blocked(const Program& program, int value) {
  return program.place(value).layout == Layout::blocked && program.place(value).in == Place::In::arena;
}

// The kernels keep channels that pad a block at 0 and so need f(0) = 0.
bool is_fused(const PostOp& post) {
  if (post.kind != PostOp::Kind::activation) return false;
  return post.operation == "relu" || (post.operation == "clamp" && post.alpha <= 0 && post.beta >= 0);
}

// A sum with a tensor that lies as the result does, then an activation; each may be missing.
bool fuses_posts(const Program& program, const Step& step) {
  const int result = step.node.outputs.front();
  auto post = step.posts.begin();
  if (post != step.posts.end() && post->kind == PostOp::Kind::add) {
    const auto &with = program.place(post->value), &own = program.place(result);
    if (program.value(post->value).shape != program.value(result).shape || with.layout != own.layout ||
        with.in != Place::In::arena)
      return false;
    ++post;
  }
  if (post != step.posts.end() && is_fused(*post)) ++post;
  return post == step.posts.end();
}

bool has_given_weights(const Program& program, const Step& step) {
  const auto is_weight = [&](int value) { return program.place(value).in == Place::In::weights; };
  const auto bias = step.node.find("bias") == nullptr ? std::nullopt : step.node.maybe_tensor("bias");
  return is_weight(step.node.tensor("weight")) && (!bias || is_weight(*bias));
}

// The kernels count in 32 bits.
bool is_countable(const graph::Shape& image) {
  std::int64_t places = 1;
  for (const auto byte : image)
    if (byte <= 0 || byte > std::numeric_limits<std::int32_t>::max()) return false;
  return !__builtin_mul_overflow(image[0], image[2] * image[3], &places) &&
         places <= std::numeric_limits<std::int32_t>::max();
}

bool all_are(const graph::Node& node, std::string_view argument, std::int64_t expected) {
  const auto all = node.ints(argument);
  return std::all_of(all.begin(), all.end(), [&](std::int64_t number) { return number == expected; });
}

int source_of(const Step& step) {
  return step.node.tensor(is_input_gradient(step) ? "gradient" : "input");
}

bool is_plain_convolution(const Program& program, const Step& step) {
  const auto& node = step.node;
  const bool of_images = node.operation() == "conv2d" || is_input_gradient(step);
  return of_images && program.value(node.outputs.front()).shape.size() == 4 && node.integer("groups") == 1 &&
         !node.find("padding")->plain.is_string() && is_countable(program.value(node.outputs.front()).shape) &&
         program.place(node.outputs.front()).layout == Layout::blocked;
}

// The product of an image, as a flattening would give it, and a matrix: a convolution with a kernel as large as the
// image, whose result of one pixel lies in blocks where it is row-major.
bool is_linear_of_image(const Program& program, const Step& step) {
  const auto& result = program.value(step.node.outputs.front()).shape;
  const auto& image = program.value(step.node.tensor("input")).shape;
  const auto& weight = program.value(step.node.tensor("weight")).shape;
  return is_linear(step) && result.size() == 2 && result[1] % program.block == 0 && result[0] == image[0] &&
         weight.size() == 2 && weight[1] == image[1] * image[2] * image[3];
}

bool is_3x3(const Program& program, const graph::Node& node) {
  const auto& weight = program.value(node.tensor("weight")).shape;
  return weight[2] == 3 && weight[3] == 3 && all_are(node, "dilation", 1);
}

bool suits_winograd(const Program& program, const graph::Node& node) {
  return is_3x3(program, node) && all_are(node, "stride", 1) &&
         (all_are(node, "padding", 0) || all_are(node, "padding", 1));
}

// The program is made for any number of threads; one judges by multiplications first.
bool winograd_pays(const Program& program, const Step& step) {
  const auto &in = program.value(source_of(step)).shape, &out = program.value(step.node.outputs.front()).shape;
  const auto real = [](std::int64_t extent) { return static_cast<double>(extent); };
  return kit::kernels::winograd_pays({.batch = real(in[0]),
                                      .in_channels = real(in[1]),
                                      .out_channels = real(out[1]),
                                      .out_height = real(out[2]),
                                      .out_width = real(out[3]),
                                      .block = static_cast<int>(program.block),
                                      .packs = program.graph.mode == graph::Mode::train},
                                     1);
}

}  // namespace

bool can_run(const Program& program, const Step& step, Kernel kernel) {
  if (kernel == Kernel::library) return true;
  if (!is_convolution(step) && !is_linear(step) && !is_input_gradient(step)) return false;
  // in training weights lie as the library's gradients of them do; Winograd's alone are packed from there in every step
  if (program.graph.mode == graph::Mode::train && kernel != Kernel::winograd) return false;
  const int source = source_of(step);
  if (program.value(source).type != graph::Type::float32) return false;
  if (step.view || step.when != When::run || !is_blocked(program, source) ||
      !is_countable(program.value(source).shape) || !has_given_weights(program, step) || !fuses_posts(program, step))
    return false;
  if (is_linear(step)) return kernel == Kernel::direct && is_linear_of_image(program, step);
  if (!is_plain_convolution(program, step)) return false;
  return kernel == Kernel::direct || suits_winograd(program, step.node);
}

Kernel best_kernel(const Program& program, const Step& step) {
  const auto requested_kernels = program.requested_kernels.find(step.node.name);
  if (requested_kernels != program.requested_kernels.end() && can_run(program, step, requested_kernels->second))
    return requested_kernels->second;
  if (can_run(program, step, Kernel::winograd) && winograd_pays(program, step)) return Kernel::winograd;
  if (!can_run(program, step, Kernel::direct)) return Kernel::library;
  const auto& image = program.value(step.node.tensor("input")).shape;
  const auto& result = program.value(step.node.outputs.front()).shape;
  const bool gives_pixel = !is_linear(step) && result[2] == 1 && result[3] == 1;  // a linear layer by another name
  if (gives_pixel && image[0] >= least_rows) return Kernel::direct;
  if (is_linear(step)) {
    const bool stays_in_cache = program.value(step.node.tensor("weight")).bytes() <= largest_cached_weight;
    return image[0] >= least_rows || (image[0] == 1 && stays_in_cache) ? Kernel::direct : Kernel::library;
  }
  // oneDNN's kernel reads the weights of taps that only meet padding, and its 1x1 kernel is the better one
  const auto most = all_are(step.node, "stride", 1)   ? largest_tiny_image
                    : all_are(step.node, "stride", 2) ? largest_strided_image
                                                      : 0;
  const bool small = image[2] <= most && image[3] <= most;
  return is_3x3(program, step.node) && small ? Kernel::direct : Kernel::library;
}

Kernels fastest_kernels(const nlohmann::json& times) {
  Kernels fastest;
  for (const auto& [node, by_kernel] : times.items()) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto kernel : {Kernel::library, Kernel::winograd, Kernel::direct}) {
      if (!by_kernel.is_object()) continue;
      const auto took = by_kernel.find(name_of(kernel));
      if (took == by_kernel.end() || !took->is_number() || took->get<double>() >= least) continue;
      least = took->get<double>();
      fastest[node] = kernel;
    }
  }
  return fastest;
}

}  // namespace strata::compiler
