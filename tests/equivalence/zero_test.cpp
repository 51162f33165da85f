// ZeRO stages against plain data parallelism, bit for bit: losses of three steps and every parameter on every rank
// after them, and the optimizer's states put together from the ranks' pieces. Where gradients are clipped the norm's
// squares are added in another order, so that runs agree to 1e-12.
#include <gtest/gtest.h>

#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/recompute.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

// Gradients and shards that do not fill their cache lines, fp32, three steps.
TrainConfig base_config() {
  TrainConfig c = small_config();
  c.model.num_layers = 2;
  c.model.hidden_size = 36;
  c.model.ffn_hidden_size = 50;
  c.model.num_attention_heads = 6;
  c.model.vocab_size = 261;
  c.params_dtype = "fp32";
  c.parallel = {.world = 8, .tp = 1, .pp = 1};
  c.global_batch_size = 16;
  c.train_iters = 3;
  c.sgd_momentum = 0.9;
  c.adam_eps = 1e-8;
  c.trace = false;
  c.ddp_bucket_bytes = 20000;
  return c;
}

struct ZeroCase {
  const char* name;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
  bool only_types = false;  // in fp64 it is another row
};

void accumulation(TrainConfig& c) { c.micro_batch_size = 1; }
void no_overlap(TrainConfig& c) { c.overlap_grad_reduce = false; }
void pairwise(TrainConfig& c) { accumulation(c), c.accumulation = Accumulation::kPairwise; }
void sgd(TrainConfig& c) { c.optimizer = OptimizerKind::kSgd; }
void lion(TrainConfig& c) { c.optimizer = OptimizerKind::kLion; }
void fp64(TrainConfig& c) { c.params_dtype = "fp64"; }
void bf16(TrainConfig& c) { c.bf16 = true; }
void wide_grads(TrainConfig& c) { bf16(c), c.precision.main_grads_dtype = "fp32"; }
void narrow_states(TrainConfig& c) {
  wide_grads(c);
  c.precision.exp_avg_dtype = c.precision.exp_avg_sq_dtype = c.precision.main_params_dtype = "bf16";
}
void one_bucket(TrainConfig& c) { c.ddp_bucket_bytes = 1 << 24; }
void experts(TrainConfig& c) {
  c.model.moe = {
      .num_experts = 8, .topk = 2, .ffn_hidden_size = 18, .shared_ffn_hidden_size = 22, .first_dense_layers = 1};
}
void qwen(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.kv_channels = 10;
  c.model.add_qkv_bias = true;
  c.model.qk_norm = true;
}
void one_key_head(TrainConfig& c) {
  c.model.num_query_groups = 1;
  c.model.kv_channels = 12;
}
void llama3(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.add_attention_bias = true;
  c.model.window_size = 5;
  c.model.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 4, .original_seq_length = 16};
}
void yarn(TrainConfig& c) { c.model.yarn = {.scaling_factor = 4, .original_seq_length = 8, .attention_factor = 1.2}; }
void qwen_experts(TrainConfig& c) {
  qwen(c);
  experts(c);
  c.model.moe.shared_gate = true;
}
// A variant of tests/support; tp ranks can shard its key/value heads here.
void variant(TrainConfig& c, const char* name) {
  variant_named(name).change(c.model);
  c.model.num_query_groups = 2;
}
void olmo2(TrainConfig& c) { variant(c, "olmo2"); }
void gemma2(TrainConfig& c) { variant(c, "gemma2"); }
void phi2(TrainConfig& c) { variant(c, "phi2"); }
void repeated_mtp(TrainConfig& c) { c.model.mtp_num_layers = 2, c.model.mtp_use_repeated_layer = true; }
void tied(TrainConfig& c) { c.model.tie_embeddings = true; }
void tied_v(TrainConfig& c) {
  tied(c);
  c.model.num_layers = 4;
  c.pipeline_schedule = "zb-v";
}
void clipped_heads(TrainConfig& c) {
  c.model.init_std = 0.3;
  c.qk_clip = true;
  c.qk_clip_threshold = 2;
}
void dualpipe(TrainConfig& c) { c.pipeline_schedule = "dualpipe"; }
void tied_dualpipe(TrainConfig& c) { tied(c), dualpipe(c); }
void bidirectional_experts(TrainConfig& c) { experts(c), dualpipe(c), accumulation(c); }

