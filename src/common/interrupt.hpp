// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGTERM and SIGHUP as a flag that every loop can look at, and a descriptor that every poll() can wait on.
#pragma once

#include <atomic>

namespace strata {

// True once SIGINT, SIGTERM or SIGHUP came, or what runs was cancelled (or a test set it).
std::atomic<bool>& interrupted();

// Ends what runs as a signal would; cancel_over() lets the next begin, unless a signal came meanwhile.
void cancel_running();
void cancel_over();

// SIGINT, SIGTERM, SIGHUP (unless it was ignored, as nohup does): sets the flag once; a second one ends the process at
// once (workers die with it). A write to a pipe that nobody reads is an error (EPIPE) and no signal afterwards. SIGBUS,
// the end of a mapped file that somebody shortened, ends the process with a sentence.
void install_interrupt_handler();

// 128 and the signal that set the flag; 130 if none did.
int interrupt_exit_code();

// Becomes readable, and stays so until cancel_over(), when the flag is set; -1 before install_interrupt_handler().
int interrupt_descriptor();

}  // namespace strata
