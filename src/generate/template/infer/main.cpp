// SPDX-License-Identifier: Apache-2.0
// Runs the network: on a photograph, or on the stored input to compare with the stored reference.
//   network FILE.jpg | --check | --profile   [--weights FILE] [--threads N]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "image.hpp"
#include "opened.hpp"

namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point started = Clock::now();

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// ||got - wanted|| / ||wanted||; not a number where a result is none.
double error_of(const float* got, const kit::FileTensor& wanted) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < wanted.bytes / sizeof(double); ++i) {
    double value = 0;
    std::memcpy(&value, wanted.data + i * sizeof value, sizeof value);
    difference += (static_cast<double>(got[i]) - value) * (static_cast<double>(got[i]) - value);
    size += value * value;
  }
  return std::sqrt(difference) / (std::sqrt(size) + 1e-300);
}

int check(const std::string& weights, int threads) {
  const Network network = open_network(weights, threads);
  const kit::SafeTensors reference(folder + "/reference.safetensors");
  set_stored_inputs(network.get(), reference);
  need(model_run(network.get()) == 0);
  std::printf("first result %.1f ms after the start, with %s\n", ms_since(started), model_library());
  int wrong = 0;
  for (int i = 0; i < model_output_count(); ++i) {
    const char* name = model_output_tensor(i)->name;
    double bound = 0;
    std::memcpy(&bound, tensor_of(reference, std::string("bound/") + name).data, sizeof bound);
    const double error = error_of(model_output(network.get(), i), tensor_of(reference, std::string("output/") + name));
    const bool right = error <= bound;
    wrong += right ? 0 : 1;
    std::printf("%s: error %.3g against the float64 reference, allowed %.3g: %s\n", name, error, bound,
                right ? "equal" : "WRONG");
  }
  double least = 1e300;
  for (int i = 0; i < 20; ++i) {
    const auto begin = Clock::now();
    need(model_run(network.get()) == 0);
    least = std::min(least, ms_since(begin));
  }
  const ModelFacts facts = model_facts(network.get());
  std::printf(
      "least of 20 runs %.3f ms with %d threads, %d calls; arena %lld bytes (no plan can go below %lld), weights "
      "%lld\n",
      least, facts.threads, facts.calls, static_cast<long long>(facts.arena_bytes),
      static_cast<long long>(facts.least_arena_bytes), static_cast<long long>(facts.weight_bytes));
  return wrong == 0 ? 0 : 1;
}

int profile(const std::string& weights, int threads) {
  const Network network = open_network(weights, threads);
  const kit::SafeTensors reference(folder + "/reference.safetensors");
  set_stored_inputs(network.get(), reference);
  need(model_run(network.get()) == 0);
  std::fputs(model_profile(network.get(), 50), stdout);
  return 0;
}

std::vector<std::string> labels() {
  std::vector<std::string> all;
  std::ifstream file(folder + "/labels.txt");
  for (std::string line; std::getline(file, line);) all.push_back(line);
  return all;
}

int classify(const std::string& photograph, const std::string& weights, int threads) {
  const ModelTensor& input = *model_input(0);
  if (model_input_count() != 1 || input.rank != 4 || (input.extents[1] != 3 && input.extents[1] != 1))
    throw std::runtime_error("the network does not take images: use --check");
  const Network network = open_network(weights, threads);
  std::vector<float> pixels(static_cast<std::size_t>(input.elements));
  const auto one = read_image(photograph, static_cast<int>(input.extents[1]), static_cast<int>(input.extents[2]),
                              static_cast<int>(input.extents[3]));
  for (std::int64_t n = 0; n < input.extents[0]; ++n)
    std::copy(one.begin(), one.end(), pixels.begin() + n * static_cast<std::int64_t>(one.size()));
  need(model_set_input(network.get(), 0, pixels.data()) == 0);
  need(model_run(network.get()) == 0);
  const auto scores_of_all = model_output(network.get(), 0);
  const std::int64_t classes = model_output_tensor(0)->elements / input.extents[0];
  std::vector<std::int64_t> order(static_cast<std::size_t>(classes));
  std::iota(order.begin(), order.end(), 0);
  const auto shown = std::min<std::int64_t>(5, classes);
  std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                    [&](auto a, auto b) { return scores_of_all[a] > scores_of_all[b]; });
  const auto names = labels();
  for (std::int64_t i = 0; i < shown; ++i) {
    const auto which = order[static_cast<std::size_t>(i)];
    const bool named = static_cast<std::size_t>(which) < names.size();
    std::printf("%8.3f  class %lld%s%s\n", static_cast<double>(scores_of_all[which]), static_cast<long long>(which),
                named ? " " : "", named ? names[static_cast<std::size_t>(which)].c_str() : "");
  }
  return 0;
}

int usage(const char* program, const std::string& why) {
  std::fprintf(stderr, "%s%s%s FILE.jpg | --check | --profile   [--weights FILE] [--threads N]\n", why.c_str(),
               why.empty() ? "" : "\n", program);
  return 2;
}

}  // namespace

int main(int count, char** words) {
  std::string what, weights = folder + "/weights.safetensors";
  int threads = 0;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool takes_value = word == "--weights" || word == "--threads";
    if (takes_value && i + 1 == count) return usage(words[0], word + " needs a value");
    if (word == "--weights")
      weights = words[++i];
    else if (word == "--threads") {
      threads = std::atoi(words[++i]);
      if (threads < 1) return usage(words[0], std::string("--threads ") + words[i] + ": a number from 1 on is needed");
    } else if (what.empty() && (word == "--check" || word == "--profile" || word.front() != '-'))
      what = word;
    else
      return usage(words[0], "not understood: " + word);
  }
  if (what.empty()) return usage(words[0], "");
  try {
    return what == "--check"     ? check(weights, threads)
           : what == "--profile" ? profile(weights, threads)
                                 : classify(what, weights, threads);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
