// SPDX-License-Identifier: Apache-2.0
#include "generate/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

#include "common/escape.hpp"
#include "common/fill_in.hpp"
#include "common/safetensors.hpp"
#include "core/bundle_info.hpp"
#include "generate/folder.hpp"
#include "generate/kit_files.hpp"
#include "generate/reference.hpp"
#include "generate/stages.hpp"

namespace strata::generate {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// Normalisation of images as capture's photographs and digits have it (src/capture/inputs.py).
struct Normalisation {
  std::vector<double> mean, deviation;  // by channel
};

// Of a network whose only input is a batch of images; nullopt: it is none.
std::optional<Normalisation> normalisation(const compiler::Program& program) {
  const auto& inputs = program.graph.inputs;
  const auto shape = inputs.size() == 1 ? program.value(inputs.front().value).shape : graph::Shape();
  if (shape.size() != 4 || (shape[1] != 1 && shape[1] != 3)) return std::nullopt;
  if (shape[1] == 1) return Normalisation{{0.1307}, {0.3081}};
  return Normalisation{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
}

std::string ports(const compiler::Program& program, const std::vector<graph::Named>& list) {
  std::string text;
  for (const auto& element : list)
    text += fmt::format("{}{{{}, {}, kit::{}}}", text.empty() ? "" : ", ", escape::cpp_string(element.name),
                        braces(program.value(element.value).shape), type_literal(program.value(element.value).type));
  return "{" + text + "}";
}

std::string listed(const compiler::Program& program, const std::vector<graph::Named>& list) {
  std::vector<std::string> all;
  for (const auto& element : list)
    all.push_back(fmt::format("{} {} {}", escape::markdown_code(element.name),
                              graph::name_of(program.value(element.value).type),
                              brackets(program.value(element.value).shape)));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::int64_t parameters_of(const compiler::Program& program) {
  std::int64_t elements = 0;
  for (const auto& parameter : program.graph.parameters) elements += program.value(parameter.value).elements();
  return elements;
}

// What one program's files have in common.
struct Subject {
  const compiler::Program& program;
  Json info;  // bundle.json
  core::Case question;
  std::string name, space;
  ValueNames names;
  std::vector<Stage> stages;
};

std::string head(const Subject& subject, const std::string& what) {
  return fmt::format("// Written by strata from {}. {}\n", escape::comment(subject.question.id()), what);
}

// The tensors that a step changes; counts are whole numbers.
std::string state_of(const compiler::Program& program) {
  std::string text = "// What a step changes: parameters, statistics, counts.\ninline constexpr Port state[] = {";
  std::set<std::string> counts;
  for (const auto& step : program.steps)
    if (step.node.operation() == "strata.count")
      for (const auto& buffer : program.graph.buffers)
        if (buffer.value == step.node.tensor("buffer")) counts.insert(buffer.name);
  bool first = true;
  for (const auto* list : {&program.graph.parameters, &program.graph.buffers})
    for (const auto& named : *list) {
      const auto& updates = program.graph.updates;
      if (std::none_of(updates.begin(), updates.end(), [&](const auto& update) { return update.name == named.name; }))
        continue;
      text += fmt::format("{}{{{}, {}, kit::Type::{}}}", first ? "" : ",\n                                ",
                          escape::cpp_string(named.name), braces(program.value(named.value).shape),
                          counts.contains(named.name) ? "int64" : "float32");
      first = false;
    }
  return text + "};\n\n";
}

// Rows of the loss, each of which has a label.
std::int64_t labels_of(const compiler::Program& program) {
  for (const auto& step : program.steps)
    if (step.node.operation() == "strata.nll_loss") return program.value(step.node.tensor("scores")).shape.at(0);
  return 0;
}

double clip_norm_of(const compiler::Program& program) {
  for (const auto& step : program.steps)
    if (step.node.operation() == "strata.clip_gradients") return step.node.number("norm");
  return 0;
}

bool is_training(const compiler::Program& program) {
  return program.graph.mode == graph::Mode::train;
}
compiler::Phase next(compiler::Phase phase) {
  return static_cast<compiler::Phase>(static_cast<int>(phase) + 1);
}
std::string_view name_of(compiler::Phase phase) {
  return std::array{"forward", "loss", "backward, with each parameter's update"}[static_cast<std::size_t>(phase)];
}

std::string plan_hpp(const Subject& subject, int threads) {
  const auto& program = subject.program;
  std::string text = head(subject, "Where every tensor of the network lies, and the functions of its stages.");
  text += fmt::format(
      "#pragma once\n\n#include \"kit/{}.hpp\"\n\nnamespace {} {{\n\ninline constexpr char name[] = "
      "{};\n\nstruct Port {{\n  const char* name;\n  kit::Shape shape;\n  kit::Type type;\n}};\n",
      is_training(program) ? "training" : "operations", subject.space, escape::cpp_string(subject.name));
  text += fmt::format("inline constexpr Port inputs[] = {};\ninline constexpr Port outputs[] = {};\n\n",
                      ports(program, program.graph.inputs), ports(program, program.graph.outputs));
  if (is_training(program))
    text += state_of(program) +
            fmt::format(
                "inline constexpr std::int64_t labels = {};  // that a step reads\ninline constexpr double clip_norm = "
                "{};  // of all gradients; 0: they are not clipped\n\n",
                labels_of(program), clip_norm_of(program));
  text += fmt::format(
      "inline constexpr std::int64_t arena_bytes = {}, least_arena_bytes = {};  // no plan can go below the "
      "second\ninline constexpr std::int64_t parameters = {};\ninline constexpr int default_threads = {};  // 0: as "
      "OpenMP says\n\n",
      program.arena_bytes, program.least_arena_bytes, parameters_of(program), threads);
  text +=
      "// Each tensor by its name in the captured graph: its place in bytes, its shape. Tensors whose lives do not "
      "meet share bytes.\nnamespace v {\n\nusing kit::arena, kit::input, kit::output, kit::typed, kit::Layout, "
      "kit::Tensor, kit::Type;\n\n";
  for (const auto& line : subject.names.plan()) text += line + "\n";
  text += "\n}  // namespace v\n\n";
  for (const auto& stage : subject.stages) text += fmt::format("void {}(kit::Program& p);\n", stage.name);
  text += fmt::format("\nvoid build(kit::Program& p);  // all stages in order\n\n}}  // namespace {}\n", subject.space);
  return text;
}

std::string program_cpp(const Subject& subject) {
  std::string text = head(subject, "The stages in the order in which they run.");
  text += fmt::format("#include \"plan.hpp\"\n\nnamespace {} {{\n\nvoid build(kit::Program& p) {{\n", subject.space);
  if (subject.question.precision == core::Precision::tf32) text += "  p.allow_tf32();\n";
  if (subject.program.type == graph::Type::bfloat16) text += "  p.need_bfloat16();\n";
  const bool trains = is_training(subject.program);
  auto phase = compiler::Phase::forward;
  for (const auto& stage : subject.stages) {
    for (; phase < phase_of(subject.program, stage); phase = next(phase))
      text += fmt::format("  p.end_phase();  // {}\n", name_of(phase));
    text += fmt::format("  {}(p);\n", stage.name);
  }
  for (; trains && phase <= compiler::Phase::backward; phase = next(phase))
    text += fmt::format("  p.end_phase();  // {}\n", name_of(phase));
  text += fmt::format("}}\n\n}}  // namespace {}\n", subject.space);
  return text;
}

std::string stage_cpp(const Subject& subject, const Stage& stage, const std::vector<std::string>& lines) {
  const auto what = stage.module.empty() ? std::string("The network's own operations.")
                                         : fmt::format("The stage {}.", escape::comment(stage.module));
  std::string text = head(subject, what);
  text += "#include <limits>\n\n#include \"plan.hpp\"\n\n";
  text += fmt::format("namespace {} {{\n\nusing namespace kit;\n\nvoid {}(Program& p) {{\n", subject.space, stage.name);
  for (const auto& line : lines) text += line.empty() ? "\n" : "  " + line + "\n";
  text += fmt::format("}}\n\n}}  // namespace {}\n", subject.space);
  return text;
}

// Names of buffers that the file of weights lacks: those that are not persistent.
Result<std::set<std::string>> buffers_in_constants(const compiler::Program& program, const fs::path& bundle) {
  std::set<std::string> names;
  if (program.graph.buffers.empty()) return names;
  const auto weights = STRATA_TRY(SafeTensors::map(bundle / "weights" / "timed.safetensors"));
  for (const auto& buffer : program.graph.buffers)
    if (weights.find(buffer.name) == nullptr) names.insert(buffer.name);
  return names;
}

// All that keeps the program from being written: operations, with the first place of each, inputs and outputs.
Result<void> check_supported_ops(const compiler::Program& program) {
  std::vector<const graph::Node*> lacking;
  for (const int i : unknown_steps(program)) lacking.push_back(&program.steps[static_cast<std::size_t>(i)].node);
  std::vector<std::string> all;
  if (!lacking.empty()) all.push_back("no operation " + graph::operations_with_places(lacking));
  if (const auto ports = refused_ports(program.graph, program.target); !ports.empty())
    all.push_back(fmt::format("{}: {}", fmt::join(ports, ", "), allowed_ports(program.target)));
  if (!all.empty())
    return fail(fmt::format("{}", fmt::join(all, "; ")),
                "--target libtorch calls an operation of ATen for each of the network's; `./strata compare` says which "
                "levels run it",
                Exit::environment);
  for (const auto* list : {&program.graph.inputs, &program.graph.outputs})
    for (const auto& named : *list)
      if (const auto& value = program.graph.value(named.value); value.elements() == 0)
        return fail(fmt::format("'{}' is {} {}, which has no elements: there is nothing to compute", named.name,
                                graph::name_of(value.type), graph::to_string(value.shape)),
                    "give a shape without 0", Exit::environment);
  return {};
}

using Values = std::map<std::string, std::string>;

// What READMEs say of the library that is called.
Values readme_of_target(compiler::Target target) {
  if (target == compiler::Target::cpu)
    return {{"libraries", "oneDNN"},
            {"build", "cmake -S . -B build && cmake --build build    # -DDNNL_ROOT=FOLDER names oneDNN's folder"},
            {"needs",
             "It builds with a C++20 compiler that has OpenMP, CMake 3.18 and oneDNN 3: `apt install libdnnl-dev`, or "
             "`pip install onednn-cpu-gomp onednn-devel-cpu-gomp` in an active environment (x86-64), or "
             "`-DDNNL_ROOT=FOLDER` with `include/oneapi/dnnl` and `lib/libdnnl.so` in it."},
            {"ships", "`network`, `libmodel.so`, `libdnnl.so.3`"},
            {"also",
             "the system's C++ and OpenMP libraries (`libstdc++`, `libgomp`). Code is made for the building machine's "
             "processor alone unless `-DNETWORK_NATIVE=OFF` says otherwise"},
            {"image",
             " `docker build -t network . && docker run --rm network` builds, checks and runs it in an image, with "
             "the version of oneDNN that strata has (`Dockerfile`)."},
            {"run", "A run executes the calls in order."},
            {"kit",
             "`kit/` | oneDNN's calls behind the functions that stages use, and kernels of strata's own: those files "
             "of the kit that this program needs"},
            {"nan", "oneDNN's ReLU and maximum turn NaN into a number, so weights with NaN are refused."}};
  return {
      {"libraries", "cuDNN, cuBLAS"},
      {"build",
       "cmake -S . -B build -DCUDNN_ROOT=FOLDER -DCUDNN_FRONTEND=FOLDER && cmake --build build    # include and lib of "
       "cuDNN; headers of cudnn-frontend"},
      {"needs",
       "It builds with a C++20 compiler that has OpenMP, CMake 3.25, CUDA 12 or newer (nvcc), cuDNN 9 and the headers "
       "of cudnn-frontend."},
      {"ships", "`network`, `libmodel.so`"},
      {"also", "CUDA's runtime, cuBLAS, NVRTC and cuDNN"},
      {"image", ""},
      {"run",
       "The first run gives the calls to the device one by one, the second records them as a CUDA graph, and from then "
       "on a "
       "run is one launch of it. Inputs go to the device by way of pinned memory in two buffers: between `model_start` "
       "and `model_wait` those of the next run can be set."},
      {"kit",
       "`kit/`, `kit_cuda/` | calls of cuDNN (`cudnn-frontend`) and cuBLAS behind the functions that stages use, and "
       "CUDA kernels for all else (`kit_cuda/kernels`)"},
      {"nan", "Weights with NaN are refused, as they are on a processor."}};
}

// What READMEs say of photographs, where the network takes images.
Values readme_of_images(const compiler::Program& program) {
  const auto images = normalisation(program);
  if (!images) return {{"run_photograph", ""}, {"photograph", ""}};
  return {
      {"run_photograph", "build/network photograph.jpg                                      # the five best classes\n"},
      {"photograph",
       fmt::format("`photograph.jpg` is cropped to the network's aspect, resized and normalised with mean {} and "
                   "deviation {}. `labels.txt`, if there is one, names a class in each line. Reading "
                   "photographs needs libjpeg where the program is built.\n",
                   fmt::join(images->mean, ", "), fmt::join(images->deviation, ", "))}};
}

Values readme_values(const Subject& subject) {
  const auto& program = subject.program;
  const auto steps = std::count_if(program.steps.begin(), program.steps.end(),
                                   [](const auto& step) { return step.when == compiler::When::run && !step.view; });
  Values values{{"model", escape::markdown(subject.name)},
                {"case", escape::markdown_code(subject.question.id())},
                {"source", escape::markdown(subject.info["model"].value("source", ""))},
                {"weights", escape::markdown(subject.info.value("weight_source", ""))},
                {"inputs", listed(program, program.graph.inputs)},
                {"labels", is_training(program) && labels_of(program) > 0 ? ", and labels" : ""},
                {"outputs", listed(program, program.graph.outputs)},
                {"parameters", grouped(parameters_of(program))},
                {"steps", std::to_string(steps)},
                {"arena", grouped(program.arena_bytes)},
                {"least", grouped(program.least_arena_bytes)},
                {"loss", subject.question.recipe ? escape::markdown(subject.question.recipe->loss) : ""}};
  values.merge(readme_of_target(program.target));
  values.merge(readme_of_images(program));
  return values;
}

Values cmake_values(const Subject& subject) {
  return {{"model", escape::comment(subject.name)},
          {"project", subject.space},
          {"block", std::to_string(subject.program.block)}};
}

Values cpp_values(const Subject& subject) {
  const auto images = normalisation(subject.program).value_or(Normalisation{{0}, {1}});
  const auto literals = [](const std::vector<double>& numbers) {
    std::vector<std::string> all;
    for (const double number : numbers) all.push_back(float_literal(number));
    return fmt::format("{}", fmt::join(all, ", "));
  };
  return {{"namespace", subject.space}, {"mean", literals(images.mean)}, {"deviation", literals(images.deviation)}};
}

// By the language of the file.
Values values_for(const std::string& name, const Subject& subject) {
  return name.ends_with(".md")    ? readme_values(subject)
         : name.ends_with(".txt") ? cmake_values(subject)
                                  : cpp_values(subject);
}

// What of the kit names no library, and serves the kit on CUDA too.
bool is_shared(const std::string& name) {
  static const std::set<std::string_view> shared{
      "elements.hpp", "fold.cpp",       "function.hpp", "loading.cpp",     "loading.hpp",     "operations.hpp",
      "program.hpp",  "recurrence.hpp", "resize.hpp",   "safetensors.cpp", "safetensors.hpp", "safetensors_header.hpp",
      "tensor.hpp",   "training.hpp"};
  return shared.contains(name);
}

// `kit`: the files of the kit for processors that the program needs.
bool goes_along(compiler::Target target, std::string_view folder, const std::string& name,
                const std::set<std::string>& kit) {
  if (folder == "kit") return target == compiler::Target::cpu ? kit.contains(name) : is_shared(name);
  return name.find("_host.") == std::string::npos;  // stand-ins for a device, of strata's own tests
}

// `code`: the statements of all stages.
Result<void> add_fixed(Files& files, const Subject& subject, const Options& options, const std::string& code) {
  const auto kit =
      STRATA_TRY(kit_files(options.sources / "kit", code,
                           {is_training(subject.program) ? "training.hpp" : "operations.hpp", "safetensors.hpp"}));
  const bool cuda = subject.program.target == compiler::Target::cuda;
  std::vector<std::string> folders{"kit", "template", cuda ? "template/cuda" : "template/onednn",
                                   is_training(subject.program) ? "template/train" : "template/infer"};
  if (cuda) folders.insert(folders.end(), {"kit_cuda", "kit_cuda/kernels"});
  for (const auto& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(options.sources / folder, error)) {
      const auto name = entry.path().filename().string();
      if (entry.is_directory() || !goes_along(subject.program.target, folder, name, kit)) continue;
      const auto text = STRATA_TRY(read_text(entry.path()));
      const bool is_kit = folder.starts_with("kit");
      files[is_kit ? folder + "/" + name : name] = is_kit ? text : fill_in(text, values_for(name, subject));
    }
    if (error)
      return fail(fmt::format("cannot read {}: {}", (options.sources / folder).string(), error.message()),
                  "strata's own tree is damaged: get it again");
  }
  return {};
}

}  // namespace

std::vector<std::string> targets() {
  return {"onednn", "cuda", "libtorch"};
}

std::string allowed_ports(compiler::Target target) {
  return fmt::format("inputs and outputs must be {} of at most 8 dimensions",
                     target == compiler::Target::cuda ? "float32" : "float32, int64, int32, uint8 or bool");
}

std::vector<std::string> refused_ports(const graph::Graph& graph, compiler::Target target) {
  const auto is_known = [&](graph::Type type) {
    if (type == graph::Type::float32 || target == compiler::Target::cuda) return type == graph::Type::float32;
    return type != graph::Type::bfloat16 && !type_literal(type).empty();
  };
  std::vector<std::string> refused;
  for (const auto* list : {&graph.inputs, &graph.outputs})
    for (const auto& named : *list)
      if (const auto& value = graph.value(named.value); !is_known(value.type) || value.shape.size() > 8)
        refused.push_back(
            fmt::format("'{}' is {} {}", named.name, graph::name_of(value.type), graph::to_string(value.shape)));
  return refused;
}

Result<Files> generate(const compiler::Program& program, const fs::path& bundle, const Options& options) {
  STRATA_TRY(check_supported_ops(program));
  const auto info = STRATA_TRY(core::read_bundle_info(bundle, false));
  const auto question = STRATA_TRY(core::captured_case(info, (bundle / "bundle.json").string()));
  const auto constants = STRATA_TRY(buffers_in_constants(program, bundle));
  const auto& name = question.model;
  const Subject subject{.program = program,
                        .info = info,
                        .question = question,
                        .name = name,
                        .space = identifier(name),
                        .names = ValueNames(program, constants),
                        .stages = stages_of(program)};
  const auto statements = STRATA_TRY(statements_of(program, subject.names, subject.stages, options.steps_by_node));
  std::string code;
  for (const auto& stage : statements)
    for (const auto& line : stage) code += line + "\n";
  Files files;
  STRATA_TRY(add_fixed(files, subject, options, code));
  files["plan.hpp"] = plan_hpp(subject, options.threads);
  files["program.cpp"] = program_cpp(subject);
  for (std::size_t i = 0; i < subject.stages.size(); ++i)
    files[fmt::format("stages/{:02}_{}.cpp", i + 1, subject.stages[i].name)] =
        stage_cpp(subject, subject.stages[i], statements[i]);
  return files;
}

Result<void> generate_into(const fs::path& folder, const compiler::Program& program, const fs::path& bundle,
                           const Options& options) {
  const auto files = STRATA_TRY(generate(program, bundle, options));
  for (const auto& [path, text] : files) STRATA_TRY(write_text(folder / path, text));
  if (auto done = copy_constants(bundle, folder); !done || !options.weights_and_reference) return done;
  STRATA_TRY(copy_weights(bundle, folder));
  const auto question = STRATA_TRY(core::case_in(bundle));
  const auto write = is_training(program) ? write_training_reference : write_reference;
  return write(folder / "reference.safetensors", program.graph, bundle, std::string(core::name_of(question.precision)));
}

}  // namespace strata::generate
