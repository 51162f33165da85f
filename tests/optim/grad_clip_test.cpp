// Each logical element counts once, whatever the layout (features.md 4.2 trap 4).
#include "core/optim/grad_clip.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <mutex>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::wave;

const at::Tensor kWeightGrad = wave({8, 6}, 0.1, 3.0), kNormGrad = wave({6}, 0.2, 5.0);
const double kNorm = std::sqrt(kWeightGrad.square().sum().item<double>() + kNormGrad.square().sum().item<double>());

struct Sharded {
  ParameterRegistry registry{1, at::kDouble, at::kCPU};
  explicit Sharded(RankContext& context) {
    const int tp = context.size(Axis::kTp), rank = context.coordinate(Axis::kTp);
    registry.create("w", shard_dim({8, 6}, 0, rank, tp), {}, true).data.mutable_grad() =
        kWeightGrad.narrow(0, rank * 8 / tp, 8 / tp).clone();
    registry.create("n", replicated({6}), {}, false).data.mutable_grad() = kNormGrad.clone();
  }
};

// Clips the gradients as a step does, and returns the norm before clipping.
double clip_grad_norm(const std::vector<Parameter*>& parameters, RankContext& context, double max_norm) {
  const double norm = grad_norm(parameters, context);
  scale_grads(parameters, clip_factor(norm, max_norm));
  return norm;
}

TEST(ClipGradNorm, IsTheGlobalNormAndTheSameBitsOnEveryRank) {
  for (const auto& [dp, tp] : {std::pair{1, 1}, {1, 2}, {1, 8}, {4, 1}, {2, 4}}) {
    std::mutex mutex;
    std::vector<double> norms;
    run_ranks(dims_of(dp, tp), [&](RankContext& context) {
      Sharded s(context);
      const double norm = clip_grad_norm(s.registry.parameters(), context, 1.0);
      const at::Tensor clipped = s.registry.find("n")->data.grad();
      EXPECT_LT(golden::relative_error(clipped, kNormGrad * (1.0 / (kNorm + 1e-6))), 1e-14);
      const std::lock_guard lock(mutex);
      norms.push_back(norm);
    });
    for (const double norm : norms) {
      EXPECT_NEAR(norm, kNorm, 1e-13 * kNorm);
      EXPECT_EQ(std::bit_cast<uint64_t>(norm), std::bit_cast<uint64_t>(norms[0]));
    }
  }
}

TEST(ClipGradNorm, LeavesSmallGradientsAndMeasuresOnly) {
  run_ranks(dims_of(1, 2), [](RankContext& context) {
    for (const double max_norm : {1e9, 0.0, -1.0}) {
      Sharded s(context);
      EXPECT_NEAR(clip_grad_norm(s.registry.parameters(), context, max_norm), kNorm, 1e-12);
      EXPECT_TRUE(at::equal(s.registry.find("n")->data.grad(), kNormGrad));
    }
  });
}

TEST(ClipGradNorm, SquaresAreAddedInFp64) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    ParameterRegistry registry(1, at::kFloat, at::kCPU);
    registry.create("w", replicated({1000, 1000}), {InitKind::kZeros}, true).data.mutable_grad() =
        at::full({1000, 1000}, 3e19f);  // its square overflows fp32
    EXPECT_NEAR(clip_grad_norm(registry.parameters(), context, 0), 3e22, 1e-6 * 3e22);
  });
}

TEST(ClipGradNorm, AMissingGradientIsNamed) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    Sharded s(context);
    s.registry.find("w")->data.mutable_grad().reset();
    EXPECT_THROW(clip_grad_norm(s.registry.parameters(), context, 1.0), Error);
  });
}

// An overflow of a gradient that one rank alone has, also where another rank counts the parameter's norm.
TEST(Overflow, OfAnyRankIsSeenByAll) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat}) {
      for (const int victim : {-1, 0, 3}) {
        run_ranks(dims_of(2, 2), [&](RankContext& context) {
          ParameterRegistry registry(1, type, at::kCPU);
          Parameter& p = registry.create("n", replicated({6}), {}, false);
          p.data.mutable_grad() = at::full({6}, 60000.0, type);
          if (context.global_rank() == victim) p.data.mutable_grad()[4] = value;
          EXPECT_EQ(any_overflow(registry.parameters(), context), victim >= 0);
        });
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
