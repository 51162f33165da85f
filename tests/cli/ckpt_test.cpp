// ranklab ckpt on files as ranklab and others write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/tensor_files.h"
#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using checkpoint_samples::Tensors;
using ::testing::HasSubstr;

class CkptCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write(a_, {1, 2, 3, 4, 5, 6}, "1");
    write(b_, {1, 2, 3, 4.5, 5, 6}, "2");
  }
  static void write(const std::string& path, const std::vector<float>& values, const std::string& step) {
    Tensors tensors;
    tensors.add("w", TensorType::kF32, {2, 3}, values).add("n", TensorType::kI64, {}, std::vector<int64_t>{9});
    write_safetensors(path, tensors, {.metadata = {{"step", step}}, .chunk_bytes = 8});
  }
  static Outcome ckpt(const std::string& arguments) {
    return run_command(RANKLAB_PROGRAM " ckpt " + arguments + " 2>&1");
  }

  const std::string folder_ = temporary_path("ranklab_ckpt");
  const std::string a_ = folder_ + "/a.safetensors", b_ = folder_ + "/b.safetensors";
};

TEST_F(CkptCommand, InspectListsTensorsAndMetadata) {
  const Outcome text = ckpt("inspect " + a_);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr(": 2 tensors, "));
  EXPECT_THAT(text.output, HasSubstr("checksums: xxh3 of every 8 bytes"));
  EXPECT_THAT(text.output, HasSubstr("metadata: \"step\" = \"1\"\n"));
  EXPECT_THAT(text.output, HasSubstr("w     F32      [2, 3]              24\n"));
  const nlohmann::json data = nlohmann::json::parse(ckpt("inspect --json " + a_).output).at("data");
  EXPECT_EQ(data.at("bytes"), fs::file_size(a_));
  EXPECT_EQ(data.at("tensors").at(0),
            nlohmann::json::parse(R"({"name":"n","dtype":"I64","shape":[],"bytes":8,"offset":0})"));
  EXPECT_EQ(data.at("tensors").at(1).at("shape"), nlohmann::json({2, 3}));
  EXPECT_EQ(data.at("metadata"), nlohmann::json({{"step", "1"}}));
  EXPECT_EQ(data.at("checksums").at("chunk_bytes"), 8);
}

TEST_F(CkptCommand, VerifySaysWhatHoldsAndWhatIsBroken) {
  const Outcome sound = ckpt("verify " + a_);
  EXPECT_EQ(sound.exit_code, 0);
  EXPECT_THAT(sound.output, HasSubstr("sound, 2 tensors"));
  EXPECT_THAT(sound.output, HasSubstr("every checksum holds"));
  std::string bytes = checkpoint_samples::bytes_of(a_);
  bytes[bytes.size() - 1] ^= 1;
  bytes[bytes.size() - 17] ^= 1;
  checkpoint_samples::put_bytes(a_, bytes);
  const Outcome broken = ckpt("verify " + a_);
  EXPECT_EQ(broken.exit_code, 8);
  EXPECT_THAT(broken.output,
              HasSubstr("damaged: tensor 'w', bytes 0 to 8, file offset " + std::to_string(bytes.size() - 24)));
  EXPECT_THAT(broken.output, HasSubstr("damaged: tensor 'w', bytes 16 to 24"));
  EXPECT_THAT(broken.output, HasSubstr("error: [checkpoint] '" + a_ + "': tensor 'w': bytes 0 to 8 are damaged"));
  const Outcome object = run_command(RANKLAB_PROGRAM " ckpt verify --json " + a_ + " 2>/dev/null");
  EXPECT_EQ(nlohmann::json::parse(object.output).at("error").at("code"), 8);
}

TEST_F(CkptCommand, DiffSaysWhereAndByHowMuch) {
  const Outcome text = ckpt("diff " + a_ + " " + b_);
  EXPECT_EQ(text.exit_code, 4);
  EXPECT_THAT(text.output, HasSubstr("w: F32 [2, 3]: 1 of 6 elements differ, the first at [1, 0]; at most by 0.5, "
                                     "relative 0.111111\n"));
  EXPECT_THAT(text.output, HasSubstr("metadata that differs (ignored): \"step\"\n"));
  EXPECT_THAT(text.output, HasSubstr("tensors that differ: 1, the same: 1\n"));
  const nlohmann::json data = nlohmann::json::parse(ckpt("diff --json " + a_ + " " + b_).output).at("data");
  EXPECT_EQ(data.at("same"), false);
  EXPECT_EQ(data.at("different").at(0).at("first"), nlohmann::json({1, 0}));
  EXPECT_EQ(data.at("different").at(0).at("max_absolute"), 0.5);
  write(b_, {1, 2, 3, 4, 5, 6}, "2");
  const Outcome same = ckpt("diff " + a_ + " " + b_);
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_THAT(same.output, HasSubstr("the same: 2 tensors, bit for bit\n"));
}

}  // namespace
}  // namespace ranklab
