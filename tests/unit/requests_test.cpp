// SPDX-License-Identifier: Apache-2.0
// Requests as JSON and as words: nothing is lost on the way, and what cannot be a request is refused with the nearest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/option.hpp"
#include "requests/codec.hpp"
#include "requests/members.hpp"

namespace strata::requests {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A value that a member takes and that is not its default.
void fill(const Member& member) {
  const auto before = member.json();
  for (const Json& value : std::initializer_list<Json>{true,
                                                       2,
                                                       3,
                                                       0.25,
                                                       "a text",
                                                       "cuda",
                                                       "nll",
                                                       "quick",
                                                       "mlperf",
                                                       "libtorch",
                                                       {"a", "b c"},
                                                       {"flip", "crop"},
                                                       {1, 2},
                                                       {{{"name", "old"}, {"python", "/usr/bin/python3"}}}})
    if (!member.read_json(value) && member.json() != before) return;
  ADD_FAILURE() << member.name << " took none of the values";
}

std::vector<Request> filled() {
  std::vector<Request> all;
  for (const char* verb : {"compare", "sweep", "train", "export", "generate"}) {
    all.push_back(*request_for(verb));
    for (const auto& member : members_of(all.back())) fill(member);
  }
  return all;
}

TEST(Request, comes_back_from_json_with_every_member) {
  for (const auto& request : filled()) {
    const auto written = to_json(request);
    const auto read = read_request(Json::parse(written.dump()));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(to_json(*read), written);
    auto copy = request;
    EXPECT_EQ(written.size(), members_of(copy).size() + 2) << verb_of(request);
  }
}

TEST(Request, is_read_back_by_the_options_of_its_verb_from_the_words_that_it_is_rendered_to) {
  for (const auto& request : filled()) {
    const auto words = command_words(request);
    auto read = *request_for(verb_of(request));
    CLI::App app;
    cli::add_members(*app.add_subcommand(verb_of(request)), members_of(read));
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    EXPECT_EQ(to_json(read), to_json(request));
  }
}

TEST(Request, of_a_pack_holds_the_versions_of_the_other_machine_as_json) {
  PackRequest request, read;
  const auto target_of = [](PackRequest& of) {
    const auto members = members_of(of);
    return *std::find_if(members.begin(), members.end(), [](const Member& member) { return member.name == "for"; });
  };
  const auto member = target_of(request);
  for (const auto& [text, json] :
       {std::pair("torch==2.11.0+cu130", Json{{"torch", "2.11.0+cu130"}}),
        std::pair("python3.12,torch==2.11.0", Json{{"torch", "2.11.0"}, {"python", "3.12"}})}) {
    ASSERT_TRUE(member.read(text)) << text;
    EXPECT_EQ(to_json(request)["for"], json);
    ASSERT_EQ(target_of(read).read_json(json), std::nullopt);
    EXPECT_EQ(to_json(read), to_json(request));
  }
  EXPECT_THAT(member.values(), ElementsAre("torch==2.11.0,python3.12"));
  for (const char* text :
       {"", "torch", "torch==", "torch==2.11.0,", "2.11.0", "python3.12,python3.11", "python3.12;ls"}) {
    const auto refused = member.read(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().what, HasSubstr("--for " + std::string(text) + ": allowed: torch==2.11.0+cu130"));
  }
  EXPECT_NE(member.read_json({{"cuda", "13.0"}}), std::nullopt);
}

TEST(Request, of_a_suite_comes_back_from_json) {
  SuiteRequest request;
  for (const auto& member : members_of(request)) fill(member);
  const auto read = read_suite_request(to_json(request));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(to_json(*read), to_json(request));
}

TEST(Request, says_only_what_is_no_default) {
  CompareRequest request;
  request.options.model = "resnet50";
  EXPECT_EQ(to_json(request), Json::parse(R"({"verb": "compare", "version": 1, "model": "resnet50"})"));
  EXPECT_THAT(command_words(request), ElementsAre("compare", "resnet50"));
}

TEST(Request, takes_what_a_person_types) {
  const auto typed = [](Request request, std::vector<std::pair<const char*, const char*>> values) {
    const auto members = members_of(request);
    for (const auto& [name, value] : values) {
      const auto named =
          std::find_if(members.begin(), members.end(), [&wanted = name](const auto& m) { return m.name == wanted; });
      EXPECT_TRUE(named->read(value)) << name << " " << value;
    }
    return to_json(request);
  };
  EXPECT_EQ(typed(*request_for("sweep"), {{"batch", "1..8*2"},
                                          {"budget_s", "2m"},
                                          {"ci_width", "0.005%"},
                                          {"levels", "eager,compile@freezing"},
                                          {"input", "x=float32:1x3"},
                                          {"input", "y=int64:1x2:0..9"}}),
            Json::parse(R"({"verb": "sweep", "version": 1, "batch": [1, 2, 4, 8], "budget_s": 120.0,
                            "ci_width": 0.00005, "levels": ["eager", "compile@freezing"],
                            "input": ["x=float32:1x3", "y=int64:1x2:0..9"]})"));
  const auto training = typed(*request_for("train"), {{"margin", "0.7pp"}, {"target", "98.5%"}, {"augment", "crop"}});
  EXPECT_NEAR(training["margin"].get<double>(), 0.007, 1e-12);
  EXPECT_EQ(training["target"], 0.985);
  EXPECT_THAT(command_of(*read_request([&] {
                auto whole = training;
                whole["model"] = "m";
                whole["dataset"] = "a set";
                return whole;
              }())),
              "./strata train m --dataset 'a set' --augment crop --margin 0.7pp --target 98.5%");
}

TEST(Request, says_what_a_value_may_be_with_the_option_that_was_typed) {
  auto request = *request_for("train");
  const auto what = [&](const char* name, const char* value) {
    for (const auto& member : members_of(request))
      if (member.name == name)
        if (const auto read = member.read(value); !read) return read.error().what;
    return std::string();
  };
  EXPECT_EQ(what("epochs", "0"), "--epochs 0: allowed: 1 to 100000");
  EXPECT_EQ(what("epochs", "1e3"), "--epochs 1e3: not a whole number; allowed: 1 to 100000");
  EXPECT_EQ(what("margin", "51pp"), "--margin 51pp: allowed: percentage points above 0 and up to 50");
  EXPECT_EQ(what("margin", "1%"), "--margin 1%: allowed: percentage points above 0 and up to 50");
  EXPECT_EQ(what("target", "101%"), "--target 101%: allowed: above 0% and up to 100%");
  EXPECT_EQ(what("augment", "flip,rotate"), "--augment flip,rotate: 'rotate' is not one of: flip, crop");
  EXPECT_EQ(what("augment", "flip,flip"), "--augment flip,flip: flip is given twice");
  EXPECT_EQ(what("augment", "flip,"), "--augment flip,: an entry is empty");
  EXPECT_EQ(what("device", "gpu"), "--device gpu: unknown (did you mean 'cpu'?); allowed: cpu, cuda");
}

TEST(Request, renders_shares_in_as_few_digits_as_read_back_to_them) {
  for (const double share : {0.02, 0.007, 0.1 + 0.2, 1.0 / 3, 1e-13, 0.49999999999999994}) {
    TrainRequest request;
    request.options.model = "m";
    request.dataset = "digits";
    request.margin = share;
    const auto words = command_words(request);
    const auto written = *(std::find(words.begin(), words.end(), "--margin") + 1);
    Request again = TrainRequest{};
    for (const auto& member : members_of(again))
      if (member.name == "margin") {
        ASSERT_TRUE(member.read(written)) << written;
      }
    EXPECT_EQ(std::get<TrainRequest>(again).margin, share) << written;
  }
}

TEST(Request, takes_no_text_from_a_command_line_that_it_would_not_take_from_json) {
  auto request = *request_for("compare");
  for (const auto& member : members_of(request)) {
    if (member.name != "name") continue;
    EXPECT_FALSE(member.read("-x"));
    EXPECT_TRUE(member.read_json("-x"));
  }
}

TEST(Request, to_the_store_is_read_like_the_others) {
  const auto read = read_query(Json::parse(R"({"verb": "diff", "version": 1, "before": "a", "after": "b"})"));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(std::get<DiffRequest>(*read).fail_above, 0.05);
  const auto any = read_query(Json::parse(R"({"verb": "diff", "version": 1, "before": "a", "after": "b",
                                             "fail_above": 0})"));
  ASSERT_TRUE(any) << any.error().what;
  EXPECT_EQ(std::get<DiffRequest>(*any).fail_above, 0);
  EXPECT_FALSE(read_query(Json::parse(R"({"verb": "diff", "version": 1, "before": "a"})")));
  EXPECT_FALSE(read_query(Json::parse(R"({"verb": "runs", "version": 1, "limit": -1})")));
  EXPECT_FALSE(is_query(Json::parse(R"({"verb": "compare", "version": 1})")));
}

TEST(Request, about_data_has_the_members_of_its_action) {
  const auto read = [](const char* text) { return read_query(Json::parse(text)); };
  const auto shown = read(R"({"verb": "data", "version": 1, "action": "show", "name": "mnist", "count": 9})");
  ASSERT_TRUE(shown) << shown.error().what;
  EXPECT_EQ(std::get<DataRequest>(*shown).count, 9);
  ASSERT_TRUE(read(R"({"verb": "data", "version": 1})"));
  const auto refused = [&](const char* text) {
    const auto query = read(text);
    return query ? std::string() : query.error().what;
  };
  EXPECT_THAT(refused(R"({"verb": "data", "version": 1, "action": "verfy", "name": "mnist"})"),
              AllOf(HasSubstr("action"), HasSubstr("list, info, verify, fetch, show")));
  EXPECT_THAT(refused(R"({"verb": "data", "version": 1, "action": "verify"})"), HasSubstr("names no name"));
  EXPECT_THAT(refused(R"({"verb": "data", "version": 1, "action": "fetch", "name": "mnist", "count": 9})"),
              HasSubstr("a member \"count\", which is not known"));
  EXPECT_THAT(refused(R"({"verb": "data", "version": 1, "action": "info", "name": "mnist", "size": 4097})"),
              HasSubstr("1 to 4096"));
}

// The page that programs are written by.
TEST(Request, has_each_of_its_members_on_the_page_of_the_engine) {
  std::ifstream file(STRATA_SOURCE_DIR "/docs/engine.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const char* verb : {"compare", "sweep", "train", "export", "generate"}) {
    auto request = *request_for(verb);
    for (const auto& member : members_of(request)) EXPECT_THAT(page.str(), HasSubstr("`" + member.name + "`")) << verb;
  }
  for (const char* action : {"list", "info", "verify", "fetch", "show"}) {
    DataRequest request{.action = action};
    for (const auto& member : members_of(request))
      EXPECT_THAT(page.str(), HasSubstr("`" + member.name + "`")) << action;
  }
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
        R"("restarts": null)", R"("seed": -1)", R"("environments": [{"name": "a"}])", R"("restarts": 101)",
        R"("batch": [1, 1])", R"("device": "gpu")", R"("levels": ["a,b"])", R"("ci_width": 2)"}) {
    const auto refused = error(fmt::format(R"({{"verb": "compare", "version": 1, "model": "m", {}}})", wrong).c_str());
    EXPECT_THAT(refused.what, HasSubstr("; allowed: ")) << wrong;
    EXPECT_TRUE(refused.what.ends_with(
        fmt::format("member {} is {}; allowed: {}", refused.facts.where, refused.facts.got, refused.facts.allowed)))
        << refused.what;
    EXPECT_EQ(refused.exit, Exit::usage) << wrong;
  }
}

