// SPDX-License-Identifier: Apache-2.0
// Whether a stored run came to its end: what a killed program could not write is found out when the run is read.
#pragma once

#include <string>

#include "store/record.hpp"

namespace strata::store {

// This process as a stored run names it: it means the same one for as long as this system runs, in this container.
std::string this_process();

enum class RunState {
  finished,
  interrupted,  // by a signal, or its process ended without a word
  running,      // by another process, now
  unknown       // it has no end, and its process was one of another system or container
};
RunState state_of(const Run& run);
const char* to_string(RunState state);  // "unfinished" for unknown

}  // namespace strata::store
