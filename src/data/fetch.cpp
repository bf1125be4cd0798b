// SPDX-License-Identifier: Apache-2.0
#include "data/fetch.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "common/interrupt.hpp"
#include "common/staged_folder.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

// curl(1), exit codes
constexpr int curl_cannot_resume = 33, curl_http_error = 22, curl_cannot_write = 23, curl_too_slow = 28,
              curl_too_large = 63, ended_by_too_large = 128 + SIGXFSZ;
constexpr const char* kSlowest = "4096";  // bytes a second

Result<std::string> md5_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(fmt::format("{}: cannot read it", path.string()), "check the file's permissions");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1)
    return fail("this machine's OpenSSL has no MD5, by which the publishers' files are checked", "", Exit::environment);
  std::vector<char> buffer(1 << 20);
  while (in && !interrupted().load()) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (interrupted().load()) return fail("interrupted");
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), raw, &length);
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", raw[i]);
  return text;
}

// The exit code of a program with this one's streams; 127: it could not be started. Ended when this one is interrupted,
// and however this one ends. `most_bytes` that a file of it may have; 0: any.
int run_program(const std::vector<std::string>& words, std::uint64_t most_bytes = 0) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return 127;
  if (child == 0) {  // only what may be called between fork and exec
    const rlimit most{most_bytes, most_bytes};
    if (most_bytes > 0) ::setrlimit(RLIMIT_FSIZE, &most);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  bool sigterm_sent = false;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return 127;
    if (interrupted().load() && !sigterm_sent) sigterm_sent = ::kill(child, SIGTERM) == 0;
    pollfd interrupt{sigterm_sent ? -1 : interrupt_descriptor(), POLLIN, 0};
    ::poll(&interrupt, 1, 50);
  }
}

std::string file_name_of(const Download& download) {
  return download.url.substr(download.url.rfind('/') + 1);
}

std::string url_of(const Download& download, const FetchOptions& options) {
  if (options.from.empty()) return download.url;
  return options.from + (options.from.ends_with('/') ? "" : "/") + file_name_of(download);
}

std::uint64_t most_bytes_of(const Download& download) {
  return download.bytes + download.bytes / 8 + (1 << 20);
}

// What curl's exit code means, where it is known.
std::string meaning_of(int code, const Download& download) {
  if (code == curl_http_error) return " (the server has no such file, or refuses it)";
  if (code == curl_too_slow) return fmt::format(" (less than {} bytes a second for a minute, or no answer)", kSlowest);
  if (code == curl_too_large || code == ended_by_too_large || code == curl_cannot_write)
    return fmt::format(" (more than {} bytes came, or they cannot be written)", most_bytes_of(download));
  return "";
}

// What to do without a network.
std::string by_hand(const CatalogueEntry& entry, const Download& download, const FetchOptions& options) {
  return fmt::format(
      "without a network: get {} elsewhere, put it at {}, and run the same command again; or another place "
      "with the same file: --from URL. Page: {}",
      download.url, place_of(entry, download, options.data_dir).string(), entry.page);
}

// What comes is no longer than what is known of it, with some room, and no slower than kSlowest for a minute.
int call_curl(const Download& download, const fs::path& partial, const FetchOptions& options) {
  // What somebody else keeps may come by any road, since its checksum is known; no server leads to a file here.
  const char* roads = options.from.empty() ? "=https" : "=https,http,file";
  const char* redirections = options.from.empty() ? "=https" : "=https,http";
  const auto most_bytes = most_bytes_of(download);
  std::vector<std::string> words{"curl",
                                 "--fail",
                                 "--location",
                                 "--proto",
                                 roads,
                                 "--proto-redir",
                                 redirections,
                                 "--max-redirs",
                                 "10",
                                 "--max-filesize",
                                 std::to_string(most_bytes),
                                 "--speed-limit",
                                 kSlowest,
                                 "--speed-time",
                                 "60",
                                 "--retry",
                                 "3",
                                 "--connect-timeout",
                                 "30",
                                 "--continue-at",
                                 "-",
                                 "--output",
                                 partial.string()};
  if (options.on_terminal)
    words.push_back("--progress-bar");
  else
    words.insert(words.end(), {"--silent", "--show-error"});
  words.insert(words.end(), {"--", url_of(download, options)});
  return run_program(words, most_bytes);
}

Result<void> check_room(const Download& download, const FetchOptions& options) {
  std::error_code ec;
  const auto free = fs::space(options.data_dir, ec).available;
  const auto needed = download.bytes * (download.archive ? 2 : 1);
  if (ec || free >= needed) return {};
  return fail(fmt::format("{}: {} bytes are free, and {} needs about {}{}", options.data_dir.string(), free,
                          file_name_of(download), needed, download.archive ? " (packed and unpacked)" : ""),
              "free some space there, or name another folder: --data-dir");
}

