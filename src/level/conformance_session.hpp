// SPDX-License-Identifier: Apache-2.0
// What the conformance checks share: a worker spoken to without the driver's strictness, the bundle, comparing results.
#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "common/safetensors.hpp"
#include "level/conformance.hpp"

namespace strata::level {

using Json = nlohmann::json;
using Text = tl::expected<void, std::string>;  // an error is the reason why a check fails
template <class T>
using Or = tl::expected<T, std::string>;

struct Outcome {
  Verdict verdict = Verdict::pass;
  std::string why;
  Outcome() = default;
  Outcome(Verdict result, std::string because) : verdict(result), why(std::move(because)) {}
  Outcome(const Text& text)
      : verdict(text ? Verdict::pass : Verdict::fail),
        why(text ? "" : text.error()) {}  // NOLINT: a reason is an outcome
  Outcome(tl::unexpected<std::string> reason) : verdict(Verdict::fail), why(std::move(reason.value())) {}  // NOLINT
};

inline constexpr const char* not_offered = "optional, and hello does not list it";

std::string text_of(const Json& object, const char* key);  // empty: missing or no string
tl::unexpected<std::string> because(std::string why);

class Session {
 public:
  explicit Session(const Subject& subject);

  Text restart();  // a fresh worker; the old one is ended
  worker::Worker& worker() { return *worker_; }
  bool running() const { return worker_ && worker_->alive(); }

  // The next line that is no progress of request `id` (null: any line), each waited for `times` as long as usual.
  tl::expected<std::string, worker::Failure> next_line(const Json& id, int times = 1);
  // Any line out, the answer in: it must be a JSON object with `id` (null allowed when asked for) and a boolean `ok`.
  Or<Json> raw(const std::string& line, const Json& expected_id);
  // A request with a fresh id; the whole answer, ok or not.
  Or<Json> ask(const std::string& op, Json fields = Json::object());
  // The same, and it must be ok.
  Or<Json> ask_ok(const std::string& op, Json fields = Json::object());
  // The same, and it must be refused with one of `codes`, with a reason.
  Text refused(const std::string& op, Json fields, const std::vector<std::string>& codes);
  Text still_answers();                      // the worker goes on after what was just tried
  Or<Json> give_inputs();                    // those of the bundle
  bool offers(const char* operation) const;  // as hello lists it

  Json load_request(const std::string& weights = "timed") const;
  Text load();     // a fresh worker with the network loaded and the inputs given
  Text prepare();  // runs the prepare command once; `unsupported` and `unavailable` are kept in reason_not_loaded
  std::filesystem::path out(const std::string& name) const { return subject_.scratch / (name + ".safetensors"); }

  // File `path` holds exactly <index>/<output> for the indices, with the declared shapes, close to the weight set's
  // reference.
  Text matches(const std::filesystem::path& path, const std::vector<int>& indices, const std::string& weights) const;

  const Subject& subject() const { return subject_; }
  const Json& bundle() const { return bundle_; }
  int ring() const { return bundle_.value("ring", 0); }
  bool harness() const { return subject_.level && subject_.level->harness; }
  std::int64_t take_id() { return next_id_++; }

  std::string not_loadable;  // why load-dependent checks are skipped; empty: they run
  Json hello;                // the answer to hello, once it came

 private:
  const Subject& subject_;
  Json bundle_;
  std::unique_ptr<worker::Worker> worker_;
  std::int64_t next_id_ = 1;
  bool prepared_ = false;
};

// A check: its name and what it does. `needs_load`: skipped when the level cannot run the bundle.
struct Rule {
  const char* name;
  bool needs_load;
  std::function<Outcome(Session&)> run;
};

std::vector<Rule> rules_of_the_stream();   // conformance_stream.cpp
std::vector<Rule> rules_of_the_network();  // conformance_network.cpp; those of serving are among them
std::vector<Rule> rules_of_serving();      // conformance_serve.cpp
std::vector<Rule> rules_of_operations();   // conformance_operations.cpp; also among them
std::vector<Rule> rules_of_the_options();  // conformance_options.cpp

}  // namespace strata::level
