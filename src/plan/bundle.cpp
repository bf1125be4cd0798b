// SPDX-License-Identifier: Apache-2.0
#include "plan/bundle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "common/file_lock.hpp"
#include "common/hash.hpp"
#include "common/outside.hpp"
#include "common/python.hpp"
#include "core/bundle_info.hpp"
#include "graph/flops.hpp"
#include "plan/capture.hpp"
#include "plan/manifest.hpp"
#include "plan/model_file.hpp"
#include "plan/read_files.hpp"
#include "plan/references.hpp"
#include "plan/states.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
namespace {

constexpr const char* kRemedy = "set STRATA_CACHE to a folder of your own";

// Names and contents of every Python and JSON file below a folder, in one hash.
std::string hash_sources(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  const auto take = [&](const fs::directory_entry& entry) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file(ec) && (extension == ".py" || extension == ".json")) files.push_back(entry.path());
  };
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, ec))
    take(entry);
  std::sort(files.begin(), files.end());
  std::string all;
  for (const auto& file : files) all += file.string() + ' ' + sha256_of_file(file).value_or("") + '\n';
  return sha256_hex(all);
}

// Images are identified by name, size and time of change: hashing gigabytes would cost more than it saves.
std::string hash_listing(const fs::path& folder) {
  std::vector<std::string> lines;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    lines.push_back(fmt::format("{} {} {}", entry.path().filename().string(),
                                entry.is_regular_file(ec) ? entry.file_size(ec) : 0,
                                entry.last_write_time(ec).time_since_epoch().count()));
  std::sort(lines.begin(), lines.end());
  return sha256_hex(fmt::format("{}", fmt::join(lines, "\n")));
}

// strata's own code that makes and captures the network, and what it runs on.
std::string code_of(const core::CaseSpec& spec, const Installation& place, const Environment& environment) {
  std::string text = environment.torch_version + environment.python_version;
  if (is_users(spec.model)) text += environment.python;  // whose packages are among the files that the capture read
  // where else the package may lie: the files that were read of another one stay as they are
  if (is_of_package(spec.model)) text += python_variables({}).at("PYTHONPATH");
  return text + hash_sources(place.root / "src/capture") + hash_sources(place.root / "models") +
         hash_sources(place.root / "sdk/python");
}

// Content of everything but weights and inputs. A network that did not export may be built differently from each seed:
// its key is the whole.
std::string structure_of(const Bundle& bundle, const std::string& code) {
  const auto graph = sha256_of_file(bundle.folder / "graph.txt");
  if (!graph) return bundle.key;
  auto fixed = outside::field(bundle.info, "case");
  for (const char* free : {"seed", "weights", "weights_label", "input_from", "input_file", "inputs_label", "synthetic"})
    fixed.erase(free);
  std::string sources;  // a level may run the module otherwise than its export does
  for (const auto& entry : bundle.info.value("read", nlohmann::json::array()))
    if (entry.is_object() && entry.value("path", "").ends_with(".py")) sources += entry.dump();
  return sha256_hex(code + *graph + fixed.dump() + sources).substr(0, 24);
}

Result<std::string> key_of(const core::CaseSpec& spec, const std::string& code) {
  std::string text = to_json(spec).dump() + code;
  for (const auto& [name, file] : {std::pair("weights", spec.weights), std::pair("input_file", spec.input_file)}) {
    if (file.empty()) continue;
    const auto hash = STRATA_TRY(sha256_of_file(file));
    text += name + hash;
  }
  if (!spec.input_from.empty()) text += hash_listing(spec.input_from);
  return sha256_hex(text).substr(0, 24);
}

// Of what was captured, by whomever: runs of one case with two of these are not about the same network.
std::string network_of(const Bundle& bundle) {
  const auto& fields = outside::field(bundle.info, "case");
  std::string all = outside::text_or(fields, "weights_label") + '\n' + outside::text_or(fields, "inputs_label");
  for (const char* file : {"graph.json", "graph_constants.safetensors", "calls.json"})
    all += '\n' + sha256_of_file(bundle.folder / file).value_or("");
  return sha256_hex(all).substr(0, 16);
}

