// SPDX-License-Identifier: Apache-2.0
#include "common/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "common/json_bounds.hpp"

namespace strata {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and is read in place");

namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000;  // the format's own limit
constexpr std::size_t max_dimensions = 64;
constexpr std::string_view metadata_key = "__metadata__";

// A name from a file for an error message: short, one line, printable ASCII (so that it can be stored and shown
// anywhere).
std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 120;
  std::string out = "\"";
  for (char c : name.substr(0, longest)) out += c < 0x20 || c > 0x7e ? '?' : c;
  return out + (name.size() > longest ? "...\"" : "\"");
}

tl::unexpected<Error> refuse(const std::string& where, const std::string& what) {
  return fail(where + ": not a valid safetensors file: " + what,
              "The file is damaged or was not written as safetensors; write it again.");
}

tl::unexpected<Error> system_failure(const std::filesystem::path& path, const std::string& action, int code) {
  std::string hint;
  if (code == ENOSPC || code == EDQUOT) hint = "Free some space on that disk.";
  if (code == ENOENT) hint = "Check the path.";
  if (code == EACCES || code == EPERM) hint = "Check the permissions of the file and its folder.";
  return fail(path.string() + ": cannot " + action + ": " + std::strerror(code), hint);
}

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Bytes that a dtype and a shape need; nullopt: too many to count, or a negative dimension.
std::optional<std::uint64_t> bytes_needed(std::size_t element, const std::vector<std::int64_t>& shape) {
  // A zero dimension makes the tensor empty whatever the others are, but they must still be countable for elements().
  std::optional<std::uint64_t> bytes = element;
  for (std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (bytes) bytes = multiply(*bytes, static_cast<std::uint64_t>(dimension));
  }
  if (bytes && *bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return bytes;
}

struct Entry {
  std::string name;
  TensorView view;
  std::uint64_t begin = 0, end = 0;
};

// Parses JSON and refuses a key that occurs twice in one object (which the plain parser would silently overwrite).
Result<json> parse_header(std::string_view text, const std::string& where) {
  constexpr JsonBounds bounds{.bytes = max_header_bytes, .depth = 4, .values = 20'000'000, .unique_keys = true};
  std::string twice;
  if (const auto fault = json_fault(text, bounds, &twice); !twice.empty())
    return refuse(where, "the name " + in_quotes(twice) + " occurs twice");
  else if (!fault.empty())
    return refuse(where, "the header is " + fault);
  json header = json::parse(text, nullptr, false);
  if (!header.is_object()) return refuse(where, "the header is not a JSON object");
  return header;
}

Result<Entry> parse_entry(const std::string& name, const json& value, std::uint64_t data_bytes,
                          const std::string& where) {
  const std::string tensor = "tensor " + in_quotes(name);
  if (!value.is_object()) return refuse(where, tensor + " is not described by an object");
  const auto dtype = value.find("dtype"), shape = value.find("shape"), offsets = value.find("data_offsets");
  if (dtype == value.end() || shape == value.end() || offsets == value.end() || value.size() != 3)
    return refuse(where, tensor + " must have exactly dtype, shape and data_offsets");
  Entry entry;
  entry.name = name;
  if (!dtype->is_string() || element_bytes(dtype->get_ref<const std::string&>()) == 0)
    return refuse(
        where,
        tensor + " has a dtype that is not known; known are F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL");
  entry.view.dtype = dtype->get<std::string>();
  if (!shape->is_array() || shape->size() > max_dimensions)
    return refuse(where, tensor + " has a shape that is not a list of at most 64 sizes");
  for (const json& size : *shape) {
    if (!size.is_number_unsigned() ||
        size.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return refuse(where, tensor + " has a size in its shape that is not a whole number from 0 up");
    entry.view.shape.push_back(static_cast<std::int64_t>(size.get<std::uint64_t>()));
  }
  if (!offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned())
    return refuse(where, tensor + " has data_offsets that are not two whole numbers");
  entry.begin = (*offsets)[0].get<std::uint64_t>();
  entry.end = (*offsets)[1].get<std::uint64_t>();
  const std::string range = std::to_string(entry.begin) + ".." + std::to_string(entry.end);
  if (entry.begin > entry.end || entry.end > data_bytes)
    return refuse(where, tensor + " lies at bytes " + range + " of " + std::to_string(data_bytes) + " bytes of data");
  const auto needed = bytes_needed(element_bytes(entry.view.dtype), entry.view.shape);
  if (!needed) return refuse(where, tensor + " has a shape too large to count");
  if (*needed != entry.end - entry.begin)
    return refuse(where, tensor + " needs " + std::to_string(*needed) +
                             " bytes by its dtype and shape, but lies at bytes " + range);
  return entry;
}

// Tensors must tile the data: no hole, no overlap, nothing behind the last.
Result<void> check_tiling(std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& where) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      return refuse(where, "tensor " + in_quotes(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                               " where the one before ends at " + std::to_string(at) +
                               (entry.begin < at ? " (overlap)" : " (hole)"));
    at = entry.end;
  }
  if (at != data_bytes)
    return refuse(where, "the tensors end at byte " + std::to_string(at) + " of " + std::to_string(data_bytes) +
                             " bytes of data");
  return {};
}

double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0x1f)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = fraction * 0x1p-24;
  else
    magnitude = static_cast<double>(0x400 | fraction) *
                std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent - 25) << 52);
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of a type's values from `at` on, as many as `out` has.
using Reader = void (*)(const std::byte* at, std::span<double> out);

