#include "core/sim/hardware_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::string& name_or_path) {
  try {
    load_hardware_profile(name_or_path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class TomlFile {
 public:
  explicit TomlFile(const std::string& text) : path_(::testing::TempDir() + "/profile_under_test.toml") {
    std::ofstream(path_) << text;
  }
  ~TomlFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kToml = R"(name = "toy"
title = "Toy"
compute_capability = 8.6
peak_tflops_fp32 = 1
peak_tflops_fp64 = 0.5
peak_tflops_16bit = 2
peak_tflops_fp8 = 0
memory_bandwidth_gb_s = 100
memory_gb = 8
launch_overhead_ns = 0
gpus_per_node = 4
sources = ["made up"]
[intra_node]
latency_ns = 10
bandwidth_gb_s = 1
[inter_node]
latency_ns = 20
bandwidth_gb_s = 0.5
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(HardwareProfile, EveryBuiltInProfileIsWholeAndCited) {
  ASSERT_FALSE(hardware_profile_names().empty());
  for (const std::string& name : hardware_profile_names()) {
    const HardwareProfile profile = load_hardware_profile(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_FALSE(profile.title.empty()) << name;
    EXPECT_GE(profile.sources.size(), 3u) << name;
    EXPECT_GE(profile.peak_flops_16bit, profile.peak_flops_fp32) << name;
    EXPECT_GT(profile.memory_bandwidth, profile.inter_node.bandwidth_bytes_per_ns * 1e9) << name;
    // (Half of it where GPUs of a node talk over PCIe.)
    EXPECT_GT(2 * profile.intra_node.bandwidth_bytes_per_ns, profile.inter_node.bandwidth_bytes_per_ns) << name;
  }
}

// The denominators of MFU: dense datasheet peaks, not the doubled figures with structured sparsity.
TEST(HardwareProfile, PeaksAreTheDenseDatasheetFigures) {
  EXPECT_DOUBLE_EQ(load_hardware_profile("a100-80").peak_flops(DType::kBFloat16), 312e12);
  EXPECT_DOUBLE_EQ(load_hardware_profile("h100-sxm").peak_flops(DType::kFloat16), 989.4e12);
  EXPECT_DOUBLE_EQ(load_hardware_profile("h200").peak_flops(DType::kFloat8), 1978.9e12);
  EXPECT_DOUBLE_EQ(load_hardware_profile("h100-sxm").peak_flops(DType::kFloat32), 67e12);
  EXPECT_DOUBLE_EQ(load_hardware_profile("h100-sxm").peak_flops(DType::kInt64), 67e12);
  EXPECT_DOUBLE_EQ(load_hardware_profile("h800").peak_flops(DType::kFloat64), 1e12);
  EXPECT_DOUBLE_EQ(load_hardware_profile("h800").intra_node.bandwidth_bytes_per_ns, 200);
  EXPECT_DOUBLE_EQ(load_hardware_profile("b200").peak_flops(DType::kBFloat16), 2250e12);
  // No FP8 units: FP8 runs at the 16-bit rate.
  EXPECT_DOUBLE_EQ(load_hardware_profile("a100-80").peak_flops(DType::kFloat8), 312e12);
}

TEST(HardwareProfile, IsFoundByTheNameThatADriverHas) {
  ASSERT_TRUE(hardware_profile_of_gpu("NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(hardware_profile_of_gpu("NVIDIA H100 80GB HBM3")->name, "h100-sxm");
  EXPECT_EQ(hardware_profile_of_gpu("NVIDIA H200")->name, "h200");
  EXPECT_FALSE(hardware_profile_of_gpu("NVIDIA GeForce RTX 4090"));  // MFU against another part's peak would be wrong
  EXPECT_FALSE(hardware_profile_of_gpu(""));
}

TEST(HardwareProfile, NoTwoShareAGpu) {
  for (const std::string& name : hardware_profile_names()) {
    for (const std::string& gpu : load_hardware_profile(name).gpu_names)
      EXPECT_EQ(hardware_profile_of_gpu(gpu)->name, name);
  }
}

TEST(HardwareProfile, AnUnknownNameSaysTheNearest) {
  EXPECT_THAT(message_of("h100-smx"), HasSubstr("do: write 'h100-sxm'"));
  EXPECT_THAT(message_of("h100-smx"), HasSubstr("laptop"));
}

TEST(HardwareProfile, ReadsAFileOfOnesOwn) {
  const TomlFile file(kToml);
  const HardwareProfile profile = load_hardware_profile(file.path());
  EXPECT_EQ(profile.name, "toy");
  EXPECT_DOUBLE_EQ(profile.peak_flops_fp32, 1e12);
  EXPECT_DOUBLE_EQ(profile.inter_node.bandwidth_bytes_per_ns, 0.5);
  EXPECT_EQ(profile.gpus_per_node, 4);
  EXPECT_DOUBLE_EQ(profile.compute_capability, 8.6);
}

TEST(HardwareProfile, AFaultyFileIsRefusedWithItsPlace) {
  EXPECT_THAT(message_of(TomlFile(replaced(kToml, "memory_gb", "memory_bg")).path()), HasSubstr("'memory_gb'"));
  EXPECT_THAT(message_of(TomlFile(replaced(kToml, "name", "peak_tflops_16bits = 3\nname")).path()),
              HasSubstr("do: write 'peak_tflops_16bit'"));
  EXPECT_THAT(message_of(TomlFile(replaced(kToml, "latency_ns = 20", "latency = 20")).path()),
              HasSubstr("[inter_node]"));
  EXPECT_THAT(message_of(TomlFile(replaced(kToml, "[\"made up\"]", "[]")).path()), HasSubstr("published"));
  EXPECT_THAT(message_of(TomlFile(replaced(kToml, "= 100", "= -1")).path()), HasSubstr("memory_bandwidth_gb_s"));
  for (const char* bad : {"compute_capability = 90", "compute_capability = -9", "compute_capability = 8.65",
                          "compute_capability = \"sm_90\"", ""})
    EXPECT_THAT(message_of(TomlFile(replaced(kToml, "compute_capability = 8.6", bad)).path()),
                HasSubstr("'compute_capability'"))
        << bad;
  EXPECT_THAT(message_of(TomlFile(replaced(kToml, "gpus_per_node = 4", "gpus_per_node = 4.5")).path()),
              HasSubstr("bad value of 'gpus_per_node'; got 4.5; want a whole number"));
  EXPECT_THAT(message_of(TomlFile("name = ").path()), HasSubstr(".toml:1] not TOML"));
  EXPECT_THAT(message_of("/nowhere/at/all.toml"), HasSubstr("cannot read"));
}

}  // namespace
}  // namespace ranklab
