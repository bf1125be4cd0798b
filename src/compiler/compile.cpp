// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "common/nearest.hpp"
#include "compiler/lower.hpp"
#include "compiler/pass.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/training.hpp"
#include "compiler/verify.hpp"

namespace strata::compiler {

std::int64_t native_block() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") != 0 ? 16 : 8;
#else
  return 8;
#endif
}

Result<void> check_pass_name(const std::string& name) {
  std::vector<std::string> known{"lower"};
  for (const auto& pass : passes()) known.emplace_back(pass.name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  const auto near = nearest(name, known);
  return fail(fmt::format("there is no pass '{}'; passes, in their order: {}", name, fmt::join(known, ", ")),
              near ? fmt::format("did you mean {}?", *near) : "", Exit::usage);
}

bool reaches_pass(std::string_view last, std::string_view pass) {
  const auto place = [](std::string_view name) {
    return std::find_if(passes().begin(), passes().end(), [&](const auto& other) { return other.name == name; });
  };
  return last != "lower" && place(pass) <= place(last);
}

namespace {

// An argument that the graph lacks is the bundle's damage, whichever pass meets it.
Result<void> apply(const Pass& pass, Program& program) {
  try {
    return pass.apply(program);
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "remove the bundle's folder; it is made again");
  }
}

Result<Program> apply_passes(Result<Program> program, const Options& options) {
  if (!options.stop_after.empty()) STRATA_TRY(check_pass_name(options.stop_after));
  if (!program) return program;
  if (options.type != graph::Type::float32 && options.type != graph::Type::bfloat16)
    return fail(fmt::format("a program in {}", graph::name_of(options.type)), "allowed are float32 and bfloat16",
                Exit::usage);
  program->requested_kernels = options.kernels;
  program->target = options.target;
  program->budget = options.budget;
  program->type = options.type;
  std::string last = "lower";
  for (const auto& pass : passes()) {
    if (options.stop_after == last) break;
    if (auto done = apply(pass, *program); !done)
      return fail(fmt::format("{}: {}", pass.name, done.error().what), done.error().hint, done.error().exit);
    last = pass.name;
  }
  STRATA_TRY(plan_memory(*program));
  if (auto right = verify(*program); !right)
    return fail(fmt::format("after {}: {}", last, right.error().what), right.error().hint);
  return program;
}

}  // namespace

Result<Program> compile(graph::Graph graph, const Options& options) {
  return apply_passes(lower(std::move(graph), options.block), options);
}

Result<Program> compile(graph::TrainingGraph training, const Options& options) {
  if (training.clip_norm > 0 && options.target != Target::cpu)
    return fail("programs for CUDA do not clip gradients", "the levels on PyTorch do, or leave clip_norm out",
                Exit::environment);
  return apply_passes(lower_training(std::move(training), options.block), options);
}

}  // namespace strata::compiler