template <class T, double (*widen)(T)>
void read_as(const std::byte* at, std::span<double> out) {
  for (double& value : out) {
    value = widen(load<T>(at));
    at += sizeof(T);
  }
}

template <class T>
double plain(T value) {
  return static_cast<double>(value);
}

double bfloat_to_double(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

double truth_to_double(std::uint8_t value) {
  return value ? 1 : 0;
}

struct Dtype {
  std::string_view name;
  std::size_t bytes;
  Reader read;
};
constexpr std::array<Dtype, 13> dtypes{{{"F64", 8, read_as<double, plain>},
                                        {"F32", 4, read_as<float, plain>},
                                        {"F16", 2, read_as<std::uint16_t, half_to_double>},
                                        {"BF16", 2, read_as<std::uint16_t, bfloat_to_double>},
                                        {"I64", 8, read_as<std::int64_t, plain>},
                                        {"I32", 4, read_as<std::int32_t, plain>},
                                        {"I16", 2, read_as<std::int16_t, plain>},
                                        {"I8", 1, read_as<std::int8_t, plain>},
                                        {"U64", 8, read_as<std::uint64_t, plain>},
                                        {"U32", 4, read_as<std::uint32_t, plain>},
                                        {"U16", 2, read_as<std::uint16_t, plain>},
                                        {"U8", 1, read_as<std::uint8_t, plain>},
                                        {"BOOL", 1, read_as<std::uint8_t, truth_to_double>}}};

const Dtype* find_dtype(std::string_view name) {
  const auto* at = std::find_if(dtypes.begin(), dtypes.end(), [&](const Dtype& known) { return known.name == name; });
  return at == dtypes.end() ? nullptr : at;
}

Result<void> write_all(int file, const void* data, std::size_t bytes, const std::filesystem::path& path) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file, at, std::min<std::size_t>(bytes, 1u << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_failure(path, "write", errno);
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return {};
}

using Named = std::pair<std::string, TensorView>;

// The header for tensors in the order given; errors as write_safetensors says.
Result<std::string> make_header(const std::vector<const Named*>& tensors, const std::string& where) {
  json header = json::object();
  std::uint64_t at = 0;
  for (const Named* named : tensors) {
    const auto& [name, view] = *named;
    const std::size_t element = element_bytes(view.dtype);
    const auto needed = bytes_needed(element, view.shape);
    if (name == metadata_key || header.contains(name))
      return fail(where + ": tensor name " + in_quotes(name) + " is used twice or reserved");
    if (element == 0 || !needed || *needed != view.bytes)
      return fail(where + ": tensor " + in_quotes(name) + " of dtype " + in_quotes(view.dtype) + " has " +
                  std::to_string(view.bytes) + " bytes, which does not fit its shape");
    header[name] = {{"dtype", view.dtype}, {"shape", view.shape}, {"data_offsets", {at, at + view.bytes}}};
    at += view.bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    return fail(where + ": a tensor name is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begins aligned
  return text;
}

}  // namespace

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (std::int64_t dimension : shape) count *= dimension;
  return count;
}

std::size_t element_bytes(std::string_view dtype) {
  const Dtype* known = find_dtype(dtype);
  return known ? known->bytes : 0;
}

bool is_floating(std::string_view dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

double value_at(const TensorView& tensor, std::size_t i) {
  double value = 0;
  read_doubles(tensor, i, {&value, 1});
  return value;
}

void read_doubles(const TensorView& tensor, std::size_t first, std::span<double> out) {
  if (const Dtype* known = find_dtype(tensor.dtype)) return known->read(tensor.data + first * known->bytes, out);
  std::fill(out.begin(), out.end(), std::numeric_limits<double>::quiet_NaN());
}

std::vector<double> to_doubles(const TensorView& tensor) {
  const std::size_t step = element_bytes(tensor.dtype);
  std::vector<double> values(step ? tensor.bytes / step : 0);
  read_doubles(tensor, 0, values);
  return values;
}

Result<SafeTensors> SafeTensors::parse(std::span<const std::byte> file, std::string where) {
  if (file.size() < length_bytes)
    return refuse(where, "it has " + std::to_string(file.size()) + " bytes, fewer than the 8 of the header's length");
  const auto header_bytes = load<std::uint64_t>(file.data());
  if (header_bytes < 2 || header_bytes > max_header_bytes || header_bytes > file.size() - length_bytes)
    return refuse(where, "its header claims " + std::to_string(header_bytes) + " bytes of a file of " +
                             std::to_string(file.size()) + " (allowed: 2 to 100000000, within the file)");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + length_bytes, header_bytes);
  if (text.front() != '{') return refuse(where, "the header does not begin with {");
  const auto data = file.subspan(length_bytes + header_bytes);
  auto header = STRATA_TRY(parse_header(text, where));
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == metadata_key) continue;
    auto entry = STRATA_TRY(parse_entry(name, value, data.size(), where));
    entry.view.data = data.data() + entry.begin;
    entry.view.bytes = entry.end - entry.begin;
    entries.push_back(std::move(entry));
  }
  STRATA_TRY(check_tiling(entries, data.size(), where));
  SafeTensors out;
  out.where_ = std::move(where);
  for (Entry& entry : entries) out.tensors_.emplace(std::move(entry.name), std::move(entry.view));
  return out;
}

