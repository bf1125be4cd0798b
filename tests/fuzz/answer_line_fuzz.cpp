// SPDX-License-Identifier: Apache-2.0
// Any line of a worker becomes an answer, a failure or a complaint, and whatever becomes of it can be stored as JSON.
#include <cstdlib>

#include "common/outside.hpp"
#include "worker/answer_line.hpp"
#include "worker/answers.hpp"

namespace {

void must_be_storable(const std::string& text) {
  if (text.size() > 20000) std::abort();
  (void)nlohmann::json(text).dump();  // throws, and so ends the run, on text that is not UTF-8
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  if (const auto progress = strata::worker::progress_in(line, 1)) must_be_storable(*progress);
  const auto answer = strata::worker::parse_answer_line(line, 1, "hello");
  if (!answer) {
    if (answer.error().empty()) std::abort();
    must_be_storable(answer.error());
    return 0;
  }
  (void)answer->fields.dump();
  // Every field as every type: what is returned keeps its promise, what is complained of can be stored.
  for (const auto& [key, value] : answer->fields.items()) {
    for (int type = 0; type < 8; ++type) {
      strata::outside::Fields fields(answer->fields, "fuzz");
      const char* name = key.c_str();
      if (type == 0) (void)fields.text(name);
      if (type == 1)
        if (const auto n = fields.integer(name, -5, 5); n < -5 || n > 5) std::abort();
      if (type == 2)
        if (const auto x = fields.number(name, -5, 5); !(x >= -5 && x <= 5)) std::abort();
      if (type == 3) (void)fields.flag(name);
      if (type == 4) (void)fields.texts(name);
      if (type == 5)
        for (const auto n : fields.integers(name, std::nullopt, 0, 9))
          if (n < 0 || n > 9) std::abort();
      if (type == 6 && !fields.object(name).is_object()) std::abort();
      if (type == 7 && !fields.array(name).is_array()) std::abort();
      if (fields.error()) must_be_storable(fields.error()->what);
    }
    must_be_storable(strata::outside::shown(value));
  }
  if (answer->failure) {
    if (answer->failure->what.empty()) std::abort();
    must_be_storable(answer->failure->what + answer->failure->hint);
    return 0;
  }
  if (const auto hello = strata::worker::read_hello(answer->fields, false); !hello)
    must_be_storable(hello.error().what);
  if (const auto walls = strata::worker::read_integers(answer->fields, "wall_ns", 2); !walls)
    must_be_storable(walls.error().what);
  if (const auto cpu = strata::worker::read_optional_integer(answer->fields, "cpu_ns"); !cpu)
    must_be_storable(cpu.error().what);
  return 0;
}
