// One ZeRO stage from the three settings that can set it.
#include "core/config/sharding.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace ranklab {
namespace {

TrainConfig asking(int64_t stage, const std::string& strategy, bool distributed_optimizer) {
  TrainConfig c;
  c.zero_stage = stage;
  c.sharding_strategy = strategy;
  c.use_distributed_optimizer = distributed_optimizer;
  return c;
}

TEST(ZeroStage, IsWhatAnyOfTheSettingsSays) {
  EXPECT_EQ(resolve_zero_stage(TrainConfig()), 0);
  EXPECT_EQ(resolve_zero_stage(asking(-1, "auto", true)), 1);
  const std::string strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  for (const int stage : {0, 1, 2, 3}) {
    const std::string& strategy = strategies[stage];
    EXPECT_EQ(resolve_zero_stage(asking(stage, "auto", false)), stage);
    EXPECT_EQ(resolve_zero_stage(asking(-1, strategy, false)), stage);
    EXPECT_EQ(resolve_zero_stage(asking(stage, strategy, stage > 0)), stage);
  }
}

TEST(ZeroStage, RefusesContradictionsAndWhatThereIsNot) {
  EXPECT_THROW(resolve_zero_stage(asking(1, "optim_grads", false)), Error);
  EXPECT_THROW(resolve_zero_stage(asking(2, "no_shard", false)), Error);
  EXPECT_THROW(resolve_zero_stage(asking(0, "auto", true)), Error);
  EXPECT_THROW(resolve_zero_stage(asking(-1, "no_shard", true)), Error);
  EXPECT_THROW(resolve_zero_stage(asking(4, "auto", false)), Error);
  EXPECT_THROW(resolve_zero_stage(asking(-2, "auto", false)), Error);
  EXPECT_THROW(resolve_zero_stage(asking(2, "optim_grads_params", false)), Error);
}

}  // namespace
}  // namespace ranklab
