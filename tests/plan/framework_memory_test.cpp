// What a software takes of a GPU beside this project's tensors, computed by hand for a rank of two pipeline stages.
#include "core/plan/measured/framework_memory.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

constexpr double kMiB = 1024 * 1024;

RunPlan plan_with(const SoftwareMemory& memory) {
  TrainConfig c;
  c.model.num_layers = 4;
  c.model.hidden_size = 64;
  c.model.num_attention_heads = 8;
  c.model.ffn_hidden_size = 256;
  c.model.seq_length = 128;
  c.model.vocab_size = 1000;
  c.parallel = {.world = 4, .tp = 2, .pp = 2, .dp = 1};
  c.micro_batch_size = 2;
  c.global_batch_size = 8;
  c.pipeline_layout = "even";
  c.hardware = "a100-80";
  RunPlan plan = resolve(c);
  plan.profile.software.memory = memory;
  return plan;
}

RankRecord rank_at(int pp_rank) {
  RankRecord rank;
  rank.pp_rank = pp_rank;
  rank.after = {100'000'000, 200'000'000, 600'000'000, 0, 0, 0};
  rank.highest = {100'000'000, 200'000'000, 700'000'000, 50'000'000, 7'000'000, 90'000'000};
  rank.kept_bytes = {10'000'000};
  return rank;
}

constexpr double kStates = 900e6, kCublas = 2 * 8.125 * kMiB;  // of forward's thread and backward's
constexpr double kLogits = 2 * 128 * 500;                      // microbatch x positions x half of the vocabulary

TEST(FrameworkMemory, OfThisProjectIsItsTensorsAndTheContext) {
  const FrameworkMemory memory = framework_memory(plan_with({}), rank_at(0));
  EXPECT_DOUBLE_EQ(memory.states, kStates) << "what the optimizer's work takes for a moment is none of them";
  EXPECT_DOUBLE_EQ(memory.activations, 57e6) << "and gathered layers, without buffers of simulated reductions";
  EXPECT_DOUBLE_EQ(memory.loss, 0) << "the other stage has the head";
  EXPECT_DOUBLE_EQ(memory.at_rest(), kStates + kCublas);
  EXPECT_DOUBLE_EQ(memory.reserved(), kStates + kCublas + 57e6);
  EXPECT_DOUBLE_EQ(memory.on_device(), kStates + kCublas + 57e6 + kContextBytes);
}

// ZeRO 2 accumulates whole gradients: their peak and that of activations are not at the same time.
TEST(FrameworkMemory, PartsAreThoseOfOneMoment) {
  RunPlan plan = plan_with({});
  plan.zero_stage = 2;
  RankRecord rank = rank_at(0);
  rank.after[static_cast<size_t>(MemoryCategory::kGradients)] = 20'000'000;
  rank.at_peak = rank.after;
  rank.at_peak[static_cast<size_t>(MemoryCategory::kGradients)] = 200'000'000;
  rank.at_peak[static_cast<size_t>(MemoryCategory::kActivations)] = 45'000'000;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank).allocated(), 100e6 + 200e6 + 600e6 + 45e6 + kCublas);
}

TEST(FrameworkMemory, AnOuterUpdateNeedsItsMovement) {
  RunPlan plan = plan_with({});
  plan.config.diloco.sync_steps = 4;
  plan.config.diloco.fragments = 1;
  ASSERT_TRUE(plan.config.diloco.enabled());
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).allocated(), kStates + kCublas + 90e6) << "without activations";
  plan.config.diloco.sync_delay = 1;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).allocated(), kStates + kCublas + 90e6 + 57e6)
      << "on its way during the next steps";
}

TEST(FrameworkMemory, TheLastStageHasTheLoss) {
  RunPlan plan = plan_with({.activations = 2, .logit_bytes = 8, .shared_logit_bytes = 3});
  FrameworkMemory memory = framework_memory(plan, rank_at(1));
  EXPECT_DOUBLE_EQ(memory.loss, 7 * kLogits) << "two ranks share the vocabulary";
  EXPECT_DOUBLE_EQ(memory.activations, 2 * (50e6 - 4 * kLogits) + 7e6) << "of which its logits are a part here";
  plan.config.attention_backend = "unfused";
  const double scores = 2 * 4 * 128 * 128.0 * 2, kept = 10e6 - 2 * kLogits;
  memory = framework_memory(plan, rank_at(1));
  EXPECT_NEAR(memory.activations, (50e6 - 4 * kLogits) * (2 * (kept - 2 * scores) + 2 * scores) / kept + 7e6, 1)
      << "and none of what its layers keep";
}

