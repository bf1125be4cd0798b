// SPDX-License-Identifier: Apache-2.0
// The check that every exported program makes of its files, and the reader of safetensors files beside it.
#include "serve/fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using ::testing::HasSubstr;

RawTensor zeros(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  return {dtype, shape, std::string(safetensors::bytes_of(dtype, shape), '\0')};
}

template <class Work>
std::string refused(const Work& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

const Fields takes{{"arg0", "F32", {Extent{1, 32}, 3}}, {"ids", "I64", {4}}};

std::string said_of(const RawTensors& tensors) {
  return refused([&] { check_inputs(tensors, takes); });
}

TEST(Fields, an_open_batch_takes_its_range_and_nothing_beside_it) {
  for (const std::int64_t batch : {1, 7, 32})
    EXPECT_EQ(said_of({{"0/arg0", zeros("F32", {batch, 3})}, {"0/ids", zeros("I64", {4})}}), "");
  for (const std::int64_t batch : {0, 33})
    EXPECT_THAT(said_of({{"0/arg0", zeros("F32", {batch, 3})}, {"0/ids", zeros("I64", {4})}}),
                HasSubstr("input arg0 is F32 [" + std::to_string(batch) + ",3]; this artefact takes F32 [1..32,3]"));
}

TEST(Fields, inputs_of_another_type_shape_name_or_number_are_refused_with_what_is_taken) {
  const RawTensor image = zeros("F32", {2, 3}), ids = zeros("I64", {4});
  EXPECT_EQ(said_of({{"0/arg0", image}, {"0/ids", ids}, {"1/arg0", image}, {"1/ids", ids}}), "");
  EXPECT_THAT(said_of({{"0/arg0", zeros("F64", {2, 3})}, {"0/ids", ids}}), HasSubstr("input arg0 is F64 [2,3]"));
  EXPECT_THAT(said_of({{"0/arg0", zeros("F32", {6})}, {"0/ids", ids}}), HasSubstr("is F32 [6]; this artefact takes"));
  EXPECT_THAT(said_of({{"0/arg0", image}, {"0/ids", zeros("I32", {4})}}), HasSubstr("input ids is I32 [4]"));
  EXPECT_THAT(said_of({{"0/arg0", image}}), HasSubstr("lack '0/ids', which is I64 [4]"));
  EXPECT_THAT(said_of({{"0/arg0", image}, {"0/ids", ids}, {"1/arg0", image}}), HasSubstr("lack '1/ids'"));
  EXPECT_THAT(said_of({{"0/arg0", image}, {"0/ids", ids}, {"2/arg0", image}}), HasSubstr("hold '2/arg0'"));
  EXPECT_THAT(said_of({{"0/arg0", image}, {"0/ids", ids}, {"00/arg0", image}}), HasSubstr("hold '00/arg0'"));
  EXPECT_THAT(said_of({}), HasSubstr("lack '0/arg0'"));
}

TEST(Fields, weights_and_results_are_as_declared) {
  const Fields weights{{"w", "F32", {2, 3}}};
  const auto message = [&](const RawTensors& tensors) {
    return refused([&] { check_weights(tensors, weights, "w.st"); });
  };
  EXPECT_EQ(message({{"w", zeros("F32", {2, 3})}}), "");
  EXPECT_THAT(message({{"w", zeros("I32", {2, 3})}}), HasSubstr("weight w of w.st is I32 [2,3]"));
  EXPECT_THAT(message({{"w", zeros("F32", {200, 3})}}), HasSubstr("takes F32 [2,3]"));
  EXPECT_THAT(message({}), HasSubstr("w.st lacks the weight 'w'"));
  EXPECT_THAT(message({{"w", zeros("F32", {2, 3})}, {"b", zeros("F32", {1})}}), HasSubstr("holds 'b'"));
  EXPECT_THAT(refused([&] { check_outputs({}, weights); }), HasSubstr("gave 0 outputs"));
  EXPECT_THAT(refused([&] { check_outputs({zeros("F32", {3})}, weights); }), HasSubstr("output w is F32 [3]"));
}

class ShippedReader : public testing::Test {
 protected:
  std::string read(const std::string& header, const std::string& body) {
    std::uint64_t length = header.size();
    return read_all(std::string(reinterpret_cast<const char*>(&length), 8) + header + body);
  }
  // What is said of the file; empty: it is sound.
  std::string read_all(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return refused([&] { last_ = read_safetensors(path_); });
  }
  void TearDown() override { std::filesystem::remove(path_); }

  RawTensors last_;
  const std::string path_ = testing::TempDir() + "/shipped_reader_" + std::to_string(getpid()) + ".safetensors";
};

TEST_F(ShippedReader, names_with_escapes_are_read_and_written_alike) {
  ASSERT_EQ(read(R"({"a\"\\\n\u00f6\ud83d\ude00":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"), "");
  const std::string name = "a\"\\\n\xc3\xb6\xf0\x9f\x98\x80";
  ASSERT_EQ(last_.count(name), 1U);
  write_safetensors(path_, last_);
  EXPECT_EQ(read_safetensors(path_).at(name).bytes, "1234");
}

TEST_F(ShippedReader, a_header_that_lies_is_refused) {
  const auto one = [&](const std::string& fields) { return read("{\"a\":{" + fields + "}}", "1234"); };
  EXPECT_EQ(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "");
  for (const char* fields :
       {R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", R"("dtype":"F32","shape":[1],"data_offsets":[4,0])",
        R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", R"("dtype":"F33","shape":[1],"data_offsets":[0,4])",
        R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", R"("dtype":"F32","shape":[1],"data_offsets":[0])",
        R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])",
        R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4])",
        R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", R"("dtype":"U8","shape":[2],"data_offsets":[2,4])",
        R"("dtype":"F32","shape":[1],"data_offsets":[0,4.5])", R"("dtype":5,"shape":[1],"data_offsets":[0,4])", ""})
    EXPECT_THAT(one(fields), HasSubstr("damaged")) << fields;
  EXPECT_THAT(
      read(
          R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          "1234"),
      HasSubstr("two tensors overlap"));
  EXPECT_THAT(
      read(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
          "1234"),
      HasSubstr("there twice"));
  EXPECT_THAT(read("{} {}", ""), HasSubstr("damaged"));
  for (const char* cut : {"", "1234567", "\x7f\0\0\0\0\0\0\0"})
    EXPECT_THAT(read_all(cut), HasSubstr("no safetensors file"));
}

}  // namespace
