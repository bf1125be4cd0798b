// SPDX-License-Identifier: Apache-2.0
#include "export/write.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "common/container_image.hpp"
#include "common/escape.hpp"
#include "common/fill_in.hpp"
#include "common/places.hpp"
#include "common/safetensors.hpp"
#include "graph/graph.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr const char* kWeightsFile = "weights.safetensors";
constexpr const char* kDockerfile = "Dockerfile";

// The bounds of docs/proof.md, which check.py multiplies the envelope with.
constexpr double kStrict = 8, kReassociated = 64, kElement = 2;

double allowed(const Export& exported) {
  return exported.job.level.reassociates ? kReassociated : kStrict;
}

Json case_json(const Export& exported, const Json& sizes) {
  const auto& info = exported.job.bundle->info;
  const double limit = allowed(exported);
  return {{"schema", "strata.export/1"},
          {"strata", STRATA_VERSION},
          {"exported", utc_now()},
          {"id", info["id"]},
          {"case", info["case"]},
          {"level", exported.job.level.id},
          {"variant", exported.job.level.variant},
          {"model", info["model"]},
          {"inputs", info["inputs"]},
          {"outputs", info["outputs"]},
          {"files", sizes},
          {"ring", info["ring"]},
          {"threads", exported.job.bundle->question.threads},
          {"device", name_of(exported.job.bundle->question.device)},
          {"python", exported.python},
          {"reference", info["reference"]},
          {"allowed", {{"error", limit}, {"largest", kElement * limit}}},
          {"versions", exported.versions}};
}

// An open batch keeps its range.
std::string extents(const Json& shape, const core::Case& question) {
  const auto& range = question.open_batch;
  std::string out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto extent = shape[i].get<std::int64_t>();
    const bool open = i == 0 && range && extent == question.batch;
    out += out.empty() ? "" : ", ";
    out += open ? fmt::format("Extent{{{}, {}}}", range->low, range->high) : std::to_string(extent);
  }
  return "{" + out + "}";
}

std::string cpp_field(const std::string& name, std::string_view dtype, const std::string& shape) {
  return fmt::format("{{{}, {}, {}}}", escape::cpp_string(name), escape::cpp_string(dtype), shape);
}

