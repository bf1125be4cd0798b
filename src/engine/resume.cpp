// SPDX-License-Identifier: Apache-2.0
// Whether a run can go on, and with what (run_request.hpp).
#include <fmt/format.h>

#include "engine/run_request.hpp"
#include "store/run_state.hpp"
#include "store/store.hpp"

namespace strata::engine {
namespace fs = std::filesystem;

Result<store::Run> resumable_run(const fs::path& path, const std::string& which) {
  const auto store = store::Store::open_existing(path);
  if (!store) return tl::unexpected(store.error());
  auto run = store->load_run(which);
  if (!run) return run;
  if (store::state_of(*run) == store::RunState::running)
    return fail(fmt::format("run {} is being measured by another process", run->run_id),
                "let it end; `./strata list runs` shows it", Exit::usage);
  if (run->imported)
    return fail(fmt::format("run {} came from another store, and what it says is not executed here", run->run_id),
                "continue it where it was measured, or run its command, if you trust it: " + run->command, Exit::usage);
  if (!run->settings.request.is_object())
    return fail(fmt::format("run {} does not say what it was asked", run->run_id), "ask again: " + run->command,
                Exit::usage);
  return run;
}

Result<void> check_interpreters(const std::string& run_id, const CompareRequest& began, const std::string& python,
                                const std::vector<plan::NamedPython>& now) {
  const auto& before = began.options.environments;
  if (before != now)
    return fail(before.empty() ? fmt::format("run {} began without --env", run_id)
                               : fmt::format("run {} began with{}", run_id, plan::environment_words(before)),
                before.empty() ? "leave --env out" : "add" + plan::environment_words(before), Exit::usage);
  if (began.python == python) return {};
  return fail(fmt::format("run {} began with {}", run_id, began.python.empty() ? "strata's own Python" : began.python),
              began.python.empty() ? "leave --python out" : "add --python " + began.python, Exit::usage);
}

}  // namespace strata::engine
