// DiLoCo in training: until the first outer update a replica trains as a run of its own does on its part of the batch;
// the outer update is a formula of the replicas' weights; local SGD that synchronizes in each step is data parallelism;
// and every layout of a replica equals a replica of one rank (composition_test.cpp crosses it with all else).
#include <gtest/gtest.h>

#include "core/runtime/provide.h"
#include "core/sim/aten.h"
#include "tests/support/expect_training.h"
#include "tests/support/one_rank.h"
#include "tests/support/relative_error.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

constexpr int64_t kSteps = 3, kOfReplica = 4;  // sequences of each replica's part of a batch

TrainConfig two_replicas(int64_t sync_steps) {
  TrainConfig c = small_config();
  c.train_iters = kSteps;
  c.parallel.world = 2;
  c.global_batch_size = 2 * kOfReplica;
  c.diloco.sync_steps = sync_steps;
  return c;
}

// Batches in which each sample depends on its index in the global batch, `first` being the first of this run.
std::shared_ptr<DataProvider> batches_from(int64_t first) {
  return provide_data("known batches", [first](const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t mb) {
    const int64_t count = plan.micro_batch_size, seq = plan.config.model.seq_length;
    const int64_t own = (ctx.coordinate(Axis::kDp) * plan.microbatches_of(step) + mb) * count;
    const at::Tensor sample = (at::arange(count) + first + own + 64 * step).unsqueeze(1),
                     position = at::arange(seq + 1);
    const at::Tensor tokens = (sample * 31 + position * position * 7 + position * sample * 3).remainder(61);
    return Batch{.tokens_BS = tokens.narrow(1, 0, seq).contiguous().to(ctx.device()),
                 .targets_BS = tokens.narrow(1, 1, seq).contiguous().to(ctx.device()),
                 .first_sample = own,
                 .step = step};
  });
}

// A run of one rank on a replica's part of each batch.
TrainingRecord alone(int64_t replica) {
  TrainConfig c = on_one_rank(two_replicas(0));
  c.global_batch_size = kOfReplica;
  c.num_microbatches = 1;
  return record_training(c, {.data = batches_from(replica * kOfReplica)});
}

TEST(Diloco, ReplicasTrainAlone) {
  TrainConfig c = two_replicas(kSteps + 1);
  c.num_microbatches = 1;
  const TrainingRecord got = record_training(c, {.data = batches_from(0)}), want = alone(0);
  ASSERT_FALSE(want.weights.empty());
  for (const auto& [key, weight] : want.weights) EXPECT_TRUE(at::equal(got.weights.at(key), weight)) << key.second;
  for (const auto& [key, grad] : want.grads) EXPECT_TRUE(at::equal(got.grads.at(key), grad)) << key.second;
  for (size_t step = 0; step < want.steps.size(); ++step)
    EXPECT_EQ(got.steps[step].grad_norm, want.steps[step].grad_norm) << "step " << step;
}

TEST(Diloco, TheOuterUpdateIsAFormulaOfTheReplicasWeights) {
  TrainConfig c = two_replicas(kSteps);
  c.num_microbatches = 1;
  const TrainingRecord got = record_training(c, {.data = batches_from(0)});
  const TrainingRecord one = alone(0), other = alone(1);
  for (const auto& [key, weight] : one.weights) {
    const auto& [step, name] = key;
    if (step != kSteps - 1) continue;
    const at::Tensor start = one.weights.at({-1, name});
    const at::Tensor movement = start - (weight + other.weights.at(key)) / 2;
    const double factor = c.diloco.outer_lr * (1 + c.diloco.outer_momentum);  // of a first step with Nesterov momentum
    EXPECT_LT(relative_error(got.weights.at(key), start - factor * movement), 1e-12) << name;
    EXPECT_GT(relative_error(weight, other.weights.at(key)), 1e-6) << name << ": the replicas are the same";
  }
}

TEST(Diloco, LocalSgdInEachStepIsDataParallel) {
  TrainConfig c = two_replicas(1);
  c.optimizer = OptimizerKind::kSgd;
  c.sgd_momentum = 0.9;
  c.clip_grad = 0;
  c.diloco.outer_lr = 1;
  c.diloco.outer_momentum = 0;
  TrainConfig plain = c;
  plain.diloco = {};
  const TrainingRecord got = record_training(c, {.data = batches_from(0)});
  const TrainingRecord want = record_training(plain, {.data = batches_from(0)});
  for (const auto& [key, weight] : want.weights)
    EXPECT_LT(relative_error(got.weights.at(key), weight), 1e-12) << key.second << " after step " << key.first;
}

// Ranks of a replica together compute what one does, with targets that are not all counted.
TEST(Diloco, LayoutsOfAReplicaEqualOneRank) {
  OneRankRuns references(uneven_batches());
  const auto layout = [](const ParallelDims& dims, int64_t stage) {
    TrainConfig c = two_replicas(2);
    c.parallel = dims;
    c.zero_stage = stage;
    c.diloco.replicas = 2;
    c.global_batch_size = 16;
    return c;
  };
  for (const TrainConfig& config :
       {layout({.world = 4, .tp = 2}, 0), layout({.world = 4, .pp = 2}, 0), layout({.world = 4, .cp = 2}, 1),
        layout({.world = 4}, 1), layout({.world = 4}, 2), layout({.world = 4}, 3)}) {
    SCOPED_TRACE(std::to_string(config.parallel.tp) + std::to_string(config.parallel.pp) +
                 std::to_string(config.parallel.cp) + " ZeRO " + std::to_string(config.zero_stage));
    expect_same_training(record_training(config, {.data = uneven_batches()}), references.of(config), kRoundingOfAdamW);
  }
}

}  // namespace
}  // namespace ranklab
