// SPDX-License-Identifier: Apache-2.0
// `strata graph MODEL`: the captured network, node by node.
#include "report/graph.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "compiler/compile.hpp"
#include "generate/compile_bundle.hpp"
#include "generate/memory_budget.hpp"
#include "graph/check.hpp"
#include "graph/load.hpp"
#include "level/installed_levels.hpp"
#include "plan/bundle.hpp"
#include "plan/missing_support.hpp"
#include "plan/options.hpp"
#include "report/format.hpp"
#include "report/program.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace {

struct GraphArguments {
  plan::Options options;
  std::string format = "text", python, dump_after, target = "onednn", budget, precision = "fp32";
  std::int64_t block = compiler::native_block();
  bool backward = false;
};

Result<void> check_dump(const GraphArguments& a) {
  if (!a.budget.empty() && (a.dump_after.empty() || !a.backward))
    return fail("--memory-budget: only the program of a training step is made to fit one",
                "add --mode train --backward --dump-after plan_memory", Exit::usage);
  STRATA_TRY(generate::parse_memory_budget(a.budget));
  const std::string reduced = a.backward ? "amp-bf16" : "bf16";
  if (a.precision != "fp32" && (a.precision != reduced || a.dump_after.empty()))
    return fail(fmt::format("--precision {}: {}", a.precision,
                            a.precision == reduced ? "the captured graph is the same in all; the program is not"
                                                   : fmt::format("allowed are fp32 and {}", reduced)),
                a.dump_after.empty() ? "add --dump-after PASS" : "", Exit::usage);
  if (a.dump_after.empty()) return {};
  if (a.format == "dot")
    return fail("--dump-after with --format dot: a program is shown as text or json", "", Exit::usage);
  if (a.options.mode == "train" && !a.backward)
    return fail("--dump-after with --mode train: the passes are for inference, or for a whole training step",
                "add --backward, or leave --mode train out", Exit::usage);
  auto known = compiler::check_pass_name(a.dump_after);
  if (!known) known.error().what = "--dump-after: " + known.error().what;
  if (known && !a.budget.empty() && !compiler::reaches_pass(a.dump_after, "recompute"))
    return fail(fmt::format("--memory-budget with --dump-after {}: what fits is found later, by the pass recompute",
                            a.dump_after),
                "name recompute or a later pass", Exit::usage);
  return known;
}

Result<int> show_program(const GraphArguments& a, const compiler::Program& program, const std::string& title) {
  if (a.format == "json")
    answer_json(report::program_json(program, title, a.dump_after), 1);
  else
    answer(report::program_text(program, title, a.dump_after, static_cast<std::size_t>(terminal_style().width)));
  return 0;
}

Result<core::CaseSpec> capture_spec_of(const GraphArguments& a) {
  auto options = a.options;
  auto spec = STRATA_TRY(plan::spec_of(options));
  if (a.backward && options.mode != "train")
    return fail(fmt::format("--backward with --mode {}: only a training step has gradients", options.mode),
                "add --mode train", Exit::usage);
  return spec;
}

Result<plan::Bundle> capture(const GraphArguments& a, const core::CaseSpec& spec) {
  auto place = installation();
  if (!a.python.empty()) place.python = a.python;
  const auto environments = STRATA_TRY(plan::ask_environments(place, {}));
  ProgressLine line;
  warn_of_model_file(a.options.model);
  plan::limit_files(a.options);
  return plan::get_bundle(spec, place, environments.measured, engine::capture_options(a.options, line));
}

// With --backward the training step that strata makes of the network, else the network alone.
Result<graph::TrainingGraph> wanted_graph(const GraphArguments& a, const std::filesystem::path& bundle) {
  if (a.backward) return generate::training_of(bundle);
  graph::TrainingGraph alone;
  alone.graph = STRATA_TRY(graph::load(bundle));
  return alone;
}

// What the levels on a processor lack of the network; a training step of strata's own is made of what they have.
std::vector<plan::MissingSupport> missing_support_of(const GraphArguments& a, const graph::Graph& graph) {
  if (a.backward) return {};
  return plan::missing_support(graph, level::installed_levels(installation()).levels, "cpu");
}

