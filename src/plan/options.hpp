// SPDX-License-Identifier: Apache-2.0
// What a comparison was asked to do, checked before any worker starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "core/case_spec.hpp"
#include "plan/named_environments.hpp"

namespace strata::plan {

// How long and how often. A preset fills what the user left open.
struct Effort {
  int restarts = 0;     // fresh processes per level
  double budget_s = 0;  // measured seconds of a case, all levels and restarts together
  double tune_s = 0;    // measured seconds that each level gets to find its best variant
  double ci_width =
      0;  // half-width of the 99% interval of every ratio at which to stop early, as a share; 0 = use the budget
  std::string preset = "standard";
  double serve_s = 0;  // measured seconds of each level and number of clients
};

struct Options {
  std::string model;
  std::vector<int> batches;        // empty: the model's own
  std::vector<int> thread_counts;  // of a comparison, in place of `threads`
  std::string size;                // of images (axes.hpp), several for a comparison; empty: the model's own
  std::vector<std::string> inputs, levels;
  std::string dataset, dataset_folder;  // whose images are the inputs; where they lie as files (data::image_files)
  std::string data_dir;                 // where the files of data sets lie; empty: the usual place
  bool skip_bad = false;                // leave out files of a data set that cannot be read
  std::optional<double> max_megapixels, max_expansion;  // of what is read (limit_files)
  std::string input_from, input_file, weights, device = "cpu", mode = "infer", precision = "fp32", eval, name;
  std::string optimiser, loss;  // of mode train; empty: the defaults of docs/bundle.md
  std::string reference;        // the level that others are compared with; empty: eager, or the first without it
  std::string dynamic;          // "batch=1..32": one artefact over these sizes too; empty: not
  bool synthetic = false, aa = false, deep = false, profile = false, tuned = false, allow_debug = false, fresh = false;
  int threads = 0;      // 0: physical cores
  int weight_sets = 2;  // generic ones, drawn for the proof
  std::int64_t seed = 0;
  std::optional<std::int64_t> order_seed;  // of the order of blocks; drawn and stored if not given
  std::optional<int> restarts;
  std::optional<double> budget_s, ci_width, timeout_s, memory_limit_gib;
  std::string preset = "standard";
  std::string clients, slo;  // clients.hpp; empty: not asked for
  std::vector<NamedPython>
      environments;  // as --env names them, the network is captured in the first; empty: --python's
};

constexpr int most_restarts = 100, most_weight_sets = 200, largest_batch = 1 << 20, most_cases = 10'000;

constexpr double longest_s = 1000.0 * 86400;  // that anything may be told to take

// Error (usage): not 1 to 4 for each processor of this machine. `what`: how it was asked for.
Result<void> check_threads(const std::string& what, std::int64_t threads);

// quick, standard and thorough, with what each stands for.
const std::vector<Effort>& presets();

// The preset's, with what the options say otherwise.
Result<Effort> effort_of(const Options& options);

// Bounds on what input files may unpack to. They reach the processes that read the files as variables
// (STRATA_MAX_MEGAPIXELS, STRATA_MAX_EXPANSION), not by the case: a bound makes no other question of it. Of what the
// options leave open the variable stays as this program found it.
void limit_files(const Options& options);

// "path.py:build" or the file of a network with an absolute path; other names stay as they are. Error: no such file, or
// no function.
Result<std::string> absolute_model(const std::string& model);

// What to capture for each combination of modes, precisions, sizes, threads and batches. Errors:
// contradicting options, unreadable files, bad shapes, unknown modes.
Result<std::vector<core::CaseSpec>> specs_of(const Options& options);

// The same for what takes one case: several sizes are an error.
Result<core::CaseSpec> spec_of(const Options& options);

}  // namespace strata::plan
