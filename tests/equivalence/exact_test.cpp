// Tier E: with pairwise accumulation, dp ranks and microbatches are the same leaves of the same tree, so the training
// is the same to the last bit; and a layout repeats itself.
#include <gtest/gtest.h>

#include "core/sim/aten.h"
#include "tests/equivalence/training_run.h"

namespace ranklab {
namespace {

TrainingRun exact_run(at::ScalarType dtype) {
  TrainingRun run;
  run.model = {.num_layers = 2,
               .hidden_size = 32,
               .ffn_hidden_size = 40,
               .num_attention_heads = 4,
               .num_query_groups = 1,
               .vocab_size = 29,
               .seq_length = 16,
               .dropout = 0.1,
               .tie_embeddings = true};
  run.global_batch = 8;
  run.dtype = dtype;
  run.accumulation = GradAccumulation::kPairwise;
  return run;
}

void expect_same_record(const TrainingRecord& got, const TrainingRecord& want) {
  EXPECT_EQ(got.faults, std::vector<std::string>{});
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (size_t step = 0; step < want.steps.size(); ++step) {
    EXPECT_EQ(got.steps[step].grad_norm, want.steps[step].grad_norm) << "step " << step;
    for (const auto& [name, tensor] : want.steps[step].grads) {
      EXPECT_TRUE(at::equal(got.steps[step].grads.at(name), tensor)) << "gradient of " << name << ", step " << step;
    }
    for (const auto& [name, tensor] : want.steps[step].weights) {
      EXPECT_TRUE(at::equal(got.steps[step].weights.at(name), tensor)) << name << ", step " << step;
    }
  }
}

TrainingRecord with_dp(TrainingRun run, int dp, int microbatches, bool overlap = true) {
  run.dp = dp;
  run.microbatches = microbatches;
  run.overlap = overlap;
  return train(run);
}

TEST(Exact, DataParallelIsPairwiseAccumulation) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const TrainingRun run = exact_run(dtype);
    const TrainingRecord reference = with_dp(run, 1, 8);
    for (const int dp : {2, 4, 8}) {
      SCOPED_TRACE("dp " + std::to_string(dp));
      expect_same_record(with_dp(run, dp, 8 / dp), reference);
    }
  }
}

TEST(Exact, OverlapChangesNothing) {
  const TrainingRun run = exact_run(at::kFloat);
  expect_same_record(with_dp(run, 4, 2, false), with_dp(run, 4, 2, true));
}

TEST(Exact, SequentialAccumulationIsAnotherOrder) {
  TrainingRun run = exact_run(at::kFloat);
  run.steps = 1;
  const TrainingRecord pairwise = with_dp(run, 1, 8);
  run.accumulation = GradAccumulation::kSequential;
  const TrainingRecord sequential = with_dp(run, 1, 8);
  bool differs = false;
  for (const auto& [name, tensor] : pairwise.steps[0].grads) {
    differs = differs || !at::equal(tensor, sequential.steps[0].grads.at(name));
  }
  EXPECT_TRUE(differs) << "the comparison above would pass for any order";
}

TEST(Exact, TheSameLayoutTwice) {
  TrainingRun run = exact_run(at::kFloat);
  run.model.num_query_groups = 4;
  run.tp = 4;
  run.sequence_parallel = true;
  const TrainingRecord first = with_dp(run, 2, 2);
  expect_same_record(with_dp(run, 2, 2), first);
}

}  // namespace
}  // namespace ranklab
