// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs and their driver, by NVML opened at run time: a machine without one needs nothing. Reads only, changes no
// setting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::probe {

struct Gpu {
  std::string name;
  std::uint64_t memory_bytes = 0, used_bytes = 0;
  unsigned busy_percent = 0;  // 0: the driver does not say
};

struct Gpus {
  bool available = false;
  std::string why_not;  // set when not available
  std::string driver;   // "580.159"
  std::vector<Gpu> devices;
};

Gpus gpus();

}  // namespace strata::probe
