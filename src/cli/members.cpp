// SPDX-License-Identifier: Apache-2.0
#include "cli/members.hpp"

#include "cli/option.hpp"

namespace strata::cli {
namespace {

void read(const requests::Member& member, const std::string& value) {
  if (const auto done = member.read(value); !done) throw WrongUsage(done.error().what, done.error().hint);
}

CLI::Option* option_of(CLI::App& verb, const requests::Member& member) {
  const auto name = member.option == "-o" ? "-o,--output" : member.option_or_name();
  switch (member.takes) {
    case requests::Takes::nothing:
      return verb.add_flag_function(
          name, [member](std::int64_t count) { read(member, count > 0 ? "" : requests::kOff); }, member.help);
    case requests::Takes::repeated:
      return verb
          .add_option_function<std::vector<std::string>>(
              name,
              [member](const std::vector<std::string>& values) {
                for (const auto& value : values) read(member, value);
              },
              member.help)
          ->allow_extra_args(false);
    default:
      return verb.add_option_function<std::string>(
          name, [member](const std::string& value) { read(member, value); }, member.help);
  }
}

}  // namespace

void add_member(CLI::App& verb, const requests::Member& member) {
  auto* option = option_of(verb, member);
  if (!member.type.empty()) option->type_name(member.type);
  if (member.required) option->required();
  if (const auto values = member.values(); !values.empty()) option->default_str(values.front());
  if (member.name == "max_megapixels") option->needs(verb.get_option("--input-from"));
}

void add_members(CLI::App& verb, const std::vector<requests::Member>& members) {
  for (const auto& member : members) add_member(verb, member);
}

}  // namespace strata::cli