// Inputs or outputs of bundle.json.
std::string cpp_fields(const Json& list, const core::Case& question) {
  std::vector<std::string> out;
  for (const auto& element : list) {
    const auto type = graph::type_named(element["dtype"].get<std::string>());
    out.push_back(
        cpp_field(element["name"], type ? graph::safetensors_name(*type) : "", extents(element["shape"], question)));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

// Of the artefact's file of weights; empty where it has none.
Result<std::string> cpp_weights(const fs::path& file) {
  std::error_code ec;
  if (!fs::exists(file, ec)) return std::string();
  const auto weights = STRATA_TRY(SafeTensors::open(file));
  std::string out;
  for (const auto& name : weights.names()) {
    const auto& tensor = *weights.find(name);
    out +=
        fmt::format("\n    {},", cpp_field(name, tensor.dtype, fmt::format("{{{}}}", fmt::join(tensor.shape, ", "))));
  }
  return out;
}

// Files of fixed bytes: weights may be replaced by others of the same names, types and shapes.
std::vector<std::pair<std::string, std::uintmax_t>> sizes_of(const fs::path& folder,
                                                             const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::uintmax_t>> out;
  std::error_code ec;
  for (const auto& name : names)
    if (name != kWeightsFile) out.emplace_back(name, fs::file_size(folder / name, ec));
  return out;
}

Result<std::string> case_hpp(const Export& exported, const fs::path& folder,
                             const std::vector<std::string>& artefacts) {
  const auto& info = exported.job.bundle->info;
  const auto& question = exported.job.bundle->question;
  const auto weights = cpp_weights(folder / kWeightsFile);
  if (!weights) return weights;
  std::vector<std::string> files;
  for (const auto& [name, bytes] : sizes_of(folder, artefacts))
    files.push_back(fmt::format("{{{}, {}}}", escape::cpp_string(name), bytes));
  return fmt::format(
      "// Written by strata export: what the artefact beside this file was made for. {}\n#pragma once\n\n"
      "#include \"fields.hpp\"\n\n"
      "inline const std::string kDevice = {};\ninline constexpr int kThreads = {};\n"
      "inline const Fields kInputs{{{}}};\ninline const Fields kOutputs{{{}}};\n"
      "inline const Fields kWeights{{{}}};  // of {}\ninline const std::vector<ArtefactFile> kFiles{{{}}};\n",
      escape::comment(question.id()), escape::cpp_string(std::string(name_of(question.device))), question.threads,
      cpp_fields(info["inputs"], question), cpp_fields(info["outputs"], question), *weights, kWeightsFile,
      fmt::join(files, ", "));
}

// What the level makes of an input that holds no numbers, where eager answers otherwise; empty: as eager.
std::string special_sentence(const nlohmann::json& proof) {
  for (const auto& line : proof.value("lines", nlohmann::json::array()))
    if (line.value("check", "") == "NaN and infinity in an input" && line.value("result", "") == "fail")
      return fmt::format(" **A broken input may become a confident answer:** it {}. Check inputs before they reach it.",
                         escape::markdown(line.value("detail", "")));
  return {};
}

std::string proof_sentence(const Export& exported) {
  const auto& evidence = exported.evidence;
  if (!evidence.certificate.is_object())
    return fmt::format("**Nothing is proven yet** ({}). This command proves and measures it, then export again: {}",
                       escape::markdown(evidence.why_not), escape::markdown_code(exported.proving));
  const auto& proof = evidence.certificate["proof"];
  return fmt::format(
      "Proven to do equal work by run {} ({} lines observed, {} reported by the level{}): `certificate.json`.{}{}",
      escape::markdown_code(evidence.certificate.value("run", "")), proof.value("observed", 0),
      proof.value("reported", 0), proof.value("weak", false) ? "; the proof is weak" : "",
      evidence.note.empty() ? "" : " Note: " + escape::markdown(evidence.note) + ".", special_sentence(proof));
}

constexpr const char* kDeploying =
    "\n## Deploy\n\n```\ncmake --install build --prefix FOLDER\ndocker build -t network . && docker run --rm "
    "network\n```\n\nThe first puts the program, the artefact and the libraries that it needs into one folder, which "
    "can be moved and copied. The second does all of the above in an image, with the versions below; inputs of your "
    "own:\n\n```\ndocker run --rm -v \"$PWD/test:/data\" network /data/inputs.safetensors "
    "/data/outputs.safetensors\n```\n";

Result<std::string> text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(fmt::format("cannot read {}", path.string()), "strata's own tree is damaged: get it again");
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

// The image's recipe, whose template is a file of the level's.
Result<void> write_dockerfile(const Draft& draft, const Export& exported, const fs::path& from) {
  const auto text = STRATA_TRY(text_of(from));
  return draft.write(kDockerfile, dockerfile(text, {.verb = "export",
                                                    .python = exported.python,
                                                    .packages = exported.versions,
                                                    .build = exported.recipe.image_build,
                                                    .test = exported.recipe.image_test,
                                                    .program = {"/network/serve", "/network"},
                                                    .arguments = {"/network/test/inputs.safetensors"}}));
}

Result<std::string> readme(const Export& exported, const std::vector<std::pair<std::string, std::string>>& files) {
  const auto text = STRATA_TRY(text_of(exported.shared / "README.md"));
  const auto& info = exported.job.bundle->info;
  std::string table, versions = fmt::format("strata {}, Python {}", STRATA_VERSION, escape::markdown(exported.python));
  for (const auto& [name, about] : files)
    table += fmt::format("{}| {} | {} |", table.empty() ? "" : "\n", escape::markdown_code(name), about);
  for (const auto& [name, version] : exported.versions)
    versions += escape::markdown(fmt::format(", {} {}", name, version));
  const bool has_image =
      std::any_of(files.begin(), files.end(), [](const auto& file) { return file.first == kDockerfile; });
  return fill_in(text, {{"model", escape::markdown(info["model"].value("name", ""))},
                        {"level", exported.job.level.id},
                        {"case", escape::markdown_code(info.value("id", ""))},
                        {"source", escape::markdown(info["model"].value("source", ""))},
                        {"inputs", escape::markdown(info.value("input_source", ""))},
                        {"weights", escape::markdown(info.value("weight_source", ""))},
                        {"what", exported.recipe.what},
                        {"proof", proof_sentence(exported)},
                        {"build", exported.recipe.build},
                        {"test", exported.recipe.test},
                        {"run", exported.recipe.run},
                        {"ring", std::to_string(info.value("ring", 0))},
                        {"reference", info.value("reference", "") == "float64"
                                          ? "float64"
                                          : "float32 (it does not run in float64, so this test is weaker)"},
                        {"allowed", fmt::format("{:.0f}", allowed(exported))},
                        {"deploy", has_image ? kDeploying : ""},
                        {"files", table},
                        {"versions", versions}});
}

std::vector<ExportedFile> all_pieces(const Export& exported) {
  const auto& bundle = exported.job.bundle->folder;
  auto pieces = exported.recipe.artefacts;
  pieces.insert(pieces.end(), exported.recipe.sources.begin(), exported.recipe.sources.end());
  for (const char* name : {"check.py", "tensor_files.py"})
    pieces.push_back(
        {.from = exported.shared / name, .name = name, .about = "the test of equal work", .optional = false});
  pieces.push_back({.from = bundle / "inputs.safetensors",
                    .name = "test/inputs.safetensors",
                    .about = "the inputs of the test",
                    .optional = false});
  pieces.push_back({.from = bundle / "reference" / "timed.safetensors",
                    .name = "test/reference.safetensors",
                    .about = "what the network itself computes from them",
                    .optional = false});
  pieces.push_back({.from = bundle / "reference" / "timed.envelope.safetensors",
                    .name = "test/envelope.safetensors",
                    .about = "what legitimate float32 runs of it compute",
                    .optional = false});
  return pieces;
}

}  // namespace

Result<void> write_export(const Draft& draft, const Export& exported) {
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> artefacts;
  std::error_code ec;
  for (const auto& piece : all_pieces(exported)) {
    if (piece.optional && !fs::exists(piece.from, ec)) continue;
    const bool image = piece.name == kDockerfile;
    // whose images begin with CUDA's own
    if (image && exported.job.bundle->question.device == core::Device::cuda) continue;
    STRATA_TRY(image ? write_dockerfile(draft, exported, piece.from) : draft.copy(piece.from, piece.name));
    files.emplace_back(piece.name, piece.about);
  }
  for (const auto& piece : exported.recipe.artefacts)
    if (fs::exists(draft.folder() / piece.name, ec)) artefacts.push_back(piece.name);
  const auto hashes = STRATA_TRY(hashes_of(draft.folder(), artefacts));
  Json certificate = exported.evidence.certificate.is_object()
                         ? exported.evidence.certificate
                         : Json{{"why_not", exported.evidence.why_not}, {"prove_with", exported.proving}};
  certificate["schema"] = "strata.certificate/1";
  certificate["proven"] = exported.evidence.certificate.is_object();
  certificate["files"] = hashes;
  files.emplace_back("case.json", "the case: inputs, outputs, threads, device, versions");
  files.emplace_back("case.hpp", "the same for C++");
  files.emplace_back("certificate.json", "the proof of equal work, with SHA-256 of the artefact's files");
  const auto text = STRATA_TRY(readme(exported, files));
  const auto header = STRATA_TRY(case_hpp(exported, draft.folder(), artefacts));
  Json sizes = Json::object();
  for (const auto& [name, bytes] : sizes_of(draft.folder(), artefacts)) sizes[name] = bytes;
  for (const auto& [name, content] :
       std::map<std::string, std::string>{{"case.json", case_json(exported, sizes).dump(1) + "\n"},
                                          {"case.hpp", header},
                                          {"certificate.json", certificate.dump(1) + "\n"},
                                          {"README.md", text}})
    STRATA_TRY(draft.write(name, content));
  return {};
}

}  // namespace strata::exporting
