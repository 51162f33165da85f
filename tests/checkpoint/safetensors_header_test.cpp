// Headers that are wrong in one way each.
#include "core/checkpoint/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/tensor_files.h"

namespace ranklab {
namespace {

using checkpoint_samples::file_bytes;
using checkpoint_samples::put_bytes;
using checkpoint_samples::refusal;
using ::testing::HasSubstr;

struct BadHeader {
  std::string json;
  size_t data_bytes;
  std::vector<std::string> parts;  // of the message
};

std::string one(const std::string& fields) { return R"({"w":{)" + fields + "}}"; }

// "[1,1,...]"
std::string ones(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i == 0 ? "[1" : ",1";
  return text + "]";
}

const std::string kShape = R"("shape":[2],)", kType = R"("dtype":"F32",)", kOffsets = R"("data_offsets":[0,8])";

std::vector<BadHeader> bad_json() {
  return {
      {"", 0, {"not a safetensors file"}},
      {"[]", 0, {"not a safetensors file", "'['"}},
      {" {}", 0, {"not a safetensors file"}},
      {"{", 0, {"not JSON at byte"}},
      {"{} x", 0, {"not JSON at byte"}},
      {std::string("{}\0 hidden", 10), 0, {"zero byte", "byte 2"}},
      {"{\"w\xff\":1}", 0, {"not JSON at byte"}},
      {R"({"w":3})", 0, {"member 'w'", "got 3; want an object"}},
      {R"({"w":[]})", 0, {"member 'w'", "an array"}},
      {R"({"w":null})", 0, {"member 'w'", "null"}},
      {R"({"w":{}})", 0, {"tensor 'w': dtype is missing"}},
      {R"({"__metadata__":"x"})", 0, {"__metadata__", "want an object"}},
      {R"({"__metadata__":{"k":1}})", 0, {"__metadata__: 'k'", "got 1; want a string"}},
      {R"({"__metadata__":{"k":{}}})", 0, {"__metadata__: 'k'", "an object"}},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, {"'k' appears twice"}},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, {"'__metadata__' appears twice"}},
      {one(kType + kShape + kOffsets).insert(1, R"("w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"),
       8,
       {"'w' appears twice"}},
      {R"({"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, {"a name that is empty"}},
      {"{\"a\\u001b[31m\":{}}", 0, {"control character", "'a?[31m'"}},
      {"{\"a\\u009b\":{}}", 0, {"control character"}},
      {"{\"" + std::string(1025, 'n') + "\":{}}", 0, {"longer than 1024"}},
      {std::string(100000, '[').insert(0, "{\"w\":"), 0, {"member 'w'", "an array"}},
  };
}

std::vector<BadHeader> bad_tensors() {
  const auto shaped = [](const std::string& shape) { return one(kType + "\"shape\":" + shape + "," + kOffsets); };
  const auto placed = [](const std::string& offsets) { return one(kType + kShape + "\"data_offsets\":" + offsets); };
  return {
      {one(kType + kShape + R"("data_offsets":[0,8],"more":1)"), 8, {"tensor 'w': more is not a field"}},
      {one(kType + kType + kShape + kOffsets), 8, {"tensor 'w': dtype appears twice"}},
      {one(kType + kShape + kShape + kOffsets), 8, {"shape appears twice"}},
      {one(kType + kShape + kOffsets + "," + kOffsets), 8, {"data_offsets appears twice"}},
      {one(kType + kOffsets), 8, {"tensor 'w': shape is missing"}},
      {one(R"("dtype":"F32","shape":[2])"), 8, {"tensor 'w': data_offsets is missing"}},
      {one(R"("dtype":"F33",)" + kShape + kOffsets), 8, {"dtype is unknown to this program", "'F33'", "BF16"}},
      {one(R"("dtype":5,)" + kShape + kOffsets), 8, {"tensor 'w': dtype", "got 5; want a string"}},
      {one(R"("dtype":["F32"],)" + kShape + kOffsets), 8, {"tensor 'w': dtype", "an array"}},
      {shaped("2"), 8, {"tensor 'w': shape", "got 2; want an array"}},
      {shaped("[[2]]"), 8, {"tensor 'w': shape", "an array"}},
      {shaped("[2.0]"), 8, {"shape", "2.0", "whole numbers"}},
      {shaped("[-2]"), 8, {"shape", "-2", "whole numbers"}},
      {shaped("[\"2\"]"), 8, {"shape", "'2'"}},
      {shaped("[9223372036854775808]"), 8, {"shape", "9223372036854775808"}},
      {shaped("[1e400]"), 8, {"not JSON at byte"}},
      {shaped("[4294967296,4294967296]"), 8, {"tensor 'w' is larger than any file", "[4294967296, 4294967296]"}},
      {shaped("[4611686018427387904]"), 8, {"tensor 'w' is larger than any file"}},
      {shaped("[4294967296,4294967296,0]"), 8, {"tensor 'w' is larger than any file"}},
      {shaped(ones(65)), 8, {"shape is too long", "64 dims"}},
      {shaped("[3]"), 8, {"tensor 'w' does not have the size of its shape", "[0, 8]", "12 bytes for F32 [3]"}},
      {shaped("[]"), 8, {"tensor 'w' does not have the size of its shape", "4 bytes for F32 []"}},
      {placed("[8,0]"), 8, {"tensor 'w' ends before it begins", "[8, 0]"}},
      {placed("[0]"), 8, {"data_offsets is too short", "got 1"}},
      {placed("[0,8,8]"), 8, {"data_offsets is too long"}},
      {placed("[0,-8]"), 8, {"data_offsets", "-8"}},
      {placed("[0,18446744073709551616]"), 8, {"data_offsets", "18446744073709551616"}},
      {placed("[0,8]"), 7, {"the file is cut off: tensor 'w' is the last one", "got 7 bytes of data; want 8 bytes"}},
      {placed("[0,8]"), 9, {"the file is too long: tensor 'w' is the last one"}},
      {placed("[4,12]"), 12, {"tensor 'w' follows a hole", "from 4", "from 0"}},
      {"{}", 1, {"the file is too long"}},
  };
}

std::vector<BadHeader> bad_neighbours() {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  return {{two("[0,4]", "[0,4]"), 4, {"overlaps another"}},
          {two("[0,4]", "[3,7]"), 7, {"tensor 'b' overlaps another", "from 3", "from 4"}},
          {two("[0,4]", "[5,9]"), 9, {"tensor 'b' follows a hole", "from 5", "from 4"}},
          {two("[5,9]", "[0,4]"), 9, {"tensor 'a' follows a hole"}}};
}

TEST(SafetensorsHeader, EachFaultIsRefusedByName) {
  const std::string path = temporary_path("ranklab_header");
  int count = 0;
  for (const auto& list : {bad_json(), bad_tensors(), bad_neighbours()}) {
    for (const BadHeader& bad : list) {
      put_bytes(path, file_bytes(bad.json, bad.data_bytes));
      const std::string message = refusal(path);
      EXPECT_THAT(message, HasSubstr("[checkpoint] '" + path + "'")) << bad.json.substr(0, 200);
      for (const std::string& part : bad.parts) EXPECT_THAT(message, HasSubstr(part)) << bad.json.substr(0, 200);
      EXPECT_LT(message.size(), 700u);
      ++count;
    }
  }
  EXPECT_EQ(count, 57);
}

TEST(SafetensorsHeader, SoundOnesAreTaken) {
  const std::string path = temporary_path("ranklab_header");
  put_bytes(path, file_bytes("{}", 0));
  EXPECT_EQ(refusal(path), "");
  put_bytes(path, file_bytes("{}      \n\t ", 0));
  EXPECT_EQ(refusal(path), "");
  // Spaces, another order of fields and tensors, tensors without bytes between others.
  put_bytes(path, file_bytes(R"({ "b" : {"data_offsets":[4,8], "shape" : [2,2], "dtype":"U8"},
                                 "e":{"dtype":"F64","shape":[0,9223372036854775807],"data_offsets":[4,4]},
                                 "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"__metadata__":{}})",
                             8));
  EXPECT_EQ(refusal(path), "");
  const SafetensorsFile file(path);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensor("b").begin, 4u);
  EXPECT_EQ(file.tensor("e").elements(), 0u);
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_THROW(file.tensor("c"), Error);
}

TEST(SafetensorsHeader, ItsLengthIsHeldToTheLimitAndTheFile) {
  const std::string path = temporary_path("ranklab_header");
  const auto with_length = [&](uint64_t length) {
    std::string bytes = file_bytes("{}", 0);
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
    put_bytes(path, bytes);
    return refusal(path);
  };
  EXPECT_EQ(with_length(2), "");
  EXPECT_THAT(with_length(3), HasSubstr("cut off in its header; got 2 bytes; want 3 bytes"));
  EXPECT_THAT(with_length(100'000'000), HasSubstr("cut off in its header"));
  EXPECT_THAT(with_length(100'000'001), HasSubstr("at most 100000000"));
  EXPECT_THAT(with_length(~uint64_t{0}), HasSubstr("at most 100000000"));
}

}  // namespace
}  // namespace ranklab
