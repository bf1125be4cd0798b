// SPDX-License-Identifier: Apache-2.0
#include "engine/artefact.hpp"

#include <fmt/format.h>

namespace strata::engine {
namespace {

Error of_failure(const level::Level& level, const worker::Failure& failure) {
  const bool lacking = failure.state == State::unavailable || failure.state == State::unsupported;
  auto what = fmt::format("level {} is {} here: {}", level.name(), to_string(failure.state), failure.what);
  if (!lacking && failure.state != State::unproven)
    what = fmt::format("level {}: its artefact could not be made: {}{}{}", level.name(), failure.what,
                       failure.log_tail.empty() ? "" : "\n", failure.log_tail);
  return {what, failure.hint, lacking ? Exit::environment : Exit::failed};
}

}  // namespace

Result<plan::Job> get_artefact(const level::Level& level, const plan::Bundle& bundle,
                               const plan::Environments& environments, const Installation& place,
                               const plan::Options& options, EventSink& events) {
  if (const auto why =
          plan::cannot_run(level, bundle, bundle.question, environments.measured, environments.tools, place))
    return tl::unexpected(of_failure(level, *why));
  auto job = plan::make_job(level, bundle, place, environments.measured, options, place.cache / "logs");
  if (!job) return tl::unexpected(job.error());
  events.progress(fmt::format("preparing {}", level.name()), -1);
  job->progress = [&](const std::string& doing) { events.progress(fmt::format("{}: {}", level.name(), doing), -1); };
  const auto prepared = session::prepare(*job, level::expand(level.prepare, level, plan::places_of(place)));
  job->progress = nullptr;  // the listener need not outlive the job
  if (!prepared) return tl::unexpected(of_failure(level, prepared.error()));
  return job;
}

}  // namespace strata::engine
