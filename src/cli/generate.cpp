// SPDX-License-Identifier: Apache-2.0
// `strata generate MODEL -o DIR`: the network as a C++ program that builds and runs without PyTorch, Python and strata.
#include "generate/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "cli/console.hpp"
#include "cli/members.hpp"
#include "cli/memory_budget.hpp"
#include "cli/verbs.hpp"
#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "common/staged_folder.hpp"
#include "compiler/kernels.hpp"
#include "engine/artefact.hpp"
#include "generate/compile_bundle.hpp"
#include "generate/libtorch.hpp"
#include "plan/bundle.hpp"
#include "plan/options.hpp"
#include "report/program.hpp"
#include "requests/commands.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

using GenerateArguments = requests::GenerateRequest;

// What a program is made from.
struct Source {
  plan::Bundle bundle;
  compiler::Kernels kernels;  // as measured; empty: by the rules
};

Result<void> check_precision(const GenerateArguments& a) {
  const auto known =
      requests::generated_precisions(a.target, a.train && a.target != "libtorch");  // which is refused below
  if (std::find(known.begin(), known.end(), a.options.precision) != known.end()) return {};
  return fail(fmt::format("--precision {}: --target {}{} has {}", a.options.precision, a.target,
                          a.train ? " --train" : "", fmt::join(known, ", ")),
              "", Exit::usage);
}

Result<nlohmann::json> spec_of(const GenerateArguments& a) {
  STRATA_TRY(check_precision(a));
  if (a.tune && a.target != "onednn")
    return fail(fmt::format("--tune: --target {} has no kernels to choose from", a.target), "leave one of them out",
                Exit::usage);
  if (a.train && a.target == "libtorch")
    return fail(fmt::format("--train: --target {} writes the forward pass, which autograd can train", a.target),
                "leave one of them out", Exit::usage);
  if (a.train && a.tune)
    return fail("--tune: a training step has no kernels to choose from", "leave one of --tune and --train out",
                Exit::usage);
  STRATA_TRY(parse_memory_budget(a.memory_budget));
  auto options = a.options;
  if (a.train) options.mode = "train";
  // what eager's runs are off in the mode is known where they are made
  if (a.target == "cuda" && a.options.precision != "fp32") options.device = "cuda";
  return plan::spec_of(options);
}

// A folder that is made, or is empty, so that nothing of the user's is ever replaced.
Result<fs::path> output_folder(const std::string& output) {
  std::error_code error;
  const auto folder = fs::absolute(output, error);
  if (fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    return fail(fmt::format("-o {}: {}", output,
                            fs::is_directory(folder, error) ? "the folder is not empty" : "this is a file"),
                "name a folder that is not there yet, or an empty one", Exit::usage);
  const auto parent = folder.parent_path();
  if (!fs::is_directory(parent, error))
    return fail(fmt::format("-o {}: the folder {} is not there", output, parent.string()), "make it first",
                Exit::usage);
  if (::access(parent.c_str(), W_OK) != 0)
    return fail(fmt::format("-o {}: cannot write to {}", output, parent.string()), "name another place", Exit::usage);
  return folder;
}

// The kernels that the level `static@measured` found to be the fastest here, timed unless they have been before.
Result<compiler::Kernels> tuned_kernels(const plan::Bundle& bundle, const plan::Environments& environments,
                                        const GenerateArguments& a, const Installation& place, ProgressLine& line) {
  const auto levels =
      STRATA_TRY(plan::choose_levels(level::discover(level::search_path(place.root)), {"static@measured"}));
  const auto job = STRATA_TRY(engine::get_artefact(levels.front(), bundle, environments, place, a.options, line));
  const auto file = job.cache / "kernels.json";
  std::ifstream in(file);
  const auto times = nlohmann::json::parse(in, nullptr, false);
  if (!times.is_object())
    return fail(fmt::format("cannot read {}", file.string()), "remove its folder; it is made again");
  return compiler::fastest_kernels(times);
}

Result<Source> capture(const GenerateArguments& a, const nlohmann::json& spec, const Installation& place,
                       ProgressLine& line) {
  const auto environments = STRATA_TRY(plan::ask_environments(place, {}));
  warn_of_model_file(a.options.model);
  auto bundle = plan::get_bundle(spec, place, environments.measured, engine::wishes_of(a.options, line));
  if (!bundle) {
    auto error = bundle.error();  // which knows nothing of this command's options
    if (error.exit == Exit::environment && spec.value("device", "cpu") == "cuda")
      error.hint =
          fmt::format("--precision {} needs a GPU here, to know the errors of eager at it; --precision fp32 does not",
                      a.options.precision);
    return tl::unexpected(std::move(error));
  }
  Source source{*std::move(bundle), {}};
  if (!a.tune) return source;
  auto kernels = tuned_kernels(source.bundle, environments, a, place, line);
  if (!kernels) return tl::unexpected(kernels.error());
  source.kernels = *std::move(kernels);
  return source;
}

// What strata's own libraries are for the folder's CMakeLists.txt: words behind its command, not a part of the folder,
// which is to be built elsewhere too.
std::string own_libraries(const GenerateArguments& a, const Installation& place) {
  if (a.target == "libtorch") return " -DSTRATA_PYTHON=" + escape::shell_word(place.python);
  std::string words;
  const auto venv = place.root / ".venv";
  if (a.target == "onednn" && fs::exists(venv / "include/oneapi/dnnl/dnnl.hpp"))
    words += " -DDNNL_ROOT=" + escape::shell_word(venv.string());
  if (a.target != "cuda") return words;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(venv / "lib", error))
    if (const auto folder = python.path() / "site-packages/nvidia/cudnn"; fs::exists(folder / "include/cudnn.h"))
      words += " -DCUDNN_ROOT=" + escape::shell_word(folder.string());
  const auto frontend = venv / "cudnn-frontend/include";
  if (fs::exists(frontend / "cudnn_frontend.h")) words += " -DCUDNN_FRONTEND=" + escape::shell_word(frontend.string());
  return words;
}

