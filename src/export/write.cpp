// SPDX-License-Identifier: Apache-2.0
#include "export/write.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>

#include "common/places.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// The bounds of docs/method.md, which check.py multiplies the envelope with.
constexpr double kStrict = 8, kReassociated = 64, kElement = 2;

double allowed(const Export& made) {
  return made.job.level.reassociates ? kReassociated : kStrict;
}

Json case_json(const Export& made) {
  const auto& info = made.job.bundle->info;
  const double limit = allowed(made);
  return {{"schema", "strata.export/1"},
          {"strata", STRATA_VERSION},
          {"exported", utc_now()},
          {"id", info["id"]},
          {"case", info["case"]},
          {"level", made.job.level.id},
          {"variant", made.job.level.variant},
          {"model", info["model"]},
          {"inputs", info["inputs"]},
          {"outputs", info["outputs"]},
          {"ring", info["ring"]},
          {"threads", info["case"].value("threads", 1)},
          {"device", info["case"].value("device", "cpu")},
          {"reference", info["reference"]},
          {"allowed", {{"error", limit}, {"largest", kElement * limit}}},
          {"versions", made.versions}};
}

// JSON's quoting with everything beyond ASCII escaped is C++'s as well.
std::string cpp_names(const Json& list) {
  std::string out;
  for (const auto& one : list) out += (out.empty() ? "" : ", ") + one["name"].dump(-1, ' ', true);
  return out;
}

std::string case_hpp(const Export& made) {
  const auto& info = made.job.bundle->info;
  return fmt::format(
      "// Written by strata export: what the artefact beside this file was made for. {}\n#pragma once\n\n#include "
      "<string>\n#include <vector>\n\n"
      "inline const std::string kDevice = \"{}\";\ninline constexpr int kThreads = {};\ninline const "
      "std::vector<std::string> kInputs{{{}}};\n"
      "inline const std::vector<std::string> kOutputs{{{}}};\n",
      info.value("id", ""), info["case"].value("device", "cpu"), info["case"].value("threads", 1),
      cpp_names(info["inputs"]), cpp_names(info["outputs"]));
}

std::string proof_sentence(const Export& made) {
  const auto& evidence = made.evidence;
  if (!evidence.certificate.is_object())
    return fmt::format("**Nothing is proven yet** ({}). This command proves and measures it, then export again: `{}`",
                       evidence.why_not, made.proving);
  const auto& proof = evidence.certificate["proof"];
  return fmt::format(
      "Proven to do equal work by run `{}` ({} lines observed, {} reported by the level{}): `certificate.json`.{}",
      evidence.certificate.value("run", ""), proof.value("observed", 0), proof.value("reported", 0),
      proof.value("weak", false) ? "; the proof is weak" : "",
      evidence.note.empty() ? "" : " Note: " + evidence.note + ".");
}

std::string fill_in(std::string text, const std::map<std::string, std::string>& values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto close = text[at] == '@' ? text.find('@', at + 1) : std::string::npos;
    const auto found = close == std::string::npos ? values.end() : values.find(text.substr(at + 1, close - at - 1));
    out += found == values.end() ? std::string(1, text[at]) : found->second;
    at = found == values.end() ? at + 1 : close + 1;
  }
  return out;
}

Result<std::string> readme(const Export& made, const std::vector<std::pair<std::string, std::string>>& files) {
  const auto path = made.shared / "README.md";
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(fmt::format("cannot read {}", path.string()), "strata's own tree is damaged: get it again");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto& info = made.job.bundle->info;
  std::string table, versions = fmt::format("strata {}", STRATA_VERSION);
  for (const auto& [name, about] : files)
    table += fmt::format("{}| `{}` | {} |", table.empty() ? "" : "\n", name, about);
  for (const auto& [name, version] : made.versions.items())
    versions += fmt::format(", {} {}", name, version.get<std::string>());
  return fill_in(text, {{"model", info["model"].value("name", "")},
                        {"level", made.job.level.id},
                        {"case", info.value("id", "")},
                        {"source", info["model"].value("source", "")},
                        {"inputs", info.value("input_source", "")},
                        {"weights", info.value("weight_source", "")},
                        {"what", made.recipe.what},
                        {"proof", proof_sentence(made)},
                        {"build", made.recipe.build},
                        {"test", made.recipe.test},
                        {"run", made.recipe.run},
                        {"ring", std::to_string(info.value("ring", 0))},
                        {"reference", info.value("reference", "") == "float64"
                                          ? "float64"
                                          : "float32 (it does not run in float64, so this test is weaker)"},
                        {"allowed", fmt::format("{:.0f}", allowed(made))},
                        {"files", table},
                        {"versions", versions}});
}

std::vector<Piece> all_pieces(const Export& made) {
  const auto& bundle = made.job.bundle->folder;
  auto pieces = made.recipe.artefacts;
  pieces.insert(pieces.end(), made.recipe.sources.begin(), made.recipe.sources.end());
  for (const char* name : {"check.py", "tensor_files.py"})
    pieces.push_back({made.shared / name, name, "the test of equal work", false});
  pieces.push_back({bundle / "inputs.safetensors", "test/inputs.safetensors", "the inputs of the test", false});
  pieces.push_back({bundle / "reference" / "timed.safetensors", "test/reference.safetensors",
                    "what the network itself computes from them", false});
  pieces.push_back({bundle / "reference" / "timed.envelope.safetensors", "test/envelope.safetensors",
                    "what legitimate float32 runs of it compute", false});
  return pieces;
}

}  // namespace

Result<void> write_export(const Draft& draft, const Export& made) {
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> artefacts;
  std::error_code ec;
  for (const auto& piece : all_pieces(made)) {
    if (piece.optional && !fs::exists(piece.from, ec)) continue;
    if (auto copied = draft.copy(piece.from, piece.name); !copied) return copied;
    files.emplace_back(piece.name, piece.about);
  }
  for (const auto& piece : made.recipe.artefacts)
    if (fs::exists(draft.folder() / piece.name, ec)) artefacts.push_back(piece.name);
  const auto hashes = hashes_of(draft.folder(), artefacts);
  if (!hashes) return tl::unexpected(hashes.error());
  Json certificate = made.evidence.certificate.is_object()
                         ? made.evidence.certificate
                         : Json{{"why_not", made.evidence.why_not}, {"prove_with", made.proving}};
  certificate["schema"] = "strata.certificate/1";
  certificate["proven"] = made.evidence.certificate.is_object();
  certificate["files"] = *hashes;
  files.emplace_back("case.json", "the case: inputs, outputs, threads, device, versions");
  files.emplace_back("case.hpp", "the same for C++");
  files.emplace_back("certificate.json", "the proof of equal work, with SHA-256 of the artefact's files");
  const auto text = readme(made, files);
  if (!text) return tl::unexpected(text.error());
  for (const auto& [name, content] :
       std::map<std::string, std::string>{{"case.json", case_json(made).dump(1) + "\n"},
                                          {"case.hpp", case_hpp(made)},
                                          {"certificate.json", certificate.dump(1) + "\n"},
                                          {"README.md", *text}})
    if (auto written = draft.write(name, content); !written) return written;
  return {};
}

}  // namespace strata::exporting
