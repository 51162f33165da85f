#include "core/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/checksum.h"
#include "tests/checkpoint/tensor_files.h"

namespace ranklab {
namespace {

using checkpoint_samples::bytes_of;
using checkpoint_samples::put_bytes;
using checkpoint_samples::refusal;
using checkpoint_samples::Tensors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPath = temporary_path("ranklab_safetensors");

std::string decode_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = digits.find(c);
    if (digit == std::string::npos) continue;  // line ends and padding
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8));
  }
  return out;
}

TEST(Checksum, IsXxh3) {
  EXPECT_EQ(xxh3_text(xxh3({})), "2d06800538d394c2") << "of no bytes, as the library's own tests have it";
  const std::string text = "ranklab";
  Xxh3 hash;
  hash.add("rank");
  hash.add("lab");
  EXPECT_EQ(hash.value(), xxh3(std::as_bytes(std::span(text))));
  uint64_t value = 0;
  EXPECT_TRUE(parse_xxh3_text("2d06800538d394c2", value));
  EXPECT_EQ(value, 0x2d06800538d394c2U);
  for (const char* bad : {"", "2d06800538d394c", "2d06800538d394c20", "2D06800538D394C2", "+d06800538d394c2"})
    EXPECT_FALSE(parse_xxh3_text(bad, value)) << bad;
}

TEST(TensorTypes, HaveTheValuesOfTheirBits) {
  const auto value = [](TensorType type, auto bits) {
    return element_value(type, reinterpret_cast<const std::byte*>(&bits));
  };
  EXPECT_EQ(value(TensorType::kF16, uint16_t{0x3555}), 0.333251953125);
  EXPECT_EQ(value(TensorType::kF16, uint16_t{0x8001}), -std::ldexp(1.0, -24));
  EXPECT_EQ(value(TensorType::kF16, uint16_t{0xfc00}), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value(TensorType::kF16, uint16_t{0x7e00})));
  EXPECT_EQ(value(TensorType::kBF16, uint16_t{0x4049}), 3.140625);
  EXPECT_EQ(value(TensorType::kF8E4M3, uint8_t{0x7e}), 448);
  EXPECT_TRUE(std::isnan(value(TensorType::kF8E4M3, uint8_t{0xff})));
  EXPECT_EQ(value(TensorType::kF8E4M3, uint8_t{0x01}), std::ldexp(1.0, -9));
  EXPECT_EQ(value(TensorType::kF8E5M2, uint8_t{0x7b}), 57344);
  EXPECT_EQ(value(TensorType::kF8E5M2, uint8_t{0x7c}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value(TensorType::kF32, 1.5F), 1.5);
  EXPECT_EQ(value(TensorType::kF64, -0.1), -0.1);
  EXPECT_EQ(value(TensorType::kI8, int8_t{-128}), -128);
  EXPECT_EQ(value(TensorType::kU64, uint64_t{1} << 53), 9007199254740992.0);
}

TEST(Safetensors, EveryTypeComesBack) {
  for (const bool checksums : {true, false}) {
    Tensors tensors;
    for (int i = 0; i < kTensorTypes; ++i) {
      const auto type = static_cast<TensorType>(i);
      std::vector<uint8_t> bytes(6 * size_bytes(type));
      for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(17 * i + static_cast<int>(k));
      tensors.add("t" + std::to_string(i), type, {2, 1, 3}, bytes);
    }
    tensors.add("scalar", TensorType::kF64, {}, std::vector<double>{0.1});
    tensors.add("empty", TensorType::kI64, {3, 0, 2}, std::vector<int64_t>{});
    tensors.add("also empty", TensorType::kBool, {0}, std::vector<char>{});
    const WrittenSafetensors written =
        write_safetensors(kPath, tensors, {.metadata = {{"step", "7"}}, .checksums = checksums, .chunk_bytes = 5});
    const SafetensorsFile file(kPath);
    EXPECT_EQ(written.file_bytes, bytes_of(kPath).size());
    EXPECT_EQ(file.file_bytes(), written.file_bytes);
    EXPECT_EQ(file.checksums() ? file.checksums()->header : 0, written.header_xxh3);
    EXPECT_EQ(file.checksums().has_value(), checksums);
    EXPECT_THAT(file.metadata(), ElementsAre(std::pair("step", "7")));
    ASSERT_EQ(file.tensors().size(), tensors.list().size());
    for (const TensorToWrite& want : tensors.list()) {
      const TensorEntry& got = file.tensor(want.name);
      EXPECT_EQ(got.type, want.type);
      EXPECT_EQ(got.shape, want.shape);
      EXPECT_EQ(file.read(got), std::vector(want.bytes.begin(), want.bytes.end())) << want.name;
      EXPECT_EQ(got.begin % size_bytes(want.type), 0u) << "aligned, as torch's views of a file need";
    }
    EXPECT_EQ(refusal(kPath), "");
  }
}

