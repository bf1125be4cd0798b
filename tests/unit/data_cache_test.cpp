// SPDX-License-Identifier: Apache-2.0
// The cache of a set: made once, whole or not at all, made again when it or its sources are others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "common/safetensors.hpp"
#include "data/catalogue.hpp"
#include "data/fetch.hpp"
#include "data/parallel.hpp"
#include "data_files.hpp"

namespace strata::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Place;

// The first value of every image.
std::vector<int> first_values(const Dataset& set, const Split& split) {
  std::vector<int> out;
  for (std::size_t i = 0; i < split.count; ++i) out.push_back(split.images[i * set.shape.bytes()]);
  return out;
}

// What lies in the cache besides locks.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "lock") out.push_back(entry.path().filename());
  return out;
}

TEST(data_cache, holds_what_the_files_hold_and_is_made_once) {
  Place place;
  place.mnist({3, 1, 4}, {1, 5});
  const auto first = open_dataset("mnist", place.options);
  ASSERT_TRUE(first) << error_of(first);
  EXPECT_TRUE(first->facts.made_now);
  EXPECT_THAT(first->set.train.labels, ElementsAre(3, 1, 4));
  EXPECT_THAT(first->set.test.labels, ElementsAre(1, 5));
  EXPECT_THAT(first_values(first->set, first->set.train), ElementsAre(0, 10, 20));
  EXPECT_THAT(first_values(first->set, first->set.test), ElementsAre(1, 11));
  EXPECT_EQ(first->set.shape.bytes(), 784u);
  EXPECT_EQ(first->set.classes.size(), 10u);
  const auto second = open_dataset("mnist", place.options);
  ASSERT_TRUE(second) << error_of(second);
  EXPECT_FALSE(second->facts.made_now);
  EXPECT_THAT(first_values(second->set, second->set.train), ElementsAre(0, 10, 20));
  EXPECT_THAT(place.notes, IsEmpty());
}

TEST(data_cache, is_a_safetensors_file_that_begins_its_data_on_a_page) {
  Place place;
  place.mnist({3, 1, 4}, {1, 5});
  const auto opened = open_dataset("mnist", place.options);
  ASSERT_TRUE(opened) << error_of(opened);
  const auto file = SafeTensors::map(opened->facts.file);
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_THAT(file->names(), ElementsAre("test.images", "test.labels", "train.images", "train.labels"));
  EXPECT_THAT(file->find("train.images")->shape, ElementsAre(3, 1, 28, 28));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->find("train.labels")->data) % 4096, 0u);
}

TEST(data_cache, is_made_again_when_a_source_changed) {
  Place place;
  place.mnist({3, 1, 4}, {1, 5});
  ASSERT_TRUE(open_dataset("mnist", place.options));
  place.mnist({3, 1, 4, 1}, {1, 5});
  const auto opened = open_dataset("mnist", place.options);
  ASSERT_TRUE(opened) << error_of(opened);
  EXPECT_EQ(opened->set.train.count, 4u);
  ASSERT_EQ(place.notes.size(), 1u);
  EXPECT_THAT(place.notes[0], AllOf(HasSubstr("read again"), HasSubstr("train-images-idx3-ubyte changed since")));
}

TEST(data_cache, is_made_again_when_its_own_bytes_are_others_or_fewer) {
  Place place;
  place.mnist({3, 1, 4}, {1, 5});
  const auto file = open_dataset("mnist", place.options)->facts.file;
  const auto good = testing::read_file(file);
  auto bytes = good;
  bytes[bytes.size() - 100] ^= 1;
  testing::write_file(file, bytes);
  const auto flipped = open_dataset("mnist", place.options);
  ASSERT_TRUE(flipped) << error_of(flipped);
  EXPECT_THAT(first_values(flipped->set, flipped->set.test), ElementsAre(1, 11));
  testing::write_file(file, good.substr(0, good.size() / 2));
  const auto cut = open_dataset("mnist", place.options);
  ASSERT_TRUE(cut) << error_of(cut);
  ASSERT_EQ(place.notes.size(), 2u);
  EXPECT_THAT(place.notes[0], HasSubstr("its bytes are not those that were written"));
  EXPECT_THAT(place.notes[1], HasSubstr("not a valid safetensors file"));
}

TEST(data_cache, finds_mnist_in_torchvision_s_folder_and_with_a_dot_in_its_names) {
  Place place;
  place.mnist({3, 1}, {5});
  const auto mnist = place.options.data_dir / "mnist", raw = place.options.data_dir / "MNIST/raw";
  std::filesystem::create_directories(raw.parent_path());
  std::filesystem::rename(mnist, raw);
  const auto opened = open_dataset("mnist", place.options);
  ASSERT_TRUE(opened) << error_of(opened);
  EXPECT_THAT(opened->set.train.labels, ElementsAre(3, 1));
  std::filesystem::create_directories(mnist);
  for (const char* name : {"train-images", "train-labels", "t10k-images", "t10k-labels"}) {
    const std::string ending = std::string(name).ends_with("images") ? "idx3-ubyte" : "idx1-ubyte";
    std::filesystem::rename(raw / fmt::format("{}-{}", name, ending), mnist / fmt::format("{}.{}", name, ending));
  }
  const auto dotted = open_dataset("mnist", place.options);
  ASSERT_TRUE(dotted) << error_of(dotted);
  EXPECT_THAT(dotted->set.test.labels, ElementsAre(5));
}

