// SPDX-License-Identifier: Apache-2.0
// Own convolution kernels (runtime/kit) against oneDNN's, layer by layer, in the same process and with the same
// layouts: kernels [--case NAME] [--only TEXT] [--seconds S]. Weights come from as many copies as exceed the cache,
// since a network reads all its layers' weights before it reads these again.
#include <omp.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "contest.hpp"
#include "machine.hpp"
#include "onednn_convolution.hpp"
#include "own.hpp"
#include "problem.hpp"

namespace {

struct Options {
  std::string only_case, only_layer, only_kernel;
  double seconds = 1.5;
  bench::Clock clock = bench::Clock::wall;
  bool all_plans = false;
};

struct Case {
  const char *name, *network;
  int batch, size;
};
constexpr Case kCases[] = {
    {"resnet50-b1-224", "resnet50", 1, 224}, {"resnet50-b8-224", "resnet50", 8, 224},
    {"resnet50-b1-32", "resnet50", 1, 32},   {"resnet50-b32-32", "resnet50", 32, 32},
    {"resnet18-b1-224", "resnet18", 1, 224}, {"resnet18-b8-224", "resnet18", 8, 224},
    {"resnet18-b1-32", "resnet18", 1, 32},   {"resnet18-b32-32", "resnet18", 32, 32},
    {"mnist-b1", "mnist_convnet", 1, 28},    {"mnist-b64", "mnist_convnet", 64, 28},
};

constexpr double kCacheBytes = 32e6;

int usage(const char* got) {
  std::fprintf(
      stderr,
      "kernels: got '%s'; allowed: [--case NAME] [--only TEXT] [--kernel TEXT] [--plans all] [--seconds S] [--clock "
      "processor], the clock "
      "only with OMP_NUM_THREADS=1; NAME one of",
      got);
  for (const auto& c : kCases) std::fprintf(stderr, " %s", c.name);
  std::fprintf(stderr, "\n");
  return 2;
}

// oneDNN's direct convolution first: all ratios are to it.
std::vector<bench::Contender> onednn(const bench::Problem& problem, int copies) {
  std::vector<bench::Contender> out;
  const auto add = [&](const char* name, dnnl::algorithm algorithm, bool channels_last) {
    try {
      const auto convolution = std::make_shared<bench::OneDnnConvolution>(
          problem.layer, algorithm, channels_last, problem.source.get(), problem.weights.get(), problem.bias.get(),
          problem.residual.get(), problem.destination.get(), copies);
      out.push_back({std::string(name) + " " + convolution->kernel(), [=](int i) { convolution->run(i); }});
    } catch (const dnnl::error&) {
    }
  };
  add("onednn", dnnl::algorithm::convolution_direct, false);
  if (problem.layer.kernel == 3 && problem.layer.stride == 1)
    add("onednn winograd", dnnl::algorithm::convolution_winograd, false);
  add("onednn nhwc", dnnl::algorithm::convolution_direct, true);
  const auto& layer = problem.layer;
  if (layer.height == 1 && layer.width == 1 && layer.kernel == 1 && layer.in_channels % kit::kernels::kBlock == 0) {
    const auto linear = std::make_shared<bench::OneDnnConvolution>(bench::OneDnnConvolution::linear(
        layer, problem.source.get(), problem.weights.get(), problem.bias.get(), problem.destination.get(), copies));
    out.push_back({"onednn linear " + linear->kernel(), [=](int i) { linear->run(i); }});
  }
  return out;
}

void compare(const Case& of, const bench::Layer& layer, int copies, const Options& options,
             const bench::Machine& machine, std::mt19937& engine) {
  const bench::Problem problem(layer);
  auto contenders = onednn(problem, copies);
  for (auto& own : bench::own_kernels(problem, copies, omp_get_max_threads(), options.all_plans))
    if (own.name.find(options.only_kernel) != std::string::npos) contenders.push_back(std::move(own));
  for (auto& c : contenders) {
    std::fill_n(problem.destination.get(), problem.destination_floats, -1.0F);
    c.run(0);
    const bool other_layout = c.name.find("nhwc") != std::string::npos ||
                              (c.name.find("linear") != std::string::npos && layer.out_channels % kit::kernels::kBlock);
    c.error = other_layout ? 0 : problem.error(problem.destination.get());
  }
  bench::contest(contenders, options.seconds, engine, options.clock);
  for (const auto& c : contenders) {
    std::printf("%-16s %-14s x%d  %4dx%-3d %4d->%-4d  %-34s %9.4f %9.4f ms  %6.1f GFLOP/s %3.0f%% %6.1f GB/s  %5.2fx",
                of.name, layer.name.c_str(), layer.count, layer.height, layer.width, layer.in_channels,
                layer.out_channels, c.name.c_str(), c.least_ms, c.median_ms, layer.flops() / c.least_ms * 1e-6,
                layer.flops() / c.least_ms * 1e-4 / machine.gflops, layer.weight_bytes() / c.least_ms * 1e-6, c.ratio);
    std::printf(c.error > 0 ? "  error %.1f\n" : "\n", c.error);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return usage(argv[i]);
    if (!std::strcmp(argv[i], "--case"))
      options.only_case = argv[i + 1];
    else if (!std::strcmp(argv[i], "--only"))
      options.only_layer = argv[i + 1];
    else if (!std::strcmp(argv[i], "--kernel"))
      options.only_kernel = argv[i + 1];
    else if (!std::strcmp(argv[i], "--plans") && !std::strcmp(argv[i + 1], "all"))
      options.all_plans = true;
    else if (!std::strcmp(argv[i], "--seconds"))
      options.seconds = std::atof(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--clock") && !std::strcmp(argv[i + 1], "processor") && omp_get_max_threads() == 1)
      options.clock = bench::Clock::processor;
    else
      return usage(argv[i]);
  }
  const auto machine = bench::measure_machine(omp_get_max_threads());
  std::printf("machine: %d threads, %.0f GFLOP/s, memory %.1f GB/s, cache (8 MB) %.1f GB/s, blocks of %d\n",
              omp_get_max_threads(), machine.gflops, machine.memory_gbytes_s, machine.cache_gbytes_s,
              kit::kernels::kBlock);
  std::mt19937 engine(20261122);
  bool known = false;
  for (const auto& c : kCases) {
    if (!options.only_case.empty() && options.only_case != c.name) continue;
    known = true;
    const auto layers = bench::layers_of(c.network, c.batch, c.size);
    double bytes = 0;
    for (const auto& layer : layers) bytes += layer.count * layer.weight_bytes();
    for (const auto& layer : layers) {
      if (layer.name.find(options.only_layer) == std::string::npos) continue;
      // All weights of a small network stay in the cache.
      const int copies = bytes < kCacheBytes ? 1 : std::clamp(int(1.5 * kCacheBytes / layer.weight_bytes()), 1, 64);
      compare(c, layer, copies, options, machine, engine);
    }
  }
  return known ? 0 : usage(options.only_case.c_str());
}
