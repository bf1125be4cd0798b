// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/hash.hpp"
#include "probe/checks.hpp"

namespace strata::probe {
namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t kLeastRoom = 500'000'000;  // bytes: of a small network with all levels

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

// `own`: the folder with the programs of strata's own environment, which are used first.
Check program(const char* name, const std::string& command, const char* package, const fs::path& own) {
  std::error_code ec;
  const bool has_own = fs::exists(own / command, ec);
  const auto version = first_line_of((has_own ? "'" + (own / command).string() + "'" : command) + " --version");
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

// What is not installed, of strata's own environment or of the package's interpreter.
Check missing_package(const Installation& place, const char* name, const char* package, const char* use) {
  Check check{.group = "software", .name = name, .standing = Standing::missing};
  check.reason =
      fmt::format("not installed in {}; needed for {}", is_package(place) ? place.tools_python : ".venv", use);
  check.remedy = is_package(place) ? fmt::format("{} -m pip install {}", place.tools_python, package)
                                   : "./strata compare installs it on first use";
  return check;
}

// The folder in which what is captured and compiled is kept, or where it will be made. Writes nothing there.
Check cache_check(const fs::path& cache) {
  Check check{.group = "software", .name = "cache", .standing = Standing::ok};
  const char* remedy = "set STRATA_CACHE to a folder of your own on a disk of this machine";
  const auto limited = [&](const std::string& reason) {
    check.standing = Standing::limited;
    check.reason = reason;
    check.remedy = remedy;
    return check;
  };
  if (cache.empty()) return limited("there is no folder for it: HOME is not set");
  std::error_code ec;
  auto there = cache;
  while (!fs::exists(there, ec) && there.has_relative_path()) there = there.parent_path();
  const auto room = fs::space(there, ec);
  check.found =
      fmt::format("{:.1f} GB free in {}", ec ? 0.0 : static_cast<double>(room.available) / 1e9, cache.string());
  if (!fs::is_directory(there, ec)) return limited(fmt::format("{} is no folder", there.string()));
  if (::access(there.c_str(), W_OK) != 0)
    return limited(fmt::format("{} cannot be written: {}", there.string(), std::strerror(errno)));
  if (!ec && room.available < kLeastRoom) return limited("a network with its levels takes more than that");
  const int file = ::open(there.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool locks = file < 0 || ::flock(file, LOCK_SH | LOCK_NB) == 0 || errno == EWOULDBLOCK;
  const std::string why = locks ? "" : std::strerror(errno);
  if (file >= 0) ::close(file);
  if (!locks)
    return limited(
        fmt::format("its file system has no locks ({}), so two commands at a time may disturb each other", why));
  return check;
}

}  // namespace

bool is_package(const Installation& place) {
  std::error_code ec;
  return !fs::exists(place.root / "setup", ec);
}

std::string normal_name(std::string package) {
  for (auto& letter : package)
    letter = letter == '_' || letter == '.' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return package;
}

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
    packages[normal_name(name.substr(0, dash))] = name.substr(dash + 1);
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

Checks software_checks(const Installation& place, const std::map<std::string, std::string>& packages) {
  const auto own_programs = fs::path(place.tools_python).parent_path();
  Checks checks{program("C++ compiler", "c++", "g++", {}), program("CMake", "cmake", "cmake", own_programs),
                program("Ninja", "ninja", "ninja-build", own_programs), python_check(place)};
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
      checks.push_back(missing_package(place, name, package, use));
    }
  }
  checks.push_back(cache_check(place.cache));
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