Result<nlohmann::json> read_info(const fs::path& folder) {
  return core::read_bundle_info(folder, true);
}

// What bundle.json in the bundle's folder says.
Result<void> read_into(Bundle& bundle) {
  auto info = read_info(bundle.folder);
  if (!info) return fail(fmt::format("{}: {}", bundle.folder.string(), info.error().what), "run it again");
  const auto where = (bundle.folder / "bundle.json").string();
  auto question = STRATA_TRY(core::captured_case(*info, where));
  bundle.spec = STRATA_TRY(core::read_spec(outside::field(*info, "spec"), where + ": spec"));
  bundle.info = std::move(*info);
  bundle.question = std::move(question);
  bundle.network = network_of(bundle);
  return {};
}

// What the network computes is counted here and not by the capture, so that there is one count. `flops` is null where
// nothing of it is known. A bundle that has its own number and nothing to count keeps it.
void count_flops(const fs::path& folder, nlohmann::json& info) {
  const auto flops = graph::flops_in(folder);
  const bool known = flops && *flops;
  if (!known && info.contains("flops")) return;
  info["flops"] = known ? nlohmann::json((*flops)->total) : nlohmann::json();
  info["flops_uncounted"] = known ? graph::names_of((*flops)->uncounted) : std::vector<std::string>{};
}

// The cached captures of a case: one of strata's own networks has one place, a user's one for each state of its files.
std::vector<fs::path> candidates(const fs::path& out, bool by_state) {
  if (by_state) return states_of(out);
  std::error_code ec;
  return fs::exists(out, ec) ? std::vector{out} : std::vector<fs::path>{};
}

struct Cached {
  fs::path folder;  // empty: there is none that can be taken
  std::string why;  // none can: what changed since the newest; empty: nothing was captured before
};

// A damaged capture is removed, since what is proven with it would be false.
Cached find_cached(const std::vector<fs::path>& folders, const core::CaseSpec& spec, const CaptureOptions& options) {
  Cached cached;
  for (const auto& folder : folders) {
    const auto info = read_info(folder);
    if (info && is_users(spec.model)) {
      const auto change = changed_files(info->value("read", nlohmann::json()), folder_of(spec.model));
      if (change && cached.why.empty()) cached.why = *change;
      if (change) continue;
    }
    const auto whole = info ? check_manifest(folder) : Result<void>(tl::unexpected(info.error()));
    if (whole) return {folder, {}};
    if (options.note)
      options.note(fmt::format("the captured network in {} is damaged ({}) and is captured again", folder.string(),
                               whole.error().what));
    std::error_code ec;
    fs::remove_all(folder, ec);
  }
  return cached;
}

// The identity of a case with a user's network follows what was read and what came of it.
std::string key_with(const std::string& key, const nlohmann::json& info, bool by_state) {
  return by_state ? sha256_hex(key + info.value("state", "")).substr(0, 24) : key;
}

std::set<fs::path> g_captured_afresh;

Result<fs::path> cached_or_captured(const core::CaseSpec& spec, const fs::path& out, const Installation& place,
                                    const Environment& environment, const CaptureOptions& options, bool& cached) {
  const bool fresh = options.fresh && g_captured_afresh.insert(out).second;
  const auto match = fresh ? Cached{} : find_cached(candidates(out, is_users(spec.model)), spec, options);
  cached = !match.folder.empty();
  if (cached) {
    STRATA_TRY(private_tree(match.folder, kRemedy));
    mark_used(match.folder);
    return match.folder;
  }
  if (!match.why.empty() && options.note) options.note(fmt::format("capturing again: {}", match.why));
  auto captured = run_capture({.spec = spec,
                               .out = out,
                               .strict = options.strict ? options.strict->folder : fs::path(),
                               .by_state = is_users(spec.model),
                               .timeout_s = options.timeout_s,
                               .memory_limit_gib = options.memory_limit_gib,
                               .progress = options.progress},
                              place, environment);
  if (captured && is_users(spec.model)) prune_states(out);
  remove_lost_references(out.parent_path());
  return captured;
}

}  // namespace

