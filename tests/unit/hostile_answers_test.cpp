// SPDX-License-Identifier: Apache-2.0
// Every operation of the protocol with every wrong type in every field of its answer: each becomes a failure with a
// state and a sentence, or an answer that holds what it should; never an exception, and never the state `measured`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "session/session.hpp"
#include "worker/answers.hpp"

namespace strata::session {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Answers each request with the next line of a file, whatever was asked; `id` is set to the request's.
const char* const parrot = R"(
import json, os, sys
protocol = os.fdopen(os.dup(1), "w", buffering=1)
with open(sys.argv[1]) as replies:
    for request, reply in zip(sys.stdin, replies):
        answer = json.loads(reply)
        if isinstance(answer, dict) and answer.get("id") is None:
            answer["id"] = json.loads(request)["id"]
        protocol.write(json.dumps(answer) + "\n")
)";

const Json good_hello = {{"ok", true},
                         {"api", 2},
                         {"level", "parrot"},
                         {"language", "python"},
                         {"versions", {{"x", "1"}}},
                         {"build", {{"type", "release"}, {"flags", ""}}},
                         {"devices", {"cpu"}},
                         {"modes", {"infer", "train"}},
                         {"precisions", {"fp32"}},
                         {"ops", {"memory", "report", "read_weights", "serve"}},
                         {"library_ns", 1}};

const std::vector<Json> wrong_values = {Json(),
                                        true,
                                        "x",
                                        -1,
                                        0.5,
                                        1e300,
                                        18446744073709551615ULL,
                                        9223372036854775807LL,
                                        Json::array(),
                                        Json::object(),
                                        Json::array({nullptr}),
                                        Json::array({"x", 1}),
                                        Json::array({-1, -1}),
                                        Json::array({1e300, 1e300}),
                                        Json{{"a", 1}},
                                        Json{{"build_ns", "x"}, {"forward", "x"}}};

// An operation: how it is called, and an answer that would do. True: it succeeded.
struct Operation {
  const char* name;
  Json good;
  std::function<Try<bool>(Session&)> call;
};

template <class T>
Try<bool> done(const Try<T>& result) {
  if (!result) return tl::unexpected(result.error());
  return true;
}

const std::vector<Operation> operations = {
    {"load",
     {{"phases", {{"build_ns", 1}, {"weights_ns", 2}}},
      {"settings", Json::object()},
      {"parameters", 1},
      {"artefact_bytes", 1},
      {"deterministic", true}},
     [](Session& s) { return done(s.load("timed")); }},
    {"inputs", {{"count", 4}}, [](Session& s) { return done(s.inputs("/nowhere", 4)); }},
    {"warm_up",
     {{"wall_ns", {1, 2}}, {"iterations", 2}, {"first_ns", 1}},
     [](Session& s) { return done(s.warm_up(2, std::chrono::nanoseconds(0))); }},
    {"measure",
     {{"wall_ns", {100, 100}}, {"latency_ns", {90, 90}}, {"cpu_ns", 1}, {"start_ns", 1}, {"runq_ns", 1}},
     [](Session& s) {
       return done(s.measure({2, 0, {0, 1}}));
     }},
    {"prove", {{"outputs", {"output"}}}, [](Session& s) { return done(s.prove({0})); }},
    {"memory", {{"device_peak_bytes", nullptr}}, [](Session& s) { return done(s.memory()); }},
    {"report",
     {{"facts", {{"guards", 1}, {"guard_us", 1}, {"graphs", 1}, {"recompiles", 0}, {"recompile_reasons", {"x"}}}}},
     [](Session& s) { return done(s.report()); }},
    {"read_weights", {{"sha256", {{"w", "00"}}}}, [](Session& s) { return done(s.read_weights()); }},
    {"state", {{"step", 1}, {"lr", 0.1}}, [](Session& s) { return done(s.state()); }},
    {"profile",
     {{"phases", {{"forward", {1, 1}}}}, {"joined", {{"forward", {"loss"}}}}},
     [](Session& s) -> Try<bool> {
       const auto profile = s.profile({0, 1});  // tells a refusal beside what it has, since the level runs on
       if (profile && !profile->refusal.empty())
         return tl::unexpected(worker::Failure{.state = State::failed, .what = profile->refusal});
       return done(profile);
     }},
    {"serve",
     {{"clients",
       {{{"requests", 2},
         {"start_ns", 1},
         {"wall_ns", 1},
         {"latency_ns", {1, 1}},
         {"done_ns", {1, 1}},
         {"checked", {0}}}}},
      {"cpu_ns", 1}},
     [](Session& s) {
       return done(s.serve({1, 1, std::chrono::nanoseconds(1), 2, 1, 1, 0}));
     }}};

