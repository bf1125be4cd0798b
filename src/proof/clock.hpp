// SPDX-License-Identifier: Apache-2.0
// Whether the times that a worker tells can be: they are held against the driver's own clock around each request. What
// a request takes beside the told times (transfer, unrecorded iterations, the check's file) does not grow with the
// number of recorded iterations; where it does, an iteration took longer than the worker says. Knows no process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strata::proof {

// One `measure` request as both saw it. `elapsed_ns`: by the driver, without `queued_ns`, which both processes waited
// for a core.
struct Timed {
  int iterations = 0;
  double reported_ns = 0, elapsed_ns = 0, queued_ns = 0;
  // At least: waiting within an iteration is told, and is left out of what elapsed as well.
  double unreported_ns() const { return std::max(0.0, elapsed_ns - reported_ns); }
  double most_unreported_ns() const {
    return std::max(0.0, elapsed_ns + std::min(queued_ns, reported_ns) - reported_ns);
  }
};

// Why these times cannot be: a latency above its iteration, or a sum above what the driver waited (`waited_ns`, all of
// it). Empty: they can.
std::string impossible_times(std::span<const std::int64_t> wall_ns, std::span<const std::int64_t> latency_ns,
                             double waited_ns);

// Why a sum of told times cannot be; `what` names it. Empty: it can.
std::string impossible_sum(const std::string& what, double reported_ns, double waited_ns);

// Short and long requests without unrecorded iterations; of each kind the least untold time counts, so that what
// disturbs some requests accuses nobody. Where even the least disturbed one waited for a core, that share of an
// iteration is allowed as well: who is switched out finds cold caches, and runs beside others.
class ClockEvidence {
 public:
  // `bytes`: of an iteration's result, which is freed outside of its time.
  void add(const Timed& timed, bool is_long, double bytes = 0);
  // How long it took to copy a result of a block aside, after the clock: what a level puts off until somebody looks is
  // made there. `reported_ns`: of an iteration; `bytes`: of the result.
  void add_copies(double copy_ns, double reported_ns, double bytes);
  // The same blocks, short and long ones, drawn: with their unrecorded iterations, which the difference does not see.
  // Work that is done in those, and a clock that is slow in blocks alone, show here; judged once, by all of them, from
  // end_turns() on. One that waited for a core counts for nothing. The first iteration after another process ran is
  // slow by chance, so that the least of a few blocks proves nothing: by ranks the long ones must lie above the short.
  void add_turn(const Timed& timed, bool is_long);
  void end_turns() { turns_ended_ = true; }
  // An ordinary block after `head` unrecorded iterations, whose file has `bytes`.
  void add_block(const Timed& timed, int head, double bytes);

  bool checked() const { return requests_.complete(); }
  double reported_ns() const;    // an iteration as the worker tells it
  double unreported_ns() const;  // what an iteration took beside that, by the driver
  double allowed_ns() const;
  // Empty: nothing speaks against the worker's clock.
  std::string complaint() const;

 private:
  struct Least {
    int iterations = 0;
    double unreported_ns = 0, reported_ns = 0, queued_share = 0;  // per request; per iteration; of a request
  };
  struct Pair {
    Least shorter, longer;
    // Long ones count with the least that they can have left untold, short ones with the most: a short one that waited
    // within its iterations would seem to have left nothing untold, not even what each request takes.
    void add(const Timed& timed, bool is_long) {
      keep(is_long ? longer : shorter, timed, is_long ? timed.unreported_ns() : timed.most_unreported_ns());
    }
    bool complete() const { return shorter.iterations > 0 && longer.iterations > shorter.iterations; }
    double unreported_ns() const;
    double allowed_ns(double bytes) const;
  };
  static void keep(Least& least, const Timed& timed, double unreported_ns);
  std::string complaint_of_turns() const;
  Pair requests_, turns_;
  std::vector<Timed> short_turns_, long_turns_;
  bool turns_ended_ = false;
  double bytes_ = 0;
  int blocks_ = 0;
  std::optional<double> least_excess_ns_;  // of a block above what is allowed beside its told times
  Timed excess_of_;
  int copied_ = 0;
  std::optional<double> least_late_ns_;  // of copying, above what is allowed
  double late_of_ns_ = 0;
};

}  // namespace strata::proof
