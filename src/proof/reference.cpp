// SPDX-License-Identifier: Apache-2.0
#include "proof/reference.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <tuple>

#include "common/hash.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "core/bundle_info.hpp"
#include "proof/difference.hpp"

namespace strata::proof {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double float32_unit = 0x1p-24;
// An envelope is never narrower: one lucky run would accuse its neighbours. In a reduced mode the outputs' own rounding
// is a lower bound of every run's error, so that one unit is enough; eight would let nearly everything pass.
double narrowest(const std::string& precision, double unit) {
  return precision == "fp32" ? 8 * unit : unit;
}
constexpr std::string_view tap_prefix = "tap:";

std::string safetensors_dtype(std::string_view torch) {
  static const std::map<std::string_view, std::string_view> names{
      {"float32", "F32"}, {"float64", "F64"}, {"float16", "F16"}, {"bfloat16", "BF16"}, {"int64", "I64"},
      {"int32", "I32"},   {"int16", "I16"},   {"int8", "I8"},     {"uint8", "U8"},      {"bool", "BOOL"}};
  const auto it = names.find(torch);
  return it == names.end() ? std::string() : std::string(it->second);
}

tl::unexpected<Error> damaged(const fs::path& path, const std::string& what) {
  return fail(fmt::format("{}: {}", path.string(), what),
              "The captured network is damaged; delete its folder and run again.");
}

// "f64/3/output" -> "f64", 3; nullopt where the middle is no index.
std::optional<std::pair<std::string, int>> owner_and_index(std::string_view name) {
  const auto first = name.find('/');
  const auto second = first == name.npos ? name.npos : name.find('/', first + 1);
  if (second == name.npos) return std::nullopt;
  int index = 0;
  const char* end = name.data() + second;
  const auto [stop, error] = std::from_chars(name.data() + first + 1, end, index);
  if (error != std::errc() || stop != end || index < 0) return std::nullopt;
  return std::pair(std::string(name.substr(0, first)), index);
}

Result<std::vector<OutputSpec>> outputs_of(const json& bundle, const fs::path& path) {
  std::vector<OutputSpec> out;
  for (const json& output : bundle.at("outputs")) {
    OutputSpec spec;
    spec.name = output.at("name").get<std::string>();
    spec.dtype = safetensors_dtype(output.at("dtype").get<std::string>());
    spec.shape = output.at("shape").get<std::vector<std::int64_t>>();
    spec.tap = spec.name.starts_with(tap_prefix);
    if (spec.dtype.empty())
      return damaged(path, fmt::format("output '{}' has a type that cannot be compared", spec.name));
    out.push_back(std::move(spec));
  }
  if (std::all_of(out.begin(), out.end(), [](const OutputSpec& o) { return o.tap; }))
    return damaged(path, "lists no output");
  return out;
}

}  // namespace

Result<Reference> Reference::open(const fs::path& bundle) {
  Reference out;
  out.path_ = bundle;
  const fs::path description = bundle / "bundle.json";
  if (!there_is(description)) return damaged(description, "cannot be read");
  auto info = outside::read_file(description);
  if (!info) return damaged(description, fmt::format("is not what it should be ({})", info.error().what));
  if (const json& version = outside::field(*info, "bundle"); version != core::bundle_version)
    return damaged(description,
                   fmt::format("has version {}, where {} is known", outside::shown(version), core::bundle_version));
  if (auto good = core::check_bundle_info(*info, "bundle.json", false); !good)
    return damaged(description, fmt::format("is not what it should be ({})", good.error().what));
  try {
    out.bundle_ = std::move(*info);
    out.outputs_ = STRATA_TRY(outputs_of(out.bundle_, description));
    out.ring_ = out.bundle_.at("ring").get<int>();
    auto question = core::captured_case(out.bundle_, description.string());
    if (!question) return damaged(description, fmt::format("is not what it should be ({})", question.error().what));
    out.question_ = std::move(*question);
    out.weaker_ = out.bundle_.at("reference") != "float64";
  } catch (const json::exception& error) {
    return damaged(description, fmt::format("is not what it should be ({})", error.what()));
  }
  STRATA_TRY(out.add_set("timed"));
  for (const std::string& set : out.generic_sets()) STRATA_TRY(out.add_set(set));
  if (!out.has_set("timed")) return damaged(bundle / "reference" / "timed.safetensors", "is missing");
  if (there_is(bundle / "reference" / "faults.safetensors")) {
    out.faults_ = STRATA_TRY(SafeTensors::map(bundle / "reference" / "faults.safetensors"));
  }
  if (const auto file = bundle / "reference" / "unseen.safetensors"; there_is(file)) {
    out.unseen_ = STRATA_TRY(SafeTensors::map(file));
  }
  STRATA_TRY(out.check_whole());
  return out;
}

