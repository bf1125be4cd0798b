// SPDX-License-Identifier: Apache-2.0
// Requests as JSON and as words: nothing is lost on the way, and what cannot be a request is refused with the nearest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/compare_options.hpp"
#include "cli/sweep.hpp"
#include "engine/request_json.hpp"
#include "engine/request_members.hpp"

namespace strata::engine {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Gives each member another value than its default.
struct Fill {
  int next = 2;
  void operator()(const char*, const char*, std::string& to) { to = fmt::format("text-{}", next++); }
  void operator()(const char*, const char*, bool& to) { to = true; }
  void operator()(const char*, const char*, int& to) { to = next++; }
  void operator()(const char*, const char*, std::int64_t& to) { to = next++; }
  void operator()(const char*, const char*, std::vector<int>& to) { to = {1, next++}; }
  void operator()(const char*, const char*, std::vector<std::string>& to) { to = {"a", "b c"}; }
  void operator()(const char*, const char*, std::optional<int>& to) { to = next++; }
  void operator()(const char*, const char*, std::optional<std::int64_t>& to) { to = next++; }
  void operator()(const char*, const char*, std::optional<double>& to) { to = 0.25 * next++; }
  void operator()(const char*, const char*, const Repeated<std::vector<std::string>>& to) { to.values = {"x", "y"}; }
  void operator()(const char*, const char*, const Repeated<std::vector<plan::NamedPython>>& to) {
    to.values = {{"old", "/a/python"}};
  }
};

TEST(Request, comes_back_from_json_with_every_member) {
  SweepRequest sweep;
  visit_sweep(sweep, Fill());
  const auto written = to_json(sweep);
  const auto read = read_request(Json::parse(written.dump()));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(to_json(*read), written);
  EXPECT_EQ(verb_of(*read), "sweep");
  EXPECT_GT(written.size(), 40U);
}

TEST(Request, says_only_what_is_no_default) {
  CompareRequest request;
  request.options.model = "resnet50";
  EXPECT_EQ(to_json(request), Json::parse(R"({"verb": "compare", "version": 1, "model": "resnet50"})"));
  EXPECT_THAT(command_words(request), ElementsAre("compare", "resnet50"));
}

TEST(Request, is_read_back_by_the_options_of_its_verb_from_the_words_that_it_is_rendered_to) {
  const auto asked = Json::parse(R"({"verb": "sweep", "version": 1, "model": "a b.py:build", "batch": [1, 8],
    "threads": [1], "size": "32,64", "input": ["x=float32:1x3", "y=int64:1x2:0..9"], "levels": ["eager", "compile@freezing"],
    "mode": "infer,train", "optimiser": "adam:lr=0.001", "precision": "fp32,amp-bf16", "seed": 3, "deep": true,
    "restarts": 2, "budget_s": 90.5, "ci_width": 0.00005, "order_seed": 7, "timeout_s": 60, "memory_limit_gib": 2.5,
    "environments": [{"name": "old", "python": "/usr/bin/python3"}], "name": "a name", "point_time_s": 4, "retry": true,
    "find_batch": "p99=20ms", "weight_sets": 3, "clients": "1,2", "reference": "eager"})");
  const auto request = read_request(asked);
  ASSERT_TRUE(request) << request.error().what;
  const auto words = command_words(*request);
  cli::CompareArguments arguments;
  CLI::App app;
  cli::add_sweep_options(*app.add_subcommand("sweep"), arguments);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  ASSERT_TRUE(cli::read_texts(arguments));
  EXPECT_EQ(to_json(static_cast<const SweepRequest&>(arguments)), asked);
}

TEST(Request, that_is_none_is_refused_with_what_is_allowed_and_the_nearest_name) {
  const auto error = [](const char* text) {
    const auto read = read_request(Json::parse(text));
    return read ? Error{} : read.error();
  };
  EXPECT_THAT(error("[]").what, HasSubstr("not an object"));
  EXPECT_THAT(error(R"({"verb": "compare", "version": 2, "model": "m"})").what, HasSubstr("version is 2"));
  EXPECT_THAT(error(R"({"verb": "compare", "model": "m"})").what, HasSubstr("version is null"));
  EXPECT_THAT(error(R"({"verb": "comprae", "version": 1})").what, HasSubstr("did you mean 'compare'"));
  EXPECT_THAT(error(R"({"verb": "compare", "version": 1})").what, HasSubstr("names no model"));
  EXPECT_EQ(error(R"({"verb": "compare", "version": 1, "model": "m", "levles": ["a"]})").hint,
            "did you mean \"levels\"?");
  EXPECT_THAT(error(R"({"verb": "compare", "version": 1, "model": "m", "find_batch": "throughput"})").what,
              HasSubstr("find_batch"));
  for (const char* wrong :
       {R"("batch": 8)", R"("batch": [0])", R"("batch": ["8"])", R"("batch": [1e99])", R"("budget_s": -1)",
        R"("timeout_s": 1e300)", R"("name": "--deep")", R"("budget_s": "2m")", R"("deep": 1)", R"("name": "")",
        R"("restarts": null)", R"("seed": -1)", R"("environments": [{"name": "a"}])"}) {
    const auto refused = error(fmt::format(R"({{"verb": "compare", "version": 1, "model": "m", {}}})", wrong).c_str());
    EXPECT_THAT(refused.what, HasSubstr("; allowed: ")) << wrong;
    EXPECT_EQ(refused.exit, Exit::usage) << wrong;
  }
}

}  // namespace
}  // namespace strata::engine
