// SPDX-License-Identifier: Apache-2.0
#include "times_of_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile_program.hpp"
#include "compiler/op_traits.hpp"
#include "core/bundle_info.hpp"
#include "generate/compile_bundle.hpp"
#include "generate/generate.hpp"
#include "generated.hpp"
#include "strata/prepare.hpp"

namespace strata::static_program {
namespace fs = std::filesystem;
namespace {

using compiler::Kernel;
using Times = std::map<std::string, double>;  // least microseconds of a step, by the name of its node

constexpr double kSeconds = 1.5;
constexpr int kLeastRounds = 10, kMostRounds = 500;

bool is_of_interest(const compiler::Step& step) {
  return step.when == compiler::When::run && !step.view &&
         (compiler::is_convolution(step) || compiler::is_linear(step));
}

compiler::Kernels wherever_it_can(const compiler::Program& program, Kernel kernel) {
  compiler::Kernels kernels;
  for (const auto& step : program.steps)
    if (is_of_interest(step)) kernels[step.node.name] = kernel;
  return kernels;
}

// The least of so many runs; a step may have several calls.
Times least_times(const Generated& generated, Model* model, int rounds) {
  const auto calls = static_cast<std::size_t>(generated.facts(model).calls);
  std::vector<std::int64_t> times(2 * calls), least(calls, std::numeric_limits<std::int64_t>::max());
  for (int round = 0; round < rounds; ++round) {
    if (generated.run_timed(model, times.data()) != 0) throw std::runtime_error(generated.error());
    for (std::size_t i = 0; i < calls; ++i) least[i] = std::min(least[i], times[2 * i + 1] - times[2 * i]);
  }
  Times by_step;
  for (std::size_t i = 0; i < calls; ++i)
    by_step[generated.call(model, static_cast<int>(i)).layer] += static_cast<double>(least[i]) / 1e3;
  return by_step;
}

// Of zeros: how long a kernel takes does not depend on its input.
std::vector<std::vector<std::byte>> inputs_of(const Generated& generated) {
  std::vector<std::vector<std::byte>> inputs;
  for (int i = 0; i < generated.input_count(); ++i)
    inputs.emplace_back(static_cast<std::size_t>(generated.input(i)->bytes));
  return inputs;
}

Result<Times> timed(const fs::path& library, const fs::path& bundle, int threads) {
  try {
    const Generated generated(library);
    const std::unique_ptr<Model, void (*)(Model*)> model(generated.create(threads), generated.destroy);
    const auto weights = bundle / "weights" / "timed.safetensors", constants = bundle / "graph_constants.safetensors";
    const bool loaded =
        model && generated.load(model.get(), weights.c_str(), fs::exists(constants) ? constants.c_str() : nullptr) == 0;
    if (!loaded) return fail(generated.error());
    const auto inputs = inputs_of(generated);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      generated.set_input(model.get(), static_cast<int>(i), inputs[i].data());
    least_times(generated, model.get(), 2);
    const auto begin = std::chrono::steady_clock::now();
    least_times(generated, model.get(), 1);
    const double once = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double rounds = std::clamp<double>(kSeconds / std::max(once, 1e-6), kLeastRounds, kMostRounds);
    return least_times(generated, model.get(), static_cast<int>(rounds));
  } catch (const std::runtime_error& error) {
    return fail(error.what());
  }
}

Result<Times> time_of_program(const compiler::Program& program, const fs::path& bundle, const fs::path& folder) {
  generate::Options options;
  options.sources = STRATA_TRY(built_with("runtime"));
  options.weights_and_reference = false;
  options.steps_by_node = true;
  std::error_code error;
  fs::remove_all(folder, error);
  STRATA_TRY(generate::generate_into(folder, program, bundle, options));
  const auto library = folder / "network.so";
  STRATA_TRY(compile_program(folder, program.target, library));
  const auto question = STRATA_TRY(core::case_in(bundle));
  return timed(library, bundle, question.threads);
}

}  // namespace

Result<nlohmann::json> times_of_kernels(const fs::path& bundle, const fs::path& folder) {
  const auto by_rules = STRATA_TRY(generate::compile_bundle(bundle));
  auto times = nlohmann::json::object();
  for (const auto kernel : {Kernel::library, Kernel::winograd, Kernel::direct}) {
    const auto program = STRATA_TRY(generate::compile_bundle(bundle, wherever_it_can(by_rules, kernel)));
    const auto runs_it = [&](const auto& step) { return is_of_interest(step) && step.kernel == kernel; };
    if (std::none_of(program.steps.begin(), program.steps.end(), runs_it)) continue;
    const std::string name(compiler::name_of(kernel));
    const auto took = STRATA_TRY(time_of_program(program, bundle, folder / name));
    for (const auto& step : program.steps)
      if (const auto time = took.find(step.node.name); runs_it(step) && time != took.end())
        times[step.node.name][name] = time->second;
  }
  return times;
}

}  // namespace strata::static_program