TEST(data_cache, says_that_torchvision_s_folder_of_cifar_holds_pickles) {
  Place place;
  std::filesystem::create_directories(place.options.data_dir / "cifar-10-batches-py");
  EXPECT_THAT(error_of(open_dataset("cifar10", place.options)),
              AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("there are no such files"),
                    HasSubstr("cifar-10-batches-py holds"), HasSubstr("data fetch cifar10")));
}

TEST(data_cache, knows_the_bytes_of_the_publisher_s_unpacked_files) {
  Place place;
  place.mnist({3, 1}, {5});
  const auto file = place.options.data_dir / "mnist/t10k-labels-idx1-ubyte";
  const auto dotted = place.options.data_dir / "mnist/t10k-labels.idx1-ubyte";
  std::filesystem::copy_file(file, dotted);
  for (const auto& one : {file, dotted}) {
    const auto checked = check_published(*find_entry("mnist"), {one});
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().what, HasSubstr("the publisher's: 27ae3e4e09519cfbb04c329615203637"));
  }
}

TEST(data_cache, is_not_written_when_a_record_is_bad_and_the_error_names_file_and_record) {
  Place place;
  place.mnist({3, 10, 4, 11}, {1, 5});
  const auto opened = open_dataset("mnist", place.options);
  EXPECT_THAT(error_of(opened), AllOf(HasSubstr("train-labels-idx1-ubyte: record "), HasSubstr("allowed: 0 to 9"),
                                      HasSubstr("--skip-bad")));
  EXPECT_THAT(files_in(place.options.cache_dir), IsEmpty());
}

TEST(data_cache, leaves_bad_records_out_counts_them_and_keeps_the_order_of_the_others) {
  Place place;
  place.mnist({3, 10, 4, 11, 2}, {12, 5});
  place.options.skip_bad = true;
  const auto opened = open_dataset("mnist", place.options);
  ASSERT_TRUE(opened) << error_of(opened);
  EXPECT_THAT(opened->set.train.labels, ElementsAre(3, 4, 2));
  EXPECT_THAT(opened->set.test.labels, ElementsAre(5));
  EXPECT_THAT(first_values(opened->set, opened->set.train), ElementsAre(0, 20, 40));
  EXPECT_THAT(first_values(opened->set, opened->set.test), ElementsAre(11));
  EXPECT_EQ(opened->facts.skipped, 3u);
  ASSERT_EQ(opened->facts.skipped_why.size(), 3u);
  EXPECT_THAT(opened->facts.skipped_why[1], HasSubstr("record 3: label 11"));
  place.options.skip_bad = false;  // who did not ask for it is not given a set with gaps
  EXPECT_THAT(error_of(open_dataset("mnist", place.options)), HasSubstr("label 1"));
}

TEST(data_cache, refuses_a_split_without_a_record) {
  Place place;
  place.mnist({3}, "");
  EXPECT_THAT(error_of(open_dataset("mnist", place.options)), HasSubstr("t10k-images-idx3-ubyte: holds no record"));
  place.mnist({3}, {10, 11});
  place.options.skip_bad = true;
  EXPECT_THAT(error_of(open_dataset("mnist", place.options)),
              AllOf(HasSubstr("no record of the split test could be read"), HasSubstr("label 10")));
  EXPECT_THAT(files_in(place.options.cache_dir), IsEmpty());
}

TEST(data_cache, refuses_fewer_records_than_published_unless_told) {
  Place place;
  place.mnist({3, 1}, {1, 5});
  place.options.partial = false;
  EXPECT_THAT(error_of(open_dataset("mnist", place.options)),
              AllOf(HasSubstr("2 records; the publisher's file has 60000"), HasSubstr("--partial")));
}

TEST(data_cache, a_disk_without_room_is_an_error_and_leaves_nothing) {
  Place place;
  place.mnist(std::string(200, 3), {1, 5});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto opened = open_dataset("mnist", place.options);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(error_of(opened), AllOf(HasSubstr("cannot write"), HasSubstr("free some space")));
  EXPECT_THAT(files_in(place.options.cache_dir), IsEmpty());
  EXPECT_TRUE(open_dataset("mnist", place.options));
}

TEST(data_cache, a_missing_file_is_named_with_the_command_that_gets_it) {
  Place place;
  const auto opened = open_dataset("mnist", place.options);
  EXPECT_THAT(error_of(opened),
              AllOf(HasSubstr("mnist/train-images-idx3-ubyte.gz"), HasSubstr("strata data fetch mnist")));
  EXPECT_EQ(opened.error().exit, Exit::environment);
  EXPECT_THAT(error_of(open_dataset("minst", place.options)), HasSubstr("did you mean 'mnist'"));
}

TEST(data_parallel, does_every_piece_once_whatever_the_number_of_threads) {
  for (const int threads : {1, 3, 64}) {
    std::vector<std::atomic<int>> times(500);
    EXPECT_TRUE(for_each_in_parallel(times.size(), threads, [&](std::size_t i) { ++times[i]; }));
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& n) { return n == 1; }));
  }
  EXPECT_TRUE(for_each_in_parallel(0, 4, [](std::size_t) { FAIL(); }));
}

}  // namespace
}  // namespace strata::data
