// SPDX-License-Identifier: Apache-2.0
// How strata starts a Python interpreter: the one place that makes its command line and its variables, so that nothing
// of the folder where a user types ./strata is ever imported, by the interpreter or by its children.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace strata {

// `interpreter` running `words`: any options, then -m MODULE, -c CODE or FILE, then arguments. `root`: strata's tree,
// whose sdk/python/start_python.py cleans the search path also where Python is 3.10 and knows no safe path.
std::vector<std::string> python_command(const std::string& interpreter, const std::filesystem::path& root,
                                        const std::vector<std::string>& words);

// PYTHONPATH: `folders`, then those that the caller's own names absolutely (an empty or relative entry is the current
// folder); and PYTHONSAFEPATH.
std::map<std::string, std::string> python_variables(const std::vector<std::filesystem::path>& folders);

}  // namespace strata
