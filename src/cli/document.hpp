// SPDX-License-Identifier: Apache-2.0
// A report as a document: on standard output, and as a page.
#pragma once

#include <filesystem>
#include <string>

#include "common/places.hpp"
#include "report/document.hpp"

namespace strata::cli {

// In one of --format's formats.
Result<void> print_document(const document::Document& document, const std::string& format);

// As HTML, and says where: the page that belongs to a run of this store, beside it. All of these share one copy of
// plotly's script in their folder. That it cannot be written is no error: nobody asked for it.
void write_stored_page(const document::Document& document, const Installation& place,
                       const std::filesystem::path& store, const std::string& run_id);

// As HTML that needs nothing beside it, and says where.
Result<void> write_page(const document::Document& document, const Installation& place,
                        const std::filesystem::path& path);

}  // namespace strata::cli
