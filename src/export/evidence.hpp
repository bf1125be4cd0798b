// SPDX-License-Identifier: Apache-2.0
// What the store knows of an artefact: the certificate of the newest run that measured it, or why there is none.
#pragma once

#include "plan/job.hpp"
#include "store/record.hpp"

namespace strata::exporting {

struct Evidence {
  nlohmann::json certificate;  // certificate.json (docs/export.md); null: nothing was proven
  std::string why_not;         // a sentence for people
  std::string note;            // what is to be known about a certificate that there is
};

// Looks for the newest run that ended the job's level, on this artefact of this case, with a verdict. A verdict other
// than equal proves nothing. A store that is missing or broken is a reason, no error.
Evidence find_evidence(const std::filesystem::path& store, const plan::Job& job);

// SHA-256 of the files by their names in the exported folder.
Result<nlohmann::json> hashes_of(const std::filesystem::path& folder, const std::vector<std::string>& names);

}  // namespace strata::exporting
