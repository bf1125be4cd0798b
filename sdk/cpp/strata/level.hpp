// SPDX-License-Identifier: Apache-2.0
// What the author of a C++ level includes. A level implements `Level`, and of the capabilities behind it those that it
// has, and ends its file with STRATA_LEVEL(TheLevel); the SDK owns main(), the protocol (docs/protocol.md), the timed
// loop, hashing and all files. A level never times, prints to standard output or parses arguments. Needs no PyTorch;
// levels that link it start from torch_level.hpp.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/safetensors.hpp"
#include "core/optimiser.hpp"
#include "strata/spans.hpp"

namespace strata {

// Thrown by a level and answered to the driver. `code` is one of docs/protocol.md: unsupported, unavailable,
// out_of_memory, failed, bad_request.
class Failure : public std::runtime_error {
 public:
  Failure(std::string code, const std::string& what, std::string hint = {})
      : std::runtime_error(what), code_(std::move(code)), hint_(std::move(hint)) {}
  const std::string& code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string code_, hint_;
};

// A tensor in host memory, contiguous, and what keeps its bytes alive (empty: the giver does).
struct HostTensor {
  TensorView view;
  std::shared_ptr<const void> owner;
};

// An input or output as the bundle declares it. `dtype` is safetensors' name ("F32"); shapes include the batch.
struct Declared {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  bool keyword = false;
};

// The canonical case (docs/bundle.md), of which `json` holds all, and the variant that `load` names; the SDK has
// checked it against those that the level has.
struct Case {
  std::string model, mode = "infer", precision = "fp32", device = "cpu", variant = "default";
  int threads = 1;
  bool deep = false;
  nlohmann::json json;
};

// The captured network. Inputs and outputs in the order in which the SDK hands them over and expects them back.
struct Bundle {
  std::filesystem::path folder;
  std::vector<Declared> inputs, outputs;
  std::map<std::string, std::string> tied;  // further names of a parameter -> its first
  nlohmann::json json;
  std::optional<std::pair<std::int64_t, std::int64_t>> batches;  // a case with `dynamic`: inputs may have any of these
};

// What `hello` says of a level and level.json cannot. All else follows from that file, and from which of the interfaces
// at the end of this file the level implements.
struct About {
  std::map<std::string, std::string> versions;  // of the libraries that do the work
  std::vector<std::string> operations;          // of a level on the captured graph: those of ATen that it knows
};

// What a loaded level reports (docs/protocol.md, load). `threads` and `precision` are read back from the library.
struct Facts {
  int threads = 1;
  std::string precision = "fp32", layout = "contiguous", graph = "none";
  bool inference_mode = true, autotune = false, freezing = false, deterministic = true;
  std::int64_t parameters = 0;      // elements of the parameters that it holds; 0: cannot tell
  std::int64_t artefact_bytes = 0;  // files to ship beside the level's libraries
};

// SGD, Adam and AdamW as PyTorch defines them (docs/protocol.md).
using core::Optimiser;

// Takes the time at boundaries of phases: of the host, or of a device, whose work ends later than the call.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void mark() = 0;
  virtual std::vector<std::int64_t> between_ns() = 0;  // from each mark to the next, once the last one is reached
};

// Tells the SDK that the phase (forward, loss, backward, update; docs/protocol.md, profile) is over.
using PhaseEnded = std::function<void(std::string_view phase)>;
// A phase that a level cannot tell from others, and which these are, itself among them.
using JoinedPhases = std::map<std::string, std::vector<std::string>>;
// Tensors by name, those of docs/protocol.md, state.
using State = std::vector<std::pair<std::string, HostTensor>>;

// One iteration, as the timed loop runs it: set_input, run, wait, outputs.
struct Iterated {
  virtual ~Iterated() = default;
  // `inputs` are the caller's, in the bundle's order, and live on. In a case of mode train the labels follow (I64, one
  // a sample), once there are any.
  virtual void set_input(std::span<const HostTensor> inputs) = 0;
  // Inference: the forward pass. In a case of mode train: one step, or the forward pass after set_mode(false, ...).
  virtual void run() = 0;
  virtual void wait() {}
  // Replaces `results` by host results that no later iteration touches: those of the bundle, in its order; after a
  // step the loss alone (one number).
  virtual void outputs(std::vector<HostTensor>& results) = 0;
};

// One of several callers of a loaded network, used by one thread alone; inputs and results are its own.
struct Client : Iterated {
  // Called once by its thread, before its first iteration: for what a library keeps by thread.
  virtual void enter() {}
};

// One way to run a network: what every level implements. The SDK makes it by its default constructor (do no work there)
// and destroys it to unload. What level.json declares (variants, modes, precisions, devices) is checked before load().
struct Level : Iterated {
  // Set by the SDK before load() where the bundle says that the network writes into its inputs, and later once it saw
  // it do so: set_input takes copies.
  bool copy_inputs = false;
  std::function<void(const std::string&)> said_to;  // whom progress() tells; set by the SDK

  // Says what is being done to whoever waits for a request that takes long ("compiling 3 of 8"). Nothing is said while
  // something is timed.
  void progress(const std::string& what) const {
    if (said_to) said_to(what);
  }

