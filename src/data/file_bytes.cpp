// SPDX-License-Identifier: Apache-2.0
#include "data/file_bytes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace strata::data {
namespace {

constexpr int gzip_alone = 15 + 16;  // zlib's word for: the largest window, and gzip's header
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

struct Inflater {
  z_stream stream{};
  bool started = inflateInit2(&stream, gzip_alone) == Z_OK;
  ~Inflater() {
    if (started) inflateEnd(&stream);
  }
};

tl::unexpected<Error> damaged_gzip(const std::string& where, std::size_t out, const char* why) {
  return fail(fmt::format("{}: damaged or cut gzip after {} unpacked bytes ({})", where, out, why),
              "get the file again: ./strata data fetch NAME");
}

}  // namespace

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

Result<Bytes> gunzip(std::span<const std::uint8_t> packed, const std::string& where, std::size_t limit) {
  Inflater inflater;
  if (!inflater.started) return fail(fmt::format("{}: no memory to unpack it", where));
  auto& stream = inflater.stream;
  Bytes out;
  std::size_t taken = 0, unpacked = 0;
  int state = Z_OK;
  for (;;) {
    if (unpacked == out.size()) out.resize(std::min(limit + 1, out.size() + std::max(chunk_bytes, out.size() / 2)));
    const auto give = std::min<std::size_t>(packed.size() - taken, std::size_t{1} << 30);
    const auto room = std::min<std::size_t>(out.size() - unpacked, std::size_t{1} << 30);
    stream.next_in = const_cast<Bytef*>(packed.data() + taken);
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = out.data() + unpacked;
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    taken += give - stream.avail_in;
    unpacked += room - stream.avail_out;
    if (unpacked > limit)
      return fail(fmt::format("{}: unpacks to more than the {} bytes that are allowed", where, limit),
                  "this is not the publisher's file");
    if (state == Z_STREAM_END) {
      if (taken == packed.size()) break;
      if (!is_gzip(packed.subspan(taken))) break;  // what follows the last member is padding, as gzip itself has it
      if (inflateReset(&stream) != Z_OK) return damaged_gzip(where, unpacked, "the next member");
      continue;
    }
    if (state != Z_OK && state != Z_BUF_ERROR)
      return damaged_gzip(where, unpacked, stream.msg ? stream.msg : "unknown reason");
    if (taken == packed.size() && stream.avail_out > 0) return damaged_gzip(where, unpacked, "it ends too early");
  }
  out.resize(unpacked);
  return out;
}

Result<Bytes> read_bytes(const std::filesystem::path& path, std::size_t limit) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0)
    return fail(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)), "check the path");
  struct stat about {};
  if (::fstat(file.number, &about) != 0 || !S_ISREG(about.st_mode))
    return fail(fmt::format("{}: is no regular file", path.string()), "check the path");
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size > limit)
    return fail(fmt::format("{}: has {} bytes; allowed: {}", path.string(), size, limit),
                "this is not the publisher's file");
  Bytes bytes(size);
  for (std::size_t have = 0; have < size;) {
    const auto got = ::read(file.number, bytes.data() + have, std::min<std::size_t>(size - have, 1u << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
    if (got == 0) return fail(fmt::format("{}: was made shorter while it was read", path.string()), "try again");
    have += static_cast<std::size_t>(got);
  }
  if (is_gzip(bytes)) return gunzip(bytes, path.string(), limit);
  return bytes;
}

}  // namespace strata::data
