// The times of measured kernels and collectives: those that core/sim/profiles/fit_kernels.py fits its constants with,
// and what follows from a profile that is changed.
#include "core/sim/kernel_time.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/sim/link_cost.h"
#include "core/sim/software_terms.h"
#include "core/sim/what_if.h"

namespace ranklab {
namespace {

HardwareProfile measured(const char* name = "h100-sxm") { return load_hardware_profile(name, Efficiency::kMeasured); }

int64_t product_ns(const HardwareProfile& profile, double m, double n, double k) {
  return kernel_ns(profile, {.flops = 2 * m * n * k,
                             .bytes = 2 * (m * k + n * k + m * n),
                             .dtype = DType::kBFloat16,
                             .shape = KernelShape::product(m, n, k)});
}

void expect_near(int64_t got, double want) { EXPECT_NEAR(static_cast<double>(got) / want, 1, 1e-3) << got; }

// fit_kernels.py's gemm_seconds() with the profile's constants.
TEST(KernelTime, OfProductsIsTheFits) {
  const HardwareProfile h100 = measured();
  expect_near(product_ns(h100, 4096, 4096, 4096), 171782);
  expect_near(product_ns(h100, 8192, 28672, 8192), 5084215);
  expect_near(product_ns(h100, 17, 2048, 8192), 14968);
  expect_near(product_ns(h100, 512, 512, 16384), 22011);
  expect_near(product_ns(h100, 1, 128256, 4096), 377452);
  expect_near(product_ns(h100, 300, 1000, 520), 3570);
}

// Unfused attention of heads 108 wide; the same product alone, and in fp32, keeps its time.
TEST(KernelTime, BatchesOfOddRowsDoWithoutTensorCores) {
  const HardwareProfile a100 = measured("a100-80");
  const auto ns = [&](double n, double k, double batches, DType dtype = DType::kBFloat16) {
    return static_cast<double>(kernel_ns(a100, {.flops = 2 * 2048 * n * k * batches,
                                                .bytes = 1,
                                                .dtype = dtype,
                                                .shape = KernelShape::product(2048, n, k, batches)}));
  };
  EXPECT_NEAR(ns(2048, 108, 64), 2 * 2048.0 * 2048 * 108 * 64 / 9.75e3, 1e4);
  EXPECT_NEAR(ns(108, 2048, 64), ns(2048, 108, 64), 1e3);
  EXPECT_GT(ns(2048, 108, 64), 5 * ns(2048, 112, 64));
  EXPECT_LT(ns(2048, 108, 1), 1.1 * ns(2048, 112, 1));
  EXPECT_GT(ns(8, 30, 2), 0.99 * ns(8, 32, 2)) << "a product that no unit is busy with is not faster without them";
  EXPECT_LT(ns(2048, 108, 64, DType::kFloat32), ns(2048, 112, 64, DType::kFloat32));
}

struct Heads {
  double batch, seq, heads, kv_heads, width;
};
KernelWork attention_of(const Heads& a) {
  return {.flops = 2 * a.batch * a.heads * a.seq * a.seq * a.width,
          .bytes = 2 * a.width * a.batch * a.seq * (2 * a.heads + 2 * a.kv_heads),
          .dtype = DType::kBFloat16,
          .shape = KernelShape::attention(a.batch * a.heads * a.seq, a.seq / 2, a.width)};
}

// ... attention_seconds().
TEST(KernelTime, OfAttentionIsTheFits) {
  const HardwareProfile h100 = measured();
  expect_near(kernel_ns(h100, attention_of({1, 8192, 32, 8, 128})), 955008);
  expect_near(kernel_ns(h100, attention_of({2, 1024, 16, 16, 64})), 28909);
  KernelWork backward = attention_of({1, 8192, 32, 8, 128});
  backward.flops *= 2.5;
  backward.shape = backward.shape.of_backward();
  EXPECT_NEAR(static_cast<double>(kernel_ns(h100, backward)) / 955008, 2.5 / 0.86, 0.03);
}

LinkCost links(const HardwareProfile& profile, int ranks, int stride = 1) {
  std::vector<int> group(static_cast<size_t>(ranks));
  for (int i = 0; i < ranks; ++i) group[static_cast<size_t>(i)] = i * stride;
  return {profile, group, profile.gpus_per_node};
}

// ... collective_seconds().
TEST(CollectiveTime, IsThatOfTheFastestProtocol) {
  const HardwareProfile h100 = measured();
  expect_near(links(h100, 8).collective(Verb::kAllGather, int64_t{1} << 30).total_ns, 3147662);
  expect_near(links(h100, 8).collective(Verb::kAllReduce, 1 << 20).total_ns, 27068);
  expect_near(links(h100, 4).collective(Verb::kReduceScatter, 1 << 25).total_ns, 101613);
  expect_near(links(h100, 2).collective(Verb::kAllReduce, 4096).total_ns, 6562);
}

TEST(CollectiveTime, AGroupLeavesANodeThroughAsManyNicsAsItHasGpusThere) {
  const HardwareProfile h100 = measured();
  constexpr int64_t kBytes = int64_t{1} << 32;
  const auto rate = [&](const LinkCost& group, int ranks) {
    const TransferCost cost = group.collective(Verb::kAllGather, kBytes);
    return static_cast<double>(kBytes) * (ranks - 1) / ranks / static_cast<double>(cost.total_ns - cost.latency_ns);
  };
  EXPECT_NEAR(rate(links(h100, 2, 8), 2), 0.8 * 50, 0.5) << "one GPU on each of two nodes";
  EXPECT_NEAR(rate(links(h100, 4, 4), 4), 0.8 * 50 * 2, 1) << "two on each";
  EXPECT_NEAR(rate(links(h100, 16), 16), 300.8, 3) << "eight on each: NVLink is slower than eight NICs";
}

TEST(KernelTime, ByTheDatasheetKnowsNoShape) {
  const HardwareProfile h100 = load_hardware_profile("h100-sxm");
  KernelWork work{.flops = 1e12, .bytes = 1e6, .dtype = DType::kBFloat16, .shape = KernelShape::product(7, 7, 7)};
  const int64_t product = kernel_ns(h100, work);
  work.shape = {};
  EXPECT_EQ(kernel_ns(h100, work), product);
  EXPECT_NEAR(static_cast<double>(product), 1e12 / 989.4e12 * 1e9 + 900, 1);
  EXPECT_THROW(measured("laptop"), Error);
}

TEST(KernelTime, EveryMeasuredProfileIsFasterWithMoreOfEverything) {
  for (const std::string& name : hardware_profile_names()) {
    if (name == "laptop") continue;
    HardwareProfile profile = measured(name.c_str());
    const int64_t one = product_ns(profile, 4096, 8192, 8192);
    EXPECT_GT(one,
              kernel_ns(load_hardware_profile(name), {.flops = 2.0 * 4096 * 8192 * 8192, .dtype = DType::kBFloat16}))
        << name << ": no kernel is faster than the datasheet";
    apply_what_if(profile, "peak=2x,memory=2x");
    EXPECT_NEAR(static_cast<double>(product_ns(profile, 4096, 8192, 8192)) / static_cast<double>(one), 0.5, 0.06)
        << name;
  }
}

TEST(WhatIf, ChangesWhatIsNamed) {
  HardwareProfile profile = measured();
  apply_what_if(profile, "nvlink=2x,nic=12.5");
  EXPECT_DOUBLE_EQ(profile.intra_node.bandwidth_bytes_per_ns, 900);
  EXPECT_DOUBLE_EQ(profile.inter_node.bandwidth_bytes_per_ns, 12.5);
  EXPECT_NEAR(profile.collectives->protocols[2].gb_s, 2 * 300.8, 1e-6);
  EXPECT_DOUBLE_EQ(profile.memory_bandwidth, 3350e9);
  profile.software.terms.launch_us = 5;
  for (const char* bad : {"nvlink",
                          "nvlink=",
                          "nvlink=0x",
                          "nvlink=-1",
                          "pcie=2x",
                          "nic=2y",
                          "nic=nan",
                          "slowest=-1",
                          "nic=0x19",
                          "launches=1e12",
                          "launches=1e308x",
                          "beside=1e300",
                          "slowest=1e4",
                          "products=1e7",
                          "collectives=1e300",
                          "tensor-collectives=1e7x",
                          "shards=0",
                          "shards=1e7",
                          "messages=0",
                          "messages=1e9",
                          "message-start=1e7",
                          "launch-blocking=2",
                          "launch-blocking=0.5"})
    EXPECT_THROW(apply_what_if(profile, bad), Error) << bad;
  HardwareProfile datasheet = load_hardware_profile("h100-sxm");
  for (const char* software : {"launches=45", "beside=1", "slowest=0", "products=1x", "messages=1"})
    EXPECT_THROW(apply_what_if(datasheet, software), Error) << software << " of times that have none";
  apply_what_if(datasheet, "cublas-workspace=32,grouped-workspaces=0");
  EXPECT_EQ(datasheet.software.memory.cublas_mib, 32) << "memory is no matter of time";
  apply_what_if(datasheet, "cublas-workspace=0.5x");
  EXPECT_EQ(datasheet.software.memory.cublas_mib, 16);
  EXPECT_THROW(apply_what_if(datasheet, "cublas-workspace=1e7"), Error);
}

TEST(WhatIf, BlockingLaunchesMustTakeTime) {
  HardwareProfile profile = measured();
  EXPECT_THROW(apply_what_if(profile, "launch-blocking=1"), Error) << "this project's launches cost nothing";
  apply_what_if(profile, "launch-blocking=1,launches=45");
  EXPECT_TRUE(profile.software.terms.launch_blocking);
  apply_what_if(profile, "launch-blocking=0,launches=0");
  EXPECT_FALSE(profile.software.terms.launch_blocking);
}

TEST(WhatIf, SwitchesOffWhatSoftwareCosts) {
  HardwareProfile profile = measured();
  profile.software = software_named("compiled");
  adapt_software(profile, {});
  ASSERT_GT(profile.software.terms.beside, 0);
  ASSERT_GT(slowest_share(profile, 4096), 0);
  const double attention = profile.software.kernels.at(static_cast<size_t>(KernelShape::Kind::kAttention));
  apply_what_if(profile, "beside=0,slowest=0x,attention=0.5x,products=1,collectives=1");
  EXPECT_EQ(profile.software.terms.beside, 0);
  EXPECT_EQ(slowest_share(profile, 4096), 0);
  EXPECT_DOUBLE_EQ(profile.software.kernels.at(static_cast<size_t>(KernelShape::Kind::kAttention)), attention / 2);
  EXPECT_EQ(profile.software.kernels.at(static_cast<size_t>(KernelShape::Kind::kProduct)), 1);
  EXPECT_EQ(profile.software.collectives, 1);
  profile.software.terms = {.tensor_collectives = 0.5, .sharded_across_nodes = 10, .message_parts = 8};
  apply_what_if(profile, "tensor-collectives=1,shards=0.5x,messages=0.5x");
  EXPECT_EQ(profile.software.terms.tensor_collectives, 1);
  EXPECT_EQ(profile.software.terms.sharded_across_nodes, 5);
  EXPECT_EQ(profile.software.terms.message_parts, 4);
}

TEST(Software, MultipliesKernelsOfItsKinds) {
  HardwareProfile profile = measured();
  const int64_t one = product_ns(profile, 4096, 4096, 4096);
  profile.software.kernels = {1, 1.5, 1, 1, 1};
  EXPECT_NEAR(static_cast<double>(product_ns(profile, 4096, 4096, 4096)), 1.5 * static_cast<double>(one), 1);
  EXPECT_THROW(software_named("megatorn"), Error);
  EXPECT_EQ(std::string(software_named("eager").name), "eager");
}

}  // namespace
}  // namespace ranklab