const ZeroCase kZeroCases[] = {
    {"dp2", {.world = 2}},
    {"dp4", {.world = 4}},
    {"dp8", {.world = 8}},
    {"dp3_uneven", {.world = 3}, [](TrainConfig& c) { c.global_batch_size = 9; }},
    {"dp8_sgd", {.world = 8}, sgd},
    {"dp8_fp64_one_bucket", {.world = 8}, [](TrainConfig& c) { fp64(c), one_bucket(c); }},
    {"dp8_no_overlap", {.world = 8}, no_overlap},
    {"dp4_accumulation", {.world = 4}, accumulation},
    {"dp4_accumulation_no_overlap_sgd", {.world = 4}, [](TrainConfig& c) { accumulation(c), no_overlap(c), sgd(c); }},
    {"dp4_pairwise", {.world = 4}, pairwise},
    {"dp4_tp2_lion", {.world = 8, .tp = 2}, lion},
    {"dp2_tp2", {.world = 4, .tp = 2}},
    {"dp4_tp2", {.world = 8, .tp = 2}, accumulation},
    {"dp4_tp2_no_sp", {.world = 8, .tp = 2}, [](TrainConfig& c) { c.sequence_parallel = false; }},
    {"dp2_tp2_no_sp_qwen", {.world = 4, .tp = 2}, [](TrainConfig& c) { qwen(c), c.sequence_parallel = false; }},
    {"dp2_tp2_qwen", {.world = 4, .tp = 2}, qwen},
    {"dp2_tp2_one_key_head", {.world = 4, .tp = 2}, [](TrainConfig& c) { qwen(c), one_key_head(c); }},
    {"dp4_tp2_one_key_head_recompute",
     {.world = 8, .tp = 2},
     [](TrainConfig& c) { qwen(c), one_key_head(c), recompute_all(c); }},
    {"dp2_tp2_llama3", {.world = 4, .tp = 2}, llama3},
    {"dp2_tp2_phi2", {.world = 4, .tp = 2}, phi2},
    {"dp2_tp2_gemma2", {.world = 4, .tp = 2}, gemma2},
    {"dp2_tp2_olmo2", {.world = 4, .tp = 2}, olmo2},
    {"dp4_yarn", {.world = 4, .tp = 1}, yarn},
    {"dp2_tp2_pp2_ep2_qwen_experts", {.world = 8, .tp = 2, .pp = 2, .ep = 2}, qwen_experts},
    {"dp2_pp2", {.world = 4, .pp = 2}},
    {"dp4_pp2", {.world = 8, .pp = 2}, accumulation},
    {"dp2_tp2_pp2_sgd", {.world = 8, .tp = 2, .pp = 2}, sgd},
    {"dp2_ep2", {.world = 2, .ep = 2}, experts},
    {"dp4_ep2", {.world = 4, .ep = 2}, experts},
    {"dp8_ep2", {.world = 8, .ep = 2}, [](TrainConfig& c) { experts(c), accumulation(c); }},
    {"dp4_tp2_ep2", {.world = 8, .tp = 2, .ep = 2}, experts},
    {"dp4_pp2_ep2", {.world = 8, .pp = 2, .ep = 2}, experts},
    {"dp2_pp2_tied", {.world = 4, .pp = 2}, tied},
    {"dp2_tp2_pp2_tied", {.world = 8, .tp = 2, .pp = 2}, tied},
    {"dp3_pp2_tied_v", {.world = 6, .pp = 2}, [](TrainConfig& c) { tied_v(c), c.global_batch_size = 18; }},
    {"dp2_pp2_dualpipe", {.world = 4, .pp = 2}, dualpipe},
    {"dp2_tp2_pp2_tied_dualpipe", {.world = 8, .tp = 2, .pp = 2}, tied_dualpipe},
    {"dp8_tp2", {.world = 16, .tp = 2}},
    {"dp8_pp2", {.world = 16, .pp = 2}, [](TrainConfig& c) { c.global_batch_size = 32; }},
    {"dp8_in_two_groups", {.world = 8, .replicas = 2}},
    {"dp8_in_four_groups_accumulation", {.world = 8, .replicas = 4}, accumulation},
    {"dp4_tp2_in_two_groups", {.world = 8, .tp = 2, .replicas = 2}},
    {"dp4_pp2_tied_in_two_groups", {.world = 8, .pp = 2, .replicas = 2}, tied},
    {"dp8_ep2_in_two_groups", {.world = 8, .ep = 2, .replicas = 2}, experts},
    {"dp8_ep4_in_two_groups", {.world = 8, .ep = 4, .replicas = 2}, experts},
    {"dp4_pp2_ep2_in_two_groups", {.world = 8, .pp = 2, .ep = 2, .replicas = 2}, experts},
    {"dp4_pp2_zb_h1", {.world = 8, .pp = 2}, [](TrainConfig& c) { c.pipeline_schedule = "zb-h1", accumulation(c); }},
    {"dp4_tp2_recompute", {.world = 8, .tp = 2}, recompute_all},
    {"dp4_tp2_clipped_heads", {.world = 8, .tp = 2}, [](TrainConfig& c) { llama3(c), clipped_heads(c); }},
    {"dp8_bf16_clipped_heads", {.world = 8}, [](TrainConfig& c) { bf16(c), clipped_heads(c); }},
    {"dp4_narrow_states_clipped_heads", {.world = 4}, [](TrainConfig& c) { narrow_states(c), clipped_heads(c); }},
    {"dp4_recompute_two_at_a_time",
     {.world = 4},
     [](TrainConfig& c) { recompute_all(c), c.recompute_method = "uniform", c.recompute_num_layers = 2; }},
    {"dp2_pp2_ep2_zb_h1_recompute",
     {.world = 4, .pp = 2, .ep = 2},
     [](TrainConfig& c) { recompute_all(c), experts(c), c.pipeline_schedule = "zb-h1", accumulation(c); }},
    {"dp8_bf16", {.world = 8}, bf16, true},
    {"dp4_tp2_accumulation_bf16", {.world = 8, .tp = 2}, [](TrainConfig& c) { bf16(c), accumulation(c); }, true},
    {"dp4_pp2_ep2_mtp_bf16",
     {.world = 8, .pp = 2, .ep = 2},
     [](TrainConfig& c) { bf16(c), experts(c), c.model.mtp_num_layers = 1; }},
    {"dp4_repeated_mtp", {.world = 4}, repeated_mtp},
    {"dp2_ep2_repeated_mtp_recompute",
     {.world = 4, .ep = 2},
     [](TrainConfig& c) { experts(c), repeated_mtp(c), recompute_all(c), accumulation(c); }},
    {"dp2_pp2_repeated_mtp_zb_h1_recompute",
     {.world = 4, .pp = 2},
     [](TrainConfig& c) { repeated_mtp(c), recompute_all(c), c.pipeline_schedule = "zb-h1", accumulation(c); }},
    {"dp8_wide_grads", {.world = 8}, wide_grads, true},
    {"dp4_tp2_accumulation_wide_grads",
     {.world = 8, .tp = 2},
     [](TrainConfig& c) { wide_grads(c), accumulation(c); },
     true},
    {"dp2_pp2_tied_pairwise_wide_grads",
     {.world = 4, .pp = 2},
     [](TrainConfig& c) { wide_grads(c), tied(c), pairwise(c); }},
    {"dp4_pp2_ep2_zb_h1_wide_grads",
     {.world = 8, .pp = 2, .ep = 2},
     [](TrainConfig& c) { wide_grads(c), experts(c), c.pipeline_schedule = "zb-h1", accumulation(c); }},
    {"dp4_in_two_groups_narrow_states", {.world = 4, .replicas = 2}, narrow_states},
    {"dp4_tp2_narrow_states", {.world = 8, .tp = 2}, narrow_states},
    {"dp4_fp16", {.world = 4}, [](TrainConfig& c) { c.precision.fp16 = true; }, true},
    {"dp4_pp2_ep2_dualpipe", {.world = 8, .pp = 2, .ep = 2}, bidirectional_experts},
};