TEST(FrameworkMemory, ASoftwareThatKeepsMore) {
  const SoftwareMemory software{.activations = 2, .reserve = 0.5};
  const FrameworkMemory memory = framework_memory(plan_with(software), rank_at(0));
  EXPECT_DOUBLE_EQ(memory.activations, 2 * 50e6 + 7e6);
  EXPECT_DOUBLE_EQ(memory.reserve, 0.5 * 107e6);
}

// Megatron-LM's test gpt3_mcore_te_tp4_pp1 with qk_layernorm, on two generations: its tensors after a step less 18
// bytes for each of 16.5 million parameters are 71.4 MB of workspaces on an A100, and 100.8 MB on a GB200. What experts
// in grouped products take more, 16.8 and 134.2 MB, is that of four streams.
TEST(FrameworkMemory, WorkspacesAreThoseOfMegatronsTests) {
  RunPlan plan = plan_with({.cublas_mib = 32, .own_workspaces = 1, .grouped_workspaces = 4});
  EXPECT_NEAR(framework_memory(plan, rank_at(0)).workspace, 71.4e6, 0.1e6);
  plan.profile = load_hardware_profile("gb200", Efficiency::kMeasured);
  plan.profile.software.memory = {.cublas_mib = 32, .own_workspaces = 1, .grouped_workspaces = 4};
  EXPECT_NEAR(framework_memory(plan, rank_at(0)).workspace, 100.8e6, 0.2e6);
  plan.config.model.moe.num_experts = 4;
  EXPECT_NEAR(framework_memory(plan, rank_at(0)).workspace, 100.8e6 + 134.2e6, 0.3e6);
  plan.profile.software.memory.cublas_mib = std::nullopt;
  EXPECT_NEAR(framework_memory(plan, rank_at(0)).workspace, (2 * 8.125 + 5 * 32) * kMiB, 1) << "PyTorch's default";
  plan.profile.software.memory.cublas_mib = 0;
  EXPECT_NEAR(framework_memory(plan, rank_at(0)).workspace, 5 * 32 * kMiB, 1) << "none";
}

// The same test without Transformer Engine in fp16 takes 20 bytes for each parameter after a step, and 16 at its peak.
TEST(FrameworkMemory, BetweenStepsTheOptimizerHoldsGradientsInFp32) {
  RunPlan plan = plan_with({.fp32_gradients = 1});
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).between_steps, 0) << "of gradients that are in fp32 anyway";
  plan.config.bf16 = true;
  const double elements = 600e6 / 12;  // of main parameters and two moments
  FrameworkMemory memory = framework_memory(plan, rank_at(0));
  EXPECT_DOUBLE_EQ(memory.between_steps, 4 * elements);
  EXPECT_DOUBLE_EQ(memory.at_rest(), kStates + kCublas + 4 * elements);
  EXPECT_DOUBLE_EQ(memory.allocated(), kStates + kCublas + 4 * elements) << "which is more than 57 MB of activations";
  memory.activations = 1e9;
  EXPECT_DOUBLE_EQ(memory.allocated(), kStates + kCublas + 1e9) << "which are gone when the optimizer works";
  plan.config.precision.main_grads_dtype = "fp32";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).between_steps, 0);
}

TEST(FrameworkMemory, StagesHoldTheirLastInputs) {
  RunPlan plan = plan_with({.stage_inputs = 2});
  plan.sequence_parallel = false;
  const double message = 2 * 128 * 64 * 4;  // a microbatch's positions times the hidden size, in fp32
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).between_steps, 0) << "the first stage is fed tokens";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(1)).between_steps, 2 * message);
  plan.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(1)).between_steps, 2 * message / 2);
}