Result<int> show_graph(const GraphArguments& a) {
  STRATA_TRY(check_dump(a));
  const auto spec = STRATA_TRY(capture_spec_of(a));
  const auto captured = capture(a, spec);
  if (interrupted()) return interrupt_exit_code();
  const auto bundle = STRATA_TRY(captured);
  const auto shown = STRATA_TRY(wanted_graph(a, bundle.folder));
  const auto& graph = shown.graph;
  const auto checked = STRATA_TRY(graph::check(graph));
  const auto title = bundle.info.value("id", a.options.model);
  if (!a.dump_after.empty()) {
    const compiler::Options passes{.block = a.block,
                                   .stop_after = a.dump_after,
                                   .target = a.target == "cuda" ? compiler::Target::cuda : compiler::Target::cpu,
                                   .budget = *generate::parse_memory_budget(a.budget),
                                   .type = a.precision == "fp32" ? graph::Type::float32 : graph::Type::bfloat16};
    const auto program = STRATA_TRY(a.backward ? compiler::compile(shown, passes) : compiler::compile(graph, passes));
    return show_program(a, program, title);
  }
  const auto lacks = missing_support_of(a, graph);
  if (a.format == "json") {
    auto all = report::graph_json(graph, checked, title);
    all["lacks"] = nlohmann::ordered_json::object();
    for (const auto& level : lacks)
      all["lacks"][level.level] = {{"operations", level.operations}, {"words", level.words}};
    answer_json(all, 1);
  } else if (a.format == "dot") {
    answer(report::graph_dot(graph, checked, title));
  } else {
    const auto width = static_cast<std::size_t>(terminal_style().width);
    answer(report::graph_text(graph, checked, title, width));
    for (const auto& level : lacks)
      for (const auto& line :
           report::wrap(report::printable(fmt::format("{} lacks: {}", level.level, level.words)), width, 2))
        answer(line + "\n");
  }
  return 0;
}

}  // namespace

void add_graph(CLI::App& app, int& exit_code) {
  auto* verb =
      app.add_subcommand("graph", "the captured network: every operation with its place, shapes, FLOPs and bytes");
  auto a = std::make_shared<GraphArguments>();
  auto& o = a->options;
  verb->add_option("model", o.model, "as in compare")->required();
  add_member(*verb, requests::member_of_single_batch(o.batches));
  add_members(*verb, requests::members_of_inputs(o, "the capture's inputs"));
  choice(verb->add_option("--mode", o.mode, "infer, or train: the graph in train mode, without the loss")
             ->capture_default_str(),
         {"infer", "train"});
  verb->add_flag("--backward", a->backward,
                 "with --mode train: the training step, with loss and gradients by strata's own rules");
  verb->add_option("--loss", o.loss, "as in compare")->type_name("LOSS|FILE.py:FUNCTION");
  add_member(*verb, requests::described(requests::threads(o.threads), "threads", "--threads",
                                        "of the capture (default: physical cores)"));
  choice(verb->add_option("--format", a->format, "of the answer; dot is Graphviz's")->capture_default_str(),
         {"text", "json", "dot"});
  auto* dump =
      verb->add_option(
              "--dump-after", a->dump_after,
              "the program that strata makes of the graph, after a pass: lower, ..., plan_memory (a wrong name "
              "lists them)")
          ->type_name("PASS");
  choice(verb->add_option("--block", a->block, "channels in a block, 16 (AVX-512) or 8 (default: this machine's)"),
         {"8", "16"})
      ->needs(dump);
  choice(verb->add_option("--target", a->target, "what the program is made for: a processor (onednn) or a GPU (cuda)")
             ->capture_default_str(),
         {"onednn", "cuda"})
      ->needs(dump);
  verb->add_option("--precision", a->precision,
                   "of the program, with --dump-after: fp32 or bf16; of a training step fp32 or amp-bf16")
      ->type_name("{fp32,bf16,amp-bf16}")
      ->capture_default_str();
  verb->add_option(
          "--memory-budget", a->budget,
          "with --dump-after, of a training step: as in generate; from the pass `recompute` on (default: none)")
      ->type_name("BYTES");
  add_member(*verb, requests::member_of_python(a->python));
  add_members(*verb, requests::members_of_capture(o));
  verb->footer(
      "Exit codes: 0 shown; 1 the capture failed or took too long; 2 wrong usage; 3 the network has no graph that "
      "strata can show, or the environment lacks what is needed; 130, 143 ended by Ctrl-C or SIGTERM.");
  set_action(
      *verb, exit_code, [a] { return show_graph(*a); }, [a] { return engine::needs_of_python(a->python); });
}

}  // namespace strata::cli
