// SPDX-License-Identifier: Apache-2.0
// The captured graph, one call of oneDNN an operation: see README.md for what changes from the level above.
#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <cstring>

#include "library.hpp"
#include "strata/primitives_level.hpp"

namespace {

using strata::Failure;
using strata::onednn::Layouts;
using strata::onednn::Library;

// The name that oneDNN's documentation has for the instructions that it generates code for.
std::string instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 VNNI";
    case dnnl::cpu_isa::avx2_vnni_2:
      return "AVX2 VNNI 2";
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX-512 VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 BF16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "AVX-512 FP16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AMX";
    case dnnl::cpu_isa::avx512_core_amx_fp16:
      return "AMX FP16";
    default:
      return "generic";
  }
}

// oneDNN's ReLU, clip and maximum turn NaN into a number, where PyTorch hands it on: then results that look sound would
// be wrong.
void refuse_nan(const strata::SafeTensors& weights) {
  for (const auto& name : weights.names()) {
    const auto& tensor = *weights.find(name);
    if (tensor.dtype != "F32") continue;
    for (std::size_t at = 0; at + sizeof(float) <= tensor.bytes; at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, tensor.data + at, sizeof value);
      if (std::isnan(value))
        throw Failure("unsupported", fmt::format("the weight '{}' holds NaN, which oneDNN's activations drop", name),
                      "give weights without NaN, or use another level");
    }
  }
}

class OnednnLevel final : public strata::PrimitivesLevel {
 public:
  strata::About about() const override {
    const auto* version = dnnl::version();
    return {.versions = {{"onednn", fmt::format("{}.{}.{}", version->major, version->minor, version->patch)},
                         {"onednn_isa", instruction_set()}},
            .operations = strata::onednn::known_operations()};
  }

  // oneDNN says "could not create a memory object" and the like where the host has no memory left.
  Failure explain(const std::exception& error) const override {
    if (const auto* failure = dynamic_cast<const dnnl::error*>(&error);
        failure != nullptr && failure->status == dnnl_out_of_memory)
      return {"out_of_memory", fmt::format("the host has no memory left ({})", failure->what())};
    return strata::Level::explain(error);
  }

 private:
  Chosen choose(const strata::Case& run_case) const override {
    const auto layouts = run_case.variant == "contiguous" ? Layouts::contiguous : Layouts::chosen;
    return {[layouts] { return std::make_unique<Library>(layouts); },
            layouts == Layouts::contiguous ? "contiguous" : "any"};
  }
  int use_threads(int threads) const override {
    omp_set_num_threads(threads);
    return omp_get_max_threads();
  }
  void check(const strata::SafeTensors& weights) const override { refuse_nan(weights); }
};

}  // namespace

STRATA_LEVEL(OnednnLevel)
