// SPDX-License-Identifier: Apache-2.0
// JPEG, resizing, PASCAL VOC and folders of images, with files that the test writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>

#include <cstdio>
#include <thread>

#include "data/formats.hpp"
#include "data/image.hpp"
#include "data/resize.hpp"
#include "data_files.hpp"

namespace strata::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::bytes_of;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::Place;
using testing::write_file;

// A photograph of one colour.
std::string jpeg(unsigned width, unsigned height, std::array<std::uint8_t, 3> colour, J_COLOR_SPACE space = JCS_RGB,
                 bool progressive = false) {
  const int channels = space == JCS_GRAYSCALE ? 1 : space == JCS_CMYK ? 4 : 3;
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> row(width * static_cast<unsigned>(channels));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = colour[i % static_cast<unsigned>(channels) % 3];
  for (auto* line = row.data(); info.next_scanline < height;) jpeg_write_scanlines(&info, &line, 1);
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&info);
  std::free(out);
  return file;
}

std::string jpeg_error(const std::string& file) {
  const auto image = decode_jpeg(bytes_of(file), "file", 0);
  return image ? "accepted" : image.error().what;
}

TEST(data_jpeg, is_decoded_in_red_green_and_blue_also_from_grey) {
  const auto image = decode_jpeg(bytes_of(jpeg(20, 10, {200, 100, 50})), "file", 0);
  ASSERT_TRUE(image) << image.error().what;
  EXPECT_EQ(image->width, 20u);
  EXPECT_EQ(image->height, 10u);
  ASSERT_EQ(image->rgb.size(), 600u);
  EXPECT_NEAR(image->rgb[0], 200, 3);
  EXPECT_NEAR(image->rgb[1], 100, 3);
  EXPECT_NEAR(image->rgb[2], 50, 3);
  const auto grey = decode_jpeg(bytes_of(jpeg(8, 8, {70, 70, 70}, JCS_GRAYSCALE)), "file", 0);
  ASSERT_TRUE(grey) << grey.error().what;
  EXPECT_EQ(grey->rgb.size(), 192u);
  EXPECT_NEAR(grey->rgb[100], 70, 2);
}

TEST(data_jpeg, is_refused_when_it_is_cut_or_damaged_instead_of_becoming_grey) {
  const auto file = jpeg(200, 100, {200, 100, 50});
  for (const std::size_t cut : {std::size_t{10}, std::size_t{300}, file.size() - 40})
    EXPECT_THAT(jpeg_error(file.substr(0, cut)), HasSubstr("file: no readable JPEG: ")) << cut;
  EXPECT_THAT(jpeg_error("\xff\xd8\xff nothing"), HasSubstr("no readable JPEG"));
  EXPECT_THAT(jpeg_error(jpeg(8, 8, {1, 2, 3}, JCS_CMYK)), HasSubstr("neither grey nor of three colours"));
}

TEST(data_jpeg, of_many_scans_is_refused_before_they_are_walked_through_and_a_usual_one_is_not) {
  const auto file = jpeg(64, 64, {200, 100, 50}, JCS_RGB, true);
  EXPECT_EQ(jpeg_error(file), "accepted");
  const auto last = file.rfind("\xff\xda");
  ASSERT_NE(last, std::string::npos);
  auto bomb = file.substr(0, last);
  for (int i = 0; i < 1000; ++i) bomb += file.substr(last, file.size() - 2 - last);
  EXPECT_THAT(jpeg_error(bomb + "\xff\xd9"), HasSubstr("more than 200 scans"));
}

TEST(data_image, is_decoded_while_no_other_is_where_it_is_large) {
  const auto first = one_large_image(most_pixels);
  EXPECT_TRUE(first.owns_lock());
  std::thread([] { EXPECT_FALSE(one_large_image(1'000'000).owns_lock()) << "small ones wait for nobody"; }).join();
}

TEST(data_jpeg, scaled_is_the_smallest_fraction_that_is_four_fifths_of_what_is_wanted) {
  const auto file = jpeg(160, 80, {200, 100, 50});
  const auto size_for = [&](std::size_t side) {
    const auto image = decode_jpeg(bytes_of(file), "file", side);
    return std::pair(image->width, image->height);
  };
  EXPECT_EQ(size_for(10), std::pair(20ul, 10ul));
  EXPECT_EQ(size_for(12), std::pair(20ul, 10ul));
  EXPECT_EQ(size_for(13), std::pair(40ul, 20ul));
  EXPECT_EQ(size_for(50), std::pair(80ul, 40ul));
  EXPECT_EQ(size_for(51), std::pair(160ul, 80ul));
  EXPECT_EQ(size_for(300), std::pair(160ul, 80ul));
}

