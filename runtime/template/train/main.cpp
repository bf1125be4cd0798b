// SPDX-License-Identifier: Apache-2.0
// Trains the network on the stored batch, or compares one step's loss and gradients with the stored reference.
//   network --check | --steps N | --profile   [--weights FILE] [--threads N]
//   network --help; of --steps: [--optimiser sgd|adam|adamw] [--lr RATE] [--weight-decay W] [--save FILE]
//     [--clip-norm N]; of sgd [--momentum M] [--nesterov], of adam and adamw [--beta1 B] [--beta2 B] [--eps E]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "opened.hpp"
#include "training.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Choice {
  std::string what, weights = folder + "/weights.safetensors", save;
  int threads = 0, steps = 0;
  std::string optimiser = "sgd";
  double rate = -1, decay = -1;  // below 0: the optimiser's default
  float momentum = 0.9F;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, clip_norm = model_clip_norm();
};

// The stored batch, and what a step on it gives; all of it is checked before anything reads it.
class Batch {
 public:
  Batch() : file_(folder + "/reference.safetensors"), inputs_(file_, "input"), loss_(expected("loss", 0)) {
    if (const auto count = static_cast<long>(model_label_count()); count > 0) {
      const auto& labels = tensor_of(file_, "labels", "I64", {count});
      labels_.resize(labels.bytes / sizeof(int64_t));
      std::memcpy(labels_.data(), labels.data, labels.bytes);
    }
    for (int i = 0; i < model_state_count(); ++i)
      if (const auto name = gradient_of(i); file_.find("output/" + name) != nullptr)
        gradients_.emplace(i, ::expected(file_, name, shape_of(*model_state(i))));
  }
  Network open(const Choice& choice) const {
    Network network = open_network(choice.weights, choice.threads);
    inputs_.give_to(network.get());
    if (!labels_.empty()) model_set_labels(network.get(), labels_.data());
    return network;
  }
  static std::string gradient_of(int state) { return std::string("grad:") + model_state(state)->name; }
  const Expected& loss() const { return loss_; }
  const std::map<int, Expected>& gradients() const { return gradients_; }  // by numbers of the state

 private:
  Expected expected(const std::string& name, int output) const {
    return ::expected(file_, name, shape_of(*model_output_tensor(output)));
  }

  kit::SafeTensors file_;
  Inputs inputs_;
  Expected loss_;
  std::vector<int64_t> labels_;
  std::map<int, Expected> gradients_;
};

bool is_equal(const std::string& name, const Expected& truth, const ModelTensor& about, const void* got) {
  const double off = norms_of(got, about, truth.values).difference;
  if (off <= truth.bound) return true;
  std::printf("%s: %.3g off the float64 reference, allowed %.3g: WRONG\n", printable(name).c_str(), off, truth.bound);
  return false;
}

