// SPDX-License-Identifier: Apache-2.0
// Host memory in place of a device: work is done when it is given to a stream, or becomes part of a list that is done
// later, as often as wanted, with the arguments that it was given with: what a recorded CUDA graph is.
#pragma once

#include <functional>
#include <vector>

namespace kit_cuda {

using Work = std::vector<std::function<void()>>;

void perform(std::function<void()> work);
// Until the next call of it, work goes to this list; null: it is done at once.
void record_into(Work* list);

}  // namespace kit_cuda
