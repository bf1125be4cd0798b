// SPDX-License-Identifier: Apache-2.0
// What programs on a device rest on: recorded work, two buffers for what goes to the device, rates that a recorded step
// reads anew, averages over named windows. As kernels_test.cpp, in host memory and on a device.
#include "kit_cuda/graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kit_cuda/kernels/descent.hpp"
#include "kit_cuda/kernels/move.hpp"
#include "kit_cuda/kernels/spans.hpp"
#include "kit_cuda/staging.hpp"

namespace kit_cuda {
namespace {
using ::testing::ElementsAre;

View row(Index count) {
  return row_major(&count, 1);
}

// What is recorded needs a stream of its own on a device.
class OwnStream {
 public:
  OwnStream() : stream_(make_stream()) {}
  ~OwnStream() { end_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator Stream() const { return stream_; }

 private:
  Stream stream_;
};

TEST(KitCudaGraph, does_nothing_while_it_is_recorded_and_then_reads_memory_anew_with_the_arguments_of_then) {
  std::vector<float> from{1, 2}, to(2);
  float filled = 5;
  const OwnStream stream;
  Graph graph;
  EXPECT_FALSE(graph.is_recorded());
  graph.record(stream, [&] {
    copy(stream, {from.data(), row(2)}, {to.data(), row(2)});
    fill(stream, {to.data(), row(1)}, filled);
  });
  EXPECT_TRUE(graph.is_recorded());
  EXPECT_THAT(to, ElementsAre(0, 0));
  filled = 7;  // too late
  from[1] = 3;
  graph.launch(stream);
  wait_for(stream);
  EXPECT_THAT(to, ElementsAre(5, 3));
}

TEST(KitCudaGraph, a_recording_that_fails_leaves_work_to_be_done_at_once) {
  const OwnStream stream;
  Graph graph;
  EXPECT_THROW(graph.record(stream, [] { throw std::runtime_error("no plan"); }), std::runtime_error);
  std::vector<float> value(1);
  fill(stream, {value.data(), row(1)}, 4);
  wait_for(stream);
  EXPECT_EQ(value[0], 4);
}

TEST(KitCudaStaging, brings_what_was_put_last_and_keeps_it_until_there_is_something_new) {
  const OwnStream copies, stream;
  Staging staging(sizeof(float), copies);
  std::vector<float> place(1);
  const auto taken = [&] {
    staging.take(place.data(), stream);
    wait_for(stream);
    return place[0];
  };
  float value = 1;
  EXPECT_EQ(taken(), 0) << "nothing was put";
  staging.put(&value);
  value = 2;
  staging.put(&value);
  value = 3;  // the caller's again
  EXPECT_EQ(taken(), 2);
  place[0] = 9;
  EXPECT_EQ(taken(), 9) << "there is nothing new";
}

TEST(KitCudaDescent, a_recorded_step_reads_its_rates_from_the_device) {
  std::vector<float> weight{1}, velocity{0};
  const std::vector<float> gradient{1};
  const auto rates = std::make_unique<Rates>(rates_of({.rate = 0.5}, false));
  const OwnStream stream;
  Graph graph;
  graph.record(stream, [&] { descend(stream, rates.get(), {weight.data(), velocity.data()}, gradient.data(), 1); });
  graph.launch(stream);
  wait_for(stream);
  EXPECT_EQ(weight[0], 0.5F);
  *rates = rates_of({.rate = 0.25}, false);
  graph.launch(stream);
  wait_for(stream);
  EXPECT_EQ(weight[0], 0.25F);
}

TEST(KitCudaSpans, averages_over_windows_by_their_names_and_shares_gradients_likewise) {
  const std::vector<float> x{1, 2, 3, 4, 5};
  std::vector<float> y(2), back(5);
  const std::vector<Span> spans{{0, 3, 3}, {2, 5, 4}};  // the second counts a place beside the image
  const SpanPool pool{1, {spans.data()}, 0};
  const Index in[] = {1, 5}, out[] = {1, 2};
  span_pool(nullptr, {x.data(), row_major(in, 2)}, pool, {y.data(), row_major(out, 2)});
  EXPECT_THAT(y, ElementsAre(2, 3));
  const std::vector<float> gradient{3, 4};
  span_pool_backward(nullptr, {gradient.data(), row_major(out, 2)}, pool, {back.data(), row_major(in, 2)});
  EXPECT_THAT(back, ElementsAre(1, 1, 2, 1, 1));
}

}  // namespace
}  // namespace kit_cuda
