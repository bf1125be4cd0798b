// SPDX-License-Identifier: Apache-2.0
// Runs the network: on tensors of a file, on a photograph, or on the stored input to compare with the stored reference.
//   network INPUTS.safetensors [OUTPUTS.safetensors] | FILE.jpg | --check | --profile   [--weights FILE] [--threads N]
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

#include "entries.hpp"
#include "image.hpp"

namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point started = Clock::now();

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

int check(const std::string& weights, int threads) {
  const kit::SafeTensors reference(folder + "/reference.safetensors");
  const Inputs inputs(reference, "input");
  std::vector<Expected> all;
  for (int i = 0; i < model_output_count(); ++i)
    all.push_back(expected(reference, model_output_tensor(i)->name, shape_of(*model_output_tensor(i))));
  const Network network = open_network(weights, threads);
  inputs.give_to(network.get());
  need(model_run(network.get()) == 0);
  std::printf("first result %.1f ms after the start, with %s\n", ms_since(started), model_library());
  int wrong = 0;
  for (int i = 0; i < model_output_count(); ++i) {
    const auto& result = all[static_cast<std::size_t>(i)];
    const auto [difference, size] = norms_of(model_output(network.get(), i), *model_output_tensor(i), result.values);
    const double error = difference / (size + 1e-300);
    const bool right = error <= result.bound;
    wrong += right ? 0 : 1;
    std::printf("%s: error %.3g against the float64 reference, allowed %.3g: %s\n", model_output_tensor(i)->name, error,
                result.bound, right ? "equal" : "WRONG");
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
  const kit::SafeTensors reference(folder + "/reference.safetensors");
  const Inputs inputs(reference, "input");
  const Network network = open_network(weights, threads);
  inputs.give_to(network.get());
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
  if (model_input_count() != 1 || std::string(input.type) != "F32" || input.rank != 4 ||
      (input.extents[1] != 3 && input.extents[1] != 1))
    throw std::runtime_error("the network does not take images: name a file of tensors, or use --check");
  const Network network = open_network(weights, threads);
  std::vector<float> pixels(static_cast<std::size_t>(input.elements));
  const auto image = read_image(photograph, static_cast<int>(input.extents[1]), static_cast<int>(input.extents[2]),
                                static_cast<int>(input.extents[3]));
  for (std::int64_t n = 0; n < input.extents[0]; ++n)
    std::copy(image.begin(), image.end(), pixels.begin() + n * static_cast<std::int64_t>(image.size()));
  need(model_set_input(network.get(), 0, pixels.data()) == 0);
  need(model_run(network.get()) == 0);
  const auto* scores_of_all = static_cast<const float*>(model_output(network.get(), 0));
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
                named ? " " : "", named ? printable(names[static_cast<std::size_t>(which)]).c_str() : "");
  }
  return 0;
}

struct Choice {
  std::vector<std::string> files;
  std::string what, weights = folder + "/weights.safetensors";
  int threads = 0;
};

// What a file holds is known by its first bytes.
int run_file(const Choice& choice) {
  const auto& file = choice.files.front();
  std::ifstream in(file, std::ios::binary);
  unsigned char first[9] = {};
  if (!in.read(reinterpret_cast<char*>(first), 1)) throw std::runtime_error("cannot read " + file);
  in.read(reinterpret_cast<char*>(first) + 1, 8);
  if (first[0] == 0xFF && first[1] == 0xD8) return classify(file, choice.weights, choice.threads);
  if (first[8] != '{') throw std::runtime_error(file + " is neither a JPEG nor a safetensors file");
  return run_entries(file, choice.files.size() > 1 ? choice.files[1] : "", choice.weights, choice.threads);
}

constexpr const char* options =
    "  INPUTS.safetensors    runs its entries, tensors <entry>/<input> with entries from 0 on; results are printed, "
    "and\n"
    "                        written to OUTPUTS.safetensors as <entry>/<output>\n"
    "  FILE.jpg              the five best classes, of a network that takes images\n"
    "  --check               the stored input against the stored float64 reference\n"
    "  --profile             a line for each call\n"
    "  --weights FILE        other weights, by the same names\n"
    "  --threads N\n";

int say_usage(std::FILE* to, const char* program) {
  std::fprintf(to,
               "usage: %s INPUTS.safetensors [OUTPUTS.safetensors] | FILE.jpg | --check | --profile  [--weights FILE] "
               "[--threads N]\n%s",
               program, options);
  return to == stdout ? 0 : 2;
}

int usage(const char* program, const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return say_usage(stderr, program);
}

}  // namespace

int main(int count, char** words) {
  Choice choice;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool takes_value = word == "--weights" || word == "--threads";
    if (word == "--help" || word == "-h") return say_usage(stdout, words[0]);
    if (takes_value && i + 1 == count) return usage(words[0], word + " needs a value");
    if (word == "--weights")
      choice.weights = words[++i];
    else if (word == "--threads") {
      choice.threads = std::atoi(words[++i]);
      if (choice.threads < 1)
        return usage(words[0], std::string("--threads ") + words[i] + ": a number from 1 on is needed");
    } else if (choice.what.empty() && choice.files.empty() && (word == "--check" || word == "--profile"))
      choice.what = word;
    else if (choice.what.empty() && choice.files.size() < 2 && !word.empty() && word.front() != '-')
      choice.files.push_back(word);
    else
      return usage(words[0], "not understood: " + word);
  }
  if (choice.what.empty() && choice.files.empty()) return usage(words[0], "a file, --check or --profile is needed");
  try {
    return choice.what == "--check"     ? check(choice.weights, choice.threads)
           : choice.what == "--profile" ? profile(choice.weights, choice.threads)
                                        : run_file(choice);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", printable(error.what()).c_str());
    return 1;
  }
}
