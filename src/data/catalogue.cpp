// SPDX-License-Identifier: Apache-2.0
#include "data/catalogue.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "common/escape.hpp"
#include "common/places.hpp"
#include "common/text.hpp"

namespace strata::data {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> ten_digits = split("0,1,2,3,4,5,6,7,8,9", ',');
const std::vector<std::string> voc_classes = split(
    "aeroplane,bicycle,bird,boat,bottle,bus,car,cat,chair,cow,diningtable,dog,horse,motorbike,person,pottedplant,sheep,"
    "sofa,train,tvmonitor",
    ',');
const std::vector<std::string> cifar100_classes = split(
    "apple,aquarium_fish,baby,bear,beaver,bed,bee,beetle,bicycle,bottle,bowl,boy,bridge,bus,butterfly,camel,can,castle,"
    "caterpillar,cattle,chair,chimpanzee,clock,cloud,cockroach,couch,crab,crocodile,cup,dinosaur,dolphin,elephant,"
    "flatfish,forest,fox,girl,hamster,house,kangaroo,keyboard,lamp,lawn_mower,leopard,lion,lizard,lobster,man,"
    "maple_tree,motorcycle,mountain,mouse,mushroom,oak_tree,orange,orchid,otter,palm_tree,pear,pickup_truck,pine_tree,"
    "plain,plate,poppy,porcupine,possum,rabbit,raccoon,ray,road,rocket,rose,sea,seal,shark,shrew,skunk,skyscraper,"
    "snail,"
    "snake,spider,squirrel,streetcar,sunflower,sweet_pepper,table,tank,telephone,television,tiger,tractor,train,trout,"
    "tulip,turtle,wardrobe,whale,willow_tree,wolf,woman,worm",
    ',');

CatalogueEntry mnist_entry() {
  const std::string from = "https://ossci-datasets.s3.amazonaws.com/mnist/";  // the authors' own page is closed
  return {
      .name = "mnist",
      .about = "handwritten digits",
      .page = "http://yann.lecun.com/exdb/mnist/",
      .licence = "CC BY-SA 3.0 (Y. LeCun, C. Cortes)",
      .folder = "mnist",
      .classes = ten_digits,
      .shape = {1, 28, 28},
      .count = {60000, 10000},
      .downloads =
          {{.url = from + "train-images-idx3-ubyte.gz", .md5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873", .bytes = 9912422},
           {.url = from + "train-labels-idx1-ubyte.gz", .md5 = "d53e105ee54ea40749a09fcbcd1e9432", .bytes = 28881},
           {.url = from + "t10k-images-idx3-ubyte.gz", .md5 = "9fb629c4189551a2d022fa330f9573f3", .bytes = 1648877},
           {.url = from + "t10k-labels-idx1-ubyte.gz", .md5 = "ec29112dd5afa0611ce80d1b7f02629c", .bytes = 4542}},
      .unpacked = {{"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
                   {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
                   {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
                   {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"}}};
}

CatalogueEntry cifar_entry(int classes) {
  const std::string archive = fmt::format("https://www.cs.toronto.edu/~kriz/cifar-{}-binary.tar.gz", classes);
  return {.name = fmt::format("cifar{}", classes),
          .about = fmt::format("small photographs in {} classes", classes),
          .page = "https://www.cs.toronto.edu/~kriz/cifar.html",
          .licence = "none stated; for research (A. Krizhevsky)",
          .folder = classes == 10 ? "cifar-10-batches-bin" : "cifar-100-binary",
          .classes = classes == 10 ? split("airplane,automobile,bird,cat,deer,dog,frog,horse,ship,truck", ',')
                                   : cifar100_classes,
          .shape = {3, 32, 32},
          .count = {50000, 10000},
          .downloads = {{.url = archive,
                         .md5 = classes == 10 ? "c32a1d4ab5d03f1284b67883e8d87530" : "03b5dce01913d631647c71ecec9e9cb8",
                         .bytes = classes == 10 ? 170052171u : 168513733u,
                         .archive = true}}};
}

CatalogueEntry stl_entry() {
  return {.name = "stl10",
          .about = "photographs in 10 classes, few of them labelled (the unlabelled are not read)",
          .page = "https://cs.stanford.edu/~acoates/stl10/",
          .licence = "none stated; from ImageNet, for research",
          .folder = "stl10_binary",
          .classes = split("airplane,bird,car,cat,deer,dog,horse,monkey,ship,truck", ','),
          .shape = {3, 96, 96},
          .count = {5000, 8000},
          .downloads = {{.url = "https://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
                         .md5 = "91f7769df0f17e558f3565bffb0c7dfb",
                         .bytes = 2640397119u,
                         .archive = true}}};
}

CatalogueEntry digits_entry() {
  return {.name = "digits",
          .about = "handwritten digits of 8x8 with values 0 to 16; part of strata, needs no download",
          .page = "https://archive.ics.uci.edu/dataset/80",
          .licence = "CC BY 4.0 (E. Alpaydin, C. Kaynak)",
          .classes = ten_digits,
          .shape = {1, 8, 8},
          .count = {1437, 360}};
}

CatalogueEntry voc_entry(int year, bool first) {
  const std::string base = "https://thor.robots.ox.ac.uk/pascal/VOC/";
  CatalogueEntry entry{.name = fmt::format("voc{}{}", year, first ? "-first" : ""),
                       .about = first ? "photographs; the class of the first object that is annotated in each"
                                      : "photographs; which of the 20 classes are in each",
                       .page = fmt::format("http://host.robots.ox.ac.uk/pascal/VOC/voc{}/", year),
                       .licence = "Flickr's terms of use; for research",
                       .folder = fmt::format("VOCdevkit/VOC{}", year),
                       .classes = voc_classes,
                       .shape = {3, 0, 0},
                       .kind = first ? Targets::one_class : Targets::several_classes};
  if (year == 2012) {
    entry.count = {5717, 5823};
    entry.downloads = {{.url = base + "voc2012/VOCtrainval_11-May-2012.tar",
                        .md5 = "6cd6e144f989b92b3379bac3b3de84fd",
                        .bytes = 1999639040u,
                        .archive = true}};
  } else {
    entry.count = {5011, 4952};
    entry.downloads = {{.url = base + "voc2007/VOCtrainval_06-Nov-2007.tar",
                        .md5 = "c52e279531787c972589f7e41ab4ae64",
                        .bytes = 460032000u,
                        .archive = true},
                       {.url = base + "voc2007/VOCtest_06-Nov-2007.tar",
                        .md5 = "b6e924de25625d8de591ea690078ad9f",
                        .bytes = 451020800u,
                        .archive = true}};
  }
  return entry;
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries{
      digits_entry(),         mnist_entry(),         cifar_entry(10),        cifar_entry(100),     stl_entry(),
      voc_entry(2007, false), voc_entry(2007, true), voc_entry(2012, false), voc_entry(2012, true)};
  return entries;
}

const CatalogueEntry* find_entry(const std::string& name) {
  for (const auto& entry : catalogue())
    if (entry.name == name) return &entry;
  return nullptr;
}

fs::path default_data_dir() {
  for (const auto& [variable, below] : {std::pair{"STRATA_DATA", ""}, {"XDG_DATA_HOME", "strata/data"}})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') {
      const auto path = fs::path(value) / below;
      return path.has_filename() ? path : path.parent_path();
    }
  const auto home = home_folder();
  return home.empty() ? fs::path() : home / ".local/share/strata/data";
}

Result<std::vector<SourceFiles>> a_source_each(const std::string& set, const fs::path& data_dir,
                                               const std::vector<fs::path>& files) {
  std::vector<SourceFiles> out;
  std::vector<std::string> missing;
  for (const auto& path : files) {
    std::error_code ec;
    if (!fs::is_regular_file(path, ec)) missing.push_back(path.string());
    out.push_back({.name = fs::relative(path, data_dir).string(), .files = {path}});
  }
  if (!missing.empty()) return missing_files(set, missing);
  return out;
}

tl::unexpected<Error> missing_files(const std::string& set, const std::vector<std::string>& paths) {
  return fail(
      fmt::format("{}: there {}, and {} needs {}", fmt::join(paths, ", "),
                  paths.size() == 1 ? "is no such file" : "are no such files", set, paths.size() == 1 ? "it" : "them"),
      fmt::format("./strata data fetch {}, or name the folder that has the sets: --data-dir", set), Exit::environment,
      {.where = fmt::format("{}", fmt::join(paths, ", ")), .allowed = paths.size() == 1 ? "a file" : "files"});
}

Result<void> check_count(std::size_t published, std::size_t got, bool partial, const std::string& where) {
  if (got == 0) return fail(fmt::format("{}: holds no record", where), "get the file again: ./strata data fetch NAME");
  if (got == published || (partial && got < published)) return {};
  return fail(fmt::format("{}: {} records; the publisher's file has {}", where, got, published),
              "get the file again (./strata data fetch NAME), or use what there is with --partial");
}

}  // namespace strata::data
