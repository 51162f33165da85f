#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/config/settings/fields.h"
#include "core/runtime/memory/check.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

std::string refusal(const TrainConfig& config) {
  try {
    resolve(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(ConfigFields, EveryValueCanBeWrittenBackAsItWasRead) {
  for (const ConfigField& field : config_fields()) {
    TrainConfig config;
    const std::string value = field.get(config);
    if (value == "auto" && field.kind == ConfigField::Kind::kFlag) continue;  // unset: derived later
    EXPECT_NO_THROW(field.set(config, value)) << field.key;
    EXPECT_EQ(field.get(config), value) << field.key;
  }
}

TEST(ConfigFields, KeysAndFlagsAreUniqueAndHelped) {
  std::set<std::string> seen;
  for (const ConfigField& field : config_fields()) {
    EXPECT_TRUE(seen.insert(field.key).second) << field.key;
    for (const std::string& flag : field.flags) EXPECT_TRUE(seen.insert(flag).second) << flag;
    EXPECT_FALSE(field.help.empty()) << field.key;
  }
}

TEST(ConfigFields, SettingByFlagKeyOrAliasReachesTheMember) {
  TrainConfig config;
  set_config_field(config, "--tp", "4");
  EXPECT_EQ(config.parallel.tp, 4);
  set_config_field(config, "optim.lr", "1e-4");
  EXPECT_EQ(config.lr, 1e-4);
  set_config_field(config, "--sequence-parallel", "false");
  EXPECT_EQ(config.sequence_parallel, false);
  set_config_field(config, "--optimizer", "sgd");
  EXPECT_EQ(config.optimizer, OptimizerKind::kSgd);
}

TEST(ConfigFields, WrongNamesAndValuesAreNamed) {
  TrainConfig config;
  const auto refused = [&](const std::string& key, const std::string& value) -> std::string {
    try {
      set_config_field(config, key, value);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused("--train-iter", "3"), HasSubstr("did you mean '--train-iters'?"));
  EXPECT_THAT(refused("--train-iters", "3.5"), HasSubstr("a whole number"));
  EXPECT_THAT(refused("--train-iters", "many"), HasSubstr("got 'many'"));
  EXPECT_THAT(refused("--lr", "1e-3x"), HasSubstr("a number"));
  EXPECT_THAT(refused("--optimizer", "adam"), HasSubstr("one of adamw, sgd"));
  EXPECT_THAT(refused("--backend", "gpu"), HasSubstr("one of cpu_sim, cuda"));
}

TEST(Resolve, DerivesDataParallelSizeAndMicrobatches) {
  TrainConfig config = tiny_config(8, 2);
  config.micro_batch_size = 1;
  const RunPlan plan = resolve(config);
  EXPECT_EQ(plan.dp(), 4);
  EXPECT_EQ(plan.num_microbatches, 2);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.tokens_per_step(), 8 * 16);
  config.sequence_parallel = false;
  EXPECT_FALSE(resolve(config).sequence_parallel);
}

TEST(Resolve, EveryRefusalNamesBothNumbersAndALegalValue) {
  TrainConfig c = tiny_config(8, 3);
  EXPECT_THAT(refusal(c), testing::AllOf(HasSubstr("3"), HasSubstr("8"), HasSubstr("want")));
  c = tiny_config(8, 8);  // 4 heads
  EXPECT_THAT(refusal(c), testing::AllOf(HasSubstr("8"), HasSubstr("4")));
  c = tiny_config(8, 1);
  c.global_batch_size = 12;
  EXPECT_THAT(refusal(c), testing::AllOf(HasSubstr("--global-batch-size 12"), HasSubstr("dp 8"), HasSubstr("8 or 16")));
  c = tiny_config(2, 1);
  c.micro_batch_size = 3;
  EXPECT_THAT(refusal(c),
              testing::AllOf(HasSubstr("--micro-batch-size 3"), HasSubstr("4 sequences"), HasSubstr("2 or 4")));
  c = tiny_config(2, 1);
  c.lr_warmup_iters = 4;
  EXPECT_THAT(refusal(c), testing::AllOf(HasSubstr("4"), HasSubstr("warm-up below 4")));
  c = tiny_config(2, 1);
  c.min_lr = 1;
  EXPECT_THAT(refusal(c), HasSubstr("min-lr"));
  c = tiny_config(2, 1);
  c.hardware = "h100";
  EXPECT_THAT(refusal(c), HasSubstr("h100-sxm"));
  c = tiny_config(2, 1);
  c.train_iters = -1;
  EXPECT_THAT(refusal(c), HasSubstr("--train-iters"));
}

TEST(MemoryCheck, RefusesBeforeRanksStartAndSaysWhatWouldFit) {
  TrainConfig c = tiny_config(8, 2);
  const int64_t parameters = c.model.parameter_count();
  EXPECT_EQ(fixed_bytes(resolve(c)), parameters * 4 * 4 * 4);  // fp32; parameter, gradient, two moments; dp 4
  c.optimizer = OptimizerKind::kSgd;
  EXPECT_EQ(fixed_bytes(resolve(c)), parameters * 4 * 2 * 4);
  const RunPlan plan = resolve(c);
  EXPECT_NO_THROW(check_memory(plan, fixed_bytes(plan)));
  try {
    check_memory(plan, fixed_bytes(plan) - 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("4 replicas"), HasSubstr("raise --tp"), HasSubstr("available"),
                                             testing::Not(HasSubstr("CUDA graph"))));
  }
  RunPlan recorded = plan;
  recorded.config.cuda_graph = true;
  EXPECT_EQ(fixed_bytes(recorded), fixed_bytes(plan) / 2 * 3);
  try {
    check_memory(recorded, fixed_bytes(plan));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("the CUDA graphs' gradients of a microbatch"),
                                             HasSubstr("leave --cuda-graph out")));
  }
}

// Sharded states exist once; with several microbatches gradients accumulate whole before they are reduced.
TEST(MemoryCheck, ShardedStatesCountOnce) {
  TrainConfig c = tiny_config(8, 2);
  c.bf16 = true;
  const int64_t parameters = c.model.parameter_count();
  const int64_t bytes[] = {4 * 16, 4 * 4 + 12, 4 * 2 + 14, 16};  // 2 + 2 + 12 bytes, dp 4
  for (const int stage : {0, 1, 2, 3}) {
    c.zero_stage = stage;
    EXPECT_EQ(fixed_bytes(resolve(c)), parameters * bytes[stage]) << "stage " << stage;
  }
  c.num_microbatches = 2;
  EXPECT_EQ(fixed_bytes(resolve(c)), parameters * (2 + 4 * 2 + 12));
  c.num_microbatches = 0;
  c.parallel.replicas = 2;
  EXPECT_EQ(fixed_bytes(resolve(c)), parameters * 2 * 16);
}

// Experts on 4 ranks each, so twice among 8; all else 8 times.
TEST(MemoryCheck, ExpertsCountAsOftenAsTheyAreReplicated) {
  TrainConfig c = tiny_config(8, 1);
  c.parallel.ep = 4;
  const int64_t dense = c.model.parameter_count();
  c.model.moe = {.num_experts = 8, .topk = 2, .ffn_hidden_size = 24};
  const int64_t experts = 2 * 8 * (3 * 32 * 24), mlps = 2 * (3 * 32 * 64), routers = 2 * 8 * 32;
  EXPECT_EQ(fixed_bytes(resolve(c)), 4 * 4 * (8 * (dense - mlps + routers) + 2 * experts));
}

}  // namespace
}  // namespace ranklab
