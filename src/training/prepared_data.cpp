// SPDX-License-Identifier: Apache-2.0
#include "training/prepared_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/safetensors.hpp"
#include "data/resize.hpp"

namespace strata::training {
namespace fs = std::filesystem;
namespace {

// The images of a split in the network's size, values from 0 to 255.
std::vector<std::uint8_t> images_of(const data::Dataset& set, const data::Split& split, std::int64_t count,
                                    const data::Shape& to) {
  std::vector<std::uint8_t> out;
  out.reserve(static_cast<std::size_t>(count) * to.bytes());
  const bool fits = set.shape.height == to.height && set.shape.width == to.width;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto image = split.images.subspan(static_cast<std::size_t>(i) * set.shape.bytes(), set.shape.bytes());
    if (fits) {
      out.insert(out.end(), image.begin(), image.end());
    } else {
      const auto other = data::resize_planes(image, set.shape, to);
      out.insert(out.end(), other.begin(), other.end());
    }
  }
  if (set.highest_value != 255)
    for (auto& value : out)
      value = static_cast<std::uint8_t>((static_cast<int>(value) * 255 + set.highest_value / 2) / set.highest_value);
  return out;
}

Result<void> write_split(const fs::path& path, const std::vector<std::uint8_t>& images, const data::Split& split,
                         std::int64_t count, const data::Shape& shape) {
  return write_safetensors(path, {{"images",
                                   {.dtype = "U8",
                                    .shape = {count, shape.channels, shape.height, shape.width},
                                    .data = reinterpret_cast<const std::byte*>(images.data()),
                                    .bytes = images.size()}},
                                  {"labels",
                                   {.dtype = "I64",
                                    .shape = {count},
                                    .data = reinterpret_cast<const std::byte*>(split.labels.data()),
                                    .bytes = static_cast<std::size_t>(count) * sizeof(std::int64_t)}}});
}

// Of all pixels of a channel, as shares of 255.
void add_moments(const std::vector<std::uint8_t>& images, const data::Shape& shape, session::SplitFiles& files) {
  const auto plane = static_cast<std::size_t>(shape.height * shape.width);
  for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
    std::array<std::uint64_t, 256> seen{};
    for (std::size_t at = static_cast<std::size_t>(channel) * plane; at < images.size(); at += shape.bytes())
      for (std::size_t i = 0; i < plane; ++i) ++seen[images[at + i]];
    double count = 0, sum = 0, squares = 0;
    for (std::size_t value = 0; value < seen.size(); ++value) {
      const double share = static_cast<double>(value) / 255, times = static_cast<double>(seen[value]);
      count += times;
      sum += share * times;
      squares += share * share * times;
    }
    const double mean = sum / count;
    files.mean.push_back(mean);
    files.deviation.push_back(std::max(1e-3, std::sqrt(std::max(0.0, squares / count - mean * mean))));
  }
}

// Of the first `count` images.
double commonest_share(const data::Split& split, std::int64_t count) {
  std::map<std::int64_t, std::int64_t> counts;
  std::int64_t most = 0;
  for (const auto label : split.labels.first(static_cast<std::size_t>(count))) most = std::max(most, ++counts[label]);
  return static_cast<double>(most) / static_cast<double>(count);
}

}  // namespace

Result<PreparedData> prepare_data(const data::Dataset& set, const data::Shape& network, std::int64_t batch,
                                  std::optional<std::int64_t> most, const fs::path& folder) {
  if (set.kind != data::Targets::one_class)
    return fail(fmt::format("--dataset {}: its images have several classes each; a loss of one class cannot be taken",
                            set.name),
                set.name.starts_with("voc") ? "use " + set.name + "-first, the class of the first object" : "",
                Exit::usage);
  if (set.shape.channels != network.channels && set.shape.channels != 1)
    return fail(fmt::format("--dataset {}: its images have {} channels, the network takes {}", set.name,
                            set.shape.channels, network.channels),
                "another network, or another data set", Exit::usage);
  const auto used = [&](const data::Split& split) {
    return std::min<std::int64_t>(static_cast<std::int64_t>(split.count), most.value_or(1'000'000'000));
  };
  PreparedData out;
  out.train = used(set.train);
  out.test = used(set.test);
  if (out.train < batch || out.test < 1)
    return fail(fmt::format("--dataset {}: {} training and {} test images are used; one batch has {}", set.name,
                            out.train, out.test, batch),
                "a smaller --batch, or more images", Exit::usage);
  out.commonest = commonest_share(set.test, out.test);
  const data::Shape stored{set.shape.channels, network.height, network.width};
  if (set.shape.height != network.height || set.shape.width != network.width)
    out.change =
        fmt::format("{}x{} resized to {}x{}", set.shape.height, set.shape.width, network.height, network.width);
  out.files.paths = {{"train", folder / "train.safetensors"}, {"test", folder / "test.safetensors"}};
  const auto train = images_of(set, set.train, out.train, stored);
  add_moments(train, stored, out.files);
  STRATA_TRY(write_split(out.files.paths["train"], train, set.train, out.train, stored));
  if (auto written =
          write_split(out.files.paths["test"], images_of(set, set.test, out.test, stored), set.test, out.test, stored);
      !written)
    return tl::unexpected(written.error());
  return out;
}

}  // namespace strata::training
