// Constants fitted to times that a profile's own models gave: they predict those times again, also those not fitted,
// and survive being written and read.
#include "core/sim/hardware_fit.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "core/sim/link_cost.h"
#include "core/sim/profile_toml.h"

namespace ranklab {
namespace {

KernelPoint timed(const HardwareProfile& on, const KernelWork& work) {
  return {work, static_cast<double>(kernel_ns(on, work)) * 1e-9};
}

HardwarePoints points_of(const HardwareProfile& on) {
  HardwarePoints points;
  points.shortest_kernel_s = on.kernels->launch_us * 1e-6;
  const DType bf16 = DType::kBFloat16;
  for (const double m : {512.0, 2048.0, 8192.0})
    for (const double n : {1024.0, 4096.0, 8192.0})
      for (const double k : {1024.0, 4096.0, 8192.0})
        points.products.push_back(
            timed(on, {2 * m * n * k, 2 * (m * n + n * k + m * k), bf16, KernelShape::product(m, n, k)}));
  for (const double s : {1024.0, 2048.0, 4096.0, 8192.0})
    for (const double d : {64.0, 128.0, 256.0}) {
      const KernelShape shape = KernelShape::attention(4 * s, s / 2, d);
      const double flops = 8 * s * s * d, bytes = 32 * s * d;
      points.attention.push_back(timed(on, {flops, bytes, bf16, shape}));
      points.attention_backward.push_back(timed(on, {2.5 * flops, 2.5 * bytes, bf16, shape.of_backward()}));
      points.attention_square.push_back(timed(on, {2 * flops, bytes, bf16, shape.of_square()}));
    }
  for (const double bytes : {1e7, 1e8, 1e9}) points.elementwise.push_back(timed(on, {0, bytes, bf16, {}}));
  for (const Verb verb : {Verb::kAllGather, Verb::kReduceScatter, Verb::kAllReduce, Verb::kAllToAll})
    for (const int size : {2, 4, 8})
      for (const int64_t bytes : {int64_t{1} << 12, int64_t{1} << 20, int64_t{1} << 26}) {
        std::vector<int> ranks(static_cast<size_t>(size));
        std::iota(ranks.begin(), ranks.end(), 0);
        const int64_t ns = LinkCost(on, ranks, size).collective(verb, bytes).total_ns;
        points.collectives.push_back({verb, size, bytes, static_cast<double>(ns) * 1e-9});
      }
  return points;
}

TEST(FitConstants, FindsTheMinimum) {
  const std::vector<double> found = fit_constants({1, 1}, [](std::span<const double> at) {
    return std::abs(std::log(at[0] / 30)) + std::abs(std::log(at[1] / 0.2)) + std::abs(std::log(at[0] * at[1] / 6));
  });
  EXPECT_NEAR(found[0], 30, 0.03);
  EXPECT_NEAR(found[1], 0.2, 0.0002);
}

TEST(FitConstants, ErrorsAreQuantiles) {
  const FitError error = fit_error({1.1, 0.98, 1, 1.5, 0.99, 1.03, 1.04, 0.95, 1.06, 1.07});
  EXPECT_NEAR(error.half, 0.05, 1e-12);
  EXPECT_NEAR(error.most, 0.5, 1e-12);
}

// From those of another GPU, and from no kernels, as of a CPU, which knows no SMs whose waves long kernels come in.
TEST(HardwareFit, PredictsWhatWasNotFitted) {
  const HardwareProfile truth = load_hardware_profile("h100-sxm", Efficiency::kMeasured);
  const auto other = load_hardware_profile("b200", Efficiency::kMeasured).kernels;
  for (const bool known : {false, true}) {
    HardwareProfile fitted = truth;
    fitted.collectives = nullptr;
    fitted.kernels = known ? other : nullptr;
    const std::vector<FitRow> rows = fit_profile(fitted, points_of(truth));
    ASSERT_EQ(rows.size(), 6u);
    for (const FitRow& row : rows) {
      EXPECT_EQ(row.held_out, row.points >= 9) << row.what;
      EXPECT_LT(row.error.half, known ? 0.1 : 0.25) << row.what << ", known " << known;
      EXPECT_LT(row.error.most, known ? 0.25 : 0.6) << row.what << ", known " << known;
    }
    EXPECT_NEAR(fitted.kernels->bandwidth, truth.kernels->bandwidth, 0.01);
    EXPECT_NEAR(fitted.kernels->attention.backward, truth.kernels->attention.backward, 0.1);
  }
}

// Constants at 0, as in a profile that does not give them, are fitted like any others.
TEST(HardwareFit, MissingConstantsAreGuessed) {
  const HardwareProfile truth = load_hardware_profile("h100-sxm", Efficiency::kMeasured);
  HardwareProfile fitted = truth;
  KernelEfficiency bare;
  bare.sms = truth.kernels->sms;
  fitted.kernels = std::make_shared<const KernelEfficiency>(bare);
  for (const FitRow& row : fit_profile(fitted, points_of(truth))) {
    EXPECT_LT(row.error.half, 0.25) << row.what;
    EXPECT_LT(row.error.most, 0.6) << row.what;
  }
}

// Points that are a known GPU's own leave its constants where they are, and those of one that is a tenth slower find
// just that.
TEST(HardwareFit, KnownConstantsStay) {
  const HardwareProfile known = load_hardware_profile("h200", Efficiency::kMeasured);
  HardwarePoints points = points_of(known);
  points.collectives.clear();
  HardwareProfile fitted = known;
  fit_profile(fitted, points);
  EXPECT_NEAR(fitted.kernels->gemm_16bit.efficiency, known.kernels->gemm_16bit.efficiency, 1e-3);
  EXPECT_NEAR(fitted.kernels->gemm_16bit.inner_overhead, known.kernels->gemm_16bit.inner_overhead, 0.1);
  for (KernelPoint& point : points.products) point.seconds *= 1.1;
  fitted = known;
  for (const FitRow& row : fit_profile(fitted, points)) EXPECT_LT(row.error.half, 0.02) << row.what;
  EXPECT_NEAR(fitted.kernels->gemm_16bit.efficiency, known.kernels->gemm_16bit.efficiency / 1.1, 0.03);
}

TEST(HardwareFit, IsReadAsItWasWritten) {
  const HardwareProfile before = load_hardware_profile("h100-sxm", Efficiency::kMeasured);
  const std::string path = testing::TempDir() + "/written.toml";
  std::ofstream(path) << profile_toml(before, {{"kernels.attention", "a remark"}});
  const HardwareProfile after = load_hardware_profile(path, Efficiency::kMeasured);
  const HardwarePoints points = points_of(before), again = points_of(after);
  const auto near = [](const auto& a, const auto& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i].seconds / b[i].seconds, 1, 1e-3);
  };
  near(points.products, again.products);
  near(points.attention, again.attention);
  near(points.attention_backward, again.attention_backward);
  near(points.attention_square, again.attention_square);
  near(points.elementwise, again.elementwise);
  near(points.collectives, again.collectives);
  EXPECT_EQ(after.title, before.title);
  EXPECT_EQ(after.gpu_names, before.gpu_names);
  EXPECT_EQ(after.compute_capability, before.compute_capability);
  EXPECT_EQ(after.memory_bytes, before.memory_bytes);
}

}  // namespace
}  // namespace ranklab