TEST(Request, that_is_none_is_refused_with_where_what_was_got_and_what_is_allowed_as_values) {
  const auto facts = [](const char* text) {
    const auto read = read_request(Json::parse(text));
    return read ? ErrorFacts{} : read.error().facts;
  };
  const auto verb = facts(R"({"verb": "comprae", "version": 1})");
  EXPECT_EQ(verb.where, "verb");
  EXPECT_EQ(verb.got, "\"comprae\"");
  EXPECT_EQ(verb.allowed, "compare, sweep, train, export, generate, run, show, runs, diff, data, commands");
  const auto version = facts(R"({"verb": "compare", "version": [2], "model": "m"})");
  EXPECT_EQ(version.where, "version");
  EXPECT_EQ(version.got, "[2]");
  EXPECT_EQ(version.allowed, "1");
  const auto name = facts(R"({"verb": "train", "version": 1, "epoch": 3})");
  EXPECT_EQ(name.where, "request");
  EXPECT_EQ(name.got, "\"epoch\"");
  EXPECT_THAT(name.allowed, HasSubstr("epochs, repeats"));
  EXPECT_EQ(facts(R"({"verb": "compare", "version": 1})").where, "model");
}

TEST(Request, of_commands_needs_some_and_bounds_its_runs) {
  const auto query = read_query(
      Json::parse(R"({"verb": "commands", "version": 1, "commands": ["a", "b -c"], "runs": 3, "served": true})"));
  ASSERT_TRUE(query) << query.error().what;
  const auto& asked = std::get<CommandsRequest>(*query);
  EXPECT_EQ(asked.commands, (std::vector<std::string>{"a", "b -c"}));
  EXPECT_EQ(asked.runs, 3);
  EXPECT_TRUE(asked.served);
  for (const char* wrong : {R"("runs": 3)", R"("commands": ["a", "b"], "runs": -1)", R"("commands": "a")"}) {
    const auto text = fmt::format(R"({{"verb": "commands", "version": 1, {}}})", wrong);
    EXPECT_FALSE(read_query(Json::parse(text))) << wrong;
  }
}