TEST(FrameworkMemory, LayersShareABufferOfScores) {
  RunPlan plan = plan_with({.score_buffer_bytes = 2});
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).workspace, kCublas);
  plan.config.attention_backend = "unfused";
  const double scores = 2 * 4 * 128 * 128.0;  // of one layer
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).workspace, kCublas + 2 * scores);
  plan.config.recompute_granularity = "full";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).workspace, kCublas + 2 * scores) << "backward needs it again";
}

TEST(FrameworkMemory, GradientsAreAddedUpInFp32) {
  RunPlan plan = plan_with({.accumulator_bytes = 4});
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).states, kStates);
  plan.config.bf16 = true;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).states, kStates + 4 * 100e6 / 2);
}

// torchtitan's 8B on 8 and on 128 GPUs: 15 GiB less of 8.03 billion parameters, 16 bytes each.
TEST(FrameworkMemory, FsdpShardsInFp32AndGathersAhead) {
  RunPlan plan = plan_with({.accumulator_bytes = 4, .shard_bytes = 2, .gathered = 2});
  plan.config.bf16 = true;
  plan.zero_stage = 3;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).states, kStates + 2 * 100e6 / 2) << "and adds up in its shards";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 50e6 + 2 * 7e6);
  plan.zero_stage = 1;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 57e6) << "tensor-parallel ranks gather activations";
  plan.zero_stage = 3;
  plan.config.bf16 = false;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).states, kStates) << "as this project does";
}

TEST(FrameworkMemory, ScoresOfUnfusedAttention) {
  RunPlan plan = plan_with({.score_bytes = 2, .dropped_score_bytes = 1});
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 57e6) << "flash attention has none";
  plan.config.attention_backend = "unfused";
  RunPlan keeps_more = plan_with({.activations = 2});
  keeps_more.config.attention_backend = "unfused";
  EXPECT_DOUBLE_EQ(framework_memory(keeps_more, rank_at(0)).activations,
                   2 * 50e6 - 2.0 * 2 * (2 * 4 * 128 * 128.0) * 5 + 7e6)
      << "its scores are as many";
  const double scores = 2 * 4 * 128 * 128.0, more = 2 * scores * 2 / 10e6;  // 4 of 8 heads, 2 layers
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 50e6 * (1 + more) + 7e6);
  plan.config.model.dropout = 0.1;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 50e6 * (1 + more) + 7e6) << "drops no scores";
  plan.config.model.attention_dropout = 0.1;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 50e6 * (1 + 1.5 * more) + 7e6);
}

// Of a hybrid model the layers' mixers are counted one by one, and only those of attention have scores.
RunPlan hybrid_plan(const std::string& pattern, int tp = 2) {
  RunPlan plan = plan_with({.activations = 2, .megatron_hybrids = true});
  TrainConfig c = plan.config;
  c.model.hybrid_pattern = pattern;
  c.model.activation = ActivationKind::kGelu;
  c.bf16 = true;
  c.model.mamba = {.num_heads = 4, .head_dim = 32, .state_dim = 16, .num_groups = 2};
  c.parallel = {.world = 2 * tp, .tp = tp, .pp = 2, .dp = 1};
  c.sequence_parallel = false;
  RunPlan out = resolve(c);
  out.profile.software.memory = plan.profile.software.memory;
  return out;
}

