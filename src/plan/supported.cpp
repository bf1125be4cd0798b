// SPDX-License-Identifier: Apache-2.0
#include "plan/supported.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/backward/rules.hpp"

namespace strata::plan {
namespace fs = std::filesystem;

Result<RecordedOperations> recorded_operations(const fs::path& root) {
  const auto path = root / "src/graph/recorded/operations.json";
  std::ifstream in(path);
  const auto all = nlohmann::json::parse(in, nullptr, false);
  RecordedOperations result;
  try {
    result.torch = all.at("torch").get<std::string>();
    result.torchvision = all.at("torchvision").get<std::string>();
    for (const auto& alike : all.at("graphs"))
      for (const auto& model : alike.at("models").get<std::vector<std::string>>())
        for (const char* mode : {"infer", "train"})
          if (alike.contains(mode)) alike[mode].get_to(result.models[model][mode]);
  } catch (const nlohmann::json::exception&) {
    return fail(fmt::format("the record of models' operations {} is missing or damaged", path.string()),
                ".venv/bin/python tools/record_operations.py makes it");
  }
  return result;
}

Verdict supports(const level::Level& level, const std::string& model, const std::string& mode,
                 const RecordedOperations& recorded) {
  const auto has = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  if (level.harness) return {Support::no, {}, "runs no network"};
  if (!has(level.modes, mode)) return {Support::no, {}, fmt::format("no mode {}", mode)};
  if (!level.models.empty() && !has(level.models, model)) return {Support::no, {}, "runs hand-written models only"};
  if (level.operations.empty()) {
    if (!level.models.empty() || level.prepare.empty()) return {Support::yes, {}, ""};
    return {Support::unknown, {}, "known after its artefact is made"};
  }
  const auto known = recorded.models.find(model);
  const auto graph = known == recorded.models.end() ? std::map<std::string, std::vector<std::string>>::const_iterator()
                                                    : known->second.find(mode);
  if (known == recorded.models.end() || graph == known->second.end())
    return {Support::unknown, {}, fmt::format("its {} graph is not recorded", mode)};
  const bool calls_aten = has(level.operations, level::kAllOfAten);
  const auto runs = [&](const std::string& operation) {
    const bool of_aten = operation.find('.') == std::string::npos;  // others stand with their namespace
    return has(level.operations, operation) || (calls_aten && of_aten);
  };
  Verdict verdict{Support::yes, {}, ""};
  for (const auto& operation : graph->second)
    if (!runs(operation)) verdict.lacks.push_back(operation);
  if (!verdict.lacks.empty()) verdict.support = Support::no;
  if (!verdict.lacks.empty()) verdict.why = fmt::format("lacks {}", fmt::join(verdict.lacks, ", "));
  // gradients come with what calls all of ATen: they are autograd's
  if (mode != "train" || calls_aten || verdict.support == Support::no) return verdict;
  // what has no gradient (a count) is not told apart here: all of that has a rule
  for (const auto& operation : graph->second)
    if (graph::find_backward(operation) == nullptr) verdict.lacks.push_back(operation);
  if (!verdict.lacks.empty()) verdict.support = Support::no;
  if (!verdict.lacks.empty()) verdict.why = fmt::format("no backward rule for {}", fmt::join(verdict.lacks, ", "));
  return verdict;
}

}  // namespace strata::plan
