// SPDX-License-Identifier: Apache-2.0
#include "strata/training_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "strata/bundle.hpp"

namespace strata {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Failure("bad_request", fmt::format("{}: {}", path.string(), what), "docs/protocol.md says what it holds");
}

// A tensor of this type and number of dimensions.
const TensorView& need(const SafeTensors& file, const char* name, const char* dtype, std::size_t dimensions) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) refuse(file.where(), fmt::format("it has no tensor '{}'", name));
  if (tensor->dtype != dtype || tensor->shape.size() != dimensions)
    refuse(file.where(), fmt::format("'{}' is {} of shape [{}]; allowed is {} of {} dimensions", name, tensor->dtype,
                                     fmt::join(tensor->shape, ", "), dtype, dimensions));
  return *tensor;
}

SafeTensors map(const std::filesystem::path& path) {
  auto file = SafeTensors::map(path);
  if (!file) throw Failure("failed", file.error().what, file.error().hint);
  return std::move(*file);
}

// Data of a mapped file need not be aligned.
std::int64_t integer_at(const TensorView& tensor, std::int64_t i) {
  std::int64_t value = 0;
  std::memcpy(&value, tensor.data + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

}  // namespace

BatchOrder BatchOrder::open(const std::filesystem::path& path, std::int64_t batch, std::int64_t count) {
  BatchOrder order;
  order.file_ = map(path);
  order.samples_ = &need(order.file_, "samples", "I64", 2);
  order.steps_ = order.samples_->shape[0];
  order.batch_ = batch;
  if (order.samples_->shape[1] != batch)
    refuse(path, fmt::format("'samples' has batches of {}; the case has {}", order.samples_->shape[1], batch));
  if (order.file_.find("flip") != nullptr) order.flip_ = &need(order.file_, "flip", "U8", 2);
  if (order.file_.find("shift") != nullptr) order.shift_ = &need(order.file_, "shift", "I8", 3);
  for (const auto* other : {order.flip_, order.shift_})
    if (other != nullptr && (other->shape[0] != order.steps_ || other->shape[1] != batch ||
                             (other == order.shift_ && other->shape[2] != 2)))
      refuse(path, "'flip' or 'shift' is not of as many samples as 'samples'");
  for (std::int64_t i = 0; i < order.samples_->elements(); ++i)
    if (const auto index = integer_at(*order.samples_, i); index < 0 || index >= count)
      refuse(path, fmt::format("'samples' holds {}; allowed are 0 to {}", index, count - 1));
  return order;
}

BatchOrder::Sample BatchOrder::at(std::int64_t step, std::int64_t place) const {
  const auto i = step * batch_ + place;
  Sample sample;
  sample.index = integer_at(*samples_, i);
  sample.flip = flip_ != nullptr && flip_->data[i] != std::byte{0};
  if (shift_ != nullptr) {
    sample.down = static_cast<signed char>(shift_->data[2 * i]);
    sample.right = static_cast<signed char>(shift_->data[2 * i + 1]);
  }
  return sample;
}

BatchMaker::BatchMaker(const Bundle& bundle, std::span<const double> mean, std::span<const double> deviation) {
  if (bundle.inputs.size() != 1 || bundle.inputs[0].dtype != "F32" || bundle.inputs[0].shape.size() != 4)
    throw Failure("unsupported", "training on a data set wants a network with one float32 input [N, C, H, W]");
  if (bundle.outputs.empty() || bundle.outputs[0].shape.size() != 2)
    throw Failure("unsupported", "training on a data set wants a network whose first output is [N, classes]");
  shape_ = bundle.inputs[0].shape;
  classes_ = bundle.outputs[0].shape[1];
  const auto channels = static_cast<std::size_t>(shape_[1]);
  const auto of = [&](std::span<const double> values, std::size_t channel, const char* name) {
    if (values.size() != 1 && values.size() != channels)
      throw Failure("bad_request", fmt::format("'{}' has {} entries for {} channels", name, values.size(), channels));
    const double value = values[values.size() == 1 ? 0 : channel];
    if (!std::isfinite(value)) throw Failure("bad_request", fmt::format("'{}' holds no finite number", name));
    return value;
  };
  values_.resize(channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double middle = of(mean, channel, "mean"), scale = of(deviation, channel, "deviation");
    if (scale <= 0) throw Failure("bad_request", "'deviation' must be above 0");
    for (int value = 0; value < 256; ++value)
      values_[channel][static_cast<std::size_t>(value)] = static_cast<float>((value / 255.0 - middle) / scale);
  }
}

DataSplit BatchMaker::open_split(const std::filesystem::path& path) const {
  DataSplit split;
  split.file = map(path);
  split.images = &need(split.file, "images", "U8", 4);
  split.labels = &need(split.file, "labels", "I64", 1);
  split.count = split.images->shape[0];
  split.channels = split.images->shape[1];
  split.height = split.images->shape[2];
  split.width = split.images->shape[3];
  if (split.labels->shape[0] != split.count || split.count == 0)
    refuse(path, fmt::format("it has {} images and {} labels", split.count, split.labels->shape[0]));
  if ((split.channels != shape_[1] && split.channels != 1) || split.height != shape_[2] || split.width != shape_[3])
    refuse(path, fmt::format("its images are {}x{}x{}, the network's {}x{}x{}", split.channels, split.height,
                             split.width, shape_[1], shape_[2], shape_[3]));
  for (std::int64_t i = 0; i < split.count; ++i)
    if (const auto label = integer_at(*split.labels, i); label < 0 || label >= classes_)
      refuse(path, fmt::format("label {} of image {} is not one of the network's {} classes", label, i, classes_));
  return split;
}

std::vector<HostTensor> BatchMaker::allocate_entry() const {
  std::vector<HostTensor> entry;
  entry.push_back(allocate("F32", shape_));
  entry.push_back(allocate("I64", {shape_[0]}));
  return entry;
}

void BatchMaker::write_image(const DataSplit& split, const BatchOrder::Sample& sample, float* to) const {
  const std::int64_t height = shape_[2], width = shape_[3];
  const auto* image =
      reinterpret_cast<const unsigned char*>(split.images->data) + sample.index * split.channels * height * width;
  for (std::int64_t channel = 0; channel < shape_[1]; ++channel) {
    const auto& value = values_[static_cast<std::size_t>(channel)];
    const auto* plane = image + (split.channels == 1 ? 0 : channel) * height * width;
    for (std::int64_t y = 0; y < height; ++y, to += width) {
      const std::int64_t from_y = y - sample.down;
      if (!sample.flip && sample.right == 0 && from_y >= 0 && from_y < height) {
        for (std::int64_t x = 0; x < width; ++x) to[x] = value[plane[from_y * width + x]];
        continue;
      }
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t shifted = x - sample.right, from_x = sample.flip ? width - 1 - shifted : shifted;
        const bool inside = from_y >= 0 && from_y < height && shifted >= 0 && shifted < width;
        to[x] = value[inside ? plane[from_y * width + from_x] : 0];
      }
    }
  }
}

