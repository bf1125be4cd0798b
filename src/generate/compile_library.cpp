// SPDX-License-Identifier: Apache-2.0
#include "generate/compile_library.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace strata::generate {
namespace fs = std::filesystem;
namespace {

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

std::string tail_of(const fs::path& log) {
  std::ifstream in(log);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t most = 1500;
  return text.size() > most ? text.substr(0, most) + " ..." : text;
}

}  // namespace

Result<void> compile_library(const std::string& fallback, const std::vector<std::string>& words, const fs::path& log,
                             const fs::path& library) {
  const char* named = std::getenv("CXX");
  const fs::path part = library.string() + ".part";
  std::vector<std::string> command{named != nullptr && *named != '\0' ? named : fallback};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"-fPIC", "-shared", "-o", part.string()});
  const int status = run(command, log);
  if (status < 0)
    return fail(fmt::format("no C++ compiler: cannot start {}: {}", command.front(), std::strerror(errno)),
                "install g++, or set CXX to a C++20 compiler", Exit::environment);
  if (status != 0)
    return fail(fmt::format("{} ended with {} on the generated program: {}", command.front(), status, tail_of(log)),
                fmt::format("its sources: {}", log.parent_path().string()));
  std::error_code error;
  fs::rename(part, library, error);
  if (error) return fail(fmt::format("cannot write {}: {}", library.string(), error.message()));
  return {};
}

}  // namespace strata::generate
