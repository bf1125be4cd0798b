// SPDX-License-Identifier: Apache-2.0
#include "export/draft.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/outside.hpp"
#include "common/staged_folder.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSpace = "free some space, or name a folder on another disk with -o";

bool made_by_strata(const fs::path& folder) {
  const auto described = outside::read_file(folder / "case.json");
  return described && outside::text_or(*described, "schema") == "strata.export/1";
}

Result<void> check_place(const fs::path& target, bool replace) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(target, ec))) return {};
  if (!fs::is_directory(target, ec))
    return fail(fmt::format("-o {}: it exists and is not a folder", target.string()), "name another folder",
                Exit::usage);
  const bool empty = fs::is_empty(target, ec);
  if (ec)
    return fail(fmt::format("-o {}: it cannot be read: {}", target.string(), ec.message()), "name another folder",
                Exit::usage);
  if (empty) return {};
  if (!made_by_strata(target))
    return fail(fmt::format("-o {}: the folder is not empty, and strata export did not make it", target.string()),
                "name a folder that is new or empty; --force replaces only what strata export made", Exit::usage);
  if (!replace)
    return fail(fmt::format("-o {}: it holds an earlier export", target.string()),
                "--force replaces the whole folder, or name another", Exit::usage);
  return {};
}

}  // namespace

Result<Draft> Draft::begin(const fs::path& target, bool replace) {
  std::error_code ec;
  fs::path place = fs::weakly_canonical(fs::absolute(target, ec), ec);
  if (!place.has_filename()) place = place.parent_path();
  if (ec || place.empty() || place == place.root_path())
    return fail(fmt::format("-o {}: not a folder that can be made", target.string()), "name a new folder, as -o served",
                Exit::usage);
  STRATA_TRY(check_place(place, replace));
  const auto parent = place.parent_path();
  if (!fs::is_directory(parent, ec))
    return fail(fmt::format("-o {}: the folder {} does not exist", target.string(), parent.string()),
                fmt::format("mkdir -p {}", parent.string()), Exit::usage);
  auto partial = make_folder_beside(place);
  if (!partial) {
    partial.error().what = fmt::format("-o {}: {}", target.string(), partial.error().what);
    return tl::unexpected(std::move(partial.error()));
  }
  Draft draft(place, *std::move(partial));  // removed again, whatever comes
  fs::create_directory(draft.folder() / "test", ec);
  if (ec)
    return fail(fmt::format("-o {}: cannot write to {}: {}", target.string(), parent.string(), ec.message()), kSpace);
  return draft;
}

Draft::Draft(Draft&& other) noexcept : target_(std::move(other.target_)), partial_(std::move(other.partial_)) {
  other.partial_.clear();
}

Draft::~Draft() {
  std::error_code ec;
  if (!partial_.empty()) fs::remove_all(partial_, ec);
}

Result<void> Draft::write(const std::string& name, const std::string& text) const {
  std::ofstream out(partial_ / name, std::ios::binary);
  out << text;
  out.close();
  return out ? Result<void>()
             : fail(fmt::format("cannot write {} ({} bytes)", (target_ / name).string(), text.size()), kSpace);
}

Result<void> Draft::copy(const fs::path& from, const std::string& name) const {
  std::error_code ec;
  fs::copy_file(from, partial_ / name, ec);
  // as a new file would be: a cache may hold files that only their owner reads
  if (!ec) fs::permissions(partial_ / name, new_file_permissions(), ec);
  if (!ec) return {};
  std::error_code ignored;  // copy_file says "input/output error" of a full disk
  const bool full = fs::exists(from, ignored) && fs::space(partial_, ignored).available < fs::file_size(from, ignored);
  return fail(fmt::format("cannot copy {} to {}: {}", from.string(), (target_ / name).string(),
                          full ? "no space left on the disk" : ec.message()),
              full ? kSpace : "");
}

Result<void> Draft::publish() {
  std::error_code ec;
  const fs::path old = partial_.string() + ".old";
  const bool replaces = fs::exists(target_, ec) && !fs::is_empty(target_, ec);
  if (replaces) fs::rename(target_, old, ec);
  if (!ec) {
    ec = put_in_place(partial_, target_);
    std::error_code ignored;
    if (ec && replaces) fs::rename(old, target_, ignored);
  }
  if (ec)
    return fail(fmt::format("cannot put {} in its place: {}", target_.string(), ec.message()),
                "name another folder with -o");
  partial_.clear();
  if (replaces) fs::remove_all(old, ec);
  return {};
}

}  // namespace strata::exporting