// What a proof needs and would be weaker without, if the capture made it; and envelopes that can accuse nobody, where
// the capture does not say why.
Result<void> Reference::check_whole() const {
  const auto folder = path_ / "reference";
  const auto generic = outside::integer_or(outside::field(bundle_, "case"), "generic_sets");
  for (int n = 1; n <= generic; ++n)
    if (const auto name = fmt::format("generic{}", n); !has_set(name))
      return damaged(folder / (name + ".safetensors"), "is missing");
  const auto planted = bundle_.find("faults");
  if (!faults_ && planted != bundle_.end() && planted->is_array() && !planted->empty())
    return damaged(folder / "faults.safetensors", "is missing");
  if (!outside::text_or(bundle_, "unproven").empty()) return {};
  for (const auto& [set, held] : sets_)
    for (const OutputSpec& output : outputs_) {
      if (output.tap || !is_floating(output.dtype)) continue;
      const Envelope runs = envelope(set, output.name);
      if (runs.error <= widest_envelope && std::isfinite(runs.largest)) continue;
      return fail(fmt::format("{}: eager's own runs are off the reference by {:.2g} times the size of output '{}' (set "
                              "{}; at most {:.0f} can be told from noise)",
                              folder.string(), runs.error, output.name, set, widest_envelope),
                  "capture it anew with --fresh; if that does not help, the network's outputs are noise, with which "
                  "nothing can be proven");
    }
  return {};
}

Result<void> Reference::add_set(const std::string& name) {
  const fs::path file = path_ / "reference" / (name + ".safetensors");
  const auto mode = precision() == "fp32" ? std::string() : "." + precision();
  const fs::path envelope = path_ / "reference" / fmt::format("{}{}.envelope.safetensors", name, mode);
  if (!there_is(file)) return {};
  Set set;
  auto reference = STRATA_TRY(SafeTensors::map(file));
  auto runs = STRATA_TRY(SafeTensors::map(envelope));
  set.reference = std::move(reference);
  set.envelope = std::move(runs);
  if (const auto flushed = path_ / "reference" / fmt::format("{}.flushed.safetensors", name); there_is(flushed)) {
    set.flushed = STRATA_TRY(SafeTensors::map(flushed));
  }
  std::set<int> indices;
  std::set<std::string> variants;
  for (const std::string& tensor : set.reference.names())
    if (const auto owner = owner_and_index(tensor); owner && owner->first == "f64") indices.insert(owner->second);
  for (const std::string& tensor : set.envelope->names())
    if (const auto owner = owner_and_index(tensor)) variants.insert(owner->first);
  set.indices.assign(indices.begin(), indices.end());
  set.variants.assign(variants.begin(), variants.end());
  if (indices.empty()) return damaged(file, "holds no reference output");
  if (variants.empty()) return damaged(envelope, "holds no legitimate run");
  for (int index : set.indices)
    for (const OutputSpec& output : outputs_) {
      const TensorView* tensor = set.reference.find(fmt::format("f64/{}/{}", index, output.name));
      if (!tensor && output.tap) continue;
      if (!tensor || tensor->shape != output.shape)
        return damaged(file,
                       fmt::format("output '{}' of input {} is missing or has another shape than bundle.json says",
                                   output.name, index));
    }
  sets_.emplace(name, std::move(set));
  return {};
}