Image checkerboard(std::size_t width, std::size_t height) {
  Image image{.width = width, .height = height, .rgb = {}};
  for (std::size_t i = 0; i < width * height; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      image.rgb.push_back(static_cast<std::uint8_t>((i * 37 + (i / width) * 91 + c * 53) % 256));
  return image;
}

// The same filter in floating point, value by value.
double exact(const Image& image, std::size_t side, std::size_t c, std::size_t y, std::size_t x) {
  const auto weight = [](std::size_t j, double in, double out, std::size_t i) {
    const double step = in / out, width = std::max(1.0, step), centre = (static_cast<double>(i) + 0.5) * step;
    return std::max(0.0, 1 - std::abs((static_cast<double>(j) + 0.5 - centre) / width));
  };
  double sum = 0, weights = 0;
  for (std::size_t j = 0; j < image.height; ++j)
    for (std::size_t i = 0; i < image.width; ++i) {
      const double w = weight(j, static_cast<double>(image.height), static_cast<double>(side), y) *
                       weight(i, static_cast<double>(image.width), static_cast<double>(side), x);
      sum += w * image.rgb[(j * image.width + i) * 3 + c];
      weights += w;
    }
  return sum / weights;
}

TEST(data_resize, is_the_triangle_filter_rounded_once) {
  for (const auto& [width, height, side] :
       {std::tuple{37ul, 23ul, 10ul}, {9ul, 50ul, 12ul}, {5ul, 4ul, 11ul}, {1ul, 1ul, 3ul}}) {
    const auto image = checkerboard(width, height);
    std::vector<std::uint8_t> planes(3 * side * side);
    resize_to_square(image, side, planes);
    for (std::size_t i = 0; i < planes.size(); ++i)
      ASSERT_NEAR(planes[i], exact(image, side, i / (side * side), i / side % side, i % side), 0.53)
          << width << " " << i;
  }
}

TEST(data_resize, is_the_same_with_and_without_the_processor_s_vectors) {
  for (std::size_t width = 1; width < 60; width += 7)
    for (const std::size_t side : {1ul, 7ul, 8ul, 20ul, 61ul}) {
      const auto image = checkerboard(width, 61 - width);
      std::vector<std::uint8_t> one(3 * side * side), two(3 * side * side);
      resize_to_square(image, side, one, true);
      resize_to_square(image, side, two, false);
      ASSERT_EQ(one, two) << width << " to " << side;
    }
}

TEST(data_resize, leaves_an_image_of_that_size_and_a_plain_area_as_they_are) {
  const auto image = checkerboard(16, 16);
  std::vector<std::uint8_t> planes(3 * 256);
  resize_to_square(image, 16, planes);
  for (std::size_t i = 0; i < 256; ++i)
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(planes[c * 256 + i], image.rgb[i * 3 + c]);
  for (const std::uint8_t value : {0, 1, 128, 254, 255}) {
    Image plain{.width = 333, .height = 251, .rgb = std::vector<std::uint8_t>(333 * 251 * 3, value)};
    resize_to_square(plain, 16, planes);
    ASSERT_EQ(std::count(planes.begin(), planes.end(), value), 768) << int{value};
  }
}

std::string annotation(const std::string& inner) {
  return "<annotation><folder>VOC2012</folder>" + inner + "</annotation>";
}

TEST(data_voc, names_the_objects_and_neither_their_parts_nor_their_actions) {
  const auto got = parse_voc_objects(
      annotation(
          "<object><part><name>head</name><bndbox><xmin>3.5</xmin></bndbox></part><name> person\n</name>"
          "<actions><walking>1</walking></actions><point><x>1</x></point></object><object><name>dog</name></object>"),
      "file");
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_THAT(*got, ElementsAre("person", "dog"));
  EXPECT_TRUE(parse_voc_objects(annotation(""), "file")->empty());
}

TEST(data_voc, refuses_what_is_no_annotation) {
  const auto error_of = [](const std::string& xml) {
    const auto got = parse_voc_objects(xml, "file");
    return got ? "accepted" : got.error().what;
  };
  EXPECT_THAT(error_of("<annotation><object>"), HasSubstr("file: no readable XML: "));
  EXPECT_THAT(error_of(""), HasSubstr("no readable XML"));
  EXPECT_THAT(error_of("<html></html>"), HasSubstr("no <annotation>"));
  EXPECT_THAT(error_of(annotation("<object><name>dog</name></object><object></object>")),
              HasSubstr("object 1 has no name"));
}

TEST(data_voc, reads_lists_line_by_line_and_names_the_line_that_is_wrong) {
  const auto lines = parse_voc_list("2008_1  1\r\n2008_2 -1\n\n2008_3  0\n", true, "file");
  ASSERT_TRUE(lines) << lines.error().what;
  EXPECT_EQ(lines->size(), 3u);
  EXPECT_EQ((*lines)[0].image, "2008_1");
  EXPECT_EQ((*lines)[1].value, -1);
  const auto error_of = [](const std::string& text, bool values) {
    const auto got = parse_voc_list(text, values, "file");
    return got ? "accepted" : got.error().what;
  };
  EXPECT_THAT(error_of("a 1\nb 2\n", true), HasSubstr("file: line 2: '2'; allowed: -1, 0, 1"));
  EXPECT_THAT(error_of("a\n../../etc/passwd\n", false), HasSubstr("line 2: '../../etc/passwd' is no name"));
  EXPECT_THAT(error_of("a\nb\na\n", false), HasSubstr("line 3: a is listed twice"));
  EXPECT_THAT(error_of("a 1\n", false), HasSubstr("line 1: 2 words"));
}

// A devkit of 2012 with one image more in each split than there are letters: a is a dog, b a person, then c.
struct Voc : Place {
  fs::path root = options.data_dir / "VOCdevkit" / "VOC2012";
  Voc() {
    options.size = 8;
    list("train.txt", "a\nb\n");
    list("val.txt", "c\n");
    image("a", "dog", {200, 0, 0});
    image("b", "person", {0, 200, 0});
    image("c", "person", {0, 0, 200});
    for (const char* name : {"aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
                             "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
                             "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"}) {
      list(std::string(name) + "_train.txt", "a -1\nb -1\n");
      list(std::string(name) + "_val.txt", "c -1\n");
    }
    list("dog_train.txt", "a  1\nb  0\n");
    list("person_train.txt", "a -1\nb  1\n");
    list("person_val.txt", "c  1\n");
  }
  void list(const std::string& name, const std::string& text) const {
    write_file(root / "ImageSets" / "Main" / name, text);
  }
  void image(const std::string& name, const std::string& object, std::array<std::uint8_t, 3> colour) const {
    write_file(root / "JPEGImages" / (name + ".jpg"), jpeg(30, 20, colour));
    write_file(root / "Annotations" / (name + ".xml"), annotation("<object><name>" + object + "</name></object>"));
  }
};

TEST(data_voc, first_is_the_class_of_the_first_object) {
  Voc voc;
  const auto opened = open_dataset("voc2012-first", voc.options);
  ASSERT_TRUE(opened) << error_of(opened);
  const auto& set = opened->set;
  EXPECT_THAT(set.train.labels, ElementsAre(11, 14));
  EXPECT_THAT(set.test.labels, ElementsAre(14));
  EXPECT_EQ(set.shape.bytes(), 3u * 64);
  EXPECT_NEAR(set.train.images[0], 200, 3);           // a: red
  EXPECT_NEAR(set.train.images[192 + 64], 200, 3);    // b: green
  EXPECT_NEAR(set.test.images[2 * 64 + 63], 200, 3);  // c: blue
}

TEST(data_voc, official_labels_are_those_of_the_classes_lists) {
  Voc voc;
  const auto opened = open_dataset("voc2012", voc.options);
  ASSERT_TRUE(opened) << error_of(opened);
  const auto& targets = opened->set.train.targets;
  ASSERT_EQ(targets.size(), 40u);
  EXPECT_EQ(targets[11], 1);
  EXPECT_EQ(targets[14], 0);
  EXPECT_EQ(targets[20 + 11], difficult_target);
  EXPECT_EQ(targets[20 + 14], 1);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), 0), 37);
  voc.list("cow_train.txt", "b -1\na -1\n");
  EXPECT_THAT(error_of(open_dataset("voc2012", voc.options)),
              AllOf(HasSubstr("cow_train.txt: image 0 is b"), HasSubstr("has a")));
}

