// Files that were damaged, cut off, replaced by something else, or caught while they were written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/checkpoint/safetensors.h"
#include "tests/base/faulty_file_calls.h"
#include "tests/checkpoint/tensor_files.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using checkpoint_samples::bytes_of;
using checkpoint_samples::put_bytes;
using checkpoint_samples::refusal;
using checkpoint_samples::Tensors;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

class DamagedSafetensors : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::vector<float> weights(60);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5F * static_cast<float>(i) - 7;
    tensors_.add("layers.0.weight", TensorType::kF32, {6, 10}, weights)
        .add("layers.0.bias", TensorType::kBF16, {5}, std::vector<uint16_t>{1, 2, 3, 4, 5})
        .add("empty", TensorType::kF32, {0}, std::vector<float>{})
        .add("step", TensorType::kI64, {}, std::vector<int64_t>{12});
    write_safetensors(path_, tensors_, {.metadata = {{"format", "pt"}, {"step", "12"}}, .chunk_bytes = 64});
    bytes_ = bytes_of(path_);
    const SafetensorsFile file(path_);
    data_begin_ = bytes_.size() - file.tensor("layers.0.bias").end;  // 16-bit types lie last
  }
  // The message about the file in which byte `at` was xor-ed with `mask`.
  std::string with_flip(size_t at, int mask) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const auto put = [&](int byte) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte)).flush();
    };
    put(bytes_[at] ^ mask);
    const std::string message = refusal(path_);
    put(bytes_[at]);
    return message;
  }
  // The tensor whose byte lies there, and the first byte of its chunk.
  std::string place_of(size_t at) const {
    const size_t in_data = at - data_begin_;
    const auto chunk = [](size_t byte) { return std::to_string(byte / 64 * 64); };
    if (in_data < 8) return "tensor 'step': bytes 0 to 8";
    if (in_data < 248) return "tensor 'layers.0.weight': bytes " + chunk(in_data - 8) + " to ";
    return "tensor 'layers.0.bias': bytes 0 to 10";
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  const std::string folder_ = temporary_path("ranklab_damage");
  const std::string path_ = folder_ + "/model.safetensors";
  Tensors tensors_;
  std::string bytes_;
  size_t data_begin_ = 0;
};

TEST_F(DamagedSafetensors, EveryFlippedBitIsFoundAndNamed) {
  ASSERT_EQ(refusal(path_), "");
  int flips = 0;
  for (size_t at = 0; at < bytes_.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit, ++flips) {
      const std::string message = with_flip(at, 1 << bit);
      ASSERT_THAT(message, HasSubstr("'" + path_ + "'")) << "byte " << at << " bit " << bit;
      if (at >= data_begin_) {
        ASSERT_THAT(message, HasSubstr(place_of(at))) << "byte " << at << " bit " << bit;
        ASSERT_THAT(message, HasSubstr("file offset "));
      }
    }
  }
  // What is left of 10,000: two bits at once.
  for (uint32_t random = 1; flips < 10000; ++flips) {
    random = random * 1664525 + 1013904223;
    const size_t at = (random >> 8) % bytes_.size();
    ASSERT_NE(with_flip(at, 3 << (random >> 30)), "") << "byte " << at;
  }
}

TEST_F(DamagedSafetensors, EveryTruncationIsFoundAndNamed) {
  for (size_t size = bytes_.size(); size-- > 0;) {
    fs::resize_file(path_, size);
    const std::string message = refusal(path_);
    ASSERT_THAT(message, HasSubstr("'" + path_ + "': the file is cut off")) << size << " bytes";
    if (size < data_begin_) continue;
    ASSERT_THAT(message, HasSubstr("'layers.0.bias' is the last one")) << size << " bytes";
  }
  put_bytes(path_, bytes_ + '\0');
  EXPECT_THAT(refusal(path_), HasSubstr("the file is too long"));
}

TEST_F(DamagedSafetensors, EveryDamagedChunkIsListed) {
  std::string bytes = bytes_;
  for (const size_t at : {size_t{0}, size_t{8 + 70}, size_t{8 + 239}}) bytes[data_begin_ + at] ^= 1;
  put_bytes(path_, bytes);
  const SafetensorsFile file(path_);
  const std::vector<DamagedChunk> damaged = file.damaged_chunks();
  ASSERT_EQ(damaged.size(), 3u);
  EXPECT_EQ(damaged[0].tensor, "layers.0.weight");
  EXPECT_EQ(damaged[0].begin, 64u);
  EXPECT_EQ(damaged[0].end, 128u);
  EXPECT_EQ(damaged[0].file_offset, data_begin_ + 8 + 64);
  EXPECT_EQ(damaged[1].end, 240u);
  EXPECT_EQ(damaged[2].tensor, "step");
  EXPECT_THAT(refusal(path_), HasSubstr(", and 2 chunks more"));
  const TensorEntry& weight = file.tensor("layers.0.weight");
  std::vector<std::byte> part(4);
  file.read(weight, 0, part);  // its chunk is sound
  EXPECT_THROW(file.read(weight, 64, part), Error);
  EXPECT_THROW(file.read(weight), Error);
}

