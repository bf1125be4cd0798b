// SPDX-License-Identifier: Apache-2.0
#include "requests/codec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/escape.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "requests/members.hpp"

namespace strata::requests {
using Json = nlohmann::json;
namespace {

const std::vector<std::string> kVerbs{"compare", "sweep", "train", "export", "generate"};  // in the order of Request
const std::vector<std::string> kQueryVerbs{"show", "runs", "diff", "data", "commands"};    // in the order of Query

std::vector<std::string> all_verbs() {
  auto all = kVerbs;
  all.emplace_back("run");
  all.insert(all.end(), kQueryVerbs.begin(), kQueryVerbs.end());
  return all;
}

// Members that differ from their defaults.
std::vector<Member> changed(std::vector<Member> members, const std::vector<Member>& defaults) {
  std::vector<Member> all;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].json() != defaults[i].json()) all.push_back(std::move(members[i]));
  return all;
}
std::vector<Member> changed(Request& request) {
  auto plain = *request_for(verb_of(request));
  return changed(members_of(request), members_of(plain));
}

template <class Asked>
std::vector<Member> changed(Asked& request) {
  Asked plain;
  return changed(members_of(request), members_of(plain));
}

Json json_of(const std::string& verb, const std::vector<Member>& members) {
  Json value{{"verb", verb}, {"version", kRequestVersion}};
  for (const auto& member : members) value[member.name] = member.json();
  return value;
}

std::vector<std::string> words_of(const std::string& verb, const std::vector<Member>& members) {
  std::vector<std::string> words{verb};
  for (const auto& member : members) {
    if (member.arity == Arity::nothing) words.push_back(member.option);
    for (auto& value : member.values()) {
      if (!member.option.empty()) words.push_back(member.option);
      words.push_back(std::move(value));
    }
  }
  return words;
}

std::string command_in(std::vector<std::string> words, const std::string& store) {
  if (!store.empty()) words.insert(words.end(), {"--store", store});
  return command_of(words);
}

tl::unexpected<Error> refused(std::string what, std::string hint, ErrorFacts facts) {
  return fail(std::move(what), std::move(hint), Exit::usage, std::move(facts));
}

Result<void> read_members(const Json& value, const std::vector<Member>& members) {
  std::vector<std::string> known{"verb", "version"};
  for (const auto& member : members) known.push_back(member.name);
  for (const auto& [name, given] : value.items())
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto near = nearest(name, known);
      return refused(fmt::format("the request has a member {}, which is not known", outside::shown(name)),
                     near ? fmt::format("did you mean \"{}\"?", *near) : "docs/engine.md lists the members",
                     among("request", name, known));
    }
  for (const auto& member : members)
    if (const auto given = value.find(member.name); given != value.end())
      if (const auto allowed = member.read_json(*given))
        return refused(
            fmt::format("the request's member {} is {}; allowed: {}", member.name, outside::shown(*given), *allowed),
            "docs/engine.md lists the members", {member.name, outside::shown(*given), *allowed});
  for (const auto& member : members)
    if (member.required && member.values().empty())
      return refused("the request names no " + member.name, fmt::format("add \"{}\": {}", member.name, member.help),
                     {.where = member.name});
  return {};
}

Result<void> check_version(const Json& value) {
  if (!value.is_object())
    return refused(fmt::format("the request is {}, not an object", outside::shown(value)),
                   R"(as {"verb": "compare", "version": 1, "model": "resnet50"})",
                   {"request", outside::shown(value), "an object"});
  const auto& version = outside::field(value, "version");
  if (outside::as_integer(version) != kRequestVersion)
    return refused(fmt::format("the request's version is {}", outside::shown(version)),
                   fmt::format("this strata reads \"version\": {}", kRequestVersion),
                   {"version", outside::shown(version), std::to_string(kRequestVersion)});
  return {};
}

}  // namespace

std::string verb_of(const Request& request) {
  return kVerbs[request.index()];
}

std::optional<Request> request_for(const std::string& verb) {
  static const std::vector<Request> plain{CompareRequest{}, SweepRequest{}, TrainRequest{}, ExportRequest{},
                                          GenerateRequest{}};
  const auto at = std::find(kVerbs.begin(), kVerbs.end(), verb);
  return at == kVerbs.end() ? std::nullopt : std::optional(plain[static_cast<std::size_t>(at - kVerbs.begin())]);
}

CompareRequest& common_of(Request& request) {
  return std::visit([](auto& asked) -> CompareRequest& { return asked; }, request);
}

const CompareRequest& common_of(const Request& request) {
  return std::visit([](const auto& asked) -> const CompareRequest& { return asked; }, request);
}

Json to_json(const Request& request) {
  auto copy = request;
  return json_of(verb_of(request), changed(copy));
}

Json to_json(const SuiteRequest& request) {
  auto copy = request;
  return json_of("run", changed(copy));
}

Json to_json(const PackRequest& request) {
  auto copy = request;
  return json_of("pack", changed(copy));
}

Result<Request> read_request(const Json& value) {
  STRATA_TRY(check_version(value));
  auto request = request_for(outside::text_or(value, "verb"));
  if (!request) {
    const auto verb = outside::shown(outside::field(value, "verb"));
    auto error = unknown_value("the request's verb", verb, all_verbs());
    error.facts.where = "verb";
    error.facts.got = verb;
    return tl::unexpected(std::move(error));
  }
  STRATA_TRY(read_members(value, members_of(*request)));
  return std::move(*request);
}

bool is_suite(const Json& value) {
  return outside::text_or(value, "verb") == "run";
}

bool is_query(const Json& value) {
  const auto verb = outside::text_or(value, "verb");
  return std::find(kQueryVerbs.begin(), kQueryVerbs.end(), verb) != kQueryVerbs.end();
}

Result<Query> read_query(const Json& value) {
  static const std::vector<Query> plain{ShowRequest{}, RunsRequest{}, DiffRequest{}, DataRequest{}, CommandsRequest{}};
  STRATA_TRY(check_version(value));
  const auto at = std::find(kQueryVerbs.begin(), kQueryVerbs.end(), outside::text_or(value, "verb"));
  auto query = plain.at(static_cast<std::size_t>(at - kQueryVerbs.begin()));
  if (auto* data = std::get_if<DataRequest>(&query); data != nullptr && value.contains("action"))
    STRATA_TRY(
        read_members({{"action", value["action"]}}, {members_of(*data).front()}));  // which says what else it has
  STRATA_TRY(std::visit([&](auto& asked) { return read_members(value, members_of(asked)); }, query));
  return query;
}

Result<SuiteRequest> read_suite_request(const Json& value) {
  STRATA_TRY(check_version(value));
  SuiteRequest request;
  STRATA_TRY(read_members(value, members_of(request)));
  return request;
}

std::string member_at(Request request, const std::string& where) {
  const auto members = members_of(request);
  const auto at =
      std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.option == where; });
  return where.empty() || at == members.end() ? where : at->name;  // a model has no option
}

std::vector<std::string> command_words(const Request& request) {
  auto copy = request;
  return words_of(verb_of(request), changed(copy));
}

std::string command_of(const std::vector<std::string>& words) {
  std::string command = "./strata";
  for (const auto& word : words) command += " " + escape::shell_word(word);
  return command;
}

std::string command_of(const Request& request, const std::string& store) {
  return command_in(command_words(request), store);
}

std::string command_of(const SuiteRequest& request, const std::string& store) {
  auto copy = request;
  return command_in(words_of("run", changed(copy)), store);
}

}  // namespace strata::requests
