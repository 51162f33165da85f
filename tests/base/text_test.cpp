#include "core/base/text.h"

#include <gtest/gtest.h>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

TEST(Text, HumanUnits) {
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_ns(1.5e6), "1.50 ms");
  EXPECT_EQ(human_count(12345), "12.3k");
}

TEST(Text, NearestNameForgivesTyposButNotStrangers) {
  const std::vector<std::string> names = {"tensor-model-parallel-size", "train-iters", "seq-length"};
  EXPECT_EQ(nearest_name("train-iter", names), "train-iters");
  EXPECT_EQ(nearest_name("sequence-length", names), "seq-length");
  EXPECT_EQ(nearest_name("zzz", names), "");
  const std::vector<std::string> others = {"--set", "--tp", "RMSNorm", "h200", "h100-sxm"};
  EXPECT_EQ(nearest_name("--pt", others), "--tp");  // a swap is one typo
  EXPECT_EQ(nearest_name("rmsnorm", others), "RMSNorm");
  EXPECT_EQ(nearest_name("h100", others), "h100-sxm");  // the beginning of a name beats a typo
}

TEST(DType, NamesRoundTripAndUnknownOnesAreRefused) {
  EXPECT_EQ(parse_dtype("bf16"), DType::kBFloat16);
  EXPECT_EQ(size_bytes(DType::kBFloat16), 2);
  EXPECT_EQ(name(DType::kFloat32), "fp32");
  EXPECT_THROW(parse_dtype("float"), Error);
}

}  // namespace
}  // namespace ranklab
