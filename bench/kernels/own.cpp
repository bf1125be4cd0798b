// SPDX-License-Identifier: Apache-2.0
// Own contenders (own.hpp).
#include "own.hpp"

#include <memory>

#include "kit/direct.hpp"
#include "kit/winograd.hpp"

namespace bench {
namespace {

// A kernel of the kit with its packed weights, several copies of them, and its scratch.
template <typename Kernel>
struct Packed {
  Packed(const Kernel& from, const Problem& problem, int copies)
      : kernel(from), scratch(make_floats(kernel.scratch_floats())) {
    for (int i = 0; i < copies; ++i) {
      weights.push_back(make_floats(kernel.weight_floats()));
      if (i == 0)
        kernel.pack(problem.weights.get(), weights[0].get());
      else
        std::copy_n(weights[0].get(), kernel.weight_floats(), weights[i].get());
    }
  }
  Kernel kernel;
  std::vector<Floats> weights;
  Floats scratch;
};

template <typename Kernel>
Contender contender(std::string name, const Kernel& kernel, const Problem& problem, int copies) {
  const auto packed = std::make_shared<Packed<Kernel>>(kernel, problem, copies);
  return {std::move(name), [packed, &problem](int i) {
            packed->kernel.run(problem.source.get(), packed->weights[i % packed->weights.size()].get(),
                               problem.bias.get(), problem.residual.get(), problem.destination.get(),
                               packed->scratch.get());
          }};
}

// O I 3 3 as training keeps it: O/b I/b 3 3 b(I) b(O).
Floats in_blocks(const Problem& problem) {
  using namespace kit::kernels;
  const Layer& l = problem.layer;
  auto out = make_floats(std::size_t(padded(l.out_channels)) * padded(l.in_channels) * 9);
  for (int o = 0; o < l.out_channels; ++o)
    for (int i = 0; i < l.in_channels; ++i)
      for (int tap = 0; tap < 9; ++tap)
        out[((std::size_t(o / kBlock) * blocks_of(l.in_channels) + i / kBlock) * 9 + tap) * kBlock * kBlock +
            i % kBlock * kBlock + o % kBlock] = problem.weights[(std::size_t(o) * l.in_channels + i) * 9 + tap];
  return out;
}

// A step of training: the weights, which come from memory, are packed before each run.
Contender training(std::string name, const kit::kernels::Winograd& kernel, const Problem& problem, int copies) {
  struct Memory {
    std::vector<Floats> weights;
    Floats packed, scratch;
  };
  const auto memory = std::make_shared<Memory>();
  for (int i = 0; i < copies; ++i) memory->weights.push_back(in_blocks(problem));
  memory->packed = make_floats(kernel.weight_floats());
  memory->scratch = make_floats(kernel.scratch_floats());
  return {std::move(name), [memory, kernel, &problem](int i) {
            kernel.pack_blocks(memory->weights[i % memory->weights.size()].get(), memory->packed.get());
            kernel.run(problem.source.get(), memory->packed.get(), problem.bias.get(), problem.residual.get(),
                       problem.destination.get(), memory->scratch.get());
          }};
}

std::string name_of(const kit::kernels::WinogradPlan& plan) {
  return "winograd F" + std::to_string(plan.tile) + (plan.shared ? " shared " : " alone ") +
         std::to_string(plan.tiles_at_once);
}

std::string name_of(const kit::kernels::DirectPlan& plan) {
  return "direct " + std::to_string(plan.channel_threads) + " x " + std::to_string(plan.tiles_at_once);
}

void add_winograd(const Problem& problem, int copies, int threads, bool all_plans, std::vector<Contender>& out) {
  using kit::kernels::Winograd;
  const Layer& l = problem.layer;
  const kit::kernels::Convolution3x3 shape{
      l.batch, l.in_channels, l.out_channels, l.height, l.width, l.padding, {kit::kernels::Activation::Kind::relu}};
  std::vector<kit::kernels::WinogradPlan> plans;
  if (kit::kernels::winograd_pays(work_of(shape), threads)) plans.push_back(Winograd::plan(shape, threads));
  if (all_plans)
    for (const int tile : {2, 4})
      for (const bool shared : {false, true})
        for (const int at_once : {24, 48, 192}) plans.push_back({tile, shared, at_once});
  for (const auto& plan : plans) {
    const int size = plan.tile + 2, fewer = std::max(1, copies * 9 / (size * size));  // as many bytes
    out.push_back(contender(name_of(plan), Winograd(shape, plan, threads), problem, fewer));
  }
  auto packs = shape;
  packs.packs = true;
  const auto plan = Winograd::plan(packs, threads);
  out.push_back(training(name_of(plan) + ", packs", Winograd(packs, plan, threads), problem, copies));
}

void add_direct(const Problem& problem, int copies, int threads, bool all_plans, std::vector<Contender>& out) {
  using kit::kernels::Direct;
  const Layer& l = problem.layer;
  const kit::kernels::Convolution shape{.batch = l.batch,
                                        .in_channels = l.in_channels,
                                        .out_channels = l.out_channels,
                                        .height = l.height,
                                        .width = l.width,
                                        .kernel_height = l.kernel,
                                        .kernel_width = l.kernel,
                                        .stride_height = l.stride,
                                        .stride_width = l.stride,
                                        .pad_top = l.padding,
                                        .pad_left = l.padding,
                                        .out_height = l.out_height(),
                                        .out_width = l.out_width(),
                                        .activation = {kit::kernels::Activation::Kind::relu}};
  std::vector<kit::kernels::DirectPlan> plans{Direct::plan(shape, threads)};
  if (all_plans)
    for (const int at_once : {4, 64})
      for (const int channel_threads : {1, threads}) plans.push_back({channel_threads, at_once});
  for (const auto& plan : plans) out.push_back(contender(name_of(plan), Direct(shape, plan, threads), problem, copies));
}

}  // namespace

std::vector<Contender> own_kernels(const Problem& problem, int copies, int threads, bool all_plans) {
  std::vector<Contender> out;
  const Layer& layer = problem.layer;
  if (layer.in_channels < 4) return out;  // its source is not blocked
  if (layer.kernel == 3 && layer.stride == 1) add_winograd(problem, copies, threads, all_plans, out);
  add_direct(problem, copies, threads, all_plans, out);
  return out;
}

}  // namespace bench
