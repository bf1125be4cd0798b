// SPDX-License-Identifier: Apache-2.0
// What the points of a sweep are likely to take, in minutes and memory: from the operations and bytes of their graphs,
// corrected by the visits of earlier sweeps on this machine and, while one runs, by its own (docs/sweep.md).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/prepare.hpp"
#include "engine/run_context.hpp"
#include "plan/grid.hpp"
#include "plan/peak_model.hpp"
#include "plan/visit_model.hpp"
#include "plan/work_model.hpp"

namespace strata::engine {

inline constexpr double kLeastMeasured_s = 2;  // of a visit, all its levels together

// Measured seconds of a visit where no budget says it: --point-time or the preset's time, shared by the walks.
double visit_seconds(const SweepRequest& request, const plan::Effort& effort);

// The spec with which a point is captured: of others than corners with what a light proof needs alone. `all_runs`: with
// an envelope of all runs of eager all the same.
core::CaseSpec spec_of_point(const core::CaseSpec& spec, const plan::Grid& grid, bool full_proof,
                             bool all_runs = false);

struct PointForecast {
  double seconds = 0;           // of all its visits, measured time included
  std::optional<double> bytes;  // that the processes of its levels need together; nullopt: nothing tells
};

// A number that was predicted, and what it was.
struct Prediction {
  double predicted = 0, actual = 0;
};
// Of these how many were within a factor of two.
std::size_t within_two(const std::vector<Prediction>& all);

class SweepForecast {
 public:
  // From the cache and from the store at `store`, which need not exist. What is referred to outlives it.
  SweepForecast(const SweepRequest& request, const Prepared& ready, const plan::Grid& grid,
                const std::filesystem::path& store);

  // Whether the work of any case of the network is known; else one has to be captured to tell anything of it.
  bool knows_work() const { return !work_.empty(); }
  // The point whose capture tells that at the least cost: a corner with the fewest pixels; nullptr: there is none.
  const core::CaseSpec* smallest() const;

  void learn(const core::Case& question, const nlohmann::json& info);  // of a case that is captured now
  void learn(const plan::MeasuredVisit& seen) { visits_.add(seen); }
  std::size_t visits() const { return visits_.seen(); }
  const std::string& model() const { return model_; }  // as cases name it

  // A visit as it is predicted; `first`: of the point in this run.
  plan::Visit visit_of(const core::CaseSpec& spec, bool first) const;
  double beside_s(const core::CaseSpec& spec, bool first) const { return visits_.beside_s(visit_of(spec, first)); }

  // All points in the order of their specs. A budget's measured time is what visits leave of it, shared equally.
  std::vector<PointForecast> points(const std::vector<core::CaseSpec>& specs) const;
  std::string source() const;  // where it comes from, in words

 private:
  struct Known {
    plan::SweepPosition at;
    core::Case question;
    std::vector<std::string> levels;
    bool captured = false;
  };
  const Known& known(const core::CaseSpec& spec) const;
  void learn_from_cache(const std::vector<std::filesystem::path>& captured);
  void learn_from_store(const std::filesystem::path& path);
  std::optional<double> bytes_of(const core::CaseSpec& spec) const;

  const SweepRequest& request_;
  const Prepared& ready_;
  const plan::Grid& grid_;
  std::string model_;
  double gflops_ = 0;  // of this machine; 0: not measured
  mutable std::map<plan::GridPoint, Known> known_;
  plan::WorkModel work_;
  plan::PeakModel peaks_;
  plan::VisitModel visits_{1};
  std::size_t before_ = 0;  // visits of earlier sweeps
};

// What a sweep's run keeps of its visits, and back.
store::VisitFacts facts_of(const plan::MeasuredVisit& seen);
plan::MeasuredVisit seen_of(const store::VisitFacts& stored);

}  // namespace strata::engine
