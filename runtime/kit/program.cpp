// SPDX-License-Identifier: Apache-2.0
#include "kit/program.hpp"

#include <algorithm>
#include <stdexcept>

#include "kit/internals.hpp"

namespace kit {
namespace {

const char* instructions() {
  const auto isa = dnnl_get_effective_cpu_isa();
  if (isa >= dnnl_cpu_isa_avx512_core && (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core) return "AVX-512";
  if ((isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2) return "AVX2";
  return "SSE4.1";
}

}  // namespace

std::string library() {
  const auto* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + " with " + instructions();
}

Program::Program(std::int64_t arena_bytes, const std::vector<Extent>& inputs, const std::vector<Extent>& outputs)
    : internals_(std::make_unique<Internals>()) {
  internals_->arena_bytes = static_cast<std::size_t>(arena_bytes);
  internals_->readers.resize(inputs.size());
  for (const Extent bytes : outputs) {
    internals_->output_offsets.push_back(internals_->output_bytes);
    internals_->output_bytes += (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
  }
}

Program::~Program() = default;

void Program::need_bfloat16() {
  if ((dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core)
    throw std::runtime_error(std::string("no bfloat16 on this processor: oneDNN needs AVX-512, and found ") +
                             instructions());
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
void Program::run_phase(int phase) {
  Internals& in = *internals_;
  const auto which = static_cast<std::size_t>(phase);
  for (std::size_t i = which == 0 ? 0 : in.phase_ends.at(which - 1); i < in.phase_ends.at(which); ++i)
    execute(in.calls[i], in.stream.get());
  if (which + 1 == in.phase_ends.size()) ++in.training.steps;
}

void Program::load_steps() {
  internals_->loading = true;
}
void Program::run_steps() {
  internals_->loading = false;
}

void Program::finish() {
  Internals& in = *internals_;
  in.arena = allocate(in.arena_bytes);
  in.weight_memory = allocate(in.weight_bytes);
  in.outputs = allocate(in.output_bytes);
  in.scratch = allocate(in.temporary_bytes_most + in.scratchpad_bytes);
  for (auto& handle : in.scratchpads) handle.set_data_handle(in.scratch.get() + in.temporary_bytes_most);
  for (auto& [handle, region, at, offset] : in.placed) {
    const auto place = static_cast<std::size_t>(at);
    std::byte* start = region == Region::arena     ? in.arena.get() + place
                       : region == Region::output  ? in.outputs.get() + in.output_offsets.at(place)
                       : region == Region::scratch ? in.scratch.get() + place
                       : region == Region::listed  ? in.lists.at(place).bytes.get()
                                                   : in.weight_memory.get() + in.stored.at(place).offset;
    handle.set_data_handle(start + offset);
  }
  in.finished = true;
}

void Program::set_input(int number, const void* data) {
  auto* start = static_cast<std::byte*>(const_cast<void*>(data));  // oneDNN's handles know no const
  for (auto& [handle, offset] : internals_->readers.at(static_cast<std::size_t>(number)))
    handle.set_data_handle(start + offset);
}

void Program::start() {
  const dnnl_stream_t stream = internals_->stream.get();
  for (const Call& call : internals_->calls) execute(call, stream);
  ++internals_->training.steps;
}

void Program::wait() {}

const void* Program::output(int number) const {
  return internals_->outputs.get() + internals_->output_offsets.at(static_cast<std::size_t>(number));
}

Facts Program::facts() const {
  const Internals& in = *internals_;
  Facts facts;
  facts.arena_bytes = static_cast<std::int64_t>(in.arena_bytes);
  facts.weight_bytes = static_cast<std::int64_t>(in.weight_bytes);
  facts.scratch_bytes = static_cast<std::int64_t>(in.temporary_bytes_most + in.scratchpad_bytes);
  facts.output_bytes = static_cast<std::int64_t>(in.output_bytes);
  facts.calls = static_cast<int>(in.calls.size());
  for (const Call& call : in.calls) {
    facts.moves += call.moves_only ? 1 : 0;
    facts.reference_kernels += is_reference(call.kernel) ? 1 : 0;
  }
  return facts;
}

CallFacts Program::call(int number) const {
  const Call& call = internals_->calls.at(static_cast<std::size_t>(number));
  return {call.step, call.operation, call.kernel, call.moves_only};
}

void Program::run_timed(std::int64_t* times) {
  const dnnl_stream_t stream = internals_->stream.get();
  for (const Call& call : internals_->calls) {
    *times++ = monotonic_ns();
    execute(call, stream);
    *times++ = monotonic_ns();
  }
  ++internals_->training.steps;
}

}  // namespace kit