  // Builds the network; `cache` is where `prepare` left its artefacts. No weights yet, and nothing runs.
  virtual void load(const Case& run_case, const Bundle& bundle, const std::filesystem::path& cache) = 0;
  // Puts weight set `set` in. Called after every load, and again to change sets. `weights` stays open only for the
  // call; its copies share the mapping.
  virtual void load_weights(const std::string& set, const SafeTensors& weights) = 0;
  virtual Facts facts() const = 0;

  // May be overridden.
  virtual About about() const { return {}; }
  // Whether this machine has one of level.json's devices.
  virtual bool has_device(const std::string& /*device*/) const { return true; }
  // Why this level cannot run the case, naming what and where; empty: it can. `load` may still throw a Failure.
  virtual std::string supports(const Case&) const { return {}; }
  // Highest use of the framework's device allocator since the start; nullopt: it has none.
  virtual std::optional<std::int64_t> device_peak_bytes() const { return std::nullopt; }
  // Turns what a library threw into a Failure; knows std::bad_alloc.
  virtual Failure explain(const std::exception& error) const;
};

// Capabilities: a level derives from these besides, from those that it has. The SDK finds them by dynamic_cast and says
// in `hello` which operations and modes there are.

// Several callers at once (docs/protocol.md, serve).
struct Servable {
  virtual ~Servable() = default;
  // `count` callers that may run the loaded network at the same time, each with `threads` threads for its work. They do
  // not outlive the level or its weights. Throws unsupported where a variant or a device cannot.
  virtual std::vector<std::unique_ptr<Client>> clients(int count, int threads) = 0;
};

// Weights that can be read back from the framework. Not asked where level.json says that weights are baked in.
struct ReadableWeights {
  virtual ~ReadableWeights() = default;
  virtual std::vector<std::string> readable_weights() const = 0;  // names, as PyTorch has them
  virtual HostTensor weight(const std::string& name) const = 0;   // one of them, in host memory
};

// Facts about what it did since load that are known only later (docs/protocol.md, report).
struct Reporting {
  virtual ~Reporting() = default;
  virtual nlohmann::json report() = 0;  // may run the network; never called while something is timed
};

// Training. After load_weights the SDK calls set_mode(true, true) and set_optimiser; it counts steps and applies the
// schedule.
struct Trainable {
  virtual ~Trainable() = default;
  virtual void set_mode(bool training, bool dropout) = 0;  // one without dropout to switch ignores `dropout`
  // Replaces the optimiser: no buffers, step 0. `lr` is the rate of the next step, there is no schedule.
  virtual void set_optimiser(const Optimiser& optimiser) = 0;
  virtual void set_rate(double rate) = 0;  // from the next step on
  virtual State state() const = 0;
  // `step`: steps done before, from which Adam's bias correction counts on. What of Adam's buffers the state lacks is
  // 0.
  virtual void load_state(const SafeTensors& state, std::int64_t step) = 0;
  // Masks drawn from now on follow from the seed, by the same numbers in every process; state() holds how far they are.
  virtual void seed_dropout(std::uint64_t /*seed*/) {}
};

// A training step whose phases can be timed (docs/protocol.md, profile).
struct Profiled {
  virtual ~Profiled() = default;
  // run() in training mode, saying where phases end.
  virtual void run_marked(const PhaseEnded& ended) = 0;
  virtual JoinedPhases joined_phases() const { return {}; }
  // The clock that times this level's phases. Default: the host's.
  virtual std::unique_ptr<Stopwatch> stopwatch() const;
};

// An operation of an iteration: what it computes, where in the network, and what does it.
struct OperationFacts {
  std::string operation;                          // as ATen calls it, "conv2d"; or the level's own word
  std::optional<std::string> layer;               // "layer1.0.conv1"; empty: the network itself; nullopt: not known
  std::string kernel;                             // "jit:avx2"; empty: the level does not say
  std::vector<std::vector<std::int64_t>> shapes;  // of its tensors, where they are known
  bool moves_only = false;                        // copies and reorders, which compute nothing
};

// Operations can be timed one by one (docs/protocol.md, operations).
struct TimesOperations {
  virtual ~TimesOperations() = default;
  // From now on run() appends when each of its operations began and ended; nullptr: no more. Where operations are
  // within others, only the outermost count. Throws unsupported where a device or a variant cannot.
  virtual void record(Spans* spans) = 0;
  // What was recorded in the last run, in the same order.
  virtual std::vector<OperationFacts> recorded() const = 0;
};

// How the level's own file was compiled.
struct Build {
  std::string type, flags;
};

// The worker: reads requests from standard input until `bye` or its end. Returns the exit status.
int run_level(const std::function<std::unique_ptr<Level>()>& make, const Build& build);

// "release", or what makes this build unfit for measuring. Evaluated where it is included, hence in a header.
inline std::string build_type() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(STRATA_SANITIZER)
  return "sanitizer";
#elif !defined(__OPTIMIZE__)
  return "debug";
#elif !defined(NDEBUG)
  return "assertions";
#else
  return "release";
#endif
}

}  // namespace strata

#ifndef STRATA_BUILD_FLAGS
#define STRATA_BUILD_FLAGS ""
#endif

#define STRATA_LEVEL(Type)                                                                                \
  int main() {                                                                                            \
    return strata::run_level([]() -> std::unique_ptr<strata::Level> { return std::make_unique<Type>(); }, \
                             strata::Build{strata::build_type(), STRATA_BUILD_FLAGS});                    \
  }
