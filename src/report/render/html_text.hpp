// SPDX-License-Identifier: Apache-2.0
// From text to what can stand in a page: the only place where HTML and scripts are escaped.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace strata::document {

// `& < > " '` as character references, control characters gone; safe in text and in quoted attributes.
std::string escape_html(std::string_view text);

// JSON that can stand inside <script>: no '<', '>' or '&' and no line separators that JavaScript dislikes.
std::string script_json(const nlohmann::json& value);

// JavaScript that can stand inside <script>: "</script" and "<!--" cannot end or change it.
std::string script_text(std::string code);

// From the doctype to <body>, for a page that asks for nothing, or for a script beside it alone. `safe_title`: escaped.
std::string page_head(const std::string& safe_title, std::string_view styles, bool has_script_beside);

}  // namespace strata::document
