// Initial weights must not depend on the layout (features.md 4.2 traps 3 and 6).
#include "core/nn/parameter.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor draw(const std::string& name, Partition partition, uint64_t seed = 7) {
  ParameterRegistry registry(seed, at::kFloat, at::kCPU);
  return registry.create(name, std::move(partition), {InitKind::kNormal, 0.02}, true).data.detach();
}

TEST(Parameter, ShardsAreSlicesOfTheWhole) {
  const std::vector<int64_t> shape{12, 10};
  const at::Tensor whole = draw("w", replicated(shape));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(at::equal(draw("w", shard_dim(shape, 0, rank, 2)), whole.narrow(0, rank * 6, 6)));
    EXPECT_TRUE(at::equal(draw("w", shard_dim(shape, 1, rank, 2)), whole.narrow(1, rank * 5, 5)));
    // [4, 8] cut each: rows 2 of the first and 4 of the second segment.
    const at::Tensor fused = draw("w", shard_segments(shape, {4, 8}, rank, 2));
    EXPECT_TRUE(at::equal(fused, at::cat({whole.narrow(0, rank * 2, 2), whole.narrow(0, 4 + rank * 4, 4)})));
  }
}

TEST(Parameter, PaddingRowsAreZeroAndTheRestIsTheWhole) {
  const at::Tensor whole = draw("w", replicated({5, 3}));
  const at::Tensor parts = at::cat({draw("w", shard_padded({5, 3}, 0, 4)), draw("w", shard_padded({5, 3}, 1, 4)),
                                    draw("w", shard_padded({5, 3}, 2, 4)), draw("w", shard_padded({5, 3}, 3, 4))});
  ASSERT_EQ(parts.size(0), 8);
  EXPECT_TRUE(at::equal(parts.narrow(0, 0, 5), whole));
  EXPECT_EQ(parts.narrow(0, 5, 3).abs().max().item<float>(), 0.0f);
}

TEST(Parameter, NamesAndSeedsGiveOtherWeights) {
  const at::Tensor w = draw("w", replicated({8, 8}));
  EXPECT_FALSE(at::equal(w, draw("v", replicated({8, 8}))));
  EXPECT_FALSE(at::equal(w, draw("w", replicated({8, 8}), 8)));
  EXPECT_TRUE(at::equal(w, draw("w", replicated({8, 8}))));
}

TEST(Parameter, NormalInitHasTheStatedMoments) {
  const at::Tensor w = draw("w", replicated({400, 300}));
  EXPECT_NEAR(w.mean().item<double>(), 0.0, 4 * 0.02 / std::sqrt(120000.0));
  EXPECT_NEAR(w.std().item<double>(), 0.02, 0.02 * 0.01);
}

TEST(Parameter, DoubleModelsStartFromTheSameNumbers) {
  ParameterRegistry registry(7, at::kDouble, at::kCPU);
  const auto& parameter = registry.create("w", replicated({4, 4}), {}, true);
  EXPECT_TRUE(at::equal(parameter.data.detach(), draw("w", replicated({4, 4})).to(at::kDouble)));
}

TEST(Parameter, NamesAreUniqueAndOrderIsCreation) {
  ParameterRegistry registry(1, at::kFloat, at::kCPU);
  registry.create("b", replicated({2}), {InitKind::kZeros}, false);
  registry.create("a", replicated({2}), {InitKind::kOnes}, false);
  EXPECT_THROW(registry.create("a", replicated({2}), {}, true), Error);
  EXPECT_EQ(registry.parameters()[0]->name, "b");
  EXPECT_TRUE(registry.find("a")->data.requires_grad());
  EXPECT_EQ(registry.find("c"), nullptr);
}

TEST(Partition, RefusesUnevenCutsNamingBothNumbers) {
  try {
    shard_dim({10, 4}, 0, 0, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("10 elements of [10, 4] over 3 ranks"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ranklab
