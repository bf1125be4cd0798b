// SPDX-License-Identifier: Apache-2.0
// Any line of a worker becomes an answer, a failure or a complaint, and whatever becomes of it can be stored as JSON.
#include <cstdlib>

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
  const auto answer = strata::worker::parse_answer_line(line, 1, "hello");
  if (!answer) {
    if (answer.error().empty()) std::abort();
    must_be_storable(answer.error());
    return 0;
  }
  (void)answer->fields.dump();
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
