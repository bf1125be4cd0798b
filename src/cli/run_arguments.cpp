// SPDX-License-Identifier: Apache-2.0
#include "cli/run_arguments.hpp"

#include "cli/option.hpp"
#include "common/lookup.hpp"

namespace strata::cli {

void add_run_arguments(CLI::App& verb, RunArguments& a) {
  verb.add_flag("--dry-run", a.dry_run, "print the plan: what would run at which levels, and how long it takes");
  add_store(verb, a.store);
  format_choice(verb.add_option("--format", a.format, "of the result on standard output"));
  verb.add_option("-o,--output", a.output, "where to write the HTML report (default: beside the store)")
      ->type_name("PATH");
}

nlohmann::json kept_of(const RunArguments& a) {
  auto kept = nlohmann::json::object();
  if (!a.store.empty()) kept["store"] = a.store;
  if (a.format != RunArguments().format) kept["format"] = a.format;
  if (!a.output.empty()) kept["output"] = a.output;
  return kept;
}

void take_kept(RunArguments& a, const nlohmann::json& settings) {
  if (const auto format = lookup::text(settings, "format"); !format.empty()) a.format = format;
  a.output = lookup::text(settings, "output");
  a.cluster.shard = lookup::text(settings, "shard");
}

}  // namespace strata::cli
