// SPDX-License-Identifier: Apache-2.0
// Inference: a traced module (prepare.py), given its weights by name, then frozen; every weight set starts from the
// file again, since freezing folds BatchNorm into the convolutions. Training: a scripted module, trained as it is.
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/script.h>

#include "strata/torch_level.hpp"
#include "strata/torch_operations.hpp"

namespace {

using strata::Failure;

constexpr auto optimized = "optimize_for_inference";
thread_local int fallbacks = 0;  // an observer of PyTorch holds no state of its own

// Appends the tensors of a result in the order in which models.py names them.
void flatten(const c10::IValue& value, std::vector<at::Tensor>& into) {
  if (value.isTensor()) into.push_back(value.toTensor());
  if (value.isTuple())
    for (const auto& element : value.toTupleRef().elements()) flatten(element, into);
  if (value.isList())
    for (const auto& element : value.toListRef()) flatten(element, into);
  if (value.isGenericDict())
    for (const auto& entry : value.toGenericDict()) flatten(entry.value(), into);
}

class TorchScriptLevel final : public strata::TrainableTorchLevel,
                               public strata::Reporting,
                               public strata::TorchOperations {
 public:
  void load_weights(const std::string&, const strata::SafeTensors& weights) override {
    if (!case_trains() && !unfrozen_) module_ = torch::jit::load(script_, device());
    if (!case_trains()) module_->eval();
    unfrozen_ = case_trains();
    strata::NamedTensors loaded = parameters();
    for (auto& [name, buffer] : buffers())
      if (weights.find(name) != nullptr) loaded.emplace(name, buffer);  // a set holds persistent buffers only
    strata::copy_weights(loaded, weights);
    if (case_trains()) return;
    module_ = optimizes_ ? torch::jit::optimize_for_inference(*module_) : torch::jit::freeze(*module_);
  }

 protected:
  void build(const strata::Case& run_case, const strata::Bundle& bundle, const std::filesystem::path& cache) override {
    script_ = cache / "script.pt";
    if (!std::filesystem::exists(script_))
      throw Failure("unavailable", script_ + " does not exist", "run the level's prepare.py first");
    torch::jit::ExtraFilesMap extra{{"dropouts.json", ""}, {"precision", ""}};
    module_ = torch::jit::load(script_, device(), extra);
    if (extra.at("precision") != run_case.precision)
      throw Failure("unavailable",
                    fmt::format("{} is in {}, the case in {}", script_, extra.at("precision"), run_case.precision),
                    "run the level's prepare.py for this case");
    if (case_trains()) convert_around(run_case.precision);
    if (case_trains()) tie();
    if (run_case.precision == "amp-bf16") facts_.precision = run_case.precision;  // a trace has its conversions within
    unfrozen_ = true;
    facts_.parameters = strata::elements_once(parameters());
    facts_.artefact_bytes = static_cast<std::int64_t>(std::filesystem::file_size(script_));
    facts_.freezing = !case_trains();
    facts_.graph = case_trains() ? "scripted" : "traced";
    optimizes_ = run_case.variant == optimized;
    if (optimizes_) facts_.layout = "any";  // oneDNN's blocked layouts inside, on a CPU
    if (!case_trains()) return;
    keywords_.clear();
    for (const auto& input : bundle.inputs) keywords_.push_back(input.keyword ? input.name : "");
    find_dropouts(nlohmann::json::parse(extra.at("dropouts.json")));
  }

  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override {
    std::vector<at::Tensor> outputs;
    if (!case_trains()) {
      flatten(module_->forward(std::vector<c10::IValue>(inputs.begin(), inputs.end())), outputs);
      return outputs;
    }
    std::vector<c10::IValue> positional;
    torch::jit::Kwargs named;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (keywords_[i].empty())
        positional.emplace_back(inputs[i]);
      else
        named.emplace(keywords_[i], inputs[i]);
    flatten(module_->forward(std::move(positional), named), outputs);
    return outputs;
  }

  // Functions that TorchScript ran because an input did not fit what it had specialised for, in one more pass on the
  // last input. Counted here, since an observer sees every call and would cost time in a timed iteration.
  nlohmann::json report() override {
    if (case_trains() || inputs().empty()) return nlohmann::json::object();
    fallbacks = 0;
    const auto observer = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& called) -> std::unique_ptr<at::ObserverContext> {
          fallbacks += std::string_view(called.name()).find("fallback_function") != std::string_view::npos;
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION, at::RecordScope::TORCHSCRIPT_FUNCTION}));
    {
      c10::InferenceMode guard;
      forward(inputs());
    }
    at::removeCallback(observer);
    return {{"bailouts", fallbacks}};
  }

  strata::NamedTensors parameters() const override {
    strata::NamedTensors result;
    for (const auto& item : module_->named_parameters()) result.emplace(item.name, item.value);
    return result;
  }

  strata::NamedTensors buffers() const override {
    strata::NamedTensors result;
    for (const auto& item : module_->named_buffers()) result.emplace(item.name, item.value);
    return result;
  }

  // The executor specialises once, on what it sees first, and runs a slower fallback for everything else: a graph that
  // was profiled without gradients would stay one. So each mode is profiled afresh.
  void set_network_mode(bool training, bool dropout) override {
    module_->train(training);
    for (auto& dropout_site : dropouts_)
      dropout_site.module.setattr(dropout_site.attribute, dropout ? dropout_site.probability : 0.0);
    torch::jit::toGraphFunction(module_->get_method("forward").function()).get_executor().debugFlushCompilationCache();
  }

 private:
  struct Dropout {
    torch::jit::Module module;
    std::string attribute;
    double probability = 0;
  };

  // Parameters that are one in the file are one tensor again. Loading keeps their memory one, but not the tensor, and
  // each of two names would get a part of the gradient.
  void tie() {
    std::map<std::pair<const void*, std::vector<std::int64_t>>, at::Tensor> known;
    for (auto part : module_->modules())
      for (const auto& item : part.named_parameters(/*recurse=*/false)) {
        const auto key = std::pair(item.value.const_data_ptr(), item.value.sizes().vec());
        const auto [found, is_new] = known.emplace(key, item.value);
        if (!is_new && !found->second.is_same(item.value)) part.setattr(item.name, found->second);
      }
  }

  // `places`: [module path, attribute] of every probability, as prepare.py found them.
  void find_dropouts(const nlohmann::json& places) {
    std::map<std::string, torch::jit::Module> modules;
    for (const auto& item : module_->named_modules()) modules.emplace(item.name, item.value);
    for (const auto& place : places) {
      const auto& module = modules.at(place.at(0).get<std::string>());
      const auto attribute = place.at(1).get<std::string>();
      dropouts_.push_back({module, attribute, module.attr(attribute).toDouble()});
    }
  }

  std::string script_;
  std::optional<torch::jit::Module> module_;
  bool unfrozen_ = false;              // module_ is as the file has it
  bool optimizes_ = false;             // the variant
  std::vector<std::string> keywords_;  // of each input; empty: positional
  std::vector<Dropout> dropouts_;
};

}  // namespace

STRATA_LEVEL(TorchScriptLevel)
