// SPDX-License-Identifier: Apache-2.0
// The lines of a certificate that say how the level behaved while it was timed, and what it could see.
#include <fmt/format.h>

#include "proof/certificate_builder.hpp"

namespace strata::proof {

void add_conduct(Lines& lines, const Evidence& evidence) {
  const auto& conduct = evidence.conduct;
  if (conduct.retained_share() > 0)
    lines.add({.check = "which result is checked is drawn afterwards",
               .how = "observed",
               .result = "pass",
               .value = fmt::format("{:.3g}% of the iterations could be", 100 * conduct.retained_share())});
  if (conduct.states_read()) {  // in mode train
    Line read{.check = "nothing is put off until the state is read",
              .how = "observed",
              .result = "pass",
              .detail = "after the blocks of each restart it was read as quickly as a step later"};
    lines.add_unless(read, conduct.complaint_of_states(), "the work is put off");
  }
  Line processors{.check = "processors used", .how = "observed", .detail = "not read, or what runs on a GPU"};
  if (conduct.restarts_seen()) {
    processors.result = "pass";
    processors.value = fmt::format("{:.2f}", conduct.processors());
    processors.bound = fmt::format("{:.2f}", conduct.allowed_processors());
    processors.detail = "of the level and all that it started, over the time of its turns";
  }
  lines.add_unless(processors, conduct.complaint_of_processors(), "more processors than threads");
}

void add_unseen(Lines& lines, const Evidence& evidence) {
  const auto& conduct = evidence.conduct;
  Line exchanged{
      .check = "exchanged inputs take as long", .how = "observed", .detail = "too few blocks of several iterations"};
  if (conduct.exchanges_compared()) {
    exchanged.result = "pass";
    exchanged.value = fmt::format("{:+.3g} us beside the others", conduct.exchanged_ns() * 1e-3);
    exchanged.detail = "median over the blocks";
  }
  lines.add_unless(exchanged, conduct.complaint_of_exchanges(), "it works where inputs change places");
  Line unseen{.check = "inputs that it never saw take as long",
              .how = "observed",
              .detail = fmt::format("{} of them were timed: too few", conduct.unseen())};
  if (conduct.unseen_compared()) {
    unseen.result = "pass";
    unseen.value = fmt::format("{:+.3g} us beside the others", conduct.unseen_ns() * 1e-3);
    unseen.detail = fmt::format("the least of {}", conduct.unseen());
  }
  lines.add_unless(unseen, conduct.complaint_of_unseen(), "it remembers results");
}

void add_references(Lines& lines, const Evidence& evidence) {
  Line line{.check = "references are out of sight", .how = "observed"};
  if (evidence.references_shown && evidence.references_shown->empty()) {
    line.result = "pass";
    line.detail = "the kernel lets the level read no file of them";
  } else if (evidence.references_shown) {
    line.detail = "the level could read what it is judged by: " + *evidence.references_shown;
  }
  lines.add(line);
}

}  // namespace strata::proof