TEST(FrameworkMemory, LayersOfAHybridKeepWhatTheirMixersDo) {
  constexpr double kPositions = 2 * 128, kInputs = 2 * 2 * 64;  // of the norm and of the first product
  // z, x, B, C and the steps; the scan's output, and the inputs of the norm and of the last product.
  constexpr double kMamba = kInputs + 2 * (2 * 128 + 2 * 2 * 16 + 4 + 3 * 128) / 2.0;
  constexpr double kMlp = kInputs + 2 * 2 * 256 / 2.0;              // the input and the result of GELU
  constexpr double kAttention = kInputs + 2 * (3 * 64 + 64) / 2.0;  // queries, keys, values, and their result
  const auto activations = [](const RunPlan& plan) { return framework_memory(plan, rank_at(0)).activations; };
  const double most = 50e6, kept = 10e6, gathered = 7e6;
  EXPECT_NEAR(activations(hybrid_plan("M-*M")), most * kPositions * (kMamba + kMlp) / kept + gathered, 1)
      << "the first stage has two layers";
  EXPECT_NEAR(activations(hybrid_plan("**M-")), most * kPositions * 2 * kAttention / kept + gathered, 1);
  RunPlan gated = hybrid_plan("M-*M");
  gated.config.model.activation = ActivationKind::kSwiGlu;
  EXPECT_NEAR(activations(gated) - activations(hybrid_plan("M-*M")), most * kPositions * 2 * 256 / 2 / kept, 1)
      << "its second input";
  RunPlan dropped = hybrid_plan("M-*M");
  dropped.config.model.dropout = 0.1;
  EXPECT_NEAR(activations(dropped) - activations(hybrid_plan("M-*M")), most * kPositions * 2 * 64 / kept, 1)
      << "a byte of each mask";
  RunPlan shared = hybrid_plan("M-*M");
  shared.sequence_parallel = true;
  EXPECT_NEAR(activations(shared), most * kPositions * (kMamba + kMlp - kInputs) / kept + gathered, 1)
      << "two ranks share the inputs of two layers";
  RunPlan single = hybrid_plan("M-*M");
  single.config.bf16 = false;
  EXPECT_NEAR(activations(single), most * kPositions * 2 * (kMamba + kMlp) / kept + gathered, 1) << "in fp32";
  RunPlan experts = hybrid_plan("M-*M");
  experts.config.model.moe.num_experts = 4;
  experts.profile.software.memory.experts = 3;
  EXPECT_DOUBLE_EQ(activations(experts), 3 * most + gathered) << "whose layers are not counted";
  RunPlan other = hybrid_plan("M-*M");
  other.profile.software.memory.megatron_hybrids = false;
  EXPECT_DOUBLE_EQ(activations(other), 2 * most + gathered) << "of another software";
}

TEST(FrameworkMemory, OnlyAttentionHasScores) {
  const auto activations = [](const std::string& pattern) {
    RunPlan plan = hybrid_plan(pattern);
    plan.profile.software.memory = {.score_bytes = 2};
    plan.config.attention_backend = "unfused";
    return framework_memory(plan, rank_at(0)).activations;
  };
  const double scores = 2 * 4 * 128 * 128.0, more = 2 * scores / 10e6;
  EXPECT_NEAR(activations("M-**"), 57e6, 1) << "the other stage has them";
  EXPECT_NEAR(activations("M*--"), 50e6 * (1 + more) + 7e6, 1);
  EXPECT_NEAR(activations("**M-"), 50e6 * (1 + 2 * more) + 7e6, 1);
}

TEST(FrameworkMemory, BuffersOfDeepSpeed) {
  RunPlan plan = plan_with({.exchange_bytes = 3e8, .gradient_copies = 1});
  RankRecord rank = rank_at(0);
  const double parameters = 2e8;
  rank.after[static_cast<size_t>(MemoryCategory::kParameters)] = static_cast<int64_t>(parameters);
  const FrameworkMemory plain = framework_memory(plan, rank);
  EXPECT_DOUBLE_EQ(plain.workspace, 3e8 + kCublas);
  EXPECT_DOUBLE_EQ(plain.states, parameters + 800e6) << "of fp32 parameters there are no 16-bit gradients";
  plan.config.bf16 = true;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank).states, plain.states) << "nor copies of gradients in 16 bits";
  plan.config.precision.main_grads_dtype = "fp32";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank).states - plain.states, parameters);
  rank.after[static_cast<size_t>(MemoryCategory::kParameters)] = 1000;
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank).workspace, 2000 + kCublas) << "no more than there is to exchange";
}

TEST(FrameworkMemory, RecomputationInItsOwnWay) {
  RunPlan plan = plan_with({.activations = 2, .selective = 3});
  plan.config.recompute_granularity = "full";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 57e6) << "inputs of layers, in any software";
  plan.config.recompute_granularity = "selective";
  EXPECT_DOUBLE_EQ(framework_memory(plan, rank_at(0)).activations, 3 * 50e6 + 7e6);
}

TEST(FrameworkMemory, OfAStepIsThatOfTheFullestRank) {
  StepRecord record;
  record.ranks = {rank_at(0), rank_at(1)};
  record.ranks[1].after[0] = 400'000'000;
  EXPECT_DOUBLE_EQ(framework_memory(plan_with({}), record).states, 1200e6);
}

}  // namespace
}  // namespace ranklab
