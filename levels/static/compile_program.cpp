// SPDX-License-Identifier: Apache-2.0
#include "compile_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern char** environ;

namespace strata::static_program {
namespace fs = std::filesystem;
namespace {

std::string compiler() {
  const char* named = std::getenv("CXX");
  return named != nullptr && *named != '\0' ? named : STRATA_COMPILER;
}

// Runs a command with its output in `log`. Its exit status; -1: it could not be started, errno says why.
int run(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// One file that includes all: headers are read once.
Result<fs::path> write_unit(const fs::path& folder) {
  std::vector<std::string> files{"model.cpp", "program.cpp"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "stages", error))
    files.push_back("stages/" + entry.path().filename().string());
  std::sort(files.begin() + 2, files.end());
  const auto path = folder / "all.cpp";
  std::ofstream out(path);
  for (const auto& file : files) out << fmt::format("#include \"{}\"\n", file);
  if (!out.flush())
    return fail(fmt::format("cannot write {}", path.string()), "is there space, and may you write there?");
  return path;
}

std::string tail_of(const fs::path& log) {
  std::ifstream in(log);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t most = 1500;
  return text.size() > most ? text.substr(0, most) + " ..." : text;
}

}  // namespace

Result<void> compile_program(const fs::path& folder, const fs::path& library) {
  const auto unit = write_unit(folder);
  if (!unit) return tl::unexpected(unit.error());
  const auto log = folder / "compile.log", part = fs::path(library.string() + ".part");
  const std::string lib = STRATA_ONEDNN_LIB;
  const std::vector<std::string> command{compiler(),
                                         "-std=c++20",
                                         "-O1",
                                         "-fPIC",
                                         "-shared",
                                         "-fopenmp",
                                         "-fvisibility-inlines-hidden",
                                         "-I" + folder.string(),
                                         "-isystem",
                                         STRATA_ONEDNN_INCLUDE,
                                         unit->string(),
                                         "-o",
                                         part.string(),
                                         STRATA_KIT_ARCHIVE,
                                         lib + "/libdnnl.so",
                                         "-Wl,-rpath," + lib,
                                         "-Wl,-Bsymbolic"};
  const int status = run(command, log);
  if (status < 0)
    return fail(fmt::format("no C++ compiler: cannot start {}: {}", command.front(), std::strerror(errno)),
                "install g++, or set CXX to a C++20 compiler", Exit::environment);
  if (status != 0)
    return fail(fmt::format("{} ended with {} on the generated program: {}", command.front(), status, tail_of(log)),
                fmt::format("its sources: {}", folder.string()));
  std::error_code error;
  fs::rename(part, library, error);
  if (error) return fail(fmt::format("cannot write {}: {}", library.string(), error.message()));
  return {};
}

}  // namespace strata::static_program
