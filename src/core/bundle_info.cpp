// SPDX-License-Identifier: Apache-2.0
#include "core/bundle_info.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/outside.hpp"
#include "core/case_spec.hpp"

namespace strata::core {
namespace {

using outside::Fields;
using outside::Json;

const char* const kHint = "remove that folder and run again: the network is captured anew";

enum class Kind { text, flag, integer, number, object, list, texts };

struct Rule {
  const char* key;
  Kind kind;
  bool or_null = false;
  std::int64_t low = 0, high = outside::most_whole;  // of an integer
};

constexpr Rule of_bundle[] = {{"spec", Kind::object},
                              {"case", Kind::object},
                              {"model", Kind::object},
                              {"inputs", Kind::list},
                              {"input_source", Kind::text},
                              {"outputs", Kind::list},
                              {"ring", Kind::integer, false, 1, 4096},
                              {"parameters", Kind::integer},
                              {"weight_bytes", Kind::number},
                              {"input_bytes", Kind::number},
                              {"flops", Kind::number, true},
                              {"flops_uncounted", Kind::texts},
                              {"activation_bytes", Kind::number},
                              {"reference", Kind::text},
                              {"reference_note", Kind::text},
                              {"export", Kind::object},
                              {"graph", Kind::object},
                              {"unproven", Kind::text},
                              {"keeps_state", Kind::flag},
                              {"reads_values", Kind::texts},
                              {"reads_extents", Kind::texts},
                              {"weight_source", Kind::text},
                              {"faults", Kind::texts},
                              {"fault_sentences", Kind::texts},
                              {"torch", Kind::text}};

// Of a case, beside what it has of the spec that it was made from.
constexpr Rule of_case[] = {{"weights_label", Kind::text, true}, {"inputs_label", Kind::text, true}};

constexpr Rule of_tensor[] = {{"name", Kind::text},
                              {"dtype", Kind::text},
                              {"keyword", Kind::flag},
                              {"low", Kind::number, true},
                              {"high", Kind::number, true}};

constexpr Rule of_model[] = {{"name", Kind::text}, {"kind", Kind::text}, {"source", Kind::text}};
constexpr Rule of_export[] = {{"ok", Kind::flag}, {"what", Kind::text}, {"where", Kind::text}};

void check(Fields& fields, const Rule& rule) {
  const Json* value = fields.find(rule.key);
  if (!value || (rule.or_null && value->is_null())) return;
  switch (rule.kind) {
    case Kind::text:
      fields.text(rule.key);
      return;
    case Kind::flag:
      fields.flag(rule.key);
      return;
    case Kind::integer:
      fields.integer(rule.key, rule.low, rule.high);
      return;
    case Kind::number:
      fields.number(rule.key, -HUGE_VAL, HUGE_VAL);
      return;
    case Kind::object:
      fields.object(rule.key);
      return;
    case Kind::list:
      fields.array(rule.key);
      return;
    case Kind::texts:
      fields.texts(rule.key);
      return;
  }
}

// All parts write their first complaint into `error`.
struct Checker {
  std::string where;
  std::optional<Error> error;

  void note(const Fields& fields) {
    if (!error) error = fields.error();
  }

  template <std::size_t N>
  void object(const Json& value, const std::string& part, const Rule (&rules)[N]) {
    Fields fields(value, part.empty() ? where : fmt::format("{}: {}", where, part), kHint);
    for (const Rule& rule : rules) check(fields, rule);
    note(fields);
  }

  void optional(const Json& owner, const char* key, const std::string& part, auto&& look) {
    const Json& value = outside::field(owner, key);
    if (!value.is_null()) look(value, part);
  }

  void tensors(const Json& owner, const char* key, const std::string& part) {
    const Json& list = outside::field(owner, key);
    if (!list.is_array()) return;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto name = fmt::format("{}[{}]", part, i);
      object(list[i], name, of_tensor);
      Fields fields(list[i], fmt::format("{}: {}", where, name), kHint);
      if (fields.find("shape")) fields.integers("shape", std::nullopt, 0, outside::most_whole);
      note(fields);
    }
  }

  void a_case(const Json& value, const std::string& part) {
    object(value, part, of_case);
    const auto spec = read_spec(value, fmt::format("{}: {}", where, part), kHint);
    if (!spec && !error) error = spec.error();
  }
};

}  // namespace

Result<void> check_bundle_info(const Json& info, const std::string& where, bool whole) {
  Checker checker{where, std::nullopt};
  Fields head(info, where, kHint);
  head.integer("bundle", bundle_version, bundle_version);
  if (whole) {
    for (const char* part : {"spec", "case", "model"}) head.object(part);
    head.array("inputs");
    head.integer("ring", 1, 4096);
    head.array("outputs");
  }
  checker.note(head);
  checker.object(info, "", of_bundle);
  checker.optional(info, "case", "case", [&](const Json& value, const std::string& at) { checker.a_case(value, at); });
  checker.optional(info, "spec", "spec", [&](const Json& value, const std::string& at) { checker.a_case(value, at); });
  checker.tensors(info, "inputs", "inputs");
  checker.tensors(info, "outputs", "outputs");
  const auto part = [&](const auto& rules) {
    return [&](const Json& value, const std::string& at) { checker.object(value, at, rules); };
  };
  checker.optional(info, "model", "model", part(of_model));
  checker.optional(info, "export", "export", part(of_export));
  checker.optional(info, "graph", "graph", part(of_export));
  if (checker.error) return tl::unexpected(*checker.error);
  return {};
}

Result<Json> read_bundle_info(const std::filesystem::path& bundle, bool whole) {
  const auto path = bundle / "bundle.json";
  auto info = outside::read_file(path);
  if (!info) return fail(fmt::format("the captured network is damaged: {}", info.error().what), kHint);
  if (auto good = check_bundle_info(*info, path.string(), whole); !good)
    return fail(fmt::format("the captured network is damaged: {}", good.error().what), kHint);
  if (info->contains("case")) {
    const auto question = captured_case(*info, path.string());
    if (!question) return fail(fmt::format("the captured network is damaged: {}", question.error().what), kHint);
    (*info)["id"] = question->id();
  }
  return info;
}

bool is_light(const Json& info) {
  return outside::flag_or(outside::field(info, "spec"), "light", false);
}

bool has_few_runs(const Json& info) {
  return is_light(info) && !outside::flag_or(outside::field(info, "spec"), "all_runs", false);
}

Result<Case> case_in(const std::filesystem::path& bundle) {
  const auto info = STRATA_TRY(read_bundle_info(bundle, false));
  return captured_case(info, (bundle / "bundle.json").string());
}

}  // namespace strata::core
