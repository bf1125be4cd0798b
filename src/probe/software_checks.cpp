// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/hash.hpp"
#include "probe/checks.hpp"

namespace strata::probe {
namespace {

namespace fs = std::filesystem;

std::string first_line_of(const std::string& command) {
  std::string line;
  if (FILE* pipe = popen((command + " 2>/dev/null </dev/null").c_str(), "r")) {
    std::array<char, 256> buffer{};
    if (std::fgets(buffer.data(), buffer.size(), pipe)) line = buffer.data();
    pclose(pipe);
  }
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
  return line;
}

Check program(const char* name, const char* command, const char* package) {
  const auto version = first_line_of(command);
  if (!version.empty()) return {.group = "software", .name = name, .standing = Standing::ok, .found = version};
  return {.group = "software",
          .name = name,
          .standing = Standing::missing,
          .reason = "needed to build strata and its C++ levels",
          .remedy = fmt::format("apt-get install {}", package)};
}

// A key of pyvenv.cfg, which has lines "key = value".
std::string venv_setting(const fs::path& venv, const std::string& key) {
  std::ifstream file(venv / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + " = ")) return line.substr(key.size() + 3);
  }
  return {};
}

// Installed by pip, which has set up all there is.
bool is_package(const Installation& place) {
  return !fs::exists(place.root / "setup");
}

Check python_check(const Installation& place) {
  const auto venv = fs::path(place.tools_python).parent_path().parent_path();
  const auto version = venv_setting(venv, "version");
  if (version.empty() && is_package(place) && fs::exists(place.tools_python))  // no virtual environment
    return {.group = "software", .name = "Python", .standing = Standing::ok, .found = place.tools_python};
  if (version.empty() || !fs::exists(place.tools_python)) {
    return {.group = "software",
            .name = "Python",
            .standing = Standing::missing,
            .reason = "strata's own environment is not set up",
            .remedy = "./strata compare sets it up on first use"};
  }
  Check check{.group = "software",
              .name = "Python",
              .standing = Standing::ok,
              .found = fmt::format("{} in {}", version, venv.string())};
  const auto minor = version.substr(0, version.find('.', version.find('.') + 1));
  const auto prefix = fs::path(venv_setting(venv, "home")).parent_path();
  if (!fs::exists(prefix / "include" / ("python" + minor) / "Python.h")) {
    check.standing = Standing::limited;
    check.reason = "its header Python.h is missing, which torch.compile and AOTInductor include";
    check.remedy = "apt-get install python3-dev";
  }
  return check;
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What setup/python.sh wrote into .venv after each set of packages: lines "set=hash".
bool set_is_installed(const fs::path& root, const std::string& set) {
  const auto hash = sha256_of_file(root / "requirements" / (set + ".txt"));
  return hash &&
         ("\n" + read_all(root / ".venv/strata-installed")).find(fmt::format("\n{}={}\n", set, hash->substr(0, 16))) !=
             std::string::npos;
}

}  // namespace

fs::path site_packages(const fs::path& python) {
  std::error_code ec;
  const auto venv = python.parent_path().parent_path();
  if (!fs::exists(venv / "pyvenv.cfg", ec)) return {};
  for (const auto& entry : fs::directory_iterator(venv / "lib", ec)) {
    if (entry.path().filename().string().starts_with("python") && fs::exists(entry.path() / "site-packages", ec))
      return entry.path() / "site-packages";
  }
  return {};
}

std::map<std::string, std::string> installed_packages(const fs::path& folder) {
  std::map<std::string, std::string> packages;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    auto name = entry.path().filename().string();
    if (!name.ends_with(".dist-info")) continue;
    name.resize(name.size() - std::string_view(".dist-info").size());
    const auto dash = name.rfind('-');
    if (dash == std::string::npos) continue;
    auto package = name.substr(0, dash);
    for (auto& letter : package)
      letter =
          letter == '_' || letter == '.' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    packages[package] = name.substr(dash + 1);
  }
  return packages;
}