class HostileAnswers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("strata_hostile_{}", ::getpid());
    fs::create_directories(folder_ / "cache");
    std::ofstream(folder_ / "parrot.py") << parrot;
    bundle_.folder = folder_;
    bundle_.info = {{"ring", 4}, {"case", {{"mode", "infer"}}}};
    job_.level.id = "parrot";
    job_.bundle = &bundle_;
    job_.cache = folder_ / "cache";
    job_.scratch = folder_;
    job_.launch.argv = {"python3", "-IS", (folder_ / "parrot.py").string(), (folder_ / "replies").string()};
    job_.launch.log_path = (folder_ / "log").string();
    job_.timeout = std::chrono::seconds(20);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A session whose worker will give these answers, one after another.
  std::unique_ptr<Session> session(const std::vector<Json>& replies) {
    std::ofstream file(folder_ / "replies");
    file << good_hello << '\n';
    for (const Json& reply : replies) file << reply << '\n';
    file.close();
    auto opened = Session::open(job_, {});
    EXPECT_TRUE(opened) << opened.error().what;
    return opened ? std::move(*opened) : nullptr;
  }

  fs::path folder_;
  plan::Bundle bundle_;
  Job job_;
};

// Each place of a value below `good` replaced by each wrong value, and left out.
void collect(const Json& whole, const Json::json_pointer& at, std::vector<Json>& out) {
  const Json& here = whole[at];
  if (here.is_object())
    for (const auto& [key, value] : here.items()) {
      for (const Json& wrong : wrong_values) {
        Json changed = whole;
        changed[at / key] = wrong;
        out.push_back(std::move(changed));
      }
      Json without = whole;
      without[at].erase(key);
      out.push_back(std::move(without));
      collect(whole, at / key, out);
    }
  if (here.is_array())
    for (std::size_t i = 0; i < here.size(); ++i) collect(whole, at / i, out);
}

TEST_F(HostileAnswers, of_every_type_in_every_field_become_failures_with_a_sentence) {
  std::size_t tried = 0, refused = 0;
  for (const Operation& operation : operations) {
    Json good = operation.good;
    good["ok"] = true;
    std::vector<Json> replies;
    collect(good, Json::json_pointer(), replies);
    std::erase_if(replies, [](const Json& reply) { return reply.value("ok", Json()) != true; });  // ends the worker
    std::vector<Json> lines;
    for (const Json& reply : replies) {
      lines.push_back(reply);
      if (std::string(operation.name) == "load") lines.push_back({{"ok", true}, {"count", 4}});  // its `inputs`
    }
    const auto one = session(lines);
    ASSERT_TRUE(one);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const auto result = operation.call(*one);
      ++tried;
      ASSERT_TRUE(one->process().alive()) << operation.name << " " << replies[i] << ": " << result.error().what;
      if (!result) {
        ++refused;
        EXPECT_NE(result.error().state, State::measured);
        EXPECT_FALSE(result.error().what.empty());
        EXPECT_NO_THROW((void)Json(result.error().what).dump());
      }
      if (std::string(operation.name) == "load" && !result) (void)one->inputs("/nowhere", 4);
    }
  }
  EXPECT_GT(tried, 600U);
  EXPECT_GT(refused, tried / 2);
}

TEST_F(HostileAnswers, that_refuse_with_the_code_of_a_success_are_failures) {
  for (const char* code : {"measured", "crashed", "timeout", "unequal", "", "x"})
    for (const Operation& operation : operations) {
      const auto one = session({{{"ok", false}, {"code", code}, {"what", "no"}, {"hint", 5}}});
      ASSERT_TRUE(one);
      const auto result = operation.call(*one);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().state, State::failed) << code;
      one->end();
      if (std::string(code) != "measured") break;  // one operation does for the others
    }
}

TEST_F(HostileAnswers, to_hello_become_failures_with_a_sentence) {
  std::vector<Json> replies;
  collect(good_hello, Json::json_pointer(), replies);
  for (const Json& reply : replies)
    if (const auto hello = worker::read_hello(reply, true); !hello) {
      EXPECT_FALSE(hello.error().what.empty());
      EXPECT_NE(hello.error().state, State::measured);
    }
}

TEST_F(HostileAnswers, of_a_prepare_command_become_failures) {
  for (const char* answer : {R"({"ok":"yes"})", R"({"ok":false,"code":"measured","what":"x"})", R"({"ok":[],"what":5})",
                             R"({"ok":false,"code":5,"what":"x","hint":{}})", "[]", "5", "", "\xff"}) {
    std::ofstream(folder_ / "answer") << answer << '\n';
    const auto prepared = prepare(job_, {"cat", (folder_ / "answer").string(), "-", "--"});
    ASSERT_FALSE(prepared) << answer;
    EXPECT_NE(prepared.error().state, State::measured);
    EXPECT_FALSE(prepared.error().what.empty());
  }
}

}  // namespace
}  // namespace strata::session
