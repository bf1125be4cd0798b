// SPDX-License-Identifier: Apache-2.0
#include "plan/bundle.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/bundle_info.hpp"
#include "common/hash.hpp"
#include "common/outside.hpp"
#include "common/python.hpp"
#include "common/temporary.hpp"
#include "plan/model_file.hpp"
#include "worker/answers.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
namespace {

// Names and contents of every Python and JSON file below a folder, in one hash.
std::string hash_sources(const fs::path& folder, bool recurse) {
  std::vector<fs::path> files;
  std::error_code ec;
  const auto take = [&](const fs::directory_entry& entry) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file(ec) && (extension == ".py" || extension == ".json")) files.push_back(entry.path());
  };
  if (recurse)
    for (const auto& entry :
         fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, ec))
      take(entry);
  else
    for (const auto& entry : fs::directory_iterator(folder, ec)) take(entry);
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

// The code that makes and captures the network.
std::string code_of(const nlohmann::json& spec, const Installation& place, const Environment& environment) {
  std::string text = environment.torch_version + environment.python_version;
  text += hash_sources(place.root / "src/capture", true) + hash_sources(place.root / "models", true) +
          hash_sources(place.root / "sdk/python", true);
  const std::string model = spec.value("model", "");
  // A user's model may import its neighbours, so all of the folder's sources count.
  if (const auto colon = model.rfind(':'); colon != std::string::npos)
    text += hash_sources(fs::path(model.substr(0, colon)).parent_path(), false);
  // A network that is a file: a name is none.
  if (std::error_code ec; fs::path(model).is_absolute() && fs::is_regular_file(model, ec))
    text += sha256_of_file(model).value_or("");
  return text;
}

// Content of everything but weights and inputs. A network that did not export may be built differently from each seed:
// its key is the whole.
std::string structure_of(const Bundle& bundle, const std::string& code) {
  const auto graph = sha256_of_file(bundle.folder / "graph.txt");
  if (!graph) return bundle.key;
  auto fixed = bundle.info["case"];
  for (const char* free : {"seed", "weights", "weights_label", "input_from", "synthetic"}) fixed.erase(free);
  return sha256_hex(code + *graph + fixed.dump()).substr(0, 24);
}

Result<std::string> key_of(const nlohmann::json& spec, const std::string& code) {
  std::string text = spec.dump() + code;
  if (spec.value("weights", nlohmann::json()).is_string()) {
    const auto hash = sha256_of_file(spec["weights"].get<std::string>());
    if (!hash) return tl::unexpected(hash.error());
    text += *hash;
  }
  if (spec.value("input_from", nlohmann::json()).is_string())
    text += hash_listing(spec["input_from"].get<std::string>());
  return sha256_hex(text).substr(0, 24);
}

Result<nlohmann::json> read_info(const fs::path& folder) {
  return read_bundle_info(folder, true);
}

Error capture_error(const worker::Finished& ran, const fs::path& log) {
  const auto answer = worker::last_line(ran);
  if (const auto what = outside::text_or(answer, "what"); !what.empty()) {
    const auto code = outside::text_or(answer, "code");
    return {what, outside::text_or(answer, "hint"),
            code == "usage"         ? Exit::usage
            : code == "unavailable" ? Exit::environment
                                    : Exit::failed};
  }
  if (ran.timed_out) return {"capturing the network took too long", "raise --timeout, or try a smaller batch"};
  return {fmt::format("capturing the network ended with {}{}{}",
                      ran.signal ? fmt::format("signal {}", *ran.signal) : fmt::format("exit code {}", ran.exit_code),
                      ran.log_tail.empty() ? "" : ":\n", ran.log_tail),
          fmt::format("the whole log is {}", log.string())};
}

}  // namespace

