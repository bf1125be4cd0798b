// SPDX-License-Identifier: Apache-2.0
// The C interface of model.h on the program that the stages build.
#include "model.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

const char* model_name(void) {
  return network::name;
}

const char* model_library(void) {
  static const std::string text = kit::library();
  return text.c_str();
}

const char* model_error(void) {
  return model_failure.c_str();
}
int model_input_count(void) {
  return static_cast<int>(std::size(network::inputs));
}
int model_output_count(void) {
  return static_cast<int>(std::size(network::outputs));
}

const ModelTensor* model_input(int number) {
  static const auto all = tensors_of(network::inputs);
  return tensor_at(all, number);
}

const ModelTensor* model_output_tensor(int number) {
  static const auto all = tensors_of(network::outputs);
  return tensor_at(all, number);
}

Model* model_create(int threads) {
  return guarded<Model*>(nullptr, [&] {
    const int used = kit::use_threads(threads > 0 ? threads : network::default_threads);
    auto model = std::make_unique<Model>();
    model->threads = used;
    network::build(model->program);
    model->program.finish();
    return model.release();
  });
}

void model_destroy(Model* model) {
  delete model;
}

int model_load(Model* model, const char* weights, const char* constants) {
  return guarded(-1, [&] {
    model->program.load(weights, constants);
    return 0;
  });
}

int model_set_input(Model* model, int number, const void* data) {
  return guarded(-1, [&] {
    model->program.set_input(number, data);
    return 0;
  });
}

int model_start(Model* model) {
  return guarded(-1, [&] {
    model->program.start();
    return 0;
  });
}

int model_wait(Model* model) {
  return guarded(-1, [&] {
    model->program.wait();
    return 0;
  });
}

int model_run(Model* model) {
  return model_start(model) == 0 ? model_wait(model) : -1;
}

const void* model_output(const Model* model, int number) {
  return model->program.output(number);
}

ModelFacts model_facts(const Model* model) {
  const kit::Facts facts = model->program.facts();
  return {facts.arena_bytes,
          network::least_arena_bytes,
          facts.weight_bytes,
          facts.scratch_bytes,
          facts.output_bytes,
          network::parameters,
          facts.calls,
          facts.moves,
          facts.reference_kernels,
          model->threads};
}

ModelCall model_call(const Model* model, int number) {
  const kit::CallFacts call = model->program.call(number);
  return {call.step, call.operation, call.kernel, call.moves_only ? 1 : 0};
}

int model_run_timed(Model* model, int64_t* times) {
  return guarded(-1, [&] {
    model->program.run_timed(times);
    return 0;
  });
}

const char* model_profile(Model* model, int rounds) {
  return guarded<const char*>("", [&] {
    const auto calls = static_cast<std::size_t>(model->program.facts().calls);
    std::vector<int64_t> times(2 * calls), least(calls, std::numeric_limits<int64_t>::max());
    for (int round = 0; round < rounds; ++round) {
      model->program.run_timed(times.data());
      for (std::size_t i = 0; i < calls; ++i) least[i] = std::min(least[i], times[2 * i + 1] - times[2 * i]);
    }
    model->profile.clear();
    for (std::size_t i = 0; i < calls; ++i) {
      const kit::CallFacts call = model->program.call(static_cast<int>(i));
      char time[32];
      std::snprintf(time, sizeof time, "%10.1f us  ", static_cast<double>(least[i]) / 1e3);
      model->profile += time + std::string(call.step) + "  " + call.kernel + "\n";
    }
    return model->profile.c_str();
  });
}
