// SPDX-License-Identifier: Apache-2.0
#include "strata/prepare.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

namespace strata {
namespace {

int answer(const Result<void>& done) {
  nlohmann::json message{{"ok", done.has_value()}};
  if (!done) {
    const auto& what = done.error().what;
    const bool unavailable = what.rfind("no C++ compiler", 0) == 0;
    message["code"] = unavailable ? "unavailable" : done.error().exit == Exit::environment ? "unsupported" : "failed";
    message["what"] = what;
    message["hint"] = done.error().hint;
  }
  std::cout << message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return done ? 0 : 1;
}

}  // namespace

void say_progress(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
  const nlohmann::json message{{"progress", what}};
  std::cout << message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

Result<std::string> built_with(const std::string& name) {
  std::error_code error;
  const auto file = std::filesystem::read_symlink("/proc/self/exe", error).string() + ".built_with";
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  return fail(fmt::format("{} does not say what '{}' is", file, name),
              "it is written when the levels are built: build them again, or bring it along with the program");
}

int prepare_main(int count, char** words, const Prepare& prepare) {
  std::map<std::string, std::string> options{{"--variant", "default"}};
  for (int i = 1; i + 1 < count; i += 2) options[words[i]] = words[i + 1];
  const bool whole =
      count % 2 == 1 && options.size() == 3 && options.contains("--bundle") && options.contains("--cache");
  if (!whole)
    return answer(
        fail("--bundle DIR --cache DIR are needed, and --variant NAME is allowed", "the driver calls this program"));
  return answer(prepare(options["--bundle"], options["--cache"], options["--variant"]));
}

}  // namespace strata
