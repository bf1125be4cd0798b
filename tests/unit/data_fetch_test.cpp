// SPDX-License-Identifier: Apache-2.0
// Getting files: checked, resumed, unpacked; from a folder of the test, by curl's file://.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/fetch.hpp"
#include "data_files.hpp"

namespace strata::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::read_file;
using testing::write_file;

constexpr const char* md5_of_abc = "900150983cd24fb0d6963f7d28e17f72";

struct Mirror : testing::Place {
  fs::path mirror = folder / "mirror";
  CatalogueEntry entry{.name = "tiny",
                       .page = "https://example.org/page",
                       .folder = "tiny",
                       .downloads = {{.url = "https://example.org/a/abc.bin", .md5 = md5_of_abc, .bytes = 3}}};
  FetchOptions fetching{.data_dir = folder / "got", .from = "file://" + mirror.string()};
  fs::path got = folder / "got" / "tiny" / "abc.bin";
};

std::string error_of(const Result<void>& done) {
  return done ? "done" : done.error().what + " | " + done.error().hint;
}

TEST(data_fetch, puts_a_file_in_place_and_does_not_get_it_twice) {
  Mirror m;
  write_file(m.mirror / "abc.bin", "abc");
  ASSERT_EQ(error_of(fetch(m.entry, m.fetching)), "done");
  EXPECT_EQ(read_file(m.got), "abc");
  fs::remove_all(m.mirror);
  EXPECT_EQ(error_of(fetch(m.entry, m.fetching)), "done");
  EXPECT_EQ(*check_published(m.entry, {m.got}), 1u);
}

TEST(data_fetch, goes_on_where_it_was_cut_off) {
  Mirror m;
  write_file(m.mirror / "abc.bin", "xbc");  // what is there already is not fetched: else the checksum would be another
  write_file(m.got.string() + ".partial", "a");
  ASSERT_EQ(error_of(fetch(m.entry, m.fetching)), "done");
  EXPECT_EQ(read_file(m.got), "abc");
  EXPECT_FALSE(fs::exists(m.got.string() + ".partial"));
}

TEST(data_fetch, takes_a_part_that_is_whole_as_it_is) {
  Mirror m;
  write_file(m.got.string() + ".partial", "abc");
  ASSERT_EQ(error_of(fetch(m.entry, m.fetching)), "done");
  EXPECT_EQ(read_file(m.got), "abc");
}

TEST(data_fetch, puts_nothing_in_place_whose_checksum_is_another) {
  Mirror m;
  write_file(m.mirror / "abc.bin", "abd");
  EXPECT_THAT(error_of(fetch(m.entry, m.fetching)), AllOf(HasSubstr("the publisher's: 9001509"), HasSubstr("again")));
  EXPECT_FALSE(fs::exists(m.got));
  EXPECT_FALSE(fs::exists(m.got.string() + ".partial"));
  write_file(m.got, "abe");  // put there by hand
  EXPECT_THAT(error_of(fetch(m.entry, m.fetching)), HasSubstr("remove that file"));
  EXPECT_THAT(check_published(m.entry, {m.got}).error().what, HasSubstr("abc.bin: md5"));
}

TEST(data_fetch, says_what_to_do_by_hand_where_nothing_can_be_reached) {
  Mirror m;
  const auto done = fetch(m.entry, m.fetching);
  EXPECT_THAT(error_of(done),
              AllOf(HasSubstr("curl ended with"), HasSubstr("get https://example.org/a/abc.bin elsewhere"),
                    HasSubstr(m.got.string()), HasSubstr("https://example.org/page")));
  EXPECT_EQ(done.error().exit, Exit::environment);
}

TEST(data_fetch, unpacks_archives_into_one_folder_and_removes_them) {
  Mirror m;
  m.entry.downloads.clear();
  for (const char* part : {"one", "two"}) {
    const auto stage = m.folder / part;
    write_file(stage / "set" / "both" / part, part);
    const auto archive = m.mirror / (std::string(part) + ".tar.gz");
    fs::create_directories(m.mirror);
    ASSERT_EQ(std::system(("tar -czf " + archive.string() + " -C " + stage.string() + " set").c_str()), 0);
    ASSERT_EQ(
        std::system(
            ("md5sum " + archive.string() + " | cut -c1-32 | tr -d '\\n' > " + (m.folder / "md5").string()).c_str()),
        0);
    m.entry.downloads.push_back({.url = "https://example.org/" + archive.filename().string(),
                                 .md5 = read_file(m.folder / "md5"),
                                 .bytes = 100,
                                 .archive = true});
  }
  ASSERT_EQ(error_of(fetch(m.entry, m.fetching)), "done");
  EXPECT_EQ(read_file(m.fetching.data_dir / "set/both/one"), "one");
  EXPECT_EQ(read_file(m.fetching.data_dir / "set/both/two"), "two");
  std::size_t left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(m.fetching.data_dir)) left += entry.is_regular_file();
  EXPECT_EQ(left, 2u);
}

TEST(data_fetch, keeps_the_archive_and_no_part_of_it_when_it_cannot_be_unpacked) {
  Mirror m;
  m.entry.downloads[0].archive = true;
  write_file(m.mirror / "abc.bin", "abc");
  EXPECT_THAT(error_of(fetch(m.entry, m.fetching)), HasSubstr("tar ended with"));
  EXPECT_TRUE(fs::exists(m.fetching.data_dir / "downloads/abc.bin"));
  EXPECT_EQ(std::distance(fs::directory_iterator(m.fetching.data_dir), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace strata::data
