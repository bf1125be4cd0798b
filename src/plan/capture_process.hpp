// SPDX-License-Identifier: Apache-2.0
// The process that captures networks, kept from one capture to the next: it has loaded PyTorch, and each capture is a
// fork of it (src/capture/serve.py). It ends with the driver.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/worker.hpp"

namespace strata::plan {

// One capture with `arguments` of `python -m capture`, as worker::run_to_end() would run it. `launch` starts the
// process if none with the same words and variables is there; its log is this capture's. A capture that takes too long,
// or is interrupted, takes the process with it.
tl::expected<worker::Finished, worker::Failure> run_in_kept_process(
    const worker::Launch& launch, const std::vector<std::string>& arguments, std::chrono::milliseconds timeout,
    const std::function<void(std::string_view)>& on_line);

}  // namespace strata::plan
