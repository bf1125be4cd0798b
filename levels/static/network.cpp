// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include <fmt/format.h>

#include <cstring>

#include "strata/bundle.hpp"

namespace strata::static_program {
namespace fs = std::filesystem;

std::unique_ptr<Generated> opened(const fs::path& library) {
  if (!fs::exists(library))
    throw Failure("failed", fmt::format("{} is missing", library.string()), "the level's prepare command makes it");
  try {
    return std::make_unique<Generated>(library);
  } catch (const Failure&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Failure("failed", error.what(), "remove its folder; it is made again");
  }
}

Network::Network(const Generated& program, int threads, const std::vector<Declared>& outputs)
    : program_(&program), model_(program.create(threads), program.destroy) {
  if (model_ == nullptr) throw failure();
  for (const auto& expected : outputs) {
    int number = 0;
    while (number < program.output_count() && expected.name != program.output_tensor(number)->name) ++number;
    if (number == program.output_count())
      throw Failure("unsupported", fmt::format("the captured graph does not give '{}'", expected.name),
                    "leave --deep out for this level");
    outputs_.emplace_back(expected, number);
  }
}

void Network::load(const fs::path& weights, const fs::path& constants) {
  if (program_->load(model_.get(), weights.c_str(), fs::exists(constants) ? constants.c_str() : nullptr) != 0)
    throw failure();
}

void Network::set_input(std::span<const HostTensor> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (program_->set_input(model_.get(), static_cast<int>(i), inputs[i].view.data) != 0) throw failure();
}

void Network::run() {
  if (spans_ == nullptr) {
    if (program_->run(model_.get()) != 0) throw failure();
    return;
  }
  const auto calls = static_cast<std::size_t>(facts().calls);
  std::vector<std::int64_t> times(2 * calls);
  if (program_->run_timed(model_.get(), times.data()) != 0) throw failure();
  for (std::size_t i = 0; i < calls; ++i) spans_->push_back({times[2 * i], times[2 * i + 1]});
}

std::vector<OperationFacts> Network::recorded() const {
  std::vector<OperationFacts> all;
  for (int i = 0; i < facts().calls; ++i) {
    const ModelCall call = program_->call(model_.get(), i);
    all.push_back(
        {.operation = call.operation, .layer = call.layer, .kernel = call.kernel, .moves_only = call.moves_only != 0});
  }
  return all;
}

void Network::outputs(std::vector<HostTensor>& results) {
  results.clear();
  for (const auto& [declared, number] : outputs_) {
    auto& result = results.emplace_back(allocate(declared.dtype, declared.shape));
    std::memcpy(writable(result), program_->output(model_.get(), number), result.view.bytes);
  }
}

Failure Network::failure() const {
  const std::string what = program_->error();
  const bool no_memory = what.find("bad_alloc") != std::string::npos;
  const bool has_nan = what.find("holds NaN") != std::string::npos;
  if (no_memory) return {"out_of_memory", "the host has no memory left"};
  // what CUDA's driver says where there is none, or no device
  for (const char* phrase : {"cudaErrorInsufficientDriver", "cudaErrorNoDevice"})
    if (what.find(phrase) != std::string::npos)
      return {"unavailable", what, "use --device cpu, or a machine with a CUDA device"};
  if (what.find("cudaErrorMemoryAllocation") != std::string::npos)
    return {"out_of_memory", what, "take a smaller batch"};
  if (what.find("no bfloat16 on this") != std::string::npos)
    return {"unsupported", what, "use --precision fp32 here, or a machine that has it"};
  return {has_nan ? "unsupported" : "failed", what, has_nan ? "give weights without NaN, or use another level" : ""};
}

}  // namespace strata::static_program
