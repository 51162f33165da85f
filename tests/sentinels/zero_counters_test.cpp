// What a step reduces, gathers and frees, counted while it does so, beside the collectives on its timeline; and the
// losses of a mixture.
#include <gtest/gtest.h>

#include <array>

#include "tests/sentinels/sentinel_run.h"
#include "tests/support/model_variants.h"

namespace ranklab {
namespace {

TrainConfig counted(int64_t stage) {
  TrainConfig c = small_config();
  c.parallel = {.world = 4};
  c.zero_stage = stage;
  c.zero_debug = true;
  return c;
}

// Logical bytes of rank 0's calls of a verb over dp in a step.
int64_t traced_bytes(const SentinelRun& run, Verb verb, int step) {
  int64_t bytes = 0;
  for (const Event& event : run.result.traces[0].events)
    if (event.kind == EventKind::kCollective && event.step == step && event.verb == verb) bytes += event.logical_bytes;
  return bytes;
}

TEST(ZeroCounters, CountWhatTheStageDoes) {
  std::array<ZeroCounters, 4> by_stage;
  for (int64_t stage = 0; stage <= 3; ++stage) {
    const SentinelRun run = run_sentinels(counted(stage));
    ASSERT_TRUE(run.metrics[1].zero) << stage;
    by_stage[static_cast<size_t>(stage)] = *run.metrics[1].zero;
  }
  for (size_t stage = 0; stage <= 3; ++stage) {
    const ZeroCounters& zero = by_stage[stage];
    EXPECT_GT(zero.reduced, 1) << stage;
    // fp64 gradients of all parameters, and what rounds buckets up to whole cache lines of each rank.
    EXPECT_GE(zero.reduced_bytes, 8 * small_config().model.parameter_count()) << stage;
    EXPECT_EQ(zero.updated > 0, stage > 0) << stage;
    EXPECT_EQ(zero.gathered > 0, stage == 3) << stage;
    EXPECT_EQ(zero.freed, zero.gathered) << stage;
  }
  EXPECT_EQ(by_stage[1].updated, by_stage[1].reduced);
  EXPECT_EQ(by_stage[1].updated_bytes, by_stage[1].reduced_bytes);
  // Forward and backward each gather a unit; the head's units stay between the two.
  EXPECT_GT(by_stage[3].gathered_bytes, by_stage[3].reduced_bytes);
  EXPECT_FALSE(run_sentinels(small_config()).metrics[0].zero);  // only where they are asked for
}

TEST(ZeroCounters, BytesAreThoseOfTheTimelinesCalls) {
  const SentinelRun run = run_sentinels(counted(1));
  const ZeroCounters& zero = *run.metrics[1].zero;
  EXPECT_EQ(traced_bytes(run, Verb::kReduceScatter, 1), zero.reduced_bytes);
  EXPECT_EQ(traced_bytes(run, Verb::kAllGather, 1), zero.updated_bytes);
}

TEST(MixtureLosses, TotalIsTheLossWithItsAuxiliaryLosses) {
  TrainConfig c = small_config();
  variant_named("aux_z").change(c.model);
  c.parallel = {.world = 2, .ep = 2};
  for (const StepMetrics& m : run_sentinels(c).metrics) {
    EXPECT_GT(m.moe_aux_loss, 0);
    EXPECT_GT(m.moe_z_loss, 0);
    EXPECT_EQ(m.total_loss, m.loss + m.moe_aux_loss + m.moe_z_loss);
  }
  EXPECT_EQ(run_sentinels(small_config()).metrics[0].total_loss, run_sentinels(small_config()).metrics[0].loss);
}

// A token without a target is routed and computed like any other: which losses are masked does not affect the balancing
// losses, their gradients (here nearly all there is) or the FLOPs of a step.
TEST(MixtureLosses, BalancingLossesAreMeansOverTokensWithoutATargetToo) {
  TrainConfig c = small_config();
  variant_named("aux_z").change(c.model);
  c.model.moe.aux_loss_coeff = c.model.moe.z_loss_coeff = 1e6;
  c.parallel = {.world = 2, .pp = 2};
  TrainConfig masked = c;
  masked.documents = {.eod_mask_loss = true, .eod_token = ' '};
  const StepMetrics want = run_sentinels(c).metrics[0], got = run_sentinels(masked).metrics[0];
  EXPECT_LT(static_cast<double>(got.tokens), 0.9 * static_cast<double>(want.tokens));
  EXPECT_DOUBLE_EQ(got.moe_aux_loss, want.moe_aux_loss);
  EXPECT_DOUBLE_EQ(got.moe_z_loss, want.moe_z_loss);
  EXPECT_NEAR(got.grad_norm, want.grad_norm, 1e-4 * want.grad_norm);
  EXPECT_DOUBLE_EQ(got.mfu * got.virtual_step_ms, want.mfu * want.virtual_step_ms);
}

// An untrained module predicts as badly as the model, however many there are.
TEST(PredictionLosses, AreTheirMeanOverTheModules) {
  TrainConfig c = small_config();
  variant_named("latent_mtp").change(c.model);
  ASSERT_EQ(c.model.mtp_num_layers, 2);
  const StepMetrics m = run_sentinels(c).metrics[0];
  EXPECT_NEAR(m.mtp_loss, m.loss, 0.2 * m.loss);
  EXPECT_DOUBLE_EQ(m.total_loss, m.loss + m.moe_aux_loss + m.moe_z_loss + c.model.mtp_loss_weight * m.mtp_loss);
}

}  // namespace
}  // namespace ranklab
