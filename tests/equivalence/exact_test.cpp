// Tier E: with pairwise accumulation, dp ranks and microbatches are the same leaves of the same tree, so the training
// is the same to the last bit; and a layout repeats itself.
#include <gtest/gtest.h>

#include "core/sim/aten.h"
#include "tests/support/expect_training.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

TrainConfig exact_config(const std::string& dtype) {
  TrainConfig c = small_config();
  c.model.num_layers = 2;
  c.model.ffn_hidden_size = 40;
  c.model.num_query_groups = 1;
  c.model.dropout = 0.1;
  c.model.tie_embeddings = true;
  c.train_iters = 10;
  c.lr = 3e-4;
  c.clip_grad = 0.05;
  c.params_dtype = dtype;
  c.accumulation = Accumulation::kPairwise;
  c.ddp_bucket_bytes = 4096;
  return c;
}

TrainingRecord with_dp(TrainConfig config, int dp, int microbatches) {
  config.parallel.world = dp * config.parallel.tp;
  config.num_microbatches = microbatches;
  return record_training(config, {.data = uneven_batches(), .vocab_size = 29});
}

// The reported loss is summed over microbatches first.
constexpr Tolerance kSameUpdates{.loss = 1e-6, .norm = 0};

TEST(Exact, DataParallelIsPairwiseAccumulation) {
  for (const char* dtype : {"fp32", "fp64"}) {
    const TrainConfig config = exact_config(dtype);
    const TrainingRecord reference = with_dp(config, 1, 8);
    for (const int dp : {2, 4, 8}) {
      SCOPED_TRACE("dp " + std::to_string(dp));
      expect_same_training(with_dp(config, dp, 8 / dp), reference, kSameUpdates);
    }
  }
}

TEST(Exact, LionIsTheSameOnOneRank) {
  TrainConfig config = exact_config("fp32");
  config.optimizer = OptimizerKind::kLion;
  expect_same_training(with_dp(config, 4, 2), with_dp(config, 1, 8), kSameUpdates);
}

TEST(Exact, OverlapChangesNothing) {
  TrainConfig config = exact_config("fp32");
  const TrainingRecord overlapped = with_dp(config, 4, 2);
  config.overlap_grad_reduce = false;
  expect_same_training(with_dp(config, 4, 2), overlapped, kSameBits);
}

TEST(Exact, SequentialAccumulationIsAnotherOrder) {
  TrainConfig config = exact_config("fp32");
  config.train_iters = 1;
  const TrainingRecord pairwise = with_dp(config, 1, 8);
  config.accumulation = Accumulation::kSequential;
  const TrainingRecord sequential = with_dp(config, 1, 8);
  bool differs = false;
  for (const auto& [key, tensor] : pairwise.grads) differs = differs || !at::equal(tensor, sequential.grads.at(key));
  EXPECT_TRUE(differs) << "the comparison above would pass for any order";
}

TEST(Exact, TheSameLayoutTwice) {
  TrainConfig config = exact_config("fp32");
  config.model.num_query_groups = 4;
  config.parallel.tp = 4;
  const TrainingRecord first = with_dp(config, 2, 2);
  expect_same_training(with_dp(config, 2, 2), first, kSameBits);
}

}  // namespace
}  // namespace ranklab
