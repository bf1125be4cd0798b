// SPDX-License-Identifier: Apache-2.0
#include "cli/run_verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "cli/operations_view.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "engine/shard.hpp"
#include "requests/codec.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace {

struct Verb {
  const char *name, *about, *parts, *footer;  // `parts`: what shards are made of; empty: it is not split
};

constexpr const char* kMeasured =
    "Exit codes: 0 measured; 1 a level failed, crashed, timed out, was unequal or unproven; 2 wrong usage, nothing was "
    "measured; 3 the environment lacks what was required: a level that --levels names cannot run here (one of the "
    "default set that cannot is only listed: 0); 130, 143, 129 ended by Ctrl-C, SIGTERM or SIGHUP, what was measured "
    "is stored (./strata resume RUN continues); 141 the reader of the output went away.";
constexpr const char* kTrained =
    "Exit codes: 0 trained; 1 a level failed, crashed, timed out, was unequal or unproven; 2 wrong usage, nothing was "
    "trained; 3 the environment lacks what was required; 130, 143, 129 ended by Ctrl-C, SIGTERM or SIGHUP, complete "
    "epochs are stored (./strata resume RUN continues); 141 the reader of the output went away.";

constexpr Verb kVerbs[] = {
    {"compare", "run one network at its levels, prove equal work, measure interleaved, explain the difference", "",
     kMeasured},
    {"profile", "compare with --profile, quickly: where the time of an iteration goes at each level, layer by layer",
     "", kMeasured},
    {"train", "train one network at its levels on real data: accuracy, loss and time, epoch by epoch", "repeats",
     kTrained},
    {"sweep", "compare over a grid of batches, sizes, threads, precisions: which level is the fastest where", "points",
     kMeasured}};

struct Asked {
  requests::Request request;
  requests::CommandsRequest commands;  // of `compare --command`
  OperationsArguments view;            // of `profile`
  RunArguments run;
};

// Of `compare`, in place of a network: what means anything beside commands, and what does not.
constexpr const char* kCommand = "--command";
const std::set<std::string> kBesideCommands{kCommand,   "--setup",   "--warmup", "--runs",
                                            "--budget", "--timeout", "--format", "--output"};

void add_commands(CLI::App& verb, requests::CommandsRequest& request) {
  for (const auto& member : requests::members_of(request))
    if (!member.option.empty() && verb.get_option_no_throw(member.option) == nullptr) add_member(verb, member);
  auto* model = verb.get_option("model");
  auto* command = verb.get_option(kCommand);
  command->required(false)->allow_extra_args()->each([model](const std::string&) { model->required(false); });
  for (const char* name : {"--setup", "--warmup", "--runs"}) verb.get_option(name)->needs(command);
}

Result<int> compare_commands(const CLI::App& verb, const Asked& asked) {
  for (const auto* option : verb.get_options())
    if (option->count() > 0 && !kBesideCommands.contains(option->get_name()))
      throw WrongUsage(fmt::format("{} means nothing with --command", option->get_name()), "leave one of them out");
  auto request = asked.commands;
  const auto& options = requests::common_of(asked.request).options;
  request.budget_s = options.budget_s.value_or(request.budget_s);
  request.timeout_s = options.timeout_s.value_or(request.timeout_s);
  return run_commands(request, asked.run);
}

// `profile` is a comparison with other defaults.
requests::Request plain_request(const std::string& verb) {
  if (verb != "profile") return *requests::request_for(verb);
  requests::CompareRequest request;
  request.options.profile = true;
  request.options.preset = "quick";
  return request;
}

void add_verb(CLI::App& app, const Verb& described, const std::vector<std::string>& words, int& exit_code) {
  auto* verb = app.add_subcommand(described.name, described.about);
  const auto asked = std::make_shared<Asked>(Asked{plain_request(described.name), {}, {}});
  asked->run.command = requests::command_of(words);
  add_members(*verb, requests::members_of(asked->request));
  add_run_arguments(*verb, asked->run);
  if (*described.parts != '\0') add_cluster_options(*verb, asked->run.cluster, described.parts);
  if (auto* deep = verb->get_option_no_throw("--deep")) deep->excludes(verb->get_option("--dynamic"));
  if (auto* init = verb->get_option_no_throw("--init")) init->excludes(verb->get_option("--sweep-init"));
  if (std::string_view(described.name) == "compare") add_commands(*verb, asked->commands);
  std::vector<CLI::Option*> view;
  if (std::string_view(described.name) == "profile") view = add_operations_view(*verb, asked->view);
  verb->footer(described.footer);
  set_action(
      *verb, exit_code,
      [asked, verb, view] {
        if (std::ranges::any_of(view, [](const auto* option) { return option->count() > 0; }))
          asked->run.operations = asked->view.view();
        const bool of_commands = !asked->commands.commands.empty();
        return of_commands ? compare_commands(*verb, *asked) : run_request(asked->request, asked->run);
      },
      [asked]() -> Result<engine::Needs> {
        if (!asked->commands.commands.empty()) return engine::Needs();
        return engine::needs_of(asked->request);
      });
}

}  // namespace

Result<int> run_request(const requests::Request& request, RunArguments& a) {
  if (const auto* compare = std::get_if<requests::CompareRequest>(&request)) return run_compare(*compare, a);
  if (const auto* sweep = std::get_if<requests::SweepRequest>(&request)) return run_sweep(*sweep, a);
  if (const auto* train = std::get_if<requests::TrainRequest>(&request)) return run_train(*train, a);
  return fail(requests::verb_of(request) + " makes no run", "", Exit::usage);
}

void add_run_verbs(CLI::App& app, const std::vector<std::string>& words, int& exit_code) {
  for (const auto& verb : kVerbs) add_verb(app, verb, words, exit_code);
}

}  // namespace strata::cli