TEST(data_voc, names_the_image_that_is_missing_cut_or_of_no_class_or_leaves_it_out) {
  for (const auto& [what, words] : {std::pair{"missing", "a.jpg: cannot open"},
                                    {"cut", "a.jpg: no readable JPEG"},
                                    {"no class", "the first object is 'unicorn'; allowed: aeroplane"},
                                    {"no object", "a.xml: no object in it"}}) {
    Voc voc;
    const auto photo = voc.root / "JPEGImages" / "a.jpg";
    if (std::string(what) == "missing") fs::remove(photo);
    if (std::string(what) == "cut") write_file(photo, testing::read_file(photo).substr(0, 400));
    if (std::string(what) == "no class") voc.image("a", "unicorn", {0, 0, 0});
    if (std::string(what) == "no object") write_file(voc.root / "Annotations" / "a.xml", annotation(""));
    EXPECT_THAT(error_of(open_dataset("voc2012-first", voc.options)), HasSubstr(words)) << what;
    voc.options.skip_bad = true;
    const auto opened = open_dataset("voc2012-first", voc.options);
    ASSERT_TRUE(opened) << error_of(opened);
    EXPECT_THAT(opened->set.train.labels, ElementsAre(14)) << what;
    EXPECT_NEAR(opened->set.train.images[64], 200, 3) << "b";
    EXPECT_EQ(opened->facts.skipped, 1u);
  }
}

