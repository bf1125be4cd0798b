// SPDX-License-Identifier: Apache-2.0
// The captured graph, one call of cuDNN, cuBLAS or a kernel of strata's an operation: see README.md for what changes
// from the level above.
#include <fmt/format.h>

#include <chrono>

#include "library.hpp"
#include "strata/primitives_level.hpp"

namespace {

using strata::Failure;
using strata::cudnn::Layouts;
using strata::cudnn::Library;
using strata::cudnn::Precision;

// Phases end when the device has done their work, which the host waits for.
class WaitingStopwatch final : public strata::Stopwatch {
 public:
  void mark() override {
    kit_cuda::wait_for_device();
    marks_.push_back(std::chrono::steady_clock::now());
  }
  std::vector<std::int64_t> between_ns() override {
    std::vector<std::int64_t> result;
    for (std::size_t i = 1; i < marks_.size(); ++i)
      result.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(marks_[i] - marks_[i - 1]).count());
    return result;
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

class CudnnLevel final : public strata::PrimitivesLevel {
 public:
  strata::About about() const override {
    return {.versions = strata::cudnn::versions(), .operations = strata::cudnn::known_operations()};
  }

  std::unique_ptr<strata::Stopwatch> stopwatch() const override { return std::make_unique<WaitingStopwatch>(); }

  void record(strata::Spans* spans) override {
    if (spans != nullptr) throw Failure("unsupported", "calls on a GPU end after the host has gone on");
  }

  Failure explain(const std::exception& error) const override {
    if (const auto* failure = dynamic_cast<const kit_cuda::DeviceError*>(&error))
      return {failure->out_of_memory ? "out_of_memory" : "failed", failure->what()};
    return strata::Level::explain(error);
  }

 private:
  Chosen choose(const strata::Case& run_case) const override {
    if (std::string why; kit_cuda::device_name(&why).empty())
      throw Failure("unavailable", fmt::format("there is no CUDA device: {}", why), "`strata doctor` looks for one");
    const auto layouts = run_case.variant == "channels_last" ? Layouts::channels_last : Layouts::contiguous;
    const auto precision = run_case.precision == "tf32"       ? Precision::tf32
                           : run_case.precision == "amp-bf16" ? Precision::bfloat16
                                                              : Precision::float32;
    return {[layouts, precision] { return std::make_unique<Library>(layouts, precision); },
            layouts == Layouts::channels_last ? "channels_last" : "contiguous"};
  }
  // The host only starts work.
  int use_threads(int threads) const override { return threads; }
};

}  // namespace

STRATA_LEVEL(CudnnLevel)
