// SPDX-License-Identifier: Apache-2.0
// How a level behaves while it is timed: that it works no harder where it is looked at than elsewhere, and uses no more
// processors than the case has threads. Knows no process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strata::proof {

// A state that was read after iterations of which the level told `told_ns`.
struct StateRead {
  double ns = 0, told_ns = 0;
};

class Conduct {
 public:
  // A block in whose iteration `at` the input changed places, `moved_bytes` of it: what else lay in the
  // caches may be gone. `unseen`: on an input that its process never saw before.
  void add_block(std::span<const std::int64_t> wall_ns, int at, double moved_bytes, bool unseen = false);
  // Of a block's iterations, of how many a result stayed that could be asked for.
  void add_retained(std::size_t results, int iterations);
  double retained_share() const { return iterations_ > 0 ? retained_ / iterations_ : 0; }

  // A restart: processor time of the level and all that it started, and how long its turns took. Where it takes no turn
  // it is stopped, so that what it uses then counts as well.
  void add_restart(double cpu_s, double turns_s, int threads);

  // A block's iterations as the level tells of them: processor time of its process from the first to the last, and
  // their times. What is done to inputs between them is in the former alone.
  void add_iterations(double cpu_ns, double wall_ns, int iterations, double moved_bytes, int threads);

  // In mode train, of a restart: how long each reading of the state took, and once more after a single step. Work that
  // is put off until somebody looks is made in the former. What holds up one of them accuses nobody.
  void add_states(std::span<const StateRead> reads, double again_ns);

  bool exchanges_compared() const;  // enough blocks of two iterations or more
  double exchanged_ns() const;      // median over those blocks: what that iteration takes beyond the others
  bool restarts_seen() const { return processors_ > 0; }
  double processors() const { return processors_; }  // of the restart that used most, as the driver saw it
  double allowed_processors() const;

  // Empty: nothing speaks against it.
  std::string complaint_of_exchanges() const;
  std::string complaint_of_processors() const;
  // Of inputs that it never saw: each of several took longer than those that it knew.
  std::string complaint_of_unseen() const;
  bool states_read() const { return least_late_ns_.has_value(); }
  std::string complaint_of_states() const;
  std::string complaint() const;  // any
  std::size_t unseen() const { return unseen_ns_.size(); }
  bool unseen_compared() const;  // enough of them
  double unseen_ns() const;      // the least that such an input took beyond the median of the others

 private:
  std::vector<double> beyond_ns_, others_ns_;  // of each block
  // Blocks whose exchanged iteration was slow beside the others; how many are expected, had another been drawn.
  int slow_exchanged_ = 0;
  double slow_expected_ = 0;
  std::vector<double> unseen_ns_, known_ns_;  // of iterations on new inputs; of some of the others
  double retained_ = 0, iterations_ = 0;
  double unseen_moved_ = 0;              // bytes before one of them, at most
  std::optional<double> least_late_ns_;  // of reading a state, above what is allowed
  double late_of_ns_ = 0, late_told_ns_ = 0;
  double processors_ = 0;
  bool too_many_ = false;
  double reported_cpu_ns_ = 0, reported_wall_ns_ = 0, reported_besides_ns_ = 0;  // of all blocks
  int threads_ = 0;
};

}  // namespace strata::proof
