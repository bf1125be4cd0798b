// SPDX-License-Identifier: Apache-2.0
// One worker running one level for one case: the protocol's requests as typed calls, and the time of its start.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "common/outside.hpp"
#include "common/safetensors.hpp"
#include "core/layer_size.hpp"
#include "plan/job.hpp"
#include "proof/clock.hpp"
#include "stats/clients.hpp"
#include "store/record.hpp"

namespace strata::session {

using Json = nlohmann::json;
using plan::Job;
using worker::Failure;
template <class T>
using Try = tl::expected<T, Failure>;

// The parts of a start, each in ms. `again` is their sum: process start to the end of the first iteration.
struct StartUp {
  double process_ms = 0, library_ms = 0, load_ms = 0, first_iteration_ms = 0;
  double build_ms = 0, weights_ms = 0;  // parts of load_ms, as the level reports them
  bool cold = false;                    // the level's cache was empty
  double total_ms() const { return process_ms + library_ms + load_ms + first_iteration_ms; }
};

struct BlockPlan {
  int iterations = 1, head = 0;
  std::vector<int> indices;      // the ring index of each iteration
  std::vector<int> retain = {};  // iterations whose results can be asked for afterwards
  bool fresh = true;             // its inputs differ from all before (docs/protocol.md, `fresh`)
  struct Exchange {
    int at = 0;                        // the iteration that finds another input in its entry's memory
    int input = 0;                     // which: a ring index, or the name of its result
    std::filesystem::path entry = {};  // a file of it, where it is none of the ring's
  };
  std::optional<Exchange> exchange = std::nullopt;  // inference only
};

// What `state` wrote, copied. The file goes with the last copy.
struct TrainState {
  SafeTensors tensors;
  std::int64_t step = 0;
  double lr = 0;  // of the next step
  std::shared_ptr<const std::filesystem::path> file;
};

// What `profile` answered: times of one iteration each in ns by phase, and which phases a phase holds.
struct Profile {
  std::map<std::string, std::vector<std::int64_t>> phases;
  std::map<std::string, std::vector<std::string>> joined;
  std::string refusal;  // why the level, which runs on, told no times
};

// What `operations` answered: of each operation, in the order in which they run, times of one iteration each in ns.
struct RecordedOperation {
  std::string operation, kernel;
  std::optional<std::string> layer;  // nullopt: the level does not know
  std::vector<std::vector<std::int64_t>> shapes;
  bool moves_only = false;
  std::vector<std::int64_t> ns, gap_ns;  // the gap lies before it
};
struct RecordedOperations {
  std::vector<RecordedOperation> operations;
  std::vector<std::int64_t> wall_ns, after_ns;  // of each iteration: all of it, and since the last operation's end
  std::string refusal;                          // why the level, which runs on, told no times
};

// Several requests in flight in one worker; `begin_ns`: the monotonic clock's time at which all clients begin, 0 = when
// they are warm.
struct ServeRequest {
  int clients = 1, threads = 1;  // threads for the work of each client
  std::chrono::nanoseconds at_least{0};
  int samples = 1, checks = 0;  // of each client
  std::uint64_t seed = 0;
  std::int64_t begin_ns = 0;
};

// What `serve` answered, and the results that it kept aside: files of `<ring index>/<output>`, which the reader
// removes.
struct ServeAnswer {
  std::vector<stats::ClientTimes> clients;
  std::optional<std::int64_t> cpu_ns;
  std::vector<std::pair<int, std::filesystem::path>> checked;
};

// Of a data set: files of its splits (docs/protocol.md, data), and how a pixel becomes a number.
struct SplitFiles {
  std::map<std::string, std::filesystem::path> paths;
  std::vector<double> mean, deviation;  // one entry, or one a channel
};

// What `steps` answered, an entry each step. A loss that is not finite is the last.
struct StepsAnswer {
  std::vector<double> losses;
  std::vector<std::int64_t> wall_ns, waited_ns, gathered_ns;
};

// What `evaluate` answered.
struct SplitScore {
  std::int64_t samples = 0, correct = 0;
  double loss_sum = 0;
  std::int64_t wall_ns = 0;
};

class Session {
 public:
  // Starts the worker and greets it. Refuses another protocol version and, without allow_debug, a debug build. One that
  // was refused a file is started a second time.
  static Try<std::unique_ptr<Session>> open(const Job& job, const std::vector<int>& cpus);
  // The same in two parts, of which the second may run in another thread than the first, and without a second try.
  static Try<std::unique_ptr<Session>> launch(const Job& job, const std::vector<int>& cpus);
  Try<void> greet();
  void set_quiet(bool quiet) { quiet_ = quiet; }  // what the worker says that it is doing is shown to nobody

