// SPDX-License-Identifier: Apache-2.0
#include "plan/availability.hpp"

#include <fmt/format.h>

#include <fstream>

#include "level/own_environment.hpp"
#include "plan/jobs.hpp"

namespace strata::plan {
namespace {

constexpr const char* kFirstUse = "./strata compare sets it up on first use";

bool starts_with(const level::Level& level, const char* placeholder) {
  return !level.start.empty() && level.start.front().find(placeholder) != std::string::npos;
}

std::optional<Unavailable> missing_program(const std::vector<std::string>& command, const level::Level& level,
                                           const Installation& place) {
  if (command.empty() || command.front().rfind("{build}", 0) != 0) return std::nullopt;
  const auto program = level::expand({command.front()}, level, places_of(place)).front();
  if (there_is(program)) return std::nullopt;
  if (const auto why = level::left_out(program)) return Unavailable{UnavailableReason::left_out, why->what, why->hint};
  std::ifstream log(place.level_build / "FAILED");
  if (std::string reason; std::getline(log, reason))
    return Unavailable{UnavailableReason::program, "it could not be compiled: " + reason,
                       fmt::format("fix the cause, then rm -r {}", place.level_build.string())};
  return Unavailable{UnavailableReason::program, "its program is not built", kFirstUse};
}

}  // namespace

std::optional<Unavailable> missing_files(const level::Level& level, const Installation& place) {
  if (const auto why = level::own_environment_missing(level, places_of(place)))
    return Unavailable{UnavailableReason::environment, why->what, why->hint};
  if (const auto why = missing_program(level.start, level, place)) return why;
  return missing_program(level.prepare, level, place);
}

std::optional<Unavailable> why_unavailable(const level::Level& level, const Interpreter& measured,
                                           const Interpreter& tools, const Installation& place) {
  const auto& python = starts_with(level, "{tools_python}") ? tools : measured;
  const bool asks = level.environment || (!level.needs.empty() && !starts_with(level, "{level_python}"));
  if (asks && !python.why_not.empty())
    return Unavailable{UnavailableReason::interpreter, python.why_not,
                       python.own ? kFirstUse : "name a working interpreter with --python"};
  if (level.environment && measured.torch.empty())
    return Unavailable{UnavailableReason::torch, "no PyTorch in " + measured.python,
                       measured.own
                           ? std::string(kFirstUse)
                           : fmt::format("install PyTorch 2.11 or newer there, or name another with --python PATH")};
  for (const auto& need : level.needs)
    if (asks && !python.has(need))
      return Unavailable{
          UnavailableReason::module, fmt::format("Python module {} is missing in {}", need, python.python),
          fmt::format("{}{} -m pip install {}", python.own ? std::string(kFirstUse) + ", if it is strata's; else " : "",
                      python.python, need)};
  return missing_files(level, place);
}

}  // namespace strata::plan
