// SPDX-License-Identifier: Apache-2.0
// IDX, gzip, CIFAR and STL-10, byte by byte: what is read, and what is refused with which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "data/dataset.hpp"
#include "data/file_bytes.hpp"
#include "data/formats.hpp"
#include "data/image.hpp"
#include "data_files.hpp"

namespace strata::data {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string idx_error(const std::string& text, std::size_t dimensions) {
  const auto got = parse_idx(bytes_of(text), dimensions, "file");
  return got ? "accepted" : got.error().what;
}

std::string gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(data_idx, reads_sizes_and_values) {
  const auto text = testing::idx({2, 1, 3}, "abcdef");
  const auto got = parse_idx(bytes_of(text), 3, "file");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_THAT(got->sizes, ElementsAre(2, 1, 3));
  EXPECT_THAT(got->values, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST(data_idx, refuses_what_is_cut_too_long_of_another_kind_or_too_large_to_count) {
  const auto good = testing::idx({2, 1, 3}, "abcdef");
  EXPECT_THAT(idx_error(good.substr(0, good.size() - 1), 3),
              AllOf(HasSubstr("file: holds 5 bytes"), HasSubstr("announces 6 (2 records)")));
  EXPECT_THAT(idx_error(good + "x", 3), HasSubstr("holds 7 bytes"));
  EXPECT_THAT(idx_error(good.substr(0, 15), 3), HasSubstr("fewer than the 16 of an IDX header"));
  EXPECT_THAT(idx_error(good, 1), AllOf(HasSubstr("magic number is 0x00000803"), HasSubstr("allowed: 0x00000801")));
  EXPECT_THAT(idx_error(testing::idx({0xffffffff, 0xffffffff, 0xffffffff}, ""), 3), HasSubstr("too large to count"));
}

TEST(data_gzip, unpacks_members_one_after_another) {
  const auto packed = gzip(std::string(3'000'000, 'a')) + gzip("bc");
  const auto got = gunzip(bytes_of(packed), "file", 4'000'000);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->size(), 3'000'002u);
  EXPECT_EQ((*got)[3'000'001], 'c');
}

TEST(data_gzip, refuses_what_is_cut_damaged_or_larger_than_allowed) {
  const auto packed = gzip(std::string(100'000, 'a') + "end");
  const auto error_of = [](const std::string& text, std::size_t limit) {
    const auto got = gunzip(bytes_of(text), "file", limit);
    return got ? "accepted" : got.error().what;
  };
  for (const std::size_t cut : {std::size_t{3}, packed.size() / 2, packed.size() - 1})
    EXPECT_THAT(error_of(packed.substr(0, cut), 200'000), HasSubstr("file: damaged or cut gzip")) << cut;
  auto damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(error_of(damaged, 200'000), HasSubstr("damaged or cut gzip"));
  EXPECT_THAT(error_of(packed, 100'002), HasSubstr("more than the 100002 bytes"));
  EXPECT_EQ(error_of(packed, 100'003), "accepted");
}

TEST(data_cifar, reads_the_last_label_byte_and_the_planes_as_they_are) {
  std::string file(2 * (2 + cifar_image_bytes), '\0');
  file[2 + cifar_image_bytes] = 7;       // coarse, of record 1
  file[2 + cifar_image_bytes + 1] = 99;  // fine
  file.back() = 5;
  std::vector<std::uint8_t> image(cifar_image_bytes);
  ASSERT_EQ(*cifar_records(file.size(), 2, "file"), 2u);
  EXPECT_EQ(*read_cifar_record(bytes_of(file), 2, 1, 100, "file", image), 99);
  EXPECT_EQ(image.back(), 5);
  EXPECT_EQ(image[0], 0);
  file[2 + cifar_image_bytes + 1] = 100;
  EXPECT_THAT(read_cifar_record(bytes_of(file), 2, 1, 100, "file", image).error().what,
              HasSubstr("file: record 1: label 100; allowed: 0 to 99"));
}

TEST(data_cifar, refuses_half_a_record_and_no_record) {
  EXPECT_THAT(cifar_records(3073 + 5, 1, "file").error().what, HasSubstr("1 whole records of 3073 and 5 bytes"));
  EXPECT_FALSE(cifar_records(0, 1, "file"));
}

TEST(data_stl, turns_columns_into_rows_and_labels_from_1_into_labels_from_0) {
  std::string images(2 * stl_image_bytes, '\0');
  const std::string labels{1, 10};
  // image 1, green, column 3, row 5
  images[stl_image_bytes + stl_side * stl_side + 3 * stl_side + 5] = 42;
  std::vector<std::uint8_t> image(stl_image_bytes);
  EXPECT_EQ(*read_stl_record(bytes_of(images), bytes_of(labels), 1, 10, "labels", image), 9);
  EXPECT_EQ(image[stl_side * stl_side + 5 * stl_side + 3], 42);
  EXPECT_EQ(image[stl_side * stl_side + 3 * stl_side + 5], 0);
}

TEST(data_stl, refuses_labels_out_of_range_and_files_that_do_not_fit_each_other) {
  const std::string images(2 * stl_image_bytes, '\0');
  std::vector<std::uint8_t> image(stl_image_bytes);
  for (const char label : {0, 11}) {
    const std::string labels{1, label};
    EXPECT_THAT(read_stl_record(bytes_of(images), bytes_of(labels), 1, 10, "labels", image).error().what,
                AllOf(HasSubstr("labels: record 1: label"), HasSubstr("allowed: 1 to 10")));
  }
  EXPECT_THAT(stl_records(stl_image_bytes, 2, "images", "labels").error().what, HasSubstr("2 labels for the 1 images"));
  EXPECT_THAT(stl_records(stl_image_bytes + 1, 1, "images", "labels").error().what, HasSubstr("1 bytes of another"));
}

TEST(data_digits, are_part_of_the_program) {
  const auto set = digits();
  EXPECT_EQ(set.train.count, 1437u);
  EXPECT_EQ(set.test.count, 360u);
  EXPECT_EQ(set.train.images.size(), 1437u * 64);
  EXPECT_THAT(set.train.labels.first(10), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(set.train.images.first(8), ElementsAre(0, 0, 5, 13, 9, 1, 0, 0));
  EXPECT_EQ(*std::max_element(set.train.images.begin(), set.train.images.end()), set.highest_value);
}

TEST(data_png, is_read_as_it_was_written_and_refused_when_it_is_cut) {
  const std::vector<std::uint8_t> pixels{1, 2, 3, 40, 50, 60, 7, 8, 9, 10, 11, 12};
  const auto file = encode_png(pixels, 2, 2, 3);
  const auto back = decode_png(bytes_of(file), "file");
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->rgb, pixels);
  for (const std::size_t cut : {std::size_t{4}, std::size_t{40}, file.size() - 20})
    EXPECT_THAT(decode_png(bytes_of(file.substr(0, cut)), "file").error().what, HasSubstr("file: no readable PNG"));
}

}  // namespace
}  // namespace strata::data