TrainConfig zero_config(const ZeroCase& a) {
  TrainConfig c = base_config();
  c.parallel = a.dims;
  a.change(c);
  return c;
}

TrainConfig without_groups(TrainConfig config) {
  config.parallel.replicas = 1;
  return config;
}

class Zero : public testing::TestWithParam<ZeroCase> {};
class ZeroClipped : public testing::TestWithParam<ZeroCase> {};

std::vector<ZeroCase> cases_in_fp64() {
  std::vector<ZeroCase> cases(std::begin(kZeroCases), std::end(kZeroCases));
  std::erase_if(cases, [](const ZeroCase& one) { return one.only_types; });
  return cases;
}

TEST_P(Zero, IsPlainDataParallelismBitForBit) {
  TrainConfig config = zero_config(GetParam());
  const TrainingRecord plain = record_training(without_groups(config));
  ASSERT_EQ(plain.steps.size(), 3u);
  for (int stage = 1; stage < static_cast<int>(kZeroStages.size()); ++stage) {
    for (const bool overlap : {false, true}) {
      if (overlap && kZeroStages[static_cast<size_t>(stage)].parameters) continue;
      SCOPED_TRACE("stage " + std::to_string(stage) + (overlap ? ", overlapped gathers" : ""));
      config.zero_stage = stage;
      config.overlap_param_gather = overlap;
      expect_same_training(record_training(config), plain, {});
    }
  }
}

