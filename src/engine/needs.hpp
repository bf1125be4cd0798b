// SPDX-License-Identifier: Apache-2.0
// What a request needs before it can be carried out: for set-up, which makes it ready first (`strata --needs`).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "requests/request.hpp"

namespace strata::engine {

struct Needs {
  struct OfEnvironment {
    std::string name, python;           // of --env; name empty: the only one; python empty: strata's own
    std::vector<std::string> programs;  // of levels, as their level.json names them behind {build}
  };
  bool set_up = false;                      // PyTorch and these programs; else the driver alone, with what is there
  std::vector<OfEnvironment> environments;  // the first captures
};

// Errors (usage): a level that is none; an interpreter beside environments.
Result<Needs> needs_of(const requests::Request& request);
// Of all its entries. Errors: read_suite's.
Result<Needs> needs_of(const requests::SuiteRequest& request, const std::string& store);
// Of what may be asked of an engine that was started so. `names`: of levels, as a request has them; empty: of all;
// {"none"}: no level runs. What is no level needs nothing: the request that names it says so.
Needs needs_of_any(const std::string& python, const std::vector<plan::NamedPython>& named,
                   const std::vector<std::string>& names);
// PyTorch alone, or not even that: what there is of it is described.
Needs needs_of_python(const std::string& python, bool set_up = true);
// Of levels by id or folder, whatever the device; what is none needs nothing.
Needs needs_of_levels(const std::vector<std::string>& levels);

// {"set_up": true, "environments": [{"name": "", "python": "", "programs": ["level_onednn"]}]}
nlohmann::json to_json(const Needs& needs);

}  // namespace strata::engine