TEST(data_voc, a_cache_is_of_one_size_and_one_way_of_decoding) {
  Voc voc;
  ASSERT_TRUE(open_dataset("voc2012-first", voc.options));
  voc.options.size = 4;
  EXPECT_EQ(open_dataset("voc2012-first", voc.options)->set.shape.width, 4);
  voc.options.decode = Decode::scaled;
  const auto scaled = open_dataset("voc2012-first", voc.options);
  ASSERT_TRUE(scaled) << error_of(scaled);
  EXPECT_TRUE(scaled->facts.made_now);
  voc.options.decode = Decode::full;
  EXPECT_FALSE(open_dataset("voc2012-first", voc.options)->facts.made_now);
}

// train/{cat,dog}, val/dog, one PNG among JPEGs.
struct Folders : Place {
  std::string root = (folder / "pets").string();
  Folders() {
    options.size = 4;
    write_file(folder / "pets/train/dog/1.jpg", jpeg(9, 9, {200, 0, 0}));
    write_file(folder / "pets/train/cat/2.png", encode_png(std::vector<std::uint8_t>(27, 7), 3, 3, 3));
    write_file(folder / "pets/train/dog/notes.txt", "none");
    write_file(folder / "pets/val/dog/3.JPEG", jpeg(9, 9, {0, 200, 0}));
  }
};

