#include "core/runtime/gemm_choice.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace ranklab {
namespace {

TEST(GemmChoice, MeasuresWithinItsTimeAndLeavesTheSettingAlone) {
  at::globalContext().setFloat32MatmulPrecision("highest");
  const std::vector<GemmShape> shapes = {{512, 384, 128, 8}, {512, 704, 128, 8}, {4096, 256, 128, 1}};
  measure_gemm(shapes);  // the first use of each library loads its code
  const auto start = std::chrono::steady_clock::now();
  const GemmChoice choice = measure_gemm(shapes);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(ms, 1000);
  EXPECT_NE(choice.reason.find("oneDNN"), std::string::npos) << choice.reason;
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::HIGHEST);
  RecordProperty("reason", choice.reason);
  RecordProperty("ms", static_cast<int>(ms));
}

TEST(GemmChoice, UseSetsTorchsSwitch) {
  use_gemm(GemmLibrary::kOneDnn);
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::MEDIUM);
  use_gemm(GemmLibrary::kMkl);
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::HIGHEST);
}

TEST(GemmChoice, NothingToMeasureIsMkl) { EXPECT_EQ(measure_gemm({}).library, GemmLibrary::kMkl); }

}  // namespace
}  // namespace ranklab
