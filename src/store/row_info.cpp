// SPDX-License-Identifier: Apache-2.0
#include "store/row_info.hpp"

#include <fmt/format.h>

#include <limits>
#include <tuple>
#include <type_traits>

#include "common/outside.hpp"

namespace strata::store {
namespace {

template <class Owner, class Value>
struct Member {
  const char* name;  // in JSON
  Value Owner::*place;
};
template <class Owner, class Value>
Member(const char*, Value Owner::*) -> Member<Owner, Value>;

// Of each struct, by which it is written and read.
template <class Owner>
constexpr int members = 0;
template <>
constexpr auto members<Generate> = std::tuple(Member{"target", &Generate::target},
                                              Member{"options", &Generate::options});
template <>
constexpr auto members<FileLines> = std::tuple(Member{"file", &FileLines::file}, Member{"lines", &FileLines::lines});
template <>
constexpr auto members<Lines> = std::tuple(Member{"total", &Lines::total}, Member{"files", &Lines::files});
template <>
constexpr auto members<FileBytes> = std::tuple(Member{"file", &FileBytes::file}, Member{"bytes", &FileBytes::bytes});
template <>
constexpr auto members<Libraries> = std::tuple(Member{"bytes", &Libraries::bytes}, Member{"files", &Libraries::files});
template <>
constexpr auto members<Accuracy> = std::tuple(Member{"error", &Accuracy::error}, Member{"answers", &Accuracy::answers},
                                              Member{"differ", &Accuracy::differ});
template <>
constexpr auto members<ColdStart> = std::tuple(Member{"total_ms", &ColdStart::total_ms},
                                               Member{"prepare_ms", &ColdStart::prepare_ms});
template <>
constexpr auto members<Phases> = std::tuple(Member{"ms", &Phases::ms}, Member{"joined", &Phases::joined},
                                            Member{"iterations", &Phases::iterations}, Member{"note", &Phases::note});
template <>
constexpr auto members<MeterSums> = std::tuple(
#define METER(member, metric, units) Member{#member, &MeterSums::member},
#include "core/meter.def"
#undef METER
    Member{"restart", &MeterSums::restart}, Member{"iterations", &MeterSums::iterations},
    Member{"energy", &MeterSums::energy}, Member{"no_energy", &MeterSums::no_energy});
template <>
constexpr auto members<RowInfo> = std::tuple(
    Member{"title", &RowInfo::title}, Member{"language", &RowInfo::language}, Member{"from", &RowInfo::from},
    Member{"changes", &RowInfo::changes}, Member{"default", &RowInfo::default_text}, Member{"rank", &RowInfo::rank},
    Member{"peer", &RowInfo::peer}, Member{"harness", &RowInfo::harness}, Member{"generate", &RowInfo::generate},
    Member{"tuned", &RowInfo::tuned}, Member{"artefact", &RowInfo::artefact},
    Member{"reason_short", &RowInfo::reason_short}, Member{"lines", &RowInfo::lines},
    Member{"libraries", &RowInfo::libraries}, Member{"accuracy", &RowInfo::accuracy},
    Member{"cold_start", &RowInfo::cold_start}, Member{"phases", &RowInfo::phases}, Member{"meters", &RowInfo::meters},
    Member{"layers", &RowInfo::layers}, Member{"rows_of_shards", &RowInfo::rows_of_shards},
    Member{"facts", &RowInfo::facts}, Member{"deep", &RowInfo::deep}, Member{"tuning", &RowInfo::tuning},
    Member{"clients", &RowInfo::clients}, Member{"dynamic", &RowInfo::dynamic}, Member{"eval", &RowInfo::eval});

template <class Value>
concept Whole = !std::is_same_v<decltype(members<Value>), const int>;
template <class Value>
concept Optional = requires(Value value) {
  value.has_value();
};
template <class Value>
concept List = !std::is_same_v<Value, Json> && requires(Value value) {
  value.emplace_back();
};
template <class Value>
concept Map = requires {
  typename Value::mapped_type;
};

void put(Json& object, const char* name, Json value) {
  if (!value.is_null() && !(value.is_array() && value.empty())) object[name] = std::move(value);
}

template <class Value>
Json json_of(const Value& value) {
  if constexpr (Optional<Value>) {
    return value ? json_of(*value) : Json();
  } else if constexpr (Whole<Value>) {
    Json object = Json::object();
    std::apply([&](const auto&... member) { (put(object, member.name, json_of(value.*member.place)), ...); },
               members<Value>);
    return object;
  } else if constexpr (List<Value>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(json_of(element));
    return list;
  } else if constexpr (Map<Value>) {
    Json object = Json::object();
    for (const auto& [key, element] : value) object[key] = json_of(element);
    return object;
  } else {
    return Json(value);
  }
}

class InfoReader {
 public:
  const std::string& fault() const { return fault_; }

  template <Whole Value>
  void read_members(Json& object, const std::string& where, Value& value) {
    std::apply([&](const auto&... member) { (read_member(object, where, member.name, value.*member.place), ...); },
               members<Value>);
  }

 private:
  template <class Value>
  void read_member(Json& object, const std::string& where, const char* name, Value& value) {
    if (const auto it = object.find(name); it != object.end()) read(*it, where, name, value);
  }

  template <class Value>
  void read(Json& json, const std::string& where, const std::string& name, Value& value) {
    const auto fits = [&](bool right, const char* allowed) {
      if (!right && fault_.empty())
        fault_ = fmt::format("\"{}\": \"{}\" is {}; allowed is {}", where, name, outside::shown(json), allowed);
      return right;
    };
    if constexpr (std::is_same_v<Value, Json>) {
      value = std::move(json);
    } else if constexpr (Optional<Value>) {
      if (!json.is_null()) read(json, where, name, value.emplace());
    } else if constexpr (Whole<Value>) {
      if (fits(json.is_object(), "an object")) read_members(json, where + "." + name, value);
    } else if constexpr (List<Value>) {
      if (!fits(json.is_array(), "a list")) return;
      for (auto& element : json) read(element, where, name, value.emplace_back());
    } else if constexpr (Map<Value>) {
      if (!fits(json.is_object(), "an object")) return;
      for (auto& [key, element] : json.items()) read(element, where + "." + name, key, value[key]);
    } else if constexpr (std::is_same_v<Value, bool>) {
      if (fits(json.is_boolean(), "true or false")) value = json.get<bool>();
    } else if constexpr (std::is_same_v<Value, std::string>) {
      if (fits(json.is_string(), "a text")) value = json.get<std::string>();
    } else if constexpr (std::is_integral_v<Value>) {
      const auto whole = outside::as_integer(json);
      if (fits(whole && *whole >= 0 && *whole <= std::numeric_limits<Value>::max(), "a whole number from 0"))
        value = static_cast<Value>(*whole);
    } else {
      if (fits(json.is_number() && json.get<double>() >= 0, "a number from 0")) value = json.get<double>();
    }
  }

  std::string fault_;  // the first
};

}  // namespace

Json to_json(const RowInfo& info) {
  return json_of(info);
}

Json to_json(const Lines& lines) {
  return json_of(lines);
}

Json to_json(const Phases& phases) {
  return json_of(phases);
}

Json to_json(const std::vector<FileBytes>& files) {
  return json_of(files);
}

Result<RowInfo> read_row_info(Json info) {
  InfoReader reader;
  RowInfo read;
  reader.read_members(info, "info", read);
  if (!reader.fault().empty()) return fail(reader.fault());
  return read;
}

}  // namespace strata::store
