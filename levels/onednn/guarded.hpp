// SPDX-License-Identifier: Apache-2.0
// Turns what making a call throws into an error without its place.
#pragma once

#include <fmt/format.h>

#include "common/result.hpp"
#include "tensor.hpp"

namespace strata::onednn {

// Runs `make` and turns what it throws into an error.
template <class Make>
Result<void> guarded(const Make& make) {
  try {
    make();
    return {};
  } catch (const Unsupported& refused) {
    return fail(refused.what());
  } catch (const dnnl::error& error) {
    return fail(fmt::format("oneDNN has no primitive for it ({})", error.what()));
  }
}

}  // namespace strata::onednn
