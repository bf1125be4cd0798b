// SPDX-License-Identifier: Apache-2.0
#include "cli/operations_view.hpp"

#include "cli/option.hpp"

namespace strata::cli {
namespace {

std::vector<std::string> names_of(const auto& values) {
  std::vector<std::string> names;
  for (const auto value : values) names.emplace_back(name_of(value));
  return names;
}

}  // namespace

report::OperationsView OperationsArguments::view() const {
  report::OperationsView view{.top = static_cast<std::size_t>(top)};
  for (const auto each : analysis::all_group_bys)
    if (by == name_of(each)) view.by = each;
  for (const auto each : report::all_operation_sorts)
    if (sort == name_of(each)) view.sort = each;
  return view;
}

std::vector<CLI::Option*> add_operations_view(CLI::App& verb, OperationsArguments& a) {
  return {
      choice(verb.add_option("--by", a.by, "operations: what calls of a line have in common")->capture_default_str(),
             names_of(analysis::all_group_bys)),
      choice(verb.add_option("--sort", a.sort, "operations: the largest of this column first, or in order")
                 ->capture_default_str(),
             names_of(report::all_operation_sorts)),
      whole(verb.add_option("--top", a.top, "operations: lines of each level; 0: all")->capture_default_str(), 0,
            1'000'000)};
}

}  // namespace strata::cli
