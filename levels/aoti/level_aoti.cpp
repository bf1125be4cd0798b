// SPDX-License-Identifier: Apache-2.0
// An AOTInductor package (prepare.py), run from C++. Weight sets are copied into the package's own constants by
// PyTorch's names, and read back from them.
#include <fmt/format.h>
#include <stdlib.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <unordered_map>

#include "strata/bundle.hpp"
#include "strata/torch_level.hpp"

namespace {

using strata::Failure;
using Constants = std::unordered_map<std::string, at::Tensor>;

class AotiLevel final : public strata::TorchLevel, public strata::ReadableWeights {
 public:
  void load_weights(const std::string& name_of_set, const strata::SafeTensors& weights) override {
    set_ = name_of_set;
    if (baked_) return open_package(name_of_set);
    // the package drops what eval mode does not read (num_batches_tracked) and adds constants of its own
    Constants set;
    for (const auto& name : loader_->get_constant_fqns()) {
      const auto* view = weights.find(name);
      if (view != nullptr) set.emplace(name, stored(strata::borrow(*view).to(device())));
    }
    names_.clear();
    constants_.clear();
    if (set.empty()) return;  // the network reads no weight: refuse_built_in_weights() has seen that none is missing
    constexpr bool use_inactive = false, check_full_update = false;
    loader_->load_constants(set, use_inactive, check_full_update);
    for (const auto& [name, tensor] : set) names_.push_back(name);
  }

  // A package runs as many requests at once as it was opened with runners; they share its constants.
  std::vector<std::unique_ptr<strata::Client>> clients(int count, int threads) override {
    if (runners_ != static_cast<std::size_t>(count)) {
      runners_ = static_cast<std::size_t>(count);
      if (!baked_) open_package("package");
      load_weights(set_, strata::read_weight_set(bundle_, set_));
    }
    return TorchLevel::clients(count, threads);
  }

  std::vector<std::string> readable_weights() const override {
    if (baked_) throw Failure("unsupported", "the weights of this variant are part of its code");
    return names_;
  }

  strata::HostTensor weight(const std::string& name) const override {
    if (constants_.empty()) constants_ = loader_->get_runner()->extract_constants_map(false);
    return strata::to_host(constants_.at(name));
  }

 protected:
  void build(const strata::Case& run_case, const strata::Bundle& bundle, const std::filesystem::path& cache) override {
    cache_ = cache;
    bundle_ = bundle;
    std::ifstream stream(cache / "package.json");
    const auto about = nlohmann::json::parse(stream, nullptr, false);
    if (!about.is_object())
      throw Failure("unavailable", (cache / "package.json").string() + " does not exist",
                    "run the level's prepare.py first");
    const auto of = [&](const char* field) {
      return about.value(field, nlohmann::json());
    };  // null where another version wrote it
    if (of("device") != run_case.device || of("threads") != run_case.threads || of("precision") != run_case.precision ||
        of("variant") != run_case.variant)
      throw Failure(
          "unavailable",
          fmt::format("the package in {} was compiled for {} in {} with {} threads, variant {}; the case has {} "
                      "in {} with {}, variant {}",
                      cache.string(), of("device").dump(), of("precision").dump(), of("threads").dump(),
                      of("variant").dump(), run_case.device, run_case.precision, run_case.threads, run_case.variant),
          "run the level's prepare.py for this case");
    bfloat16_ = run_case.precision == "bf16";
    if (run_case.precision != "fp32")
      facts_.precision = run_case.precision;  // compiled in: conversions are part of the package
    facts_.layout = "any";
    facts_.graph = "exported";
    facts_.freezing = about.at("freezing");
    facts_.autotune = about.at("autotune");
    baked_ = about.at("baked");
    if (baked_) return;  // the package is that of a weight set
    open_package("package");
    refuse_built_in_weights(about.at("weights"));
    const std::set<std::string> parameters = about.at("parameters");
    strata::NamedTensors held;
    for (const auto& [name, tensor] : loader_->get_runner()->extract_constants_map(false))
      if (parameters.contains(name)) held.emplace(name, tensor);
    facts_.parameters = strata::elements_once(held);
  }

  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override { return loader_->run(inputs); }

 private:
  // As the package keeps it.
  at::Tensor stored(const at::Tensor& weight) const {
    return bfloat16_ && weight.is_floating_point() ? weight.to(at::kBFloat16) : weight;
  }

  void open_package(const std::string& name) {
    const auto package = cache_ / (name + ".pt2");
    if (!std::filesystem::exists(package))
      throw Failure("unavailable", package.string() + " does not exist", "run the level's prepare.py first");
    constants_.clear();
    loader_.reset();  // the old one is freed before the new one is made
    unpack_and_load(package, cache_);
    facts_.artefact_bytes = static_cast<std::int64_t>(std::filesystem::file_size(package));
  }

  // A weight that the compiler wrote into the code as numbers could never be changed.
  void refuse_built_in_weights(const std::vector<std::vector<std::string>>& weights) const {
    const auto names = loader_->get_constant_fqns();
    const std::set<std::string> constants(names.begin(), names.end());
    for (const auto& same : weights)
      if (std::none_of(same.begin(), same.end(), [&](const auto& name) { return constants.contains(name); }))
        throw Failure("unsupported", "AOTInductor built the weight '" + same.front() +
                                         "' into the code, so that no other set can be loaded");
  }

  // The loader unpacks under TMPDIR and tidies up when it is destroyed, which a killed worker never does: so it unpacks
  // into the cache, workers that are gone are swept, and on a CPU, where all is mapped by then, the copy goes at once.
  void unpack_and_load(const std::filesystem::path& package, const std::filesystem::path& cache) {
    namespace fs = std::filesystem;
    const std::string prefix = "unpacked-";
    for (const auto& entry : fs::directory_iterator(cache)) {
      const auto name = entry.path().filename().string();
      if (name.starts_with(prefix) && !fs::exists("/proc/" + name.substr(prefix.size()))) fs::remove_all(entry.path());
    }
    const auto folder = cache / (prefix + std::to_string(getpid()));
    fs::create_directories(folder);
    const char* before = std::getenv("TMPDIR");
    const std::string previous = before != nullptr ? before : "/tmp";
    setenv("TMPDIR", folder.c_str(), 1);
    loader_ = std::make_unique<torch::inductor::AOTIModelPackageLoader>(package.string(), "model", false, runners_);
    setenv("TMPDIR", previous.c_str(), 1);
    if (device().is_cpu()) fs::remove_all(folder);
  }

  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader_;
  std::filesystem::path cache_;
  strata::Bundle bundle_;
  std::string set_;  // that is loaded
  std::size_t runners_ = 1;
  bool baked_ = false;
  bool bfloat16_ = false;  // what the package's floating-point constants are
  std::vector<std::string> names_;
  mutable Constants constants_;  // views of the package's own memory
};

}  // namespace

STRATA_LEVEL(AotiLevel)