TEST(Request, has_a_member_for_an_option_and_none_for_what_is_no_option) {
  EXPECT_EQ(member_at(TrainRequest{}, "--data-dir"), "data_dir");
  EXPECT_EQ(member_at(TrainRequest{}, "a/folder"), "a/folder");
  EXPECT_EQ(member_at(TrainRequest{}, ""), "");
}

TEST(Member, that_is_typed_wrong_is_refused_with_its_option_and_what_is_allowed_as_values) {
  TrainRequest train;
  const auto facts = [members = members_of(train)](const std::string& name, const std::string& value) {
    for (const auto& member : members)
      if (member.name == name)
        if (const auto read = member.read(value); !read) return read.error().facts;
    return ErrorFacts{};
  };
  const auto expect = [&](const char* name, const char* value, const char* where, const char* got,
                          const std::string& allowed) {
    const auto read = facts(name, value);
    EXPECT_EQ(read.where, where);
    EXPECT_EQ(read.got, got);
    EXPECT_EQ(read.allowed, allowed);
  };
  expect("epochs", "0", "--epochs", "\"0\"", "1 to 100000");
  expect("device", "gpu", "--device", "\"gpu\"", "cpu, cuda");
  expect("augment", "flip,spin", "--augment", "\"flip,spin\"", "flip, crop");
  expect("name", "-x", "--name", "\"-x\"", "a text that is not empty and does not begin with -");
  expect("timeout_s", "soon", "--timeout", "\"soon\"", "a time as 60s or 2m, above 0 and at most 1000 days");
  expect("loss_margin", "-1", "--loss-margin", "-1", "a number above 0");
  expect("margin", "1", "--margin", "1", "percentage points above 0 and up to 50");
}

}  // namespace
}  // namespace strata::requests
