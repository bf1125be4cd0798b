// SPDX-License-Identifier: Apache-2.0
// A sweep while it runs. A restart is a walk over the whole grid with fresh processes, one of each level, which go from
// point to point; at every point all levels take turns as in `compare`. What is proven where: docs/sweep.md.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <span>

#include "analysis/find_batch.hpp"
#include "engine/run_case.hpp"
#include "engine/sweep_forecast.hpp"
#include "plan/grid.hpp"
#include "plan/out_of_memory_cases.hpp"
#include "plan/peak_model.hpp"

namespace strata::engine {

// Between which --find-batch searches.
struct BatchBounds {
  std::int64_t lowest = 1, highest = 0;
};

class SweepRunner {
 public:
  // `grid`: of all points of the sweep, of which `ready` may have a part.
  SweepRunner(const SweepRequest& request, const BatchBounds& bounds, Prepared& ready, const plan::Grid& grid,
              measure::MachineFacts& facts, store::Store& store, StoredRun& stored, EventSink& events);

  // Until all walks are done, the budget is spent, or the program is interrupted. Error: the store's, or that of the
  // first point if no point can be measured.
  Result<measure::Outcome> run();

 private:
  // A point, from its first visit on. Not moved: its case refers to what was captured.
  struct Point {
    core::CaseSpec spec;
    std::unique_ptr<CapturedCase> captured;
    std::optional<Error> cannot;  // be captured
    std::unique_ptr<measure::VisitedCase> open;
    const store::Case* stored = nullptr;  // as the run that goes on has it
    int before = 0;                       // whole restarts that the run which goes on has stored
    bool missing = false;
    bool begun_again = false;  // with all runs of eager, since a level was unequal beside three
    bool apart = false;        // and in a later walk: its restarts, which come together, have processes of their own
    double capture_s = 0;
    PointForecast planned;               // before the first walk; of one that a search came to, nothing
    double predicted_s = 0, took_s = 0;  // of its visits, each predicted when it came
    int visits = 0;                      // of this process
    measure::Outcome outcome;
  };

  Result<void> walk(int number);
  Result<void> visit_all(const std::vector<Point*>& order, int number);
  std::vector<Point*> order_of(int number);
  // Of --find-batch: points that the looks so far ask for, added to the others; empty: the search is at its end.
  std::vector<Point*> search_on();
  bool give_time(int number, std::span<Point* const> left);  // `left`: of this walk, the next one first
  // Visits, or passes over a point that has had this visit.
  Result<void> visit(Point& point, int number);
  Result<void> capture(Point& point);
  Result<void> open(Point& point);
  Result<void> begin_case(Point& point);  // of a point that is captured
  // Whether a level is unequal beside three runs of eager that was not yet beside all: the envelope may be too narrow.
  bool is_doubtful(const Point& point);
  // Drops what such a point has and begins it again, captured with all runs; false: it cannot be, and stays as it is.
  Result<bool> open_with_all_runs(Point& point, int number);
  // Where nothing tells how much work the network is: captures the smallest corner, for the plan.
  void capture_smallest();
  void say_plan();
  void note_forecast_errors();
  std::optional<double> needed_bytes(const Point& point) const;
  // `took_s`: all of it, its measured time and its capture included.
  void note_visit(Point& point, bool first, double predicted_s, double took_s);
  Point* add_point(const core::CaseSpec& spec);
  measure::CaseExtras extras_of(const Point& point);
  void learn_memory(const plan::Bundle& bundle, const store::Row& row);
  Result<void> remember_exhaustion();
  Result<void> note_missing(Point& point, const Error& error);
  double elapsed() const;

  const SweepRequest& request_;
  Prepared& ready_;
  const plan::Grid& grid_;
  measure::MachineFacts& facts_;
  store::Store& store_;
  StoredRun& stored_;
  EventSink& events_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const int walks_;
  const std::optional<double> total_s_;  // the budget
  const double visit_s_;                 // measured time of a visit, if the budget does not say it
  double measured_s_ = 0;                // of the visit that runs
  SweepForecast forecast_;
  std::vector<store::VisitFacts> stored_visits_;  // of the run
  std::size_t visits_ = 0;
  bool spent_ = false;  // the budget
  std::optional<analysis::BatchRule> rule_;
  const BatchBounds bounds_;
  std::set<std::pair<core::Mode, std::string>> unequal_;  // levels, beside all runs of eager
  plan::OutOfMemoryCases out_of_memory_;
  plan::PeakModel peaks_;
  std::optional<Error> first_error_;
  std::vector<std::unique_ptr<Point>> points_;
  // What points were that began again: waiting processes know their jobs.
  std::vector<std::pair<std::unique_ptr<CapturedCase>, std::unique_ptr<measure::VisitedCase>>> dropped_;
  session::WarmProcesses warm_;  // ends before the points whose jobs it holds
};

}  // namespace strata::engine
