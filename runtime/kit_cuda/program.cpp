// SPDX-License-Identifier: Apache-2.0
#include "kit/program.hpp"

#include <algorithm>
#include <cstring>

#include "kit_cuda/internals.hpp"

namespace kit {

std::string library() {
  return device::libraries_name();
}

Program::Program(std::int64_t arena_bytes, const std::vector<Extent>& inputs, const std::vector<Extent>& outputs)
    : internals_(std::make_unique<Internals>()) {
  Internals& in = *internals_;
  in.arena_bytes = static_cast<std::size_t>(arena_bytes);
  for (const Extent bytes : inputs) {
    in.input_bytes.push_back(static_cast<std::size_t>(bytes));
    in.input_offsets.push_back(in.inputs_bytes);
    in.inputs_bytes += whole_lines(in.input_bytes.back());
  }
  for (const Extent bytes : outputs) {
    in.output_offsets.push_back(in.output_bytes);
    in.output_bytes += whole_lines(static_cast<std::size_t>(bytes));
  }
}

Program::~Program() = default;

void Program::allow_tf32() {
  internals_->libraries->allow_tf32();
}

void Program::need_bfloat16() {
  constexpr int ampere = 80;
  if (const int capability = device::compute_capability(); capability < ampere)
    throw std::runtime_error("no bfloat16 on this GPU: compute capability 8.0 or newer is needed, and it has " +
                             std::to_string(capability / 10) + "." + std::to_string(capability % 10));
}

Loading& Program::loading() const {
  return *internals_;
}

void Program::step(const char* name) {
  internals_->step = name;
  internals_->temporary_now = 0;  // a step's temporaries end with it
}

void Program::end_phase() {
  internals_->phase_ends.push_back(internals_->calls.size());
}

void Program::finish() {
  internals_->allocate_all();
}

void Program::set_input(int number, const void* data) {
  internals_->staged.at(static_cast<std::size_t>(number))->put(data);
}

void Program::start() {
  internals_->begin(-1);
}

void Program::wait() {
  device::wait_for(internals_->stream);
}

void Program::run_phase(int phase) {
  internals_->begin(phase);
  wait();
}

const void* Program::output(int number) const {
  return internals_->results.get() + internals_->output_offsets.at(static_cast<std::size_t>(number));
}

Facts Program::facts() const {
  const Internals& in = *internals_;
  Facts facts;
  facts.arena_bytes = static_cast<std::int64_t>(in.arena_bytes);
  facts.weight_bytes = static_cast<std::int64_t>(in.weight_bytes);
  // inputs lie in their place and in two buffers
  facts.scratch_bytes =
      static_cast<std::int64_t>(in.temporary_bytes_most + in.libraries->workspace_bytes() + 3 * in.inputs_bytes);
  facts.output_bytes = static_cast<std::int64_t>(in.output_bytes);
  facts.calls = static_cast<int>(in.calls.size());
  facts.moves = static_cast<int>(
      std::count_if(in.calls.begin(), in.calls.end(), [](const Call& call) { return call.moves_only; }));
  return facts;
}

CallFacts Program::call(int number) const {
  const Call& call = internals_->calls.at(static_cast<std::size_t>(number));
  return {call.step, call.kernel.c_str(), call.kernel.c_str(), call.moves_only};
}

// Each call alone, with what its launch takes: an upper bound of its share of a graph.
void Program::run_timed(std::int64_t* times) {
  Internals& in = *internals_;
  in.send(true);
  device::wait_for(in.stream);
  for (const Call& call : in.calls) {
    *times++ = monotonic_ns();
    call.run(in.stream);
    device::wait_for(in.stream);
    *times++ = monotonic_ns();
  }
  device::copy_to_host(in.results.get(), in.outputs.get(), in.output_bytes, in.stream);
  device::wait_for(in.stream);
  in.end_step();
}

}  // namespace kit
