// SPDX-License-Identifier: Apache-2.0
// Gets the bundle of a case (docs/bundle.md): from the cache, or by running the capture.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/places.hpp"
#include "plan/environment.hpp"
#include "worker/worker.hpp"

namespace strata::plan {

struct Bundle {
  std::filesystem::path folder;
  std::string key;        // content hash: two bundles with one key are the same
  std::string structure;  // the same without weights and inputs: artefacts that hold no weights may be shared
  nlohmann::json info;    // bundle.json
  bool cached = false;
  std::shared_ptr<const Bundle> dynamic;  // the same network with an open batch, if the spec asked for it
  std::filesystem::path weights(const std::string& set) const { return folder / "weights" / (set + ".safetensors"); }
};

using Progress = std::function<void(const std::string&)>;

// `spec` as in docs/bundle.md. `strict`: the bundle of the same case in fp32, whose files a case in another maths mode
// shares. Error: what the capture said, or how it ended.
Result<Bundle> get_bundle(const nlohmann::json& spec, const Installation& place, const Environment& environment,
                          const Progress& progress, const Bundle* strict = nullptr);

}  // namespace strata::plan