Result<Bundle> get_bundle(const nlohmann::json& spec, const Installation& place, const Environment& environment,
                          const Progress& progress, const Bundle* strict) {
  const auto code = code_of(spec, place, environment);
  // The key is that of the case alone: an open batch beside it does not make another one of it.
  auto fixed = spec;
  fixed.erase("dynamic");
  const auto range = spec.value("dynamic", nlohmann::json());
  const auto suffix =
      range.is_object() ? fmt::format("-batch{}-{}", range.value("low", 0), range.value("high", 0)) : std::string();
  const auto key = key_of(fixed, code);
  if (!key) return tl::unexpected(key.error());
  Bundle bundle{place.cache / "bundles" / (*key + suffix), *key, {}, {}, true, nullptr};
  std::error_code ec;
  if (!fs::exists(bundle.folder / "bundle.json", ec)) {
    bundle.cached = false;
    fs::create_directories(bundle.folder.parent_path(), ec);
    if (ec)
      return fail(
          fmt::format("cannot make the cache folder {}: {}", bundle.folder.parent_path().string(), ec.message()),
          "set STRATA_CACHE to a folder that can be written");
    const fs::path spec_path = fmt::format("{}.{}.spec.json", bundle.folder.string(), getpid());
    const fs::path log = fmt::format("{}.log", bundle.folder.string());
    std::ofstream(spec_path) << spec.dump(1) << '\n';
    // a model file's capture may write into a folder of its own only, so the bundle is moved from there
    const bool confined = is_model_file(spec.value("model", ""));
    const fs::path incoming = fmt::format("{}.{}.incoming", bundle.folder.string(), getpid());
    const fs::path out = confined ? incoming / "bundle" : bundle.folder;
    worker::Launch launch;
    launch.argv = python_command(environment.python, place.root,
                                 {"-m", "capture", "--spec", spec_path.string(), "--out", out.string()});
    if (strict) launch.argv.insert(launch.argv.end(), {"--strict", strict->folder.string()});
    const auto temporary = temporary_folder(place.cache);
    if (!temporary) return tl::unexpected(temporary.error());
    launch.env = {{"STRATA_OVERLAY", place.overlay},
                  {"TMPDIR", *temporary},
                  {"STRATA_ROOT", place.root.string()},
                  {"OMP_NUM_THREADS", std::to_string(spec.value("threads", 1))}};
    launch.env.merge(python_variables({place.root / "src", place.root / "sdk/python"}));
    launch.log_path = log.string();
    if (confined) {
      fs::create_directory(incoming, ec);
      if (auto done = confine(launch, place, {incoming}); !done) return tl::unexpected(done.error());
    }
    const auto ran = worker::run_to_end(launch, std::chrono::minutes(60), [&](std::string_view line) {
      const auto said = outside::parse(line, "progress");
      if (!said) return;
      if (const auto what = outside::text_or(*said, "progress"); !what.empty()) progress(what);
    });
    fs::remove(spec_path, ec);
    if (confined) {
      fs::rename(out, bundle.folder, ec);  // one that another run has just put there stays
      fs::remove_all(incoming, ec);
    }
    if (!ran) return fail(ran.error().what, ran.error().hint);
    if (ran->exit_code != 0 || ran->signal || ran->timed_out || !fs::exists(bundle.folder / "bundle.json", ec))
      return tl::unexpected(capture_error(*ran, log));
    fs::remove(log, ec);
  }
  auto info = read_info(bundle.folder);
  if (!info) return tl::unexpected(info.error());
  bundle.info = std::move(*info);
  bundle.structure = structure_of(bundle, code);
  if (range.is_object()) {
    Bundle open{bundle.folder / "dynamic", bundle.key + suffix, {}, {}, bundle.cached, nullptr};
    auto about = read_info(open.folder);
    if (!about) return tl::unexpected(about.error());
    open.info = std::move(*about);
    open.structure = structure_of(open, code);
    bundle.dynamic = std::make_shared<const Bundle>(std::move(open));
  }
  return bundle;
}

}  // namespace strata::plan