const Reference::Set* Reference::set_of(std::string_view name) const {
  const auto it = sets_.find(name);
  return it == sets_.end() ? nullptr : &it->second;
}

std::vector<std::string> Reference::sets() const {
  std::vector<std::string> out;
  for (const auto& [name, set] : sets_) out.push_back(name);
  return out;
}

std::vector<std::string> Reference::generic_sets() const {
  std::vector<std::string> out;
  const auto name = [&] { return fmt::format("generic{}", out.size() + 1); };
  while (there_is(path_ / "reference" / (name() + ".safetensors"))) out.push_back(name());
  return out;
}

const TensorView* Reference::expected(std::string_view set, int index, std::string_view output) const {
  const Set* weight_set = set_of(set);
  if (!weight_set) return nullptr;
  const auto name = fmt::format("f64/{}/{}", index, output);
  return unseen_ && set == "timed" && index >= ring_ ? unseen_->find(name) : weight_set->reference.find(name);
}

std::vector<int> Reference::unseen() const {
  std::set<int> out;
  for (const std::string& tensor : unseen_ ? unseen_->names() : std::vector<std::string>())
    if (const auto owner = owner_and_index(tensor); owner && owner->first == "f64") out.insert(owner->second);
  return {out.begin(), out.end()};
}

Result<void> Reference::write_unseen(int index, const fs::path& path) const {
  std::vector<std::pair<std::string, TensorView>> tensors;
  const auto prefix = fmt::format("{}/", index);
  for (const std::string& name : unseen_ ? unseen_->names() : std::vector<std::string>())
    if (name.starts_with(prefix)) tensors.emplace_back("0/" + name.substr(prefix.size()), *unseen_->find(name));
  return write_safetensors(path, tensors);
}

std::vector<const TensorView*> Reference::legitimate(std::string_view set, int index, std::string_view output) const {
  std::vector<const TensorView*> out;
  const Set* weight_set = set_of(set);
  const TensorView* truth = expected(set, index, output);
  if (!weight_set || !truth) return out;
  for (const std::string& variant : weight_set->variants) {
    const TensorView* run = weight_set->envelope->find(fmt::format("{}/{}/{}", variant, index, output));
    if (run && run->shape == truth->shape) out.push_back(run);
  }
  return out;
}

const TensorView* Reference::flushed(std::string_view set, int index, std::string_view output) const {
  const Set* weight_set = set_of(set);
  const TensorView* truth = expected(set, index, output);
  if (!weight_set || !weight_set->flushed || !truth) return nullptr;
  const TensorView* tensor = weight_set->flushed->find(fmt::format("{}/{}", index, output));
  return tensor && tensor->shape == truth->shape ? tensor : nullptr;
}

std::vector<int> Reference::indices(std::string_view set) const {
  const Set* weight_set = set_of(set);
  return weight_set ? weight_set->indices : std::vector<int>();
}

Envelope Reference::envelope(std::string_view set, std::string_view output) const {
  const Set* weight_set = set_of(set);
  const double least = narrowest(precision(), unit());
  if (!weight_set) return {least, least};
  if (const auto known = weight_set->known.find(output); known != weight_set->known.end()) return known->second;
  Envelope out{least, least};
  for (int index : weight_set->indices)
    for (const TensorView* run : legitimate(set, index, output)) {
      const Difference d = difference(*run, *expected(set, index, output), floor_scale(set));
      out.error = std::max(out.error, d.error);
      out.largest = std::max(out.largest, d.largest);
    }
  weight_set->known.emplace(output, out);
  return out;
}

