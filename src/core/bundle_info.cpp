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

// Reads a field as its type, so that the fields have a complaint where it is none.
using Read = void (*)(Fields&, const char*);
constexpr Read as_text = [](Fields& fields, const char* key) { fields.text(key); };
constexpr Read as_flag = [](Fields& fields, const char* key) { fields.flag(key); };
constexpr Read as_whole = [](Fields& fields, const char* key) { fields.integer(key, 0, outside::most_whole); };
constexpr Read as_ring = [](Fields& fields, const char* key) { fields.integer(key, 1, 4096); };
constexpr Read as_number = [](Fields& fields, const char* key) { fields.number(key, -HUGE_VAL, HUGE_VAL); };
constexpr Read as_object = [](Fields& fields, const char* key) { fields.object(key); };
constexpr Read as_list = [](Fields& fields, const char* key) { fields.array(key); };
constexpr Read as_shape = [](Fields& fields, const char* key) {
  fields.integers(key, std::nullopt, 0, outside::most_whole);
};
constexpr Read as_texts = [](Fields& fields, const char* key) { fields.texts(key); };

struct Rule {
  const char* key;
  Read read;
  bool or_null = false;
};

constexpr Rule of_bundle[] = {{"spec", as_object},
                              {"case", as_object},
                              {"model", as_object},
                              {"inputs", as_list},
                              {"input_source", as_text},
                              {"outputs", as_list},
                              {"ring", as_ring},
                              {"parameters", as_whole},
                              {"weight_bytes", as_number},
                              {"input_bytes", as_number},
                              {"flops", as_number, true},
                              {"flops_uncounted", as_texts},
                              {"activation_bytes", as_number},
                              {"reference", as_text},
                              {"reference_note", as_text},
                              {"export", as_object},
                              {"graph", as_object},
                              {"unproven", as_text},
                              {"keeps_state", as_flag},
                              {"reads_values", as_texts},
                              {"reads_extents", as_texts},
                              {"weight_source", as_text},
                              {"faults", as_texts},
                              {"fault_sentences", as_texts},
                              {"torch", as_text}};

// Of a case, beside what it has of the spec that it was made from.
constexpr Rule of_case[] = {{"weights_label", as_text, true}, {"inputs_label", as_text, true}};

constexpr Rule of_tensor[] = {{"name", as_text},        {"dtype", as_text},        {"keyword", as_flag},
                              {"low", as_number, true}, {"high", as_number, true}, {"shape", as_shape}};

constexpr Rule of_model[] = {{"name", as_text}, {"kind", as_text}, {"source", as_text}};
constexpr Rule of_export[] = {{"ok", as_flag}, {"what", as_text}, {"where", as_text}};

void check(Fields& fields, const Rule& rule) {
  const Json* value = fields.find(rule.key);
  if (value && !(rule.or_null && value->is_null())) rule.read(fields, rule.key);
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

  template <std::size_t N>
  void part(const Json& info, const char* key, const Rule (&rules)[N]) {
    if (const Json& value = outside::field(info, key); !value.is_null()) object(value, key, rules);
  }

  void tensors(const Json& info, const char* key) {
    const Json& list = outside::field(info, key);
    if (!list.is_array()) return;
    for (std::size_t i = 0; i < list.size(); ++i) object(list[i], fmt::format("{}[{}]", key, i), of_tensor);
  }

  void a_case(const Json& info, const char* key) {
    const Json& value = outside::field(info, key);
    if (value.is_null()) return;
    object(value, key, of_case);
    const auto spec = read_spec(value, fmt::format("{}: {}", where, key), kHint);
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
    as_ring(head, "ring");
    head.array("outputs");
  }
  checker.note(head);
  checker.object(info, "", of_bundle);
  for (const char* key : {"case", "spec"}) checker.a_case(info, key);
  for (const char* key : {"inputs", "outputs"}) checker.tensors(info, key);
  checker.part(info, "model", of_model);
  for (const char* key : {"export", "graph"}) checker.part(info, key, of_export);
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

bool gives_loss(const Json& info) {
  const Json& outputs = outside::field(info, "outputs");
  if (!outputs.is_array() || outputs.empty()) return false;
  const Json& shape = outside::field(outputs.front(), "shape");
  return shape.is_array() && shape.empty();
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