// The norm is the same number but for the order in which squares are added, and so is everything that it scales.
TEST_P(ZeroClipped, AgreesToTwelveDigits) {
  TrainConfig config = zero_config(GetParam());
  config.params_dtype = "fp64";
  config.bf16 = false;
  config.precision = {};
  config.clip_grad = 0.5;
  config.train_iters = 3;
  const TrainingRecord plain = record_training(without_groups(config));
  EXPECT_GT(plain.steps[0].grad_norm, 0.5);
  for (int stage = 1; stage < static_cast<int>(kZeroStages.size()); ++stage) {
    SCOPED_TRACE("stage " + std::to_string(stage));
    config.zero_stage = stage;
    expect_same_training(record_training(config), plain, kRounding);
  }
}

// Without a step in between: the same training on one rank, to twelve digits.
TEST(ZeroAgainstOneRank, AgreesToTwelveDigits) {
  TrainConfig config = base_config();
  fp64(config);
  config.adam_eps = 1e-6;
  config.parallel = {.world = 1, .tp = 1, .pp = 1};
  const TrainingRecord one = record_training(config);
  for (const ParallelDims& dims : {ParallelDims{.world = 8}, {.world = 8, .tp = 2}, {.world = 8, .pp = 2}}) {
    for (int stage = 1; stage < static_cast<int>(kZeroStages.size()); ++stage) {
      SCOPED_TRACE("stage " + std::to_string(stage) + ", tp " + std::to_string(dims.tp) + ", pp " +
                   std::to_string(dims.pp));
      config.parallel = dims;
      config.zero_stage = stage;
      expect_same_training(record_training(config), one, kRounding);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Zero, testing::ValuesIn(kZeroCases),
                         [](const auto& c) { return std::string(c.param.name); });
INSTANTIATE_TEST_SUITE_P(Layouts, ZeroClipped, testing::ValuesIn(cases_in_fp64()),
                         [](const auto& c) { return std::string(c.param.name); });

// Every rank keeps states of its pieces alone, and together they are the states of plain data parallelism.
TEST(ZeroStates, AreThoseOfEachElementOnce) {
  TrainConfig config = base_config();
  config.parallel = {.world = 4};
  config.train_iters = 3;
  const TrainingRecord plain = record_training(config);
  config.zero_stage = 2;
  const TrainingRecord shared = record_training(config);
  int64_t together = 0;
  for (const auto& [rank, elements] : shared.moment_elements) {
    together += elements;
    EXPECT_NEAR(static_cast<double>(elements) / static_cast<double>(plain.moment_elements.at(rank)), 0.25, 0.02);
  }
  EXPECT_EQ(together, plain.moment_elements.at(0));
  EXPECT_EQ(shared.moments.size(), 2u);
  expect_same_training(shared, plain, {});
}

}  // namespace
}  // namespace ranklab