TEST(data_folder, has_its_classes_by_name_and_a_list_that_stays) {
  Folders pets;
  const auto first = open_dataset(pets.root, pets.options);
  ASSERT_TRUE(first) << error_of(first);
  EXPECT_EQ(first->set.name, "pets");
  EXPECT_THAT(first->set.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(first->set.train.labels, ElementsAre(0, 1));
  EXPECT_EQ(first->set.train.images[0], 7);
  EXPECT_THAT(first->set.test.labels, ElementsAre(1));
  write_file(pets.folder / "pets/train/ant/0.jpg", jpeg(9, 9, {0, 0, 200}));
  const auto second = open_dataset(pets.root + "/", pets.options);
  ASSERT_TRUE(second) << error_of(second);
  EXPECT_FALSE(second->facts.made_now);
  EXPECT_EQ(second->set.train.list_sha256, first->set.train.list_sha256);
}

TEST(data_folder, with_a_line_end_in_a_name_is_refused_as_its_list_would_name_others) {
  Folders pets;
  write_file(pets.folder / "pets/train/cat/2\n.png", encode_png(std::vector<std::uint8_t>(27, 7), 3, 3, 3));
  EXPECT_THAT(error_of(open_dataset(pets.root, pets.options)), AllOf(HasSubstr("line end"), HasSubstr("cat/2 .png")));
}

TEST(data_folder, takes_the_label_of_a_link_from_where_the_link_is) {
  Folders pets;
  fs::create_directories(pets.folder / "pool/anything");
  fs::rename(pets.folder / "pets/train/cat/2.png", pets.folder / "pool/anything/2.png");
  fs::create_symlink("../../../pool/anything/2.png", pets.folder / "pets/train/cat/2.png");
  fs::create_symlink("../dog/1.jpg", pets.folder / "pets/train/cat/twin.jpg");
  fs::create_directory_symlink("dog", pets.folder / "pets/train/ant");
  const auto opened = open_dataset(pets.root, pets.options);
  ASSERT_TRUE(opened) << error_of(opened);
  EXPECT_THAT(opened->set.classes, ElementsAre("ant", "cat", "dog"));
  EXPECT_THAT(opened->set.train.labels, ElementsAre(0, 1, 1, 2));
}

TEST(data_folder, counts_what_it_does_not_take_with_the_reason) {
  Folders pets;
  for (const char* name : {"cat/b.webp", "cat/a.gif", "dog/old/4.jpg", "5.jpg"})
    write_file(pets.folder / "pets/train" / name, jpeg(9, 9, {0, 0, 200}));
  fs::create_directories(pets.folder / "pets/train/empty");
  const std::vector<std::string> expected{"train: 1 a class without an image: train/empty",
                                          "train: 1 in a folder below that of a class: train/dog/old/4.jpg",
                                          "train: 1 in no folder of a class: train/5.jpg",
                                          "train: 3 not named .jpg, .jpeg or .png: train/cat/a.gif, ..."};
  const auto opened = open_dataset(pets.root, pets.options);
  ASSERT_TRUE(opened) << error_of(opened);
  EXPECT_EQ(opened->facts.left_out, expected);
  EXPECT_EQ(open_dataset(pets.root, pets.options)->facts.left_out, expected) << "from the cache";
  write_file(pets.folder / "pets/val/dog/new.jpg", jpeg(9, 9, {0, 0, 200}));
  pets.options.again = true;
  const auto later = open_dataset(pets.root, pets.options);
  EXPECT_THAT(later->facts.left_out.back(), AllOf(HasSubstr("test: 1 newer than the list"), HasSubstr("new.jpg")));
}

TEST(data_folder, has_one_sum_of_what_is_learnt_whatever_its_files_are_called) {
  Folders pets;
  const auto before = content_sha256(*open_dataset(pets.root, pets.options));
  EXPECT_EQ(before.size(), 64u);
  Folders others;
  fs::rename(others.folder / "pets/train/dog/1.jpg", others.folder / "pets/train/dog/another.jpg");
  EXPECT_EQ(content_sha256(*open_dataset(others.root, others.options)), before);
  fs::rename(others.folder / "pets/train/cat", others.folder / "pets/train/cow");
  fs::remove_all(others.options.data_dir / "lists");
  EXPECT_NE(content_sha256(*open_dataset(others.root, others.options)), before) << "another class";
  write_file(pets.folder / "pets/train/dog/1.jpg", jpeg(9, 9, {10, 0, 0}));
  EXPECT_NE(content_sha256(*open_dataset(pets.root, pets.options)), before) << "another image";
}

TEST(data_folder, takes_the_lists_of_its_owner_in_their_order) {
  Folders pets;
  write_file(pets.folder / "pets/train.txt", "train/dog/1.jpg\nval/dog/3.JPEG\ntrain/cat/2.png\n");
  write_file(pets.folder / "pets/test.txt", "train/cat/2.png\n");
  const auto opened = open_dataset(pets.root, pets.options);
  ASSERT_TRUE(opened) << error_of(opened);
  EXPECT_THAT(opened->set.train.labels, ElementsAre(1, 1, 0));
  write_file(pets.folder / "pets/test.txt", "../other/cat/2.png\n");
  EXPECT_THAT(error_of(open_dataset(pets.root, pets.options)), HasSubstr("test.txt: line 1: '../other/cat/2.png'"));
  write_file(pets.folder / "pets/test.txt", "train/bird/2.png\n");
  EXPECT_THAT(error_of(open_dataset(pets.root, pets.options)),
              HasSubstr("class 'bird', of which there is no training"));
}

TEST(data_folder, is_refused_where_it_is_none_or_holds_something_else) {
  Place place;
  EXPECT_THAT(error_of(open_dataset((place.folder / "nothing").string(), place.options)),
              HasSubstr("there is no such folder"));
  fs::create_directories(place.folder / "empty");
  EXPECT_THAT(error_of(open_dataset((place.folder / "empty").string(), place.options)),
              AllOf(HasSubstr("neither train.txt nor a folder train"), HasSubstr("train/CLASS/image.jpg")));
  Folders pets;
  write_file(pets.folder / "pets/train/cat/2.png", "GIF89a");
  EXPECT_THAT(error_of(open_dataset(pets.root, pets.options)), HasSubstr("2.png: neither JPEG nor PNG"));
}

}  // namespace
}  // namespace strata::data