Size lock_size(const fs::path& sizes_file, std::string_view lock) {
  std::ifstream file(sizes_file);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    Size size;
    if (words >> name >> size.download_mb >> size.disk_mb && name == lock) return size;
  }
  return {};
}

Checks software_checks(const Installation& place) {
  Checks checks{program("C++ compiler", "c++ --version", "g++"), program("CMake", "cmake --version", "cmake"),
                program("Ninja", "ninja --version", "ninja-build"), python_check(place)};
  const auto packages = installed_packages(site_packages(place.tools_python));
  struct Wanted {
    const char *name, *package, *use;
  };
  for (const auto& [name, package, use] :
       {Wanted{"PyTorch", "torch", "the levels eager to aoti"},
        Wanted{"torchvision", "torchvision", "its models by name"},
        Wanted{"ONNX Runtime", "onnxruntime", "the peer onnxruntime"},
        Wanted{"OpenVINO", "openvino", "the peer openvino"}, Wanted{"scikit-image", "scikit-image", "the photographs"},
        Wanted{"scikit-learn", "scikit-learn", "photographs and digits"}, Wanted{"plotly", "plotly", "the report"}}) {
    const auto it = packages.find(package);
    const bool own = place.python.empty() || place.python == place.tools_python;
    const bool torch = std::string_view(package).starts_with("torch");
    if (it != packages.end()) {
      checks.push_back({.group = "software", .name = name, .standing = Standing::ok, .found = it->second});
    } else if (!(torch && !own)) {  // with --python, PyTorch is theirs
      checks.push_back({.group = "software",
                        .name = name,
                        .standing = Standing::missing,
                        .reason = fmt::format("not installed in .venv; {} needs it", use),
                        .remedy = "./strata compare installs it on first use"});
    }
  }
  return checks;
}

Checks set_up_checks(const Installation& place) {
  if (is_package(place)) return {};
  constexpr double megabytes_per_minute = 600;  // 10 MB/s: a plain connection; said beside the estimate
  const bool own = place.python.empty() || place.python == place.tools_python;
  int download = 0, disk = 0;
  double minutes = 0;
  std::string what;
  const auto add = [&](const std::string& name) { what += (what.empty() ? "" : ", ") + name; };
  for (const std::string set : {"base", "torch"}) {
    if ((set == "torch" && !own) || set_is_installed(place.root, set)) continue;
    const auto size = lock_size(place.root / "requirements/sizes", set);
    download += size.download_mb;
    disk += size.disk_mb;
    minutes += size.download_mb / megabytes_per_minute + 0.5;
    add(set == "base" ? "Python packages of strata" : "PyTorch");
  }
  std::error_code ec;
  if (!fs::exists(place.level_build / "build.ninja", ec)) {
    disk += 500;
    minutes += 6.0 * 2 / std::max(2u, std::thread::hardware_concurrency());
    add("compiling the C++ levels");
  }
  const auto room = fs::space(place.root, ec);
  const auto free_mb = ec ? 0 : static_cast<long>(room.available / 1'000'000);
  Check left{.group = "set-up", .name = "still to do", .standing = Standing::ok, .found = "nothing"};
  if (!what.empty()) {
    left.standing = Standing::limited;
    left.found =
        fmt::format("about {} MB to download, {} MB on disk, {:.0f} minutes", download, disk, std::max(1.0, minutes));
    left.reason = what + " (minutes at 10 MB/s)";
    left.remedy = "./strata compare does it on first use" +
                  std::string(own && download > 1000 ? "; --python PATH measures a PyTorch that you have instead" : "");
  }
  Check space{.group = "set-up",
              .name = "disk",
              .standing = Standing::ok,
              .found = fmt::format("{:.1f} GB free in {}", static_cast<double>(free_mb) / 1000, place.root.string())};
  if (free_mb < disk + 500) {
    space.standing = Standing::limited;
    space.reason = fmt::format("set-up needs {} MB more", disk + 500 - free_mb);
    space.remedy = "free some space, or move this folder to a larger disk";
  }
  return {left, space};
}

}  // namespace strata::probe
