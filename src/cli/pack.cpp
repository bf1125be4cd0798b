// SPDX-License-Identifier: Apache-2.0
// `strata pack -o DIR`: asks stratabench.pack (Python) for it, which this process becomes.
#include "engine/pack.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/python.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace {

Error not_started(const std::string& python) {
  return {fmt::format("the Python interpreter {} cannot be started: {}", python, std::strerror(errno)),
          "run ./strata doctor, which looks at it", Exit::environment};
}

// The order on standard input: a few kilobytes, which a pipe holds.
Result<int> pack(const requests::PackRequest& request) {
  auto place = installation();
  if (!request.python.empty()) place.python = request.python;
  const auto order = STRATA_TRY(engine::pack_order(request, place)).dump();
  int ends[2];
  if (::pipe(ends) != 0) return tl::unexpected(not_started(place.tools_python));
  const bool sent = ::write(ends[1], order.data(), order.size()) == static_cast<ssize_t>(order.size());
  ::close(ends[1]);
  if (!sent || ::dup2(ends[0], STDIN_FILENO) < 0) return tl::unexpected(not_started(place.tools_python));
  ::close(ends[0]);
  // a wheel has the module beside its tree, where the interpreter finds it
  for (const auto& [name, value] : python_variables({place.root / "python"})) ::setenv(name.c_str(), value.c_str(), 1);
  const auto words = python_command(place.tools_python, place.root, {"-m", "stratabench.pack"});
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return tl::unexpected(not_started(place.tools_python));
}

}  // namespace

void add_pack(CLI::App& app, int& exit_code) {
  auto* verb =
      app.add_subcommand("pack", "write strata with its levels as a folder that runs on a machine without a network");
  auto a = std::make_shared<requests::PackRequest>();
  add_members(*verb, requests::members_of(*a));
  verb->footer(
      "There: DIR/run compare MODEL. Networks are captured there, too: what is captured here names this machine's "
      "files.\nExit codes: 0 written; 1 the writing failed; 2 wrong usage; 3 a level is not built here, the "
      "interpreter "
      "is not what --for says, or the environment lacks what is needed.");
  set_action(
      *verb, exit_code, [a] { return pack(*a); },
      [a] { return engine::needs_of(static_cast<const requests::PackRequest&>(*a)); });
}

}  // namespace strata::cli