// Rewritten by a program that keeps metadata it does not know.
TEST_F(DamagedSafetensors, ChecksumsThatAreNotTheFilesOwnAreRefused) {
  const std::string json = bytes_.substr(8, data_begin_ - 8);
  const auto rewritten = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    put_bytes(path_, checkpoint_samples::file_bytes(changed, 0) + bytes_.substr(data_begin_));
    return refusal(path_);
  };
  EXPECT_EQ(rewritten("pt", "pt"), "");
  EXPECT_THAT(rewritten("\"pt\"", "\"np\""), HasSubstr("the header is damaged"));
  EXPECT_THAT(rewritten("{\"__metadata__\"", "{ \"__metadata__\""), HasSubstr("the header is damaged"));
  EXPECT_THAT(rewritten("ranklab.header_xxh3\":", "ranklab.header_xxh3\": "), HasSubstr("checksum is damaged"));
  EXPECT_THAT(rewritten("ranklab.header_xxh3", "ranklab.header_xxh4"), HasSubstr("'ranklab.header_xxh3'"));
}

TEST_F(DamagedSafetensors, WhatIsNoRegularFileIsRefusedAtOnce) {
  const std::string other = folder_ + "/other";
  fs::create_symlink(path_, other);
  EXPECT_THAT(refusal(other, ErrorKind::kIo), HasSubstr("not a regular file; got a symbolic link"));
  fs::remove(other);
  ASSERT_EQ(::mkfifo(other.c_str(), 0600), 0);  // nobody writes to it
  EXPECT_THAT(refusal(other, ErrorKind::kIo), HasSubstr("not a regular file; got a pipe"));
  EXPECT_THAT(refusal(folder_, ErrorKind::kIo), HasSubstr("not a regular file; got a folder"));
  EXPECT_THAT(refusal("/dev/zero", ErrorKind::kIo), HasSubstr("a character device"));
  try {
    SafetensorsFile file(folder_ + "/absent");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.what(), HasSubstr("/absent'; got No such file"));
  }
}

TEST_F(DamagedSafetensors, AFileThatShrinksWhileItIsReadIsAnError) {
  const SafetensorsFile file(path_);
  fs::resize_file(path_, data_begin_ + 100);
  EXPECT_THROW(file.read(file.tensor("layers.0.weight")), Error);
  EXPECT_THROW(file.verify(), Error);
}

TEST_F(DamagedSafetensors, WhateverCallFailsTheOldOrTheNewFileIsWhole) {
  Tensors fresh;
  fresh.add("other", TensorType::kF32, {3}, std::vector<float>{1, 2, 3});
  const std::string want_path = temporary_path("ranklab_damage_want");
  write_safetensors(want_path, fresh);
  const std::string want = bytes_of(want_path);
  int failures = 0;
  for (int n = 0; n < 100; ++n) {
    put_bytes(path_, bytes_);
    FaultyCalls faulty(n, ENOSPC);
    try {
      write_safetensors(path_, fresh, {.calls = &faulty});
    } catch (const Error& error) {
      ++failures;
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_THAT(error.what(), HasSubstr("'" + path_ + "'"));
      EXPECT_THAT(error.what(), HasSubstr(" free")) << "how much room there is";
      EXPECT_THAT(error.what(), HasSubstr("are needed"));
    }
    EXPECT_THAT(bytes_of(path_), AnyOf(bytes_, want)) << "call " << n << " fails, " << faulty.failed();
    EXPECT_EQ(files(), 1u) << "call " << n << " fails, " << faulty.failed();
    if (faulty.failed().empty()) break;
  }
  EXPECT_EQ(failures, 10) << "open, two seeks and writes, sync, close, rename, open the folder, sync it";
  HesitantCalls hesitant;
  put_bytes(path_, bytes_);
  write_safetensors(path_, fresh, {.calls = &hesitant});
  EXPECT_EQ(bytes_of(path_), want);
}

TEST_F(DamagedSafetensors, APowerCutLeavesTheOldOrTheNewFile) {
  const std::string old = "old";
  int calls = 1;
  std::string whole;
  for (int n = -1; n < calls; ++n) {  // -1: the power stays on
    CrashDisk disk(path_, old, n);
    try {
      write_safetensors(path_, tensors_, {.calls = &disk});
    } catch (const PowerCut&) {
    }
    if (n < 0) {
      whole = disk.possible(path_)[0];
      EXPECT_GT(whole.size(), 300u);
      EXPECT_THAT(disk.possible(path_), Each(whole));
    }
    EXPECT_THAT(disk.possible(path_), Each(AnyOf(old, whole))) << "power cut before call " << n;
    calls = std::max(calls, disk.made());
  }
  EXPECT_GT(calls, 8);
}

}  // namespace
}  // namespace ranklab
