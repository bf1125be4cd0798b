// SPDX-License-Identifier: Apache-2.0
// A measured run without measuring: levels of given times, on a machine of which others had a share.
#pragma once

#include <optional>
#include <string>

#include "analysis/load_facts.hpp"
#include "store/record.hpp"

namespace strata::report {

inline store::Row row(const std::string& level, double ms, std::optional<double> taken,
                      const std::string& from = "eager") {
  store::Row out;
  out.level = level;
  out.state = State::measured;
  out.info = {.language = "c++", .from = from, .changes = "something"};
  out.proof = store::Proof{.verdict = "equal"};
  out.settings = {{"layout", "contiguous"}, {"precision", "fp32"}, {"freezing", "off"}, {"threads", 2}};
  for (int restart = 0; restart < 4; ++restart)
    for (int round = 0; round < 12; ++round) {
      store::Block block;
      block.restart = restart;
      block.round = round;
      block.wall_ns.assign(5, static_cast<std::int64_t>(ms * 1e6) + 200 * round);
      block.latency_ns = block.wall_ns;
      block.taken = taken;
      out.blocks.push_back(block);
    }
  return out;
}

// eager at 40 ms and static at 10, with two threads on two cores, of which others had `taken`.
inline store::Run run_with(double taken, double begin = 0) {
  store::Run run;
  run.run_id = "r";
  run.finished = "2026-11-21T06:20:00Z";
  run.command = "./strata compare m --threads 2";
  run.settings.request = {{"verb", "compare"}, {"version", 1}, {"model", "m"}, {"threads", {2}}};
  run.machine = {{"physical_cores", 2}, {"logical_processors", 2}, {"last_cache_bytes", 32e6}};
  store::Case one;
  one.id = "m/infer";
  one.key = "m";
  one.question = {.model = "m", .threads = 2};
  one.bundle = {{"spec", {{"model", "m"}, {"threads", 2}}}, {"model", {{"name", "m"}}}};
  one.trust = {.process_sigma = 0.01, .load = {.begin = begin}};
  analysis::add_restarts(one.trust.load, {{taken, 0.0, 10}});
  one.reference_level = "eager";
  one.rows = {row("eager", 40, taken, ""), row("static", 10, taken)};
  one.rows[1].info.generate = store::Generate{"onednn", ""};
  run.cases = {one};
  return run;
}

}  // namespace strata::report
