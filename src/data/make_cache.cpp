// SPDX-License-Identifier: Apache-2.0
// Reads a set into a cache: the whole file is reserved and mapped first, so that a full disk is met before any work and
// threads write where their records belong; what is skipped is closed up at the end.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>

#include "common/escape.hpp"
#include "common/hash.hpp"
#include "common/interrupt.hpp"
#include "common/places.hpp"
#include "data/cache_file.hpp"
#include "data/catalogue.hpp"
#include "data/parallel.hpp"

namespace strata::data {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t most_reasons = 5;  // of skipped records that are kept

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of this process, all threads together.
double processor_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

tl::unexpected<Error> cannot_write_cache(const fs::path& path, std::uint64_t bytes, int code) {
  const bool no_room = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return fail(
      fmt::format("{}: cannot write {} bytes: {}", path.string(), bytes, std::strerror(code)),
      no_room ? "free some space there, or name another folder: STRATA_CACHE" : "check the folder's permissions");
}

// A new file of a fixed size, mapped for writing; removed again unless it was put in place. A limit on a file's size is
// an error like a full disk, and no signal.
class MappedFile {
 public:
  static Result<std::unique_ptr<MappedFile>> create(const fs::path& path, std::size_t bytes) {
    auto file = std::make_unique<MappedFile>();
    file->path_ = path;
    file->descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->descriptor_ < 0) return cannot_write_cache(path, bytes, errno);
    if (const int code = ::posix_fallocate(file->descriptor_, 0, static_cast<off_t>(bytes)); code != 0)
      return cannot_write_cache(path, bytes, code);
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor_, 0);
    if (at == MAP_FAILED) return cannot_write_cache(path, bytes, errno);
    file->bytes_ = {static_cast<std::byte*>(at), bytes};
    return file;
  }
  MappedFile() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    unmap();
    if (descriptor_ >= 0) ::close(descriptor_);
    if (descriptor_ >= 0 && !placed_) ::unlink(path_.c_str());
    std::signal(SIGXFSZ, before_ == SIG_ERR ? SIG_DFL : before_);
  }
  std::span<std::byte> bytes() const { return bytes_; }
  Result<void> put(const fs::path& place, std::size_t size) {
    unmap();
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0 || ::rename(path_.c_str(), place.c_str()) != 0)
      return cannot_write_cache(place, size, errno);
    placed_ = true;
    return {};
  }

 private:
  void unmap() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
  }
  fs::path path_;
  int descriptor_ = -1;
  std::span<std::byte> bytes_;
  bool placed_ = false;
  void (*before_)(int);
};

// One tensor of the file: of a part, with so many bytes a record.
struct Region {
  Part part;
  std::string name, dtype;
  std::vector<std::int64_t> record_shape;
  std::size_t record = 0;
  std::size_t at = 0;  // where its records stand, from the beginning of the data
};

// Labels first, so that 64-bit numbers are aligned.
std::vector<Region> regions_of(const Description& about) {
  std::vector<Region> regions;
  std::size_t at = 0;
  const auto add = [&](Region region) {
    region.at = at;
    at += region.record * about.count[index_of(region.part)];
    regions.push_back(std::move(region));
  };
  const bool is_single = about.kind == Targets::one_class;
  const auto classes = static_cast<std::int64_t>(about.classes.size());
  for (const Part part : both_parts)
    add({.part = part,
         .name = labels_name(part, about.kind),
         .dtype = is_single ? "I64" : "U8",
         .record_shape = is_single ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{classes},
         .record = label_bytes(about.kind, about.classes.size())});
  for (const Part part : both_parts)
    add({.part = part,
         .name = images_name(part),
         .dtype = "U8",
         .record_shape = {about.shape.channels, about.shape.height, about.shape.width},
         .record = about.shape.bytes()});
  return regions;
}

std::size_t data_bytes_of(const std::vector<Region>& regions, const std::array<std::size_t, 2>& count) {
  std::size_t bytes = 0;
  for (const auto& region : regions) bytes += region.record * count[index_of(region.part)];
  return bytes;
}

// Which records of each part are good, and why the others are not.
struct Outcome {
  std::array<std::vector<char>, 2> good;
  std::vector<std::pair<std::size_t, Error>> bad;  // by position in both parts together
  std::mutex mutex;
};

// Moves good records together and tensors behind each other; returns how many of each part are left.
std::array<std::size_t, 2> close_up(std::byte* data, std::vector<Region>& regions, const Outcome& outcome) {
  std::array<std::size_t, 2> left{};
  std::size_t to = 0;
  for (auto& region : regions) {
    const auto& good = outcome.good[index_of(region.part)];
    const auto from = region.at;
    region.at = to;
    left[index_of(region.part)] = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      if (!good[i]) continue;
      if (to != from + i * region.record) std::memmove(data + to, data + from + i * region.record, region.record);
      to += region.record;
      ++left[index_of(region.part)];
    }
  }
  return left;
}