double Reference::floor_scale(std::string_view set) const {
  const Set* weight_set = set_of(set);
  if (!weight_set) return 0;
  if (weight_set->floor_scale) return *weight_set->floor_scale;
  constexpr std::size_t most = 1 << 20;  // elements: the median of a regular sample of them will do
  std::vector<double> magnitudes;
  for (const OutputSpec& output : outputs_) {
    const TensorView* tensor = output.tap ? nullptr : expected(set, weight_set->indices.front(), output.name);
    if (!tensor || !is_floating(tensor->dtype)) continue;
    const auto count = static_cast<std::size_t>(tensor->elements());
    for (std::size_t i = 0, step = count / most + 1; i < count; i += step)
      if (const double value = std::abs(value_at(*tensor, i)); std::isfinite(value)) magnitudes.push_back(value);
  }
  double median = 0;
  if (!magnitudes.empty()) {
    const auto middle = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 2);
    std::nth_element(magnitudes.begin(), middle, magnitudes.end());
    median = *middle;
  }
  weight_set->floor_scale = unit() * median;
  return *weight_set->floor_scale;
}

double Reference::unit() const {
  if (question_.precision == core::Precision::tf32) return 0x1p-11;
  return question_.precision == core::Precision::fp32 ? float32_unit : 0x1p-9;
}

double Reference::least_error(std::string_view set, std::string_view output) const {
  const Set* weight_set = set_of(set);
  if (!weight_set) return 0;
  double least = 0;
  for (const std::string& variant : weight_set->variants) {
    double sum = 0;
    for (int index : weight_set->indices) {
      const TensorView* run = weight_set->envelope->find(fmt::format("{}/{}/{}", variant, index, output));
      const TensorView* truth = expected(set, index, output);
      if (run && truth && run->shape == truth->shape) sum += difference(*run, *truth, floor_scale(set)).error;
    }
    const double mean = sum / static_cast<double>(weight_set->indices.size());
    least = least > 0 ? std::min(least, mean) : mean;
  }
  return least;
}

bool Reference::distinct(std::string_view set, int index) const {
  const Set* weight_set = set_of(set);
  if (!weight_set) return false;
  if (const auto known = weight_set->distinct.find(index); known != weight_set->distinct.end()) return known->second;
  bool all_differ = weight_set->indices.size() > 1;
  for (int other : weight_set->indices) {
    if (other == index) continue;
    bool differs = false;
    for (const OutputSpec& output : outputs_) {
      const TensorView* mine = expected(set, index, output.name);
      const TensorView* theirs = expected(set, other, output.name);
      if (output.tap || differs || !mine || !theirs) continue;
      if (!is_floating(output.dtype)) {
        differs = !same_bytes(*mine, *theirs);
        continue;
      }
      const Difference d = difference(*theirs, *mine, floor_scale(set));
      differs = d.non_finite > 0 || d.error > 2 * strict_limit * envelope(set, output.name).error;
    }
    all_differ = all_differ && differs;
  }
  weight_set->distinct.emplace(index, all_differ);
  return all_differ;
}

std::vector<std::string> Reference::faults() const {
  std::set<std::string> out;
  if (faults_)
    for (const std::string& tensor : faults_->names())
      if (const auto owner = owner_and_index(tensor)) out.insert(owner->first);
  return {out.begin(), out.end()};
}

const TensorView* Reference::faulty(std::string_view fault, std::string_view output) const {
  return faults_ ? faults_->find(fmt::format("{}/0/{}", fault, output)) : nullptr;
}

namespace {

// Which bytes a file has: cases of one network share the file of its weights.
using FileState = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;
std::optional<FileState> file_state_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileState{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace

Result<std::map<std::string, std::string>> weight_hashes(const fs::path& bundle, std::string_view set) {
  using Hashes = std::map<std::string, std::string>;
  static std::map<FileState, Hashes> known;  // certificates are written again and again, and each file takes a while
  const auto path = bundle / "weights" / fmt::format("{}.safetensors", set);
  const auto state = file_state_of(path);
  if (const auto it = state ? known.find(*state) : known.end(); it != known.end()) return it->second;
  const auto file = STRATA_TRY(SafeTensors::map(path));
  Hashes out;
  for (const std::string& name : file.names()) {
    const TensorView& tensor = *file.find(name);
    out.emplace(name, sha256_hex({reinterpret_cast<const char*>(tensor.data), tensor.bytes}));
  }
  if (state) known.emplace(*state, out);
  return out;
}

}  // namespace strata::proof
