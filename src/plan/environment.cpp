// SPDX-License-Identifier: Apache-2.0
#include "plan/environment.hpp"

#include <fmt/format.h>

#include "common/lookup.hpp"
#include "common/outside.hpp"
#include "common/python.hpp"
#include "worker/worker.hpp"

namespace strata::plan {
namespace {
constexpr const char* kAsk = R"py(
import importlib.metadata as m, importlib.util as u, json, os, platform, re, sys
if os.environ.get("STRATA_OVERLAY"): sys.path.append(os.environ["STRATA_OVERLAY"])
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
# what `import torch` would find, without the seconds of it, and what it would not
def torches():
    for folder in dict.fromkeys(os.path.realpath(entry) for entry in sys.path):
        try: text = open(os.path.join(folder, "torch", "version.py")).read()
        except OSError: continue
        yield folder, (re.search(r"^__version__ *= *['\"]([^'\"]+)", text, re.M) or [0, "unknown"])[1]
reachable = list(torches())
torch = version("torch")
# a PyTorch that was built from source has no metadata, one that was replaced by hand may have left its own
if reachable and reachable[0][1].split("+")[0] != torch.split("+")[0]: torch = reachable[0][1]
others = [f"{number} in {folder}" for folder, number in reachable[1:]]
found = {"python": platform.python_version(), "torch": torch, "others": others, "missing": [n for n in sys.argv[2:] if u.find_spec(n) is None]}
if sys.argv[1] == "packages": found["packages"] = {d.metadata["Name"]: d.version for d in reversed(list(m.distributions())) if d.metadata["Name"]}
print(json.dumps(found))
)py";
}

nlohmann::json Environment::to_json() const {
  nlohmann::json out{{"python", python}, {"python_version", python_version}, {"torch", torch_version}};
  if (!name.empty()) out["name"] = name;
  if (!packages.is_null()) out["packages"] = packages;
  return out;
}

Result<Environment> ask_environment(const std::string& python, const Installation& place,
                                    const std::vector<std::string>& modules, EnvironmentDetail more) {
  worker::Launch launch;
  std::vector<std::string> words{"-c", kAsk, more == EnvironmentDetail::packages ? "packages" : "modules"};
  words.insert(words.end(), modules.begin(), modules.end());
  launch.argv = python_command(python, place.root, words);
  launch.env = python_variables({});
  launch.env["STRATA_OVERLAY"] = place.overlay;
  const char* remedy = "name a working interpreter with --python PATH, or run ./strata once to set up its own";
  const auto ran = worker::run_to_end(launch, std::chrono::seconds(60));
  if (!ran)
    return fail(fmt::format("the Python interpreter {} cannot be started: {}", python, ran.error().what), remedy,
                Exit::environment);
  const auto answer = outside::parse(ran->stdout_text, python);
  const auto value = answer ? *answer : nlohmann::json();
  outside::Fields reader(value, python);
  Environment result{.python = python, .python_version = reader.text("python"), .missing = reader.texts("missing")};
  result.torch_version = reader.text("torch");
  result.other_torch = reader.texts("others", {});
  if (ran->exit_code != 0 || reader.error())
    return fail(
        fmt::format("the Python interpreter {} does not work (exit code {}) {}", python, ran->exit_code, ran->log_tail),
        remedy, Exit::environment);
  if (more == EnvironmentDetail::packages) result.packages = outside::field(value, "packages");
  return result;
}

Result<Environments> ask_environments(const Installation& place, const std::vector<std::string>& modules) {
  auto measured = ask_environment(place.python, place, modules);
  if (!measured) return tl::unexpected(measured.error());
  if (measured->torch_version.empty())
    return fail(fmt::format("{} has no PyTorch, which is needed to capture the network", place.python),
                "install PyTorch 2.11 or newer there, or name another interpreter with --python PATH",
                Exit::environment);
  auto tools =
      STRATA_TRY(place.tools_python == place.python ? measured : ask_environment(place.tools_python, place, modules));
  return Environments{std::move(*measured), std::move(tools)};
}

std::string torch_versions(const std::vector<nlohmann::json>& environments) {
  std::string versions;
  for (const auto& environment : environments) {
    const auto version = lookup::text(environment, "torch"), name = lookup::text(environment, "name");
    if (version.empty()) continue;
    versions += (versions.empty() ? "" : ", ") + version;
    if (environments.size() > 1 && !name.empty()) versions += " in " + name;
  }
  return versions;
}

}  // namespace strata::plan
