// SPDX-License-Identifier: Apache-2.0
#include "engine/generate_runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/container_image.hpp"
#include "common/escape.hpp"
#include "common/interrupt.hpp"
#include "common/staged_folder.hpp"
#include "compiler/kernels.hpp"
#include "engine/artefact.hpp"
#include "engine/package_versions.hpp"
#include "generate/compile_bundle.hpp"
#include "generate/folder.hpp"
#include "generate/generate.hpp"
#include "generate/libtorch.hpp"
#include "generate/memory_budget.hpp"
#include "level/installed_levels.hpp"
#include "plan/bundle.hpp"
#include "plan/model_file.hpp"
#include "plan/options.hpp"
#include "report/program.hpp"
#include "requests/commands.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

// What a program is made from.
struct Source {
  plan::Bundle bundle;
  compiler::Kernels kernels;  // as measured; empty: by the rules
};

Result<void> check_precision(const requests::GenerateRequest& a) {
  const auto known =
      requests::generated_precisions(a.target, a.train && a.target != "libtorch");  // which is refused below
  if (std::find(known.begin(), known.end(), a.options.precision) != known.end()) return {};
  return fail(fmt::format("--precision {}: --target {}{} has {}", a.options.precision, a.target,
                          a.train ? " --train" : "", fmt::join(known, ", ")),
              "", Exit::usage);
}

Result<core::CaseSpec> spec_of(const requests::GenerateRequest& a) {
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
  STRATA_TRY(generate::parse_memory_budget(a.memory_budget));
  if (!a.train && !a.memory_budget.empty())
    return fail("--memory-budget means nothing without --train", "leave --memory-budget out", Exit::usage);
  if (!a.train && a.clip_norm)
    return fail("--clip-norm means nothing without --train", "leave --clip-norm out", Exit::usage);
  auto options = a.options;
  if (a.train) options.mode = "train";
  if (a.clip_norm) options.optimiser = fmt::format("sgd:clip_norm={}", *a.clip_norm);
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
                                        const requests::GenerateRequest& a, const Installation& place,
                                        EventSink& events) {
  const auto levels = STRATA_TRY(plan::choose_levels(level::installed_levels(place), {"static@measured"}));
  const auto job = STRATA_TRY(get_artefact(levels.front(), bundle, environments, place, a.options, events));
  const auto file = job.cache / "kernels.json";
  std::ifstream in(file);
  const auto times = nlohmann::json::parse(in, nullptr, false);
  if (!times.is_object())
    return fail(fmt::format("cannot read {}", file.string()), "remove its folder; it is made again");
  return compiler::fastest_kernels(times);
}

Result<Source> capture(const requests::GenerateRequest& a, const core::CaseSpec& spec, const Installation& place,
                       EventSink& events) {
  const auto environments = STRATA_TRY(plan::ask_environments(place, {}));
  if (const auto notice = plan::notice_of(a.options.model); !notice.empty()) events.note(notice);
  auto bundle = plan::get_bundle(spec, place, environments.measured, capture_options(a.options, events));
  if (!bundle) {
    auto error = bundle.error();  // which knows nothing of this command's options
    if (error.exit == Exit::environment && spec.device == core::Device::cuda)
      error.hint =
          fmt::format("--precision {} needs a GPU here, to know the errors of eager at it; --precision fp32 does not",
                      a.options.precision);
    return tl::unexpected(std::move(error));
  }
  Source source{*std::move(bundle), {}};
  if (!a.tune) return source;
  auto kernels = tuned_kernels(source.bundle, environments, a, place, events);
  if (!kernels) return tl::unexpected(kernels.error());
  source.kernels = *std::move(kernels);
  return source;
}

// What strata's own libraries are for the folder's CMakeLists.txt: words behind its command, not a part of the folder,
// which is to be built elsewhere too.
std::string own_libraries(const requests::GenerateRequest& a, const Installation& place) {
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

// The image's recipe; none for CUDA, whose images begin with CUDA's own.
Result<void> write_image(const requests::GenerateRequest& a, const Installation& place, const fs::path& folder) {
  if (a.target == "cuda") return {};
  const bool libtorch = a.target == "libtorch";
  const auto versions =
      libtorch ? package_versions({"torch"}, place.python, place.root)
               : package_versions({"onednn-cpu-gomp", "onednn-devel-cpu-gomp"}, place.tools_python, place.root);
  ContainerImage image{
      .verb = "generate",
      .python = versions.python,
      .packages = versions.packages,
      .build = fmt::format("cmake -S . -B build -DSTRATA_PYTHON={} && cmake --build build", kImagePython),
      .test = "build/network --check",
      .program = {"/network/network"},
      .arguments = {"--check"}};
  if (!libtorch) {
    image.build = "cmake -S . -B build -DNETWORK_NATIVE=$NETWORK_NATIVE && cmake --build build";
    image.choices =
        "# --build-arg NETWORK_NATIVE=OFF: code for other processors too than the one that builds the image\n"
        "ARG NETWORK_NATIVE=ON\n";
    image.libraries = {"libgomp1"};
  }
  if (!libtorch && !a.train) {  // which read photographs
    image.tools = {"libjpeg62-turbo-dev"};
    image.libraries.push_back("libjpeg62-turbo");
  }
  const auto templates = place.root / "runtime/container";
  const auto text = STRATA_TRY(generate::read_text(templates / "Dockerfile"));
  STRATA_TRY(generate::write_text(folder / "Dockerfile", dockerfile(text, image)));
  return generate::copy_to(templates / "dockerignore", folder / ".dockerignore");
}

// Writes the files and says what was made.
Result<std::string> write_files(const requests::GenerateRequest& a, const Source& source, const Installation& place,
                                const fs::path& folder) {
  STRATA_TRY(write_image(a, place, folder));
  if (a.target == "libtorch") {
    const auto calls = STRATA_TRY(generate::libtorch_into(folder, source.bundle.folder, place.root, a.options.threads));
    return fmt::format("{} operations a run, each a call of ATen", calls);
  }
  const bool cuda = a.target == "cuda";
  const auto program = generate::compile_bundle(source.bundle.folder, source.kernels,
                                                cuda ? compiler::Target::cuda : compiler::Target::cpu,
                                                *generate::parse_memory_budget(a.memory_budget));
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
Result<std::string> write_program(const requests::GenerateRequest& a, const Source& source, const Installation& place,
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

}  // namespace

Result<Generated> run_generate(const requests::GenerateRequest& request, EventSink& events) {
  plan::limit_files(request.options);
  const auto spec = STRATA_TRY(spec_of(request));
  const auto folder = STRATA_TRY(output_folder(request.output));
  auto place = installation();
  if (!request.python.empty()) place.python = request.python;
  const auto source = STRATA_TRY(capture(request, spec, place, events));
  if (interrupted()) return fail("interrupted: nothing was written");
  auto summary = STRATA_TRY(write_program(request, source, place, folder));
  const auto quoted = escape::shell_word(folder.string());
  return Generated{.folder = folder,
                   .summary = std::move(summary),
                   .build = fmt::format("cmake -S {0} -B {0}/build{1} && cmake --build {0}/build", quoted,
                                        own_libraries(request, place)),
                   .test = quoted + "/build/network --check"};
}

}  // namespace strata::engine
