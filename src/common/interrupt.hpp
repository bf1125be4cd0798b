// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a flag that every loop can look at, and a descriptor that every poll() can wait on.
#pragma once

#include <atomic>

namespace strata {

// True once SIGINT or SIGTERM came (or a test set it); never reset by strata.
std::atomic<bool>& interrupted();

// SIGINT, SIGTERM: sets the flag once; a second one ends the process at once (workers die with it).
void install_interrupt_handler();

// Becomes readable, and stays so, when a signal sets the flag; -1 before install_interrupt_handler().
int interrupt_descriptor();

}  // namespace strata