  // load, then the ring of inputs, and of labels in mode train. What is loaded already is unloaded, or gets these
  // weights where it is of the same bundle.
  Try<void> load(const std::string& weights);
  Try<void> unload();
  Try<void> weights(const std::string& weights);                  // another set into the loaded network
  Try<void> inputs(const std::filesystem::path& path, int ring);  // another ring of so many inputs
  Try<SafeTensors> prove(const std::vector<int>& indices);
  Try<void> prove_into(const std::vector<int>& indices, const std::filesystem::path& out);
  Try<Json> read_weights();  // sha256 by name; null if the level cannot, or its variant bakes them in
  // Returns the wall times. The first call also fills start_up().first_iteration_ms.
  Try<std::vector<std::int64_t>> warm_up(int iterations, std::chrono::nanoseconds at_least);
  // `mistrusted`: times that cannot be by the driver's own clock.
  Try<store::Block> measure(const BlockPlan& plan);
  // The last measure(), train_steps() or evaluate() as both saw it; of the latter, what was waited for batches is told.
  const proof::Timed& last_timed() const { return timed_; }
  double copy_ns() const { return copy_ns_; }            // what copying a result aside took in it, as the level says
  double result_bytes() const { return result_bytes_; }  // of an iteration, by the file that was read last; 0: none was
  // Of an iteration that the last measure() retained, named by `input`, whose input it had: of a ring index, or else.
  struct Answer {
    int input = 0;
    SafeTensors output;
  };
  Try<Answer> result(int iteration);
  // Whether the level says that each of its iterations had an input of its own (docs/protocol.md, `fresh`).
  bool had_new_inputs() const { return new_inputs_; }
  Try<Json> memory();
  Try<ServeAnswer> serve(const ServeRequest& request);
  Try<Json> report();  // what the level says about itself by now; null if it does not

  // Training. Every iteration of prove, warm_up, measure and profile is then one optimiser step.
  Try<void> set_mode(const std::string& mode, bool dropout);
  Try<void> set_optimiser(const core::Optimiser& optimiser);
  Try<TrainState> state(const std::vector<std::string>& names = {});  // of these tensors alone; none: of all
  // With a seed masks of dropout follow from it; without, from what the state holds.
  Try<void> load_state(const std::filesystem::path& path, std::int64_t step, std::optional<std::int64_t> seed = {});
  Try<Profile> profile(const std::vector<int>& indices);

  // Iterations of these ring indices with the times of their operations. Where offers("operations"). `mistrusted`:
  // times that do not add up, or cannot be by the driver's own clock.
  Try<RecordedOperations> operations(const std::vector<int>& indices);

  // Training on a data set.
  Try<void> labels(const std::filesystem::path& path, int ring);
  Try<std::map<std::string, std::int64_t>> data(const SplitFiles& files);  // images by split
  Try<StepsAnswer> train_steps(const std::string& split, const std::filesystem::path& order, std::int64_t first,
                               std::int64_t count);
  Try<SplitScore> evaluate(const std::string& split, std::int64_t first, std::int64_t count);  // in mode eval
  // By layer, in the order in which they run, in step `step` of the order, which is not made. Where offers("norms").
  Try<std::vector<core::LayerSize>> norms(const std::string& split, const std::filesystem::path& order,
                                          std::int64_t step);
  double state_ns() const { return state_ns_; }  // how long the last state() took, but for waiting for a core
  std::int64_t steps() const { return steps_; }  // that the worker's optimiser has done, by the requests it was sent
  bool offers(std::string_view op) const;
  std::filesystem::path new_file() const;  // a name in the scratch folder that nobody has

  // Another case for a process that goes on (warm_processes.hpp). `job` outlives the session, or the next bind().
  void bind(const Job& job);
  bool can_serve(const Job& job, const std::vector<int>& cpus) const;  // it would be started as this one was
  bool fresh() const { return fresh_; }                                // its first case
  // That what is loaded was proven; take_proven() says so once, and no more after another load.
  void note_proven() { proven_ = true; }
  bool take_proven() { return std::exchange(proven_, false); }

  worker::Worker& process() { return *worker_; }
  const Json& loaded() const { return loaded_; }
  const StartUp& start_up() const { return start_up_; }
  void end() { worker_->end(); }

 private:
  explicit Session(const Job& job);
  void name_out();
  double waited_for_core_ns() const;  // by the worker and by this thread, so far
  Try<SafeTensors> take_output(std::string_view op, std::size_t iterations);
  void note_timed(std::size_t iterations, double reported_ns, double queued_before_ns);  // of the last request
  Try<void> give_ring();
  // `lasts`: what the request itself asks the level to take.
  Try<Json> call(std::string_view op, Json fields, std::chrono::milliseconds lasts = {});
  Failure impossible(std::string_view op, const std::string& why) const;  // `mistrusted`
  Failure bad_answer(std::string_view op, std::string_view why) const;
  outside::Fields fields(const Json& answer, std::string_view op) const;
  Failure broken(const outside::Fields& fields) const;
  Try<void> counts(const Json& answer, std::string_view op, int ring) const;  // "count" is that of the ring

  const Job* job_;
  worker::Launch launch_;  // as it was started
  std::string variant_;    // that it loads, this one alone; empty: none
  std::unique_ptr<worker::Worker> worker_;
  std::filesystem::path loaded_from_;  // the bundle; empty: nothing is loaded
  bool fresh_ = true, proven_ = false, quiet_ = false;
  std::int64_t launched_ns_ = 0;
  Json loaded_;
  std::vector<std::string> ops_;  // that the worker offers
  StartUp start_up_;
  std::filesystem::path out_;  // where the worker writes tensors
  std::int64_t steps_ = 0;
  std::int64_t asked_ns_ = 0, waited_ns_ = 0;  // of the last request: the monotonic clock, and how long it took
  std::int64_t loading_since_ns_ = 0;
  proof::Timed timed_;
  std::vector<std::uint64_t> places_;  // of numbers in inputs
  std::uint64_t next_number_ = 1;      // of a timed iteration
  bool new_inputs_ = false;            // in the last block
  std::vector<int> timed_inputs_;      // of its iterations
  double copy_ns_ = 0, result_bytes_ = 0, state_ns_ = 0;
};

// Runs the level's prepare command unless the cache already holds its result. Returns its time in ms; 0 = nothing to do
// or done before.
Try<double> prepare(const Job& job, const std::vector<std::string>& command);

}  // namespace strata::session