// The file at its place, with the publisher's checksum.
Result<void> download_file(const CatalogueEntry& entry, const Download& download, const FetchOptions& options) {
  const auto place = place_of(entry, download, options.data_dir);
  const fs::path partial = place.string() + ".partial";
  std::error_code ec;
  if (fs::is_regular_file(place, ec)) {
    const auto md5 = STRATA_TRY(md5_of_file(place));
    if (md5 == download.md5) return {};
    return fail(fmt::format("{}: md5 {}; the publisher's: {}", place.string(), md5, download.md5),
                "remove that file, and run the same command again");
  }
  fs::create_directories(place.parent_path(), ec);
  if (ec)
    return fail(fmt::format("{}: cannot make this folder: {}", place.parent_path().string(), ec.message()),
                "name a folder that you may write to: --data-dir", Exit::usage);
  STRATA_TRY(check_room(download, options));
  const auto url = url_of(download, options);
  if (options.note) options.note(fmt::format("getting {}", url));
  // A part that is whole already needs no road.
  bool whole = false;
  if (fs::is_regular_file(partial, ec) && fs::file_size(partial, ec) >= download.bytes) {
    const auto md5 = md5_of_file(partial);
    whole = md5 && *md5 == download.md5;
    if (!whole) fs::remove(partial, ec);
  }
  int code = whole ? 0 : call_curl(download, partial, options);
  if (code == curl_cannot_resume && !interrupted().load()) {
    fs::remove(partial, ec);
    code = call_curl(download, partial, options);
  }
  if (interrupted().load()) return fail("interrupted; the download so far stays, and the same command continues it");
  if (code == 127)
    return fail("the program curl is missing, by which sets are fetched",
                "apt-get install curl; " + by_hand(entry, download, options), Exit::environment);
  if (code != 0)
    return fail(fmt::format("{}: curl ended with {}{}", url, code, meaning_of(code, download)),
                by_hand(entry, download, options), Exit::environment);
  const auto md5 = STRATA_TRY(md5_of_file(partial));
  if (md5 != download.md5) {
    fs::remove(partial, ec);
    return fail(fmt::format("{}: md5 {}; the publisher's: {}; removed", url, md5, download.md5),
                "run the same command again; if it stays so, the file there is another one");
  }
  fs::rename(partial, place, ec);
  if (ec) return fail(fmt::format("{}: cannot be put in place: {}", place.string(), ec.message()));
  return {};
}

// Everything below `from` to the same place below `to`; folders that both have are merged.
std::error_code merge_into(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(from, ec)) {
    const auto target = to / entry.path().filename();
    if (entry.is_directory(ec) && !entry.is_symlink(ec) && fs::is_directory(target, ec))
      ec = merge_into(entry.path(), target);
    else
      fs::rename(entry.path(), target, ec);
    if (ec) return ec;
  }
  return ec;
}

// Unpacked beside its place and moved there when it is whole; the archive is removed, which takes as much as the set.
Result<void> unpack(const CatalogueEntry& entry, const Download& download, const FetchOptions& options) {
  const auto archive = place_of(entry, download, options.data_dir);
  if (options.note) options.note(fmt::format("unpacking {}", archive.filename().string()));
  const auto stage = STRATA_TRY(make_folder_beside(options.data_dir / entry.name));
  const int code = run_program({"tar", "--extract", "--file", archive.string(), "--directory", stage.string(),
                                "--no-same-owner", "--no-same-permissions"});
  std::error_code ec, ignored;
  if (code == 0) ec = merge_into(stage, options.data_dir);
  fs::remove_all(stage, ignored);
  if (interrupted().load()) return fail("interrupted; the archive stays, and the same command unpacks it");
  if (code != 0)
    return fail(fmt::format("{}: tar ended with {}", archive.string(), code), "is there room for what it unpacks to?");
  if (ec) return fail(fmt::format("{}: cannot be put in place: {}", archive.string(), ec.message()));
  fs::remove(archive, ignored);
  return {};
}

}  // namespace

fs::path place_of(const CatalogueEntry& entry, const Download& download, const fs::path& data_dir) {
  return data_dir / (download.archive ? "downloads" : entry.folder) / file_name_of(download);
}

Result<std::unique_ptr<FileLock>> lock_data_dir(const FetchOptions& options) {
  std::error_code ec;
  fs::create_directories(options.data_dir, ec);
  if (ec)
    return fail(fmt::format("{}: cannot make this folder: {}", options.data_dir.string(), ec.message()),
                "name a folder that you may write to: --data-dir", Exit::usage);
  auto lock = std::make_unique<FileLock>(options.data_dir, [&] {
    if (options.note) options.note("another process fetches into this folder: waiting for its end");
  });
  if (interrupted().load()) return fail("interrupted");
  return lock;
}

Result<void> fetch(const CatalogueEntry& entry, const FetchOptions& options) {
  for (const auto& download : entry.downloads) {
    STRATA_TRY(download_file(entry, download, options));
    if (!download.archive) continue;
    STRATA_TRY(unpack(entry, download, options));
  }
  return {};
}

namespace {

// The publisher's MD5 of a file that the set reads; empty: not known.
std::string published_md5(const CatalogueEntry& entry, std::string name) {
  for (const auto& download : entry.downloads)
    if (!download.archive && file_name_of(download) == name) return download.md5;
  if (const auto dot = name.find(".idx"); dot != std::string::npos) name[dot] = '-';  // another program's spelling
  for (const auto& [file, md5] : entry.unpacked)
    if (file == name) return md5;
  return {};
}

}  // namespace

Result<std::size_t> check_published(const CatalogueEntry& entry, const std::vector<fs::path>& files) {
  std::size_t checked = 0;
  for (const auto& file : files) {
    const auto published = published_md5(entry, file.filename().string());
    if (published.empty()) continue;
    const auto md5 = STRATA_TRY(md5_of_file(file));
    if (md5 != published)
      return fail(fmt::format("{}: md5 {}; the publisher's: {}", file.string(), md5, published),
                  fmt::format("get the file again: remove it, then ./strata data fetch {}; or use it as it is: "
                              "--partial",
                              entry.name));
    ++checked;
  }
  return checked;
}

}  // namespace strata::data