namespace {

// A regular file, open for reading, and its size.
struct OpenFile {
  int number = -1;
  std::size_t bytes = 0;
  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept : number(std::exchange(other.number, -1)), bytes(other.bytes) {}
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
};

Result<OpenFile> open_file(const std::filesystem::path& path) {
  OpenFile file;
  file.number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.number < 0) return system_failure(path, "open", errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(path.string() + ": is not a regular file; a safetensors file is needed", "Check the path.");
  file.bytes = static_cast<std::size_t>(status.st_size);
  return file;
}

std::size_t half_of_memory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Result<SafeTensors> SafeTensors::open(const std::filesystem::path& path) {
  const auto file = STRATA_TRY(open_file(path));
  if (file.bytes > half_of_memory())
    return fail(path.string() + ": has " + std::to_string(file.bytes) + " bytes, which this machine's memory of " +
                    std::to_string(2 * half_of_memory()) + " bytes does not hold",
                "Try a smaller batch, or a machine with more memory.");
  const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new(file.bytes, std::nothrow)),
                                          [](std::byte* at) { ::operator delete(at); });
  if (!memory) return system_failure(path, "read", ENOMEM);
  std::size_t have = 0;
  while (have < file.bytes) {
    const ssize_t got = ::read(file.number, memory.get() + have, std::min<std::size_t>(file.bytes - have, 1u << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(path, "read", errno);
    if (got == 0) return refuse(path.string(), "it was made shorter while it was read");
    have += static_cast<std::size_t>(got);
  }
  auto parsed = parse({memory.get(), file.bytes}, path.string());
  if (parsed) parsed->memory_ = memory;
  return parsed;
}

Result<SafeTensors> SafeTensors::map(const std::filesystem::path& path) {
  const auto file = STRATA_TRY(open_file(path));
  const auto bytes = file.bytes;
  void* mapped = bytes ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number, 0) : nullptr;
  if (mapped == MAP_FAILED) return system_failure(path, "map", errno);
  std::shared_ptr<const void> mapping;
  if (mapped) mapping.reset(mapped, [bytes](void* at) { ::munmap(at, bytes); });
  auto parsed = parse({static_cast<const std::byte*>(mapped), bytes}, path.string());
  if (parsed) parsed->memory_ = std::move(mapping);
  return parsed;
}

const TensorView* SafeTensors::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> out;
  for (const auto& [name, view] : tensors_) out.push_back(name);
  return out;
}

Result<void> write_safetensors(const std::filesystem::path& path, const std::vector<Named>& tensors) {
  std::vector<const Named*> order;
  for (const Named& named : tensors) order.push_back(&named);
  // Wide elements first keeps every tensor aligned to its element.
  std::stable_sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    return element_bytes(a->second.dtype) > element_bytes(b->second.dtype);
  });
  const auto header = STRATA_TRY(make_header(order, path.string()));
  const std::filesystem::path partial = path.string() + "." + std::to_string(::getpid()) + ".partial";
  const int file = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return system_failure(path, "create", errno);
  const std::uint64_t length = header.size();
  Result<void> done = write_all(file, &length, sizeof length, path);
  if (done) done = write_all(file, header.data(), header.size(), path);
  for (std::size_t i = 0; done && i < order.size(); ++i)
    done = write_all(file, order[i]->second.data, order[i]->second.bytes, path);
  if (::close(file) != 0 && done) done = system_failure(path, "write", errno);
  if (done && ::rename(partial.c_str(), path.c_str()) != 0) done = system_failure(path, "write", errno);
  if (!done) ::unlink(partial.c_str());
  return done;
}

}  // namespace strata