void forget_fresh_captures() {
  g_captured_afresh.clear();
}

bool is_users(const std::string& model) {
  std::error_code ec;
  return is_of_package(model) || model.find(".py:") != std::string::npos ||
         (fs::path(model).is_absolute() && fs::is_regular_file(model, ec));
}

fs::path folder_of(const std::string& model) {
  const auto colon = model.rfind(".py:");
  return fs::path(model.substr(0, colon == std::string::npos ? colon : colon + 3)).parent_path();
}

std::vector<fs::path> find_captured(const std::vector<core::CaseSpec>& specs, const Installation& place,
                                    const Environment& environment) {
  std::vector<fs::path> folders;
  std::string code;  // one for all, since they are cases of one network
  for (const auto& spec : specs) {
    if (code.empty()) code = code_of(spec, place, environment);
    const auto key = key_of(spec, code);
    const auto of_key =
        key ? candidates(place.cache / "bundles" / *key, is_users(spec.model)) : std::vector<fs::path>();
    folders.push_back(of_key.empty() ? fs::path() : of_key.front());
  }
  return folders;
}

Result<nlohmann::json> inputs_of(const core::CaseSpec& spec, const Installation& place, const Environment& environment,
                                 const CaptureOptions& options) {
  const auto key = STRATA_TRY(key_of(spec, code_of(spec, place, environment)));
  const auto bundles = place.cache.empty() ? fs::path() : place.cache / "bundles";
  STRATA_TRY(private_folder(bundles, kRemedy));
  if (!options.fresh)
    if (const auto match = find_cached(candidates(bundles / key, is_users(spec.model)), spec, options);
        !match.folder.empty())
      if (const auto info = read_info(match.folder)) return outside::field(*info, "inputs");
  return check_capture({.spec = spec,
                        .out = bundles / "check",
                        .timeout_s = options.timeout_s,
                        .memory_limit_gib = options.memory_limit_gib,
                        .progress = options.progress},
                       place, environment);
}

Result<nlohmann::json> read_captured(const fs::path& folder) {
  auto info = read_info(folder);
  if (info) count_flops(folder, *info);
  return info;
}

Result<Bundle> get_bundle(const core::CaseSpec& spec, const Installation& place, const Environment& environment,
                          const CaptureOptions& options) {
  const auto code = code_of(spec, place, environment);
  // The key is that of the case alone: an open batch beside it does not make another one of it.
  auto fixed = spec;
  fixed.open_batch.reset();
  const auto& range = spec.open_batch;
  const auto suffix = range ? fmt::format("-batch{}-{}", range->low, range->high) : std::string();
  const auto key = STRATA_TRY(key_of(fixed, code));
  const auto bundles = place.cache.empty() ? fs::path() : place.cache / "bundles";
  STRATA_TRY(private_folder(bundles, kRemedy));
  static const bool held = hold_folder(place.cache);  // `cache prune` leaves it alone
  if (!held) return fail("another strata removes folders from the cache", "run the command again");
  Bundle bundle;
  bundle.folder =
      STRATA_TRY(cached_or_captured(spec, bundles / (key + suffix), place, environment, options, bundle.cached));
  STRATA_TRY(set_references_apart(bundle.folder));
  STRATA_TRY(read_into(bundle));
  count_flops(bundle.folder, bundle.info);
  bundle.key = key_with(key, bundle.info, is_users(spec.model));
  bundle.structure = structure_of(bundle, code);
  if (range) {
    Bundle open{.folder = bundle.folder / "dynamic", .key = bundle.key + suffix, .cached = bundle.cached};
    STRATA_TRY(read_into(open));
    for (const char* count : {"flops", "flops_uncounted"})
      if (bundle.info.contains(count)) open.info[count] = bundle.info[count];
    open.info["read"] = bundle.info.value("read", nlohmann::json::array());
    open.structure = structure_of(open, code);
    bundle.dynamic = std::make_shared<const Bundle>(std::move(open));
  }
  return bundle;
}

}  // namespace strata::plan
