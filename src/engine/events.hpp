// SPDX-License-Identifier: Apache-2.0
// What a runner says while it works, for whoever listens: a terminal, a program, a test. A runner prints nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/participant.hpp"
#include "plan/bundle.hpp"
#include "plan/options.hpp"

namespace strata::engine {

// What a sweep is about to do, before its first point.
struct PlannedPoint {
  std::string point;  // "batch 8, size 64"
  double seconds = 0;
  std::optional<double> bytes;  // nullopt: nothing tells
};
struct PlannedSweep {
  std::vector<PlannedPoint> points;
  std::string summary;  // a sentence
};

// A restart of a case that is measured and stored: `done` of `planned`.
struct EndedRestart {
  std::string run_id, case_key;
  int done = 0, planned = 0;
};

class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // A sentence that stays.
  virtual void note(const std::string& sentence) = 0;
  // What is being done, replaced by the next; `seconds_left` of `of`, negative: not known.
  virtual void progress(const std::string& doing, double seconds_left, std::string_view of = "measuring") = 0;
  virtual void planned(const PlannedSweep& plan) = 0;
  // Of a comparison, while no level runs.
  virtual void restart_ended(const EndedRestart& restart) = 0;
};

// Which calls of progress() to show: a new phase always; the same one with another number ("round 7") at most once in
// `interval`.
class ProgressPace {
 public:
  explicit ProgressPace(std::chrono::milliseconds interval) : interval_(interval) {}
  bool is_due(const std::string& doing);

 private:
  std::chrono::milliseconds interval_;
  std::string phase_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

// The same for what measures, without its restarts. `events` outlives it.
inline measure::Progress progress_to(EventSink& events) {
  return {.note = [&events](const std::string& sentence) { events.note(sentence); },
          .status = [&events](const std::string& doing, double left) { events.progress(doing, left); }};
}

// And for what captures the network of `options`, which outlives it, too; `strict` as in plan::CaptureOptions.
plan::CaptureOptions capture_options(const plan::Options& options, EventSink& events,
                                     const plan::Bundle* strict = nullptr);

}  // namespace strata::engine