// Writes the files and says what was made.
Result<std::string> write_files(const GenerateArguments& a, const Source& source, const Installation& place,
                                const fs::path& folder) {
  if (a.target == "libtorch") {
    const auto calls = STRATA_TRY(generate::libtorch_into(folder, source.bundle.folder, place.root, a.options.threads));
    return fmt::format("{} operations a run, each a call of ATen", calls);
  }
  const bool cuda = a.target == "cuda";
  const auto program = generate::compile_bundle(source.bundle.folder, source.kernels,
                                                cuda ? compiler::Target::cuda : compiler::Target::cpu,
                                                *parse_memory_budget(a.memory_budget));
  if (!program) return tl::unexpected(program.error());
  generate::Options options;
  options.sources = place.root / "runtime";
  options.threads = a.options.threads;
  STRATA_TRY(generate::generate_into(folder, *program, source.bundle.folder, options));
  const auto calls = std::count_if(program->steps.begin(), program->steps.end(),
                                   [](const auto& step) { return step.when == compiler::When::run && !step.view; });
  auto text = fmt::format("{} steps a run, {} bytes for activations (no plan can go below {})", calls,
                          program->arena_bytes, program->least_arena_bytes);
  if (program->budget) text += "\n  " + report::repeated_text(*program);
  return text;
}

// All of the folder appears, or nothing: it is written beside its place and renamed.
Result<std::string> write_program(const GenerateArguments& a, const Source& source, const Installation& place,
                                  const fs::path& folder) {
  const auto partial = STRATA_TRY(make_folder_beside(folder));
  const auto written = write_files(a, source, place, partial);
  const auto error = written ? put_in_place(partial, folder) : std::error_code();
  if (written && !error) return written;
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  if (!written) return written;
  return fail(fmt::format("cannot write {}: {}", folder.string(), error.message()),
              "is there space, and may you write there?");
}

int generate_program(const GenerateArguments& a) {
  const auto spec = spec_of(a);
  if (!spec) return print_error(spec.error());
  const auto folder = output_folder(a.output);
  if (!folder) return print_error(folder.error());
  auto place = installation();
  if (!a.python.empty()) place.python = a.python;
  ProgressLine line;
  const auto source = capture(a, *spec, place, line);
  line.clear();
  if (interrupted()) return interrupt_exit_code();
  if (!source) return print_error(source.error());
  const auto written = write_program(a, *source, place, *folder);
  if (!written) return print_error(written.error());
  const auto quoted = escape::shell_word(folder->string());
  answer(fmt::format("{}\n  {}\n", folder->string(), *written));
  answer(fmt::format(
      "  build it: cmake -S {0} -B {0}/build{1} && cmake --build {0}/build\n  test it:  {0}/build/network --check\n",
      quoted, own_libraries(a, place)));
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand(
      "generate", "write the network as a static C++ program that needs neither PyTorch nor Python nor strata");
  auto a = std::make_shared<GenerateArguments>();
  add_members(*verb, requests::members_of(*a));
  for (const char* option : {"--memory-budget", "--loss"}) verb->get_option(option)->needs(verb->get_option("--train"));
  verb->footer(
      "Exit codes: 0 written; 1 the capture or the writing failed; 2 wrong usage; 3 the network has no graph, or an "
      "operation that cannot be written, or the environment lacks what is needed; 130, 143 ended by Ctrl-C or SIGTERM, "
      "nothing was written.");
  verb->callback([a, &exit_code] { exit_code = generate_program(*a); });
}

}  // namespace strata::cli
