// SPDX-License-Identifier: Apache-2.0
// `strata diff RUN RUN`: the same cases in two stored runs.
#include "report/diff.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "engine/queries.hpp"
#include "requests/members.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace {

struct DiffArguments : requests::DiffRequest {
  std::string store, format = "text";
};

Result<int> diff(const DiffArguments& a) {
  const auto difference = STRATA_TRY(engine::difference_of(a, store::Store::path_of(a.store)));
  if (a.format == "json")
    answer(analysis::to_json(difference).dump(1) + "\n");
  else
    STRATA_TRY(print_document(report::difference_document(difference), a.format));
  return engine::exit_code_of(difference);
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("diff", "the same cases in two stored runs: what got faster or slower");
  auto a = std::make_shared<DiffArguments>();
  add_members(*verb, requests::members_of(*a));
  add_store(*verb, a->store);
  format_choice(verb->add_option("--format", a->format, "of the result on standard output"));
  verb->footer(
      "Exit codes: 0 all levels were compared, none is slower by more than --fail-above; 4 one is, with its whole 99% "
      "interval; else 1 a level has no number any more, or the store cannot be read; else 5 the interval of a level "
      "reaches beyond --fail-above, or a level could not be compared; 2 wrong usage, or no case in common.");
  set_action(*verb, exit_code, [a] { return diff(*a); });
}

}  // namespace strata::cli
