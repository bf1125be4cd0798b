// SPDX-License-Identifier: Apache-2.0
// The timed region of every C++ level: one iteration, and a block of them. Nothing else in strata reads the clock
// around a C++ level.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "strata/fresh_inputs.hpp"
#include "strata/level.hpp"
#include "strata/spans.hpp"

namespace strata {

struct Iteration {
  std::int64_t wall_ns = 0, latency_ns = 0;
};

// set_input, run, wait, outputs. `results` keeps its storage from one iteration to the next.
Iteration iterate(Iterated& level, std::span<const HostTensor> inputs, std::vector<HostTensor>& results);

struct Block {
  std::vector<std::int64_t> wall_ns, latency_ns;
  std::int64_t cpu_ns = 0, start_ns = 0;
  std::optional<std::int64_t> runq_ns;  // wait of the process's main thread in the run queue; nullopt: not readable
  std::map<std::size_t, std::vector<HostTensor>> retained;  // results by recorded iteration
  std::int64_t copy_ns = 0;  // what copying one of them aside took, after its iteration, on average
};

// `head` iterations unrecorded, then one for every entry of `indices` (each below ring.size()), the results of those
// in `retain` copied aside. `fresh` changes the ring before each, outside of the timed region; nullptr: it stays as it
// is.
Block run_block(Iterated& level, const std::vector<std::vector<HostTensor>>& ring, int head,
                std::span<const std::size_t> indices, const std::set<std::size_t>& retain, FreshInputs* fresh);

}  // namespace strata