// The momentum after a first step without decay is the gradient.
int check(const Choice& choice) {
  const Batch batch;
  const Network network = batch.open(choice);
  model_set_optimiser(network.get(), 0, 0.5F, 0, 0, 0);
  model_set_dropout(network.get(), 0);
  need(model_run(network.get()) == 0);
  int compared = 1,
      wrong = is_equal("loss", batch.loss(), *model_output_tensor(0), model_output(network.get(), 0)) ? 0 : 1;
  for (const auto& [state, truth] : batch.gradients()) {
    const auto& about = *model_state(state);
    const auto name = Batch::gradient_of(state);
    std::vector<float> gradient(static_cast<std::size_t>(about.elements));
    const bool has = model_read_momentum(network.get(), about.name, gradient.data()) == 0;
    if (!has) std::printf("%s: there is none: WRONG\n", printable(name).c_str());
    wrong += has && is_equal(name, truth, about, gradient.data()) ? 0 : 1;
    ++compared;
  }
  double least = 1e300;
  for (int i = 0; i < 10; ++i) {
    const auto begin = Clock::now();
    need(model_run(network.get()) == 0);
    least = std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  const ModelFacts facts = model_facts(network.get());
  std::printf("%d of %d tensors equal the float64 reference: the loss and every gradient\n", compared - wrong,
              compared);
  std::printf(
      "least of 10 steps %.3f ms with %d threads, %d calls, %s; arena %lld bytes (no plan can go below %lld), weights "
      "and momentum %lld\n",
      least, facts.threads, facts.calls, model_library(), static_cast<long long>(facts.arena_bytes),
      static_cast<long long>(facts.least_arena_bytes), static_cast<long long>(facts.weight_bytes));
  return wrong == 0 ? 0 : 1;
}

// Parameters, statistics and counts, as a safetensors file.
void save(const Model* network, const std::string& path) {
  std::vector<std::vector<std::byte>> data;
  std::map<std::string, kit::FileTensor> tensors;
  for (int i = 0; i < model_state_count(); ++i) {
    const auto& about = *model_state(i);
    data.emplace_back(static_cast<std::size_t>(about.bytes));
    need(model_read(network, about.name, data.back().data()) == 0);
    tensors[about.name] = {about.type, shape_of(about), data.back().data(), data.back().size()};
  }
  kit::write_safetensors(path, tensors);
}

void set_optimiser(Model* network, const Choice& choice) {
  if (model_set_clip_norm(network, choice.clip_norm) != 0)
    throw std::runtime_error("--clip-norm: this program was generated without --clip-norm");
  const auto chosen = [](double value, double usual) { return value < 0 ? usual : value; };
  if (choice.optimiser == "sgd")
    return model_set_optimiser(network, static_cast<float>(chosen(choice.rate, 0.01)), choice.momentum, 0,
                               static_cast<float>(chosen(choice.decay, 1e-4)), choice.nesterov ? 1 : 0);
  const bool decoupled = choice.optimiser == "adamw";
  need(model_set_adam(network, chosen(choice.rate, 1e-3), choice.beta1, choice.beta2, choice.eps,
                      chosen(choice.decay, decoupled ? 0.01 : 0), decoupled ? 1 : 0) == 0);
}

int train(const Choice& choice) {
  const Batch batch;
  const Network network = batch.open(choice);
  set_optimiser(network.get(), choice);
  const int every = std::max(1, choice.steps / 10);
  for (int step = 1; step <= choice.steps; ++step) {
    need(model_run(network.get()) == 0);
    if (step % every == 0 || step == choice.steps || step == 1)
      std::printf("step %d: loss %.6f\n", step,
                  static_cast<double>(*static_cast<const float*>(model_output(network.get(), 0))));
  }
  if (!choice.save.empty()) save(network.get(), choice.save);
  return 0;
}

int profile(const Choice& choice) {
  const Batch batch;
  const Network network = batch.open(choice);
  need(model_run(network.get()) == 0);
  std::fputs(model_profile(network.get(), 20), stdout);
  return 0;
}

constexpr const char* options =
    "  --check           a step's loss and gradients against the stored float64 reference\n"
    "  --steps N         trains on the stored batch\n"
    "  --profile         a line for each call\n"
    "  --weights FILE    other weights, by the same names\n"
    "  --threads N\n"
    "  --optimiser NAME, --lr RATE, --weight-decay W, --save FILE    of --steps; NAME: sgd, adam, adamw\n"
    "  --clip-norm N     of --steps: the largest norm of all gradients together (default: as generated)\n"
    "  --momentum M, --nesterov; --beta1 B, --beta2 B, --eps E       of sgd; of adam and adamw\n";

int usage(const char* program, const std::string& why) {
  std::fprintf(stderr, "%s%susage: %s --check | --steps N | --profile [options]\n%s", why.c_str(),
               why.empty() ? "" : "\n", program, options);
  return 2;
}

int help(const char* program) {
  std::printf("usage: %s --check | --steps N | --profile [options]\n%s", program, options);
  return 0;
}

// A number within [low, high]; false: it is none.
template <class Number>
bool read(const char* word, double low, double high, Number& into) {
  char* end = nullptr;
  const double number = std::strtod(word, &end);
  if (end == word || *end != '\0' || !(number >= low && number <= high)) return false;
  into = static_cast<Number>(number);
  return true;
}

// A word that is followed by a value, into `choice`. Empty, or what is wrong with it.
std::string set_option(const std::string& word, const char* value, Choice& choice) {
  bool good = true;
  if (word == "--weights") {
    choice.weights = value;
  } else if (word == "--save") {
    choice.save = value;
  } else if (word == "--threads") {
    good = read(value, 1, 4096, choice.threads);
  } else if (word == "--optimiser") {
    choice.optimiser = value;
    if (choice.optimiser != "sgd" && choice.optimiser != "adam" && choice.optimiser != "adamw")
      return "--optimiser " + choice.optimiser + ": allowed are sgd, adam, adamw";
  } else if (word == "--lr") {
    good = read(value, 0, 1e6, choice.rate);
  } else if (word == "--momentum") {
    good = read(value, 0, 1, choice.momentum);
  } else if (word == "--weight-decay") {
    good = read(value, 0, 1e6, choice.decay);
  } else if (word == "--beta1" || word == "--beta2") {
    constexpr double below_one = 0x1.fffffep-1;
    good = read(value, 0, below_one, word == "--beta1" ? choice.beta1 : choice.beta2);
  } else if (word == "--eps") {
    good = read(value, 1e-300, 1e6, choice.eps);
  } else if (word == "--clip-norm") {
    good = read(value, 1e-300, 1e300, choice.clip_norm);
  } else if (word == "--steps") {
    choice.what = word;
    good = read(value, 1, 1e9, choice.steps);
  } else {
    return "not understood: " + word;
  }
  return good ? "" : word + " " + value + ": not a number that it can have";
}

}  // namespace

int main(int count, char** words) {
  Choice choice;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--help" || word == "-h") return help(words[0]);
    if (word == "--check" || word == "--profile") {
      choice.what = word;
      continue;
    }
    if (word == "--nesterov") {
      choice.nesterov = true;
      continue;
    }
    if (i + 1 == count) return usage(words[0], "not understood, or without a value: " + word);
    if (const auto wrong = set_option(word, words[++i], choice); !wrong.empty()) return usage(words[0], wrong);
  }
  if (choice.what.empty()) return usage(words[0], "");
  try {
    return choice.what == "--check" ? check(choice) : choice.what == "--steps" ? train(choice) : profile(choice);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", printable(error.what()).c_str());
    return 1;
  }
}