std::string header_of(const std::vector<Region>& regions, const std::array<std::size_t, 2>& count,
                      const nlohmann::json& about) {
  nlohmann::json header;
  std::size_t at = 0;
  for (const auto& region : regions) {
    const auto records = count[index_of(region.part)];
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(records)};
    shape.insert(shape.end(), region.record_shape.begin(), region.record_shape.end());
    header[region.name] = {
        {"dtype", region.dtype}, {"shape", shape}, {"data_offsets", {at, at + records * region.record}}};
    at += records * region.record;
  }
  header["__metadata__"] = {{cache_metadata_key, about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
  return header.dump();
}

// "error (and 3 more records)"
Error first_of(const Outcome& outcome, bool skip) {
  auto error = std::min_element(outcome.bad.begin(), outcome.bad.end(), [](const auto& a, const auto& b) {
                 return a.first < b.first;
               })->second;
  if (outcome.bad.size() > 1) error.what += fmt::format(" (and {} more records)", outcome.bad.size() - 1);
  if (!skip)
    error.hint +=
        error.hint.empty() ? "leave such records out with --skip-bad" : "; or leave such records out with --skip-bad";
  return error;
}

class CacheMaker {
 public:
  CacheMaker(const std::string& name, Reader& reader, const std::vector<SourceFiles>& sources,
             const OpenOptions& options)
      : name_(name), reader_(reader), sources_(sources), options_(options) {}

  Result<void> run(const fs::path& place) {
    STRATA_TRY(hash_sources());
    const auto loading = Clock::now();
    about_ = STRATA_TRY(reader_.load());
    load_s_ = seconds_since(loading);
    for (const Part part : both_parts)
      if (about_.count[index_of(part)] == 0)
        return fail(fmt::format("{}: the split {} is empty", name_, name_of(part)), "check its list of images");
    regions_ = regions_of(about_);
    const auto data_bytes = data_bytes_of(regions_, about_.count);
    // What the header will hold at most: counts only shrink, and reasons are short.
    const auto reserved = header_of(regions_, about_.count, metadata()).size() + most_reasons * 2000 + page_bytes;
    const auto data_at = (reserved + page_bytes - 1) / page_bytes * page_bytes;
    auto file = STRATA_TRY(MappedFile::create(place.string() + ".partial", data_at + data_bytes));
    const auto reading = Clock::now();
    const auto processor = processor_s();
    STRATA_TRY(read_records(file->bytes().data() + data_at));
    read_s_ = seconds_since(reading);
    read_cpu_s_ = processor_s() - processor;
    return finish(*file, data_at, place);
  }

 private:
  Result<void> interrupted_error() const { return fail("interrupted; nothing was written", ""); }

  Progress progress(const std::string& doing) const {
    return [this, doing, start = Clock::now()](std::size_t done, std::size_t total) {
      if (!options_.status || done == 0) return;
      const auto left = seconds_since(start) / static_cast<double>(done) * static_cast<double>(total - done);
      options_.status(fmt::format("{}: {}, {} of {}", name_, doing, done, total), left);
    };
  }

  // The hash of a source of many files is that of their hashes in order.
  Result<void> hash_sources() {
    const auto start = Clock::now();
    std::vector<fs::path> files;
    for (const auto& source : sources_) files.insert(files.end(), source.files.begin(), source.files.end());
    std::vector<Result<std::string>> hashes(files.size(), std::string());
    if (!for_each_in_parallel(
            files.size(), options_.threads,
            [&](std::size_t i) { hashes[i] = there_is(files[i]) ? sha256_of_file(files[i]) : "missing"; },
            progress("hashing files")))
      return interrupted_error();
    std::size_t next = 0;
    for (const auto& source : sources_) {
      SourceState state{.name = source.name, .files = source.files.size()};
      std::string together;
      for (const auto& file : source.files) {
        const auto& hash = hashes[next++];
        std::error_code ec;
        if (!hash) return tl::unexpected(hash.error());
        together += *hash;
        if (const auto size = fs::file_size(file, ec); !ec) state.bytes += size;
      }
      state.sha256 = source.files.size() == 1 ? together : sha256_hex(together);
      source_json_.push_back({{"name", state.name},
                              {"files", state.files},
                              {"bytes", state.bytes},
                              {"stamp", stamp_of(source)},
                              {"sha256", state.sha256}});
    }
    hash_s_ = seconds_since(start);
    return {};
  }

  Result<void> read_records(std::byte* data) {
    const auto train = about_.count[0], total = train + about_.count[1];
    for (const Part part : both_parts) outcome_.good[index_of(part)].assign(about_.count[index_of(part)], 1);
    std::atomic<bool> stop{false};
    const auto read_one = [&](std::size_t position) {
      if (stop.load(std::memory_order_relaxed)) return;
      const Part part = position < train ? Part::train : Part::test;
      const auto i = position < train ? position : position - train;
      const auto place = [&](std::size_t region) { return data + regions_[region].at + i * regions_[region].record; };
      LabelPlace label;
      auto* label_at = place(index_of(part));
      if (about_.kind == Targets::one_class)
        label.label = reinterpret_cast<std::int64_t*>(label_at);
      else
        label.targets = {reinterpret_cast<std::uint8_t*>(label_at), about_.classes.size()};
      auto* image = reinterpret_cast<std::uint8_t*>(place(2 + index_of(part)));
      const auto done = reader_.read(part, i, {image, about_.shape.bytes()}, label);
      if (done) return;
      outcome_.good[index_of(part)][i] = 0;
      const std::scoped_lock lock(outcome_.mutex);
      outcome_.bad.emplace_back(position, done.error());
      if (!options_.skip_bad) stop.store(true);
    };
    if (!for_each_in_parallel(total, options_.threads, read_one, progress("reading images")))
      return interrupted_error();
    if (!outcome_.bad.empty() && !options_.skip_bad) return tl::unexpected(first_of(outcome_, false));
    return {};
  }

  Result<void> finish(MappedFile& file, std::size_t data_at, const fs::path& place) {
    const auto writing = Clock::now();
    const auto data = file.bytes().subspan(data_at);
    auto count = about_.count;
    if (!outcome_.bad.empty()) count = close_up(data.data(), regions_, outcome_);
    for (const Part part : both_parts)
      if (count[index_of(part)] == 0) {
        auto error = first_of(outcome_, true);
        error.what = fmt::format("{}: no record of the split {} could be read: {}", name_, name_of(part), error.what);
        return tl::unexpected(error);
      }
    const auto bytes = data_bytes_of(regions_, count);
    sha256_ = checksum(data.first(bytes), options_.threads);
    write_s_ = seconds_since(writing);
    auto header = header_of(regions_, count, metadata());
    if (header.size() + sizeof(std::uint64_t) > data_at) return fail(fmt::format("{}: the header has no room", name_));
    header.resize(data_at - sizeof(std::uint64_t), ' ');
    const std::uint64_t length = header.size();
    std::memcpy(file.bytes().data(), &length, sizeof length);
    std::memcpy(file.bytes().data() + sizeof length, header.data(), header.size());
    return file.put(place, data_at + bytes);
  }

  nlohmann::json metadata() const {
    std::vector<std::string> reasons;
    auto bad = outcome_.bad;
    std::sort(bad.begin(), bad.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < std::min(bad.size(), most_reasons); ++i)
      reasons.push_back(escape::one_line(bad[i].second.what).substr(0, 300));
    return {{"format", cache_format},
            {"name", name_},
            {"kind", about_.kind == Targets::one_class ? "one_class" : "several_classes"},
            {"highest_value", about_.highest_value},
            {"classes", about_.classes},
            {"lists", {{"train", about_.list_sha256[0]}, {"test", about_.list_sha256[1]}}},
            {"options", options_json(options_)},
            {"skip_bad", options_.skip_bad},
            {"sources", source_json_},
            {"skipped", outcome_.bad.size()},
            {"skipped_why", reasons},
            {"left_out", about_.left_out},
            {"cost",
             {{"hash_s", hash_s_},
              {"load_s", load_s_},
              {"read_s", read_s_},
              {"read_cpu_s", read_cpu_s_},
              {"write_s", write_s_},
              {"threads", options_.threads}}},
            {"sha256", sha256_}};
  }

  const std::string& name_;
  Reader& reader_;
  const std::vector<SourceFiles>& sources_;
  const OpenOptions& options_;
  Description about_;
  std::vector<Region> regions_;
  Outcome outcome_;
  nlohmann::json source_json_ = nlohmann::json::array();
  std::string sha256_ = std::string(64, '0');
  double hash_s_ = 0, load_s_ = 0, read_s_ = 0, read_cpu_s_ = 0, write_s_ = 0;
};

}  // namespace

Result<void> make_cache(const std::string& name, Reader& reader, const std::vector<SourceFiles>& sources,
                        const fs::path& place, const OpenOptions& options) {
  return CacheMaker(name, reader, sources, options).run(place);
}

}  // namespace strata::data