void BatchMaker::fill(const DataSplit& split, const std::function<BatchOrder::Sample(std::int64_t)>& sample,
                      std::vector<HostTensor>& entry) const {
  auto* images = reinterpret_cast<float*>(writable(entry[0]));
  auto* labels = reinterpret_cast<std::int64_t*>(writable(entry[1]));
  const auto size = shape_[1] * shape_[2] * shape_[3];
  for (std::int64_t place = 0; place < shape_[0]; ++place) {
    const auto drawn = sample(place);
    write_image(split, drawn, images + place * size);
    labels[place] = integer_at(*split.labels, drawn.index);
  }
}

Score score(const HostTensor& output, const HostTensor& labels, std::int64_t samples, std::string_view loss) {
  const auto classes = static_cast<std::size_t>(output.view.shape[1]);
  std::vector<double> row(classes);
  Score sum;
  for (std::int64_t i = 0; i < samples; ++i) {
    read_doubles(output.view, static_cast<std::size_t>(i) * classes, row);
    const auto label = static_cast<std::size_t>(integer_at(labels.view, i));
    const auto best = std::max_element(row.begin(), row.end());
    if (static_cast<std::size_t>(best - row.begin()) == label) ++sum.correct;
    double log_of_sum = 0;
    if (loss != "nll") {
      for (const double value : row) log_of_sum += std::exp(value - *best);
      log_of_sum = std::log(log_of_sum) + *best;
    }
    sum.loss += log_of_sum - row[label];
  }
  return sum;
}

}  // namespace strata
