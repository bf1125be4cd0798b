// SPDX-License-Identifier: Apache-2.0
// What the reader refuses, what it reads, and that the writer's files are read back.
#include "common/safetensors.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes,
                               std::optional<std::uint64_t> length = {}) {
  const std::uint64_t n = length.value_or(header.size());
  std::vector<std::byte> out(8 + header.size() + data_bytes, std::byte{1});
  std::memcpy(out.data(), &n, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}

std::string error_of(const std::string& header, std::size_t data_bytes, std::optional<std::uint64_t> length = {}) {
  const auto bytes = file_of(header, data_bytes, length);
  const auto parsed = SafeTensors::parse(bytes, "x.safetensors");
  return parsed ? "accepted" : parsed.error().what;
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("strata_st_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

template <class T>
TensorView view_of(const std::string& dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

TEST(safetensors, reads_tensors_in_any_order_of_their_data) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"b":)" + tensor("U8", "[2]", "[4,6]") + R"(,"a":)" +
                             tensor("F32", "[1]", "[0,4]") + "}  ";
  const auto bytes = file_of(header, 6);
  const auto file = SafeTensors::parse(bytes, "x");
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_THAT(file->names(), ElementsAre("a", "b"));
  EXPECT_EQ(file->find("b")->elements(), 2);
  EXPECT_THAT(to_doubles(*file->find("b")), ElementsAre(1, 1));
  EXPECT_EQ(file->find("c"), nullptr);
  EXPECT_EQ(file->find("__metadata__"), nullptr);
}

TEST(safetensors, accepts_an_empty_file_of_no_tensors_scalars_and_empty_tensors) {
  EXPECT_EQ(error_of("{}", 0), "accepted");
  EXPECT_EQ(error_of("{\"a\":" + tensor("F64", "[]", "[0,8]") + "}", 8), "accepted");
  EXPECT_EQ(error_of("{\"a\":" + tensor("F32", "[0,5]", "[0,0]") + ",\"b\":" + tensor("U8", "[3]", "[0,3]") + "}", 3),
            "accepted");
}

TEST(safetensors, refuses_a_header_that_does_not_fit_the_file) {
  EXPECT_THAT(error_of("{}", 0, 1000), HasSubstr("claims 1000 bytes of a file of 10"));
  EXPECT_THAT(error_of("{}", 0, ~std::uint64_t{0}), HasSubstr("claims"));
  EXPECT_THAT(error_of("{}", 0, 0), HasSubstr("claims 0"));
  const std::vector<std::byte> tiny(7);
  EXPECT_THAT(SafeTensors::parse(tiny, "x").error().what, HasSubstr("7 bytes, fewer than the 8"));
  EXPECT_FALSE(SafeTensors::parse({}, "x"));
}

TEST(safetensors, refuses_a_header_that_is_not_json) {
  EXPECT_THAT(error_of("hello!", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(error_of("{\"a\":", 0), HasSubstr("not UTF-8 JSON"));
  EXPECT_THAT(error_of("{\"\xff\xfe\":1}", 0), HasSubstr("not UTF-8 JSON"));
  EXPECT_THAT(error_of("{\"a\":" + std::string(10000, '['), 0), HasSubstr("nested deeper than 4"));
}

TEST(safetensors, refuses_a_name_that_occurs_twice) {
  const std::string one = "\"a\":" + tensor("U8", "[1]", "[0,1]");
  EXPECT_THAT(error_of("{" + one + "," + one + "}", 1), HasSubstr("the name \"a\" occurs twice"));
}

TEST(safetensors, refuses_offsets_that_lie_outside_overlap_or_leave_holes) {
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[9]", "[0,9]") + "}", 8), HasSubstr("bytes 0..9 of 8"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[1]", "[2,1]") + "}", 8), HasSubstr("bytes 2..1"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[4]", "[0,4]") + ",\"b\":" + tensor("U8", "[4]", "[2,6]") + "}", 6),
              HasSubstr("(overlap)"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[1]", "[0,1]") + ",\"b\":" + tensor("U8", "[1]", "[2,3]") + "}", 3),
              HasSubstr("(hole)"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[1]", "[0,1]") + "}", 3), HasSubstr("end at byte 1 of 3"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[1]", "[-1,0]") + "}", 3), HasSubstr("two whole numbers"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[1]", "[0,1,2]") + "}", 3), HasSubstr("two whole numbers"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("U8", "[1]", "[18446744073709551615,18446744073709551615]") + "}", 3),
              HasSubstr("of 3 bytes"));
}

TEST(safetensors, refuses_sizes_that_do_not_fit_the_type_and_shape) {
  EXPECT_THAT(error_of("{\"a\":" + tensor("F32", "[2]", "[0,4]") + "}", 4), HasSubstr("needs 8 bytes"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("F32", "[4611686018427387904,4]", "[0,0]") + "}", 0),
              HasSubstr("too large to count"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("F32", "[4294967296,4294967296]", "[0,0]") + "}", 0),
              HasSubstr("too large to count"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("F32", "[-1]", "[0,4]") + "}", 4), HasSubstr("whole number from 0 up"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("F32", "[1.5]", "[0,4]") + "}", 4), HasSubstr("whole number from 0 up"));
  EXPECT_THAT(error_of("{\"a\":" + tensor("F32", "1", "[0,4]") + "}", 4), HasSubstr("not a list"));
}

