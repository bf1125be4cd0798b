// SPDX-License-Identifier: Apache-2.0
#include "plan/install.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "common/interrupt.hpp"
#include "level/own_environment.hpp"
#include "plan/jobs.hpp"

namespace strata::plan {
namespace {

// A set-up step with the terminal of this program, standard output turned to standard error; a Ctrl-C reaches both.
int run_step(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);  // ours may be a client's
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int refused = posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) return 127;
  bool told_to_end = false;
  for (int status = 0;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return 127;
    if (interrupted() && !told_to_end) told_to_end = kill(child, SIGTERM) == 0;  // it tidies up and ends
    pollfd interrupt{told_to_end ? -1 : interrupt_descriptor(), POLLIN, 0};
    poll(&interrupt, 1, 100);
  }
}

}  // namespace

void install_environments(const std::vector<level::Level>& levels, const std::vector<std::string>& named,
                          const Installation& place) {
  const auto places = places_of(place);
  for (const auto& level : levels) {
    const bool is_named = std::any_of(named.begin(), named.end(), [&](const std::string& name) {
      return name.substr(0, name.find('@')) == level.id;
    });
    if (!is_named || interrupted() || !level::own_environment_missing(level, places)) continue;
    const auto folder = level::own_environment(level, places).string();
    const auto script = (place.root / "setup" / "environment.sh").string();
    if (!there_is(script)) continue;  // a package, where own_environment_missing() says so
    if (run_step({"bash", script, level.id, level.folder.string(), folder}) == 130) interrupted() = true;
  }
}

}  // namespace strata::plan