TEST(Safetensors, AnyPartOfATensorIsReadAndChecked) {
  Tensors tensors;
  std::vector<uint8_t> values(101);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 7);
  tensors.add("w", TensorType::kU8, {101}, values);
  write_safetensors(kPath, tensors, {.chunk_bytes = 16});
  const SafetensorsFile file(kPath);
  const TensorEntry& w = file.tensor("w");
  for (uint64_t begin = 0; begin <= 101; ++begin) {
    for (uint64_t size = 0; begin + size <= 101; ++size) {
      std::vector<std::byte> out(size);
      file.read(w, begin, out);
      ASSERT_TRUE(std::ranges::equal(out, std::as_bytes(std::span(values)).subspan(begin, size)))
          << begin << " " << size;
    }
  }
  std::vector<std::byte> out(2);
  EXPECT_THROW(file.read(w, 100, out), Error);
  EXPECT_THROW(file.read(w, ~uint64_t{0}, out), Error);
}

TEST(Safetensors, APythonFileIsReadAndWrittenByteForByte) {
  const std::string bytes = decode_base64(bytes_of(RANKLAB_TEST_DIR "/python_file.b64"));
  put_bytes(kPath, bytes);
  const SafetensorsFile file(kPath);
  ASSERT_EQ(file.tensors().size(), 18u);
  EXPECT_FALSE(file.checksums().has_value());
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair("format", "pt")));
  const TensorEntry& scalar = file.tensor("scalar");
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(element_value(scalar.type, file.read(scalar).data()), 1.5);
  EXPECT_THAT(file.tensor("empty").shape, ElementsAre(2, 0));
  EXPECT_EQ(file.tensor("t.bfloat16").type, TensorType::kBF16);
  EXPECT_EQ(file.tensor("t.float8_e4m3fn").type, TensorType::kF8E4M3);
  EXPECT_THAT(file.read(file.tensor("\xc3\xbc \"quoted\" \\")), ElementsAre(std::byte{7}));
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorToWrite> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    data.push_back(file.read(entry));
    tensors.push_back({.name = entry.name, .type = entry.type, .shape = entry.shape, .bytes = data.back()});
    if (!entry.name.starts_with("t.") || entry.name == "t.bool") continue;
    for (const std::byte byte : data.back()) EXPECT_LE(static_cast<int>(byte) % 16, 2) << entry.name;
  }
  const std::string again = temporary_path("ranklab_safetensors_again");
  write_safetensors(again, tensors, {.metadata = file.metadata(), .checksums = false});
  EXPECT_EQ(bytes_of(again), bytes);
}

TEST(Safetensors, TheHeadersHashStandsForTheWholeFile) {
  const auto hash = [](float value, const std::string& step) {
    Tensors tensors;
    tensors.add("w", TensorType::kF32, {2}, std::vector<float>{1, value});
    return write_safetensors(kPath, tensors, {.metadata = {{"step", step}}}).header_xxh3;
  };
  EXPECT_EQ(hash(1, "5"), hash(1, "5"));
  EXPECT_NE(hash(1, "5"), hash(2, "5"));
  EXPECT_NE(hash(1, "5"), hash(1, "6"));
}

TEST(Safetensors, TheWriterRefusesWhatNoReaderTakes) {
  const auto message = [](const Tensors& tensors, const SafetensorsWriteOptions& options = {}) {
    try {
      write_safetensors(kPath, tensors, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("written");
  };
  const auto named = [](const std::string& name) {
    return Tensors().add(name, TensorType::kF32, {1}, std::vector<float>{1});
  };
  EXPECT_THAT(message(named("")), HasSubstr("name is empty"));
  EXPECT_THAT(message(named("a\nb")), HasSubstr("control character; got 'a?b'"));
  EXPECT_THAT(message(named("__metadata__")), HasSubstr("the one of the metadata"));
  EXPECT_THAT(message(named("\xff")), HasSubstr("not text"));
  EXPECT_THAT(message(named("w"), {.metadata = {{"ranklab.x", ""}}}), HasSubstr("'ranklab.x'"));
  EXPECT_THAT(message(named("w").add("w", TensorType::kU8, {1}, std::vector<char>{1})), HasSubstr("one name; got 'w'"));
  EXPECT_THAT(message(Tensors().add("w", TensorType::kF32, {2, 2}, std::vector<float>{1, 2, 3})),
              HasSubstr("got 12 bytes; want 16 bytes for F32 [2, 2]"));
  EXPECT_THAT(message(Tensors().add("w", TensorType::kF32, {-1}, std::vector<float>{1})), HasSubstr("'w'"));
}

}  // namespace
}  // namespace ranklab