TEST(safetensors, refuses_types_and_fields_that_it_does_not_know) {
  EXPECT_THAT(error_of("{\"a\":" + tensor("C64", "[1]", "[0,8]") + "}", 8), HasSubstr("dtype that is not known"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("dtype that is not known"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4), HasSubstr("exactly dtype, shape and data_offsets"));
  EXPECT_THAT(error_of(R"({"a":[1]})", 4), HasSubstr("not described by an object"));
}

TEST(safetensors, reads_a_header_of_thirty_thousand_tensors_in_linear_time) {
  std::string header = "{";
  for (int i = 0; i < 30'000; ++i)
    header += fmt::format("{}\"t{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", i ? "," : "", i);
  const auto begin = std::clock();
  EXPECT_EQ(error_of(header + "}", 0), "accepted");
  // Of this process's own time, under sanitizers on a slow and busy machine too (4 s where nothing else runs); a
  // quadratic parser takes minutes there.
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
}

TEST(safetensors, a_file_that_is_shortened_after_it_was_opened_does_not_end_the_process) {
  const Folder folder;
  const std::vector<float> values(1 << 20, 2.0F);
  const TensorView view{"F32", {1 << 20}, reinterpret_cast<const std::byte*>(values.data()), values.size() * 4};
  ASSERT_TRUE(write_safetensors(folder.path / "a", {{"x", view}}));
  const auto file = SafeTensors::open(folder.path / "a");
  ASSERT_TRUE(file);
  std::filesystem::resize_file(folder.path / "a", 100);
  EXPECT_EQ(value_at(*file->find("x"), (1 << 20) - 1), 2);
}

TEST(safetensors, a_file_larger_than_memory_is_refused_and_not_read) {
  const Folder folder;
  std::ofstream(folder.path / "a") << "x";
  std::error_code ec;
  std::filesystem::resize_file(folder.path / "a", std::uintmax_t{1} << 43, ec);  // 8 TiB without a block
  if (ec) GTEST_SKIP() << "no sparse files here";
  EXPECT_THAT(SafeTensors::open(folder.path / "a").error().what, HasSubstr("memory"));
}

TEST(safetensors, names_in_errors_are_short_and_on_one_line) {
  const std::string message = error_of("{\"" + std::string(5000, 'x') + "\\n\":1}", 0);
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(error_of("{\"a\\nb\":1}", 0).find('\n'), std::string::npos);
  for (char c : error_of("{\"\xff\xc3\":1}", 0))
    EXPECT_TRUE(c >= 0x20 && c <= 0x7e) << "bytes of a damaged file must not reach the store";
}

TEST(safetensors, reads_every_type_also_unaligned) {
  // One byte in front, so that no tensor but the first is aligned.
  std::string header = "{\"z\":" + tensor("U8", "[1]", "[0,1]");
  std::string data(1, '\7');
  std::size_t at = 1;
  const auto add = [&](const std::string& name, const std::string& dtype, const void* value, std::size_t bytes) {
    header +=
        ",\"" + name + "\":" + tensor(dtype, "[1]", "[" + std::to_string(at) + "," + std::to_string(at + bytes) + "]");
    data.append(static_cast<const char*>(value), bytes);
    at += bytes;
  };
  const double d = -2.5;
  const float f = 0.1f;
  const std::uint16_t half = 0xc100, tiny_half = 0x0001, half_inf = 0x7c00, half_nan = 0x7e00, bf = 0x4049;
  const std::int64_t i64 = -5000000000;
  const std::int8_t i8 = -3;
  const std::uint32_t u32 = 4000000000u;
  const std::uint8_t yes = 2;
  add("f64", "F64", &d, 8), add("f32", "F32", &f, 4), add("f16", "F16", &half, 2), add("tiny", "F16", &tiny_half, 2);
  add("inf", "F16", &half_inf, 2), add("nan", "F16", &half_nan, 2), add("bf16", "BF16", &bf, 2),
      add("i64", "I64", &i64, 8);
  add("i8", "I8", &i8, 1), add("u32", "U32", &u32, 4), add("bool", "BOOL", &yes, 1);
  header += "}";
  auto bytes = file_of(header, data.size());
  std::memcpy(bytes.data() + 8 + header.size(), data.data(), data.size());
  const auto file = SafeTensors::parse(bytes, "x");
  ASSERT_TRUE(file) << file.error().what;
  const auto value = [&](const char* name) { return value_at(*file->find(name), 0); };
  EXPECT_EQ(value("z"), 7);
  EXPECT_EQ(value("f64"), -2.5);
  EXPECT_EQ(value("f32"), 0.1f);
  EXPECT_EQ(value("f16"), -2.5);
  EXPECT_EQ(value("tiny"), 0x1p-24);
  EXPECT_TRUE(std::isinf(value("inf")));
  EXPECT_TRUE(std::isnan(value("nan")));
  EXPECT_EQ(value("bf16"), 3.140625);
  EXPECT_EQ(value("i64"), -5000000000.0);
  EXPECT_EQ(value("i8"), -3);
  EXPECT_EQ(value("u32"), 4000000000.0);
  EXPECT_EQ(value("bool"), 1);
}

TEST(safetensors, what_is_written_is_read_back) {
  Folder folder;
  const std::vector<float> f{1.5f, -2.25f, 3e-40f};
  const std::vector<std::int64_t> i{-1, 1LL << 62};
  const std::vector<std::uint8_t> u{9};
  const auto path = folder.path / "a.safetensors";
  ASSERT_TRUE(write_safetensors(path, {{"u", view_of("U8", {1}, u)},
                                       {"x/\xc3\xa9\"", view_of("F32", {3, 1}, f)},
                                       {"i", view_of("I64", {2}, i)},
                                       {"none", {"F32", {0}, nullptr, 0}}}));
  const auto file = SafeTensors::open(path);
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_THAT(file->names(), ElementsAre("i", "none", "u", "x/\xc3\xa9\""));
  const TensorView* x = file->find("x/\xc3\xa9\"");
  EXPECT_THAT(x->shape, ElementsAre(3, 1));
  EXPECT_EQ(std::memcmp(x->data, f.data(), x->bytes), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x->data) % 4, 0u) << "the writer keeps tensors aligned";
  EXPECT_EQ(std::memcmp(file->find("i")->data, i.data(), 16), 0);
}

TEST(safetensors, views_outlive_the_object_they_came_from_while_a_copy_lives) {
  Folder folder;
  const std::vector<float> f{1.5f};
  ASSERT_TRUE(write_safetensors(folder.path / "a", {{"x", view_of("F32", {1}, f)}}));
  SafeTensors moved;
  {
    auto file = SafeTensors::open(folder.path / "a");
    ASSERT_TRUE(file);
    moved = std::move(*file);
  }
  EXPECT_EQ(value_at(*moved.find("x"), 0), 1.5);
}

TEST(safetensors, writing_replaces_a_file_that_is_open) {
  Folder folder;
  const std::vector<float> first{1}, second{2};
  ASSERT_TRUE(write_safetensors(folder.path / "a", {{"x", view_of("F32", {1}, first)}}));
  const auto open = SafeTensors::open(folder.path / "a");
  ASSERT_TRUE(write_safetensors(folder.path / "a", {{"x", view_of("F32", {1}, second)}}));
  EXPECT_EQ(value_at(*open->find("x"), 0), 1) << "the mapping keeps the old file";
  EXPECT_EQ(value_at(*SafeTensors::open(folder.path / "a")->find("x"), 0), 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 1) << "no temporary file is left";
}

TEST(safetensors, refuses_to_write_what_could_not_be_read) {
  Folder folder;
  const std::vector<float> f{1};
  const auto error = [&](const std::vector<std::pair<std::string, TensorView>>& tensors) {
    const auto done = write_safetensors(folder.path / "a", tensors);
    return done ? std::string() : done.error().what;
  };
  EXPECT_THAT(error({{"x", view_of("F32", {1}, f)}, {"x", view_of("F32", {1}, f)}}), HasSubstr("used twice"));
  EXPECT_THAT(error({{"__metadata__", view_of("F32", {1}, f)}}), HasSubstr("reserved"));
  EXPECT_THAT(error({{"x", view_of("F32", {2}, f)}}), HasSubstr("does not fit its shape"));
  EXPECT_THAT(error({{"x", view_of("C64", {1}, f)}}), HasSubstr("does not fit its shape"));
  EXPECT_THAT(error({{"\xff", view_of("F32", {1}, f)}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(write_safetensors(folder.path / "no" / "a", {}).error().what, HasSubstr("cannot create: No such file"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(safetensors, says_why_a_path_cannot_be_opened) {
  Folder folder;
  EXPECT_THAT(SafeTensors::open(folder.path / "none").error().what, HasSubstr("cannot open: No such file"));
  EXPECT_THAT(SafeTensors::open(folder.path).error().what, HasSubstr("not a regular file"));
  std::ofstream(folder.path / "empty");
  EXPECT_THAT(SafeTensors::open(folder.path / "empty").error().what, HasSubstr("0 bytes"));
}

TEST(safetensors, a_full_disk_is_said_and_leaves_no_file) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  // /dev/full itself cannot be renamed over; a link named like the temporary file sends the bytes there.
  Folder folder;
  const auto path = folder.path / "a";
  std::filesystem::create_symlink("/dev/full", path.string() + "." + std::to_string(::getpid()) + ".partial");
  const std::vector<float> f(100000);
  const auto done = write_safetensors(path, {{"x", view_of("F32", {100000}, f)}});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().what, HasSubstr("No space left"));
  EXPECT_EQ(done.error().hint, "Free some space on that disk.");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

}  // namespace
}  // namespace strata
