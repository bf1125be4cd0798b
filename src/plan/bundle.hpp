// SPDX-License-Identifier: Apache-2.0
// Gets the bundle of a case (docs/bundle.md): from the cache, or by running the capture.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/places.hpp"
#include "core/case_spec.hpp"
#include "plan/environment.hpp"
#include "worker/worker.hpp"

namespace strata::plan {

struct Bundle {
  std::filesystem::path folder;
  core::CaseSpec spec;    // that it was captured for
  core::Case question;    // that it answers
  std::string network;    // hash of what was captured: the graph, which weights, a file of inputs
  std::string key;        // content hash: two bundles with one key are the same
  std::string structure;  // the same without weights and inputs: artefacts that hold no weights may be shared
  nlohmann::json info;    // bundle.json, with `flops` and `flops_uncounted` as graph/flops.hpp counts them
  bool cached = false;
  std::shared_ptr<const Bundle> dynamic;  // the same network with an open batch, if the spec asked for it
};

// How a bundle is captured, or taken from the cache.
struct CaptureOptions {
  std::function<void(const std::string&)> progress;  // what the capture is doing
  std::function<void(const std::string&)> note;      // why a cached one was not taken: a sentence that stays
  bool fresh = false;                                // capture anew, once a request
  std::optional<double> timeout_s;                   // of the capture; an hour if not given
  std::optional<double> memory_limit_gib;            // of a level's process
  const Bundle* strict =
      nullptr;  // the bundle of the same case in fp32, whose files a case in another precision shares
};

// A cached bundle is taken if its files are those of its manifest and, for a user's network, if every file that its
// capture read is as it was. Error: what the capture said, or how it ended.
Result<Bundle> get_bundle(const core::CaseSpec& spec, const Installation& place, const Environment& environment,
                          const CaptureOptions& options);

// The inputs that the network takes, as bundle.json lists them, from its capture where it is cached; else it is built
// and run, and nothing is kept: for plans. Error: what the capture would refuse.
Result<nlohmann::json> inputs_of(const core::CaseSpec& spec, const Installation& place, const Environment& environment,
                                 const CaptureOptions& options);

// Where captures of these cases lie in the cache, in their order; empty: there is none. Nothing is checked and nothing
// captured: for plans. Whether one can be taken is seen when it is.
std::vector<std::filesystem::path> find_captured(const std::vector<core::CaseSpec>& specs, const Installation& place,
                                                 const Environment& environment);
// bundle.json of a capture with its counts, as Bundle::info. Error: what is not as docs/bundle.md says.
Result<nlohmann::json> read_captured(const std::filesystem::path& folder);

// Whether the network is the user's own: a file, a function of one, or a model of a package, which they may change.
bool is_users(const std::string& model);
// The folder of a user's network, from which paths are written.
std::filesystem::path folder_of(const std::string& model);

// CaptureOptions.fresh captures a case once, however often it is asked for: until this is called, by what answers
// several requests.
void forget_fresh_captures();

}  // namespace strata::plan
