// SPDX-License-Identifier: Apache-2.0
// How a level behaves while it is timed: that it works no harder where it is looked at than elsewhere, and uses no more
// processors than the case has threads. Knows no process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strata::proof {

class Conduct {
 public:
  // A block of which iteration `check` was checked, and before which `moved_bytes` of inputs changed places: what else
  // lay in the caches may be gone.
  void add_block(std::span<const std::int64_t> wall_ns, int check, double moved_bytes);
  // A restart: processor time of the level and all that it started, and how long its turns took. Where it takes no turn
  // it is stopped, so that what it uses then counts as well.
  void add_restart(double cpu_s, double turns_s, int threads);

  // A block's iterations as the level tells of them: processor time of its process from the first to the last, and
  // their times. What is done to inputs between them is in the former alone.
  void add_iterations(double cpu_ns, double wall_ns, int iterations, double moved_bytes, int threads);

  bool checks_compared() const;  // enough blocks of two iterations or more
  double checked_ns() const;     // median over those blocks: what the checked iteration takes beyond the others
  bool restarts_seen() const { return processors_ > 0; }
  double processors() const { return processors_; }  // of the restart that used most, as the driver saw it
  double allowed_processors() const;

  // Empty: nothing speaks against it.
  std::string complaint_of_checks() const;
  std::string complaint_of_processors() const;
  std::string complaint() const;  // either

 private:
  std::vector<double> beyond_ns_, allowed_ns_, others_ns_;  // of each block
  double processors_ = 0;
  bool too_many_ = false;
  double reported_cpu_ns_ = 0, reported_wall_ns_ = 0, reported_besides_ns_ = 0;  // of all blocks
  int threads_ = 0;
};

}  // namespace strata::proof
