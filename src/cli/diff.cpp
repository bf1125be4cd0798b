// SPDX-License-Identifier: Apache-2.0
// `strata diff RUN RUN`: the same cases in two stored runs.
#include "report/diff.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/console.hpp"
#include "cli/document.hpp"
#include "cli/option.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "report/access.hpp"
#include "report/training.hpp"
#include "store/store.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

constexpr int kRegression = 4, kUndecided = 5;

struct DiffArguments {
  std::string before, after, store, fail_above = "5%", format = "text";
};

Result<nlohmann::json> difference_of(const DiffArguments& a) {
  const auto threshold = share_of(a.fail_above);
  if (!threshold)
    return fail(fmt::format("--fail-above {}: allowed: a share as 5%", a.fail_above), "./strata diff --help",
                Exit::usage);
  const auto store = STRATA_TRY(store::Store::open_existing(store::Store::path_of(a.store)));
  const auto before = STRATA_TRY(store.load_run(a.before));
  const auto after = STRATA_TRY(store.load_run(a.after));
  if (before.run_id == after.run_id)
    return fail(fmt::format("{} and {} are the same run", a.before, a.after), "`./strata list runs` shows all",
                Exit::usage);
  for (const auto* run : {&before, &after})
    if (report::is_training(*run))
      return fail(fmt::format("{} is a training; diff compares times of single iterations", run->run_id),
                  fmt::format("./strata show {} has its accuracy and its times", run->run_id), Exit::usage);
  auto difference = report::difference(before, after, *threshold);
  if (difference["cases"] == 0) {
    std::string why;
    for (const auto& left_out : report::list(difference, "without"))
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", report::text(left_out, "case"),
                         report::text(left_out, "reason"));
    return fail(fmt::format("runs {} and {} have no case in common: {}", before.run_id, after.run_id, why),
                "compare the same network at the same batch, size, precision, device and threads", Exit::usage);
  }
  return difference;
}

int diff(const DiffArguments& a) {
  const auto difference = difference_of(a);
  if (!difference) return print_error(difference.error());
  if (a.format == "json")
    answer(difference->dump(1) + "\n");
  else if (const int code = print_document(report::difference_document(*difference), a.format); code != 0)
    return code;
  const auto any = [&](const char* field) { return (*difference)[field] != 0; };
  if (any("beyond")) return kRegression;
  if (any("lost")) return static_cast<int>(Exit::failed);
  return any("open") || any("not_compared") || (*difference)["levels"].empty() ? kUndecided
                                                                               : static_cast<int>(Exit::ok);
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("diff", "the same cases in two stored runs: what got faster or slower");
  auto a = std::make_shared<DiffArguments>();
  verb->add_option("before", a->before, "the earlier run's id, a beginning of it, or its name")->required();
  verb->add_option("after", a->after, "the later run's, or last")->required();
  verb->add_option("--fail-above", a->fail_above, "slower by more than this share is a regression")
      ->type_name("SHARE")
      ->capture_default_str();
  add_store(*verb, a->store);
  format_choice(verb->add_option("--format", a->format, "of the result on standard output"));
  verb->footer(
      "Exit codes: 0 all levels were compared, none is slower by more than --fail-above; 4 one is, with its whole 99% "
      "interval; else 1 a level has no number any more, or the store cannot be read; else 5 the interval of a level "
      "reaches beyond --fail-above, or a level could not be compared; 2 wrong usage, or no case in common.");
  verb->callback([a, &exit_code] { exit_code = diff(*a); });
}

}  // namespace strata::cli
