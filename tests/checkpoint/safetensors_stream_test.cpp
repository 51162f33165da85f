#include "core/checkpoint/safetensors_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "core/checkpoint/tensor_files.h"
#include "tests/checkpoint/tensor_files.h"

namespace ranklab {
namespace {

using namespace checkpoint_samples;  // NOLINT: the helpers of tensor_files.h
using ::testing::AllOf;
using ::testing::HasSubstr;

Tensors some_tensors() {
  Tensors tensors;
  tensors.add("b", TensorType::kF32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  tensors.add("a", TensorType::kF64, {1}, std::vector<double>{0.1});
  tensors.add("none", TensorType::kF32, {0}, std::vector<float>{});
  tensors.add("c", TensorType::kU8, {5}, std::vector<uint8_t>{1, 2, 3, 4, 5});
  return tensors;
}

std::vector<TensorEntry> entries_of(const Tensors& tensors) {
  std::vector<TensorEntry> entries;
  for (const TensorToWrite& t : tensors.list()) entries.push_back({.name = t.name, .type = t.type, .shape = t.shape});
  return entries;
}

TEST(SafetensorsStream, TheOrderTensorsComeInIsNotSeenInTheFile) {
  const Tensors tensors = some_tensors();
  const std::string want_path = temporary_path("ranklab_stream_want");
  const SafetensorsWriteOptions options{.metadata = {{"step", "3"}}, .chunk_bytes = 4};
  const WrittenSafetensors want = write_safetensors(want_path, tensors, options);
  const std::string path = temporary_path("ranklab_stream");
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    std::filesystem::remove(path);
    SafetensorsStream stream(path, entries_of(tensors), options);
    for (const size_t i : order) stream.add(tensors.list()[i].name, tensors.list()[i].bytes);
    EXPECT_FALSE(std::filesystem::exists(path));
    const WrittenSafetensors got = stream.commit();
    EXPECT_EQ(got.file_bytes, want.file_bytes);
    EXPECT_EQ(got.header_xxh3, want.header_xxh3);
    EXPECT_EQ(bytes_of(path), bytes_of(want_path));
    EXPECT_EQ(refusal(path), "");
  } while (std::ranges::next_permutation(order).found);
}

TEST(SafetensorsStream, EachTensorComesOnceAndWhole) {
  const Tensors tensors = some_tensors();
  const std::string folder = temporary_path("ranklab_stream_refused"), path = folder + "/file";
  std::filesystem::create_directory(folder);
  const auto message = [&](const std::function<void(SafetensorsStream&)>& act) {
    try {
      SafetensorsStream stream(path, entries_of(tensors));
      for (const TensorToWrite& t : tensors.list()) {
        if (t.name != "b") stream.add(t.name, t.bytes);
      }
      act(stream);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto& b = tensors.list()[0];
  EXPECT_THAT(message([](SafetensorsStream& s) { s.commit(); }), AllOf(HasSubstr("did not arrive"), HasSubstr("'b'")));
  EXPECT_THAT(message([&](SafetensorsStream& s) { s.add("c", b.bytes); }), HasSubstr("'c'"));
  EXPECT_THAT(message([&](SafetensorsStream& s) { s.add("d", b.bytes); }), HasSubstr("'d'"));
  EXPECT_THAT(message([&](SafetensorsStream& s) { s.add("b", b.bytes.first(20)); }),
              AllOf(HasSubstr("20 bytes"), HasSubstr("24 bytes for F32 [2, 3]")));
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nothing of a refused file is left";
  EXPECT_EQ(message([&](SafetensorsStream& s) { s.add("b", b.bytes), s.commit(); }), "");
}

// A tensor is on its way before the next is made.
TEST(SafetensorsStream, WriteTensorsHoldsOneAtATime) {
  const Tensors tensors = some_tensors();
  std::vector<TensorInfo> infos;
  for (const TensorToWrite& t : tensors.list()) infos.push_back({t.name, t.type, t.shape});
  const std::string folder = temporary_path("ranklab_stream_one"), path = folder + "/file";
  std::filesystem::create_directory(folder);
  std::vector<uintmax_t> sizes;
  const auto bytes_of = [&](const TensorInfo& info) {
    sizes.push_back(std::filesystem::file_size(std::filesystem::directory_iterator(folder)->path()));
    const auto found = std::ranges::find(tensors.list(), info.name, &TensorToWrite::name);
    return std::vector<std::byte>(found->bytes.begin(), found->bytes.end());
  };
  const uint64_t whole = write_tensors(path, infos, bytes_of, {.durable = false}).file_bytes;
  // In the file "a" (8 bytes) comes first, then "b" (24), then "c" (5).
  EXPECT_EQ(sizes, (std::vector<uintmax_t>{0, whole - 5, whole - 5, whole - 5}));
}

}  // namespace
}  // namespace ranklab
