// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace strata::probe {
namespace {

// The few prototypes of nvml.h that are used here; their ABI has not changed since the _v2 names.
using Device = struct nvmlDevice_st*;
struct Utilisation {
  unsigned gpu, memory;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
class Nvml {
 public:
  Nvml() {
    for (const char* file :
         {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}) {
      if ((library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL))) break;
    }
    if (!library_) {
      why_not_ = "no NVIDIA driver: libnvidia-ml.so.1 is not installed";
      return;
    }
    const bool complete = bind(init, "nvmlInit_v2") && bind(shutdown, "nvmlShutdown") &&
                          bind(count, "nvmlDeviceGetCount_v2") && bind(by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                          bind(name, "nvmlDeviceGetName") && bind(memory, "nvmlDeviceGetMemoryInfo") &&
                          bind(busy, "nvmlDeviceGetUtilizationRates") && bind(driver, "nvmlSystemGetDriverVersion") &&
                          bind(error, "nvmlErrorString");
    if (!complete) {
      why_not_ = "libnvidia-ml.so.1 lacks functions that every driver since 450 has";
    } else if (const int status = init(); status != 0) {
      why_not_ = fmt::format("the NVIDIA driver does not answer: {}", error(status));
    } else {
      ready_ = true;
    }
  }
  ~Nvml() {
    if (ready_) shutdown();
    if (library_) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  bool ready() const { return ready_; }
  const std::string& why_not() const { return why_not_; }

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;
  int (*busy)(Device, Utilisation*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  const char* (*error)(int) = nullptr;

 private:
  template <class F>
  bool bind(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library_, symbol));
    return function != nullptr;
  }
  void* library_ = nullptr;
  bool ready_ = false;
  std::string why_not_;
};

Gpu describe(const Nvml& nvml, Device device) {
  Gpu gpu;
  std::array<char, 128> name{};
  if (nvml.name(device, name.data(), name.size()) == 0) gpu.name = name.data();
  if (MemoryInfo memory{}; nvml.memory(device, &memory) == 0) {
    gpu.memory_bytes = memory.total;
    gpu.used_bytes = memory.used;
  }
  if (Utilisation busy{}; nvml.busy(device, &busy) == 0) gpu.busy_percent = busy.gpu;
  return gpu;
}

}  // namespace

Gpus gpus() {
  Gpus result;
  const Nvml nvml;
  if (!nvml.ready()) {
    result.why_not = nvml.why_not();
    return result;
  }
  std::array<char, 96> driver{};
  if (nvml.driver(driver.data(), driver.size()) == 0) result.driver = driver.data();
  unsigned count = 0;
  if (const int status = nvml.count(&count); status != 0) {
    result.why_not = fmt::format("the NVIDIA driver lists no GPU: {}", nvml.error(status));
    return result;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (Device device = nullptr; nvml.by_index(i, &device) == 0) result.devices.push_back(describe(nvml, device));
  }
  result.available = !result.devices.empty();
  if (!result.available) result.why_not = "the NVIDIA driver lists no GPU that this user may open";
  return result;
}

}  // namespace strata::probe
