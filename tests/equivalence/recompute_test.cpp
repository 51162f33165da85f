// Activation recomputation against runs that keep everything: losses, every gradient and every weight bit for bit, over
// schedules, tensor and sequence parallelism, dropout, latent attention, token prediction and experts; the loads of
// experts booked once; less memory; the FLOPs of the model unchanged and the step longer.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "tests/equivalence/expert_run.h"
#include "tests/equivalence/pipeline_run.h"

namespace ranklab {
namespace {

struct Choice {
  const char* name;
  const char* granularity;
  const char* method = "block";
  int64_t num_layers = 0;
};
const Choice kChoices[] = {
    {"selective", "selective"},
    {"full", "full"},
    {"full_block_1", "full", "block", 1},
    {"full_uniform_2", "full", "uniform", 2},
};

TrainConfig recomputing(TrainConfig config, const Choice& choice) {
  config.recompute_granularity = choice.granularity;
  config.recompute_method = choice.method;
  config.recompute_num_layers = choice.num_layers;
  return config;
}

template <typename Key>
void expect_same_tensors(const std::map<Key, at::Tensor>& got, const std::map<Key, at::Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_FALSE(want.empty());
  int different = 0;
  for (const auto& [key, tensor] : want) different += at::equal(got.at(key), tensor) ? 0 : 1;
  EXPECT_EQ(different, 0) << "of " << want.size() << " tensors";
}

void expect_same_steps(const std::vector<StepMetrics>& got, const std::vector<StepMetrics>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].loss, want[i].loss) << "step " << i;
    EXPECT_EQ(got[i].grad_norm, want[i].grad_norm) << "step " << i;
    EXPECT_EQ(got[i].mtp_loss, want[i].mtp_loss) << "step " << i;
    EXPECT_EQ(got[i].moe_aux_loss, want[i].moe_aux_loss) << "step " << i;
    EXPECT_EQ(got[i].moe_max_over_mean, want[i].moe_max_over_mean) << "step " << i;
    EXPECT_EQ(got[i].moe_dropped_fraction, want[i].moe_dropped_fraction) << "step " << i;
  }
}

struct RecomputeCase {
  const char* name;
  const char* schedule;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

void fp32(TrainConfig& c) { c.params_dtype = "fp32"; }
void dropout(TrainConfig& c) { c.model.dropout = 0.2; }
void gpt2(TrainConfig& c) {
  dropout(c);
  c.model.norm = NormKind::kLayerNorm;
  c.model.position = PositionKind::kLearned;
  c.model.activation = ActivationKind::kGelu;
  c.model.add_bias = true;
  c.model.tie_embeddings = true;
}
void latent(TrainConfig& c) {
  c.model.mla = {.q_lora_rank = 10, .kv_lora_rank = 6, .qk_head_dim = 6, .qk_pos_emb_head_dim = 4, .v_head_dim = 5};
  c.model.mtp_num_layers = 2;
  c.model.tie_embeddings = true;
}
void small_qwen(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.kv_channels = 12;
  c.model.add_qkv_bias = true;
  c.model.qk_norm = true;
}
void small_llama3(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.add_attention_bias = true;
  c.model.window_size = 5;
  c.model.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 4, .original_seq_length = 16};
}

void small_olmo2(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.norm_placement = NormPlacement::kBehind;
  c.model.qk_norm = true;
  c.model.qk_norm_width = QkNormWidth::kAllHeads;
}

void small_gemma2(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.norm_placement = NormPlacement::kBoth;
  c.model.norm_1p = c.model.scale_embeddings = c.model.tie_embeddings = true;
  c.model.activation = ActivationKind::kGeGlu;
  c.model.query_pre_attn_scalar = 5;
  c.model.attn_logit_softcapping = 0.5;
  c.model.final_logit_softcapping = 0.7;
  c.model.window_size = 3;
  c.model.window_layers = {.skip_freq = 2};
}

void small_phi2(TrainConfig& c) {
  c.model.norm = NormKind::kLayerNorm;
  c.model.activation = ActivationKind::kGelu;
  c.model.add_bias = c.model.add_head_bias = true;
  c.model.residual_form = ResidualForm::kParallelOneNorm;
}

const RecomputeCase kRecomputeCases[] = {
    {"one_rank", "1f1b", {.world = 1, .tp = 1}},
    {"one_rank_fp32_dropout", "1f1b", {.world = 1, .tp = 1}, [](TrainConfig& c) { fp32(c), dropout(c); }},
    {"dp2", "1f1b", {.world = 2, .tp = 1}, [](TrainConfig& c) { c.optimizer = OptimizerKind::kSgd; }},
    {"tp2_sp_dropout", "1f1b", {.world = 2, .tp = 2}, dropout},
    {"tp2_gpt2", "1f1b", {.world = 2, .tp = 2}, [](TrainConfig& c) { gpt2(c), c.sequence_parallel = false; }},
    {"tp2_groups_fp32", "1f1b", {.world = 2, .tp = 2}, [](TrainConfig& c) { fp32(c), c.model.num_query_groups = 2; }},
    {"pp2_dp2", "1f1b", {.world = 4, .tp = 1, .pp = 2}, dropout},
    {"pp2_gpipe", "gpipe", {.world = 2, .tp = 1, .pp = 2}},
    {"pp2_interleaved",
     "interleaved-1f1b",
     {.world = 2, .tp = 1, .pp = 2},
     [](TrainConfig& c) { c.virtual_stages = 2; }},
    {"pp2_zb_h1_tp2", "zb-h1", {.world = 4, .tp = 2, .pp = 2}, dropout},
    {"pp2_zb_v_fp32", "zb-v", {.world = 2, .tp = 1, .pp = 2}, fp32},
    {"pp2_dualpipe", "dualpipe", {.world = 2, .tp = 1, .pp = 2}},
    {"olmo2_tp2", "1f1b", {.world = 2, .tp = 2}, small_olmo2},
    {"olmo2_pp2_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, small_olmo2},
    {"gemma2_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, [](TrainConfig& c) { small_gemma2(c), dropout(c); }},
    {"gemma2_pp2_zb_h1_fp32",
     "zb-h1",
     {.world = 2, .tp = 1, .pp = 2},
     [](TrainConfig& c) { small_gemma2(c), fp32(c); }},
    {"phi2_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, [](TrainConfig& c) { small_phi2(c), dropout(c); }},
    {"phi2_pp2_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, small_phi2},
    {"latent_mtp_tp2", "1f1b", {.world = 2, .tp = 2}, latent},
    {"latent_mtp_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, latent},
    {"qwen_tp2_dropout", "1f1b", {.world = 2, .tp = 2}, [](TrainConfig& c) { small_qwen(c), dropout(c); }},
    {"llama3_tp2", "1f1b", {.world = 2, .tp = 2}, small_llama3},
    {"qwen_zb_h1_fp32", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, [](TrainConfig& c) { small_qwen(c), fp32(c); }},
    {"bf16_tp2", "1f1b", {.world = 2, .tp = 2}, [](TrainConfig& c) { fp32(c), c.bf16 = true; }},
    {"bf16_zb_h1", "zb-h1", {.world = 2, .tp = 1, .pp = 2}, [](TrainConfig& c) { fp32(c), c.bf16 = true; }},
};

TrainConfig recompute_config(const RecomputeCase& a) {
  TrainConfig config = pipeline_config();
  config.parallel = a.dims;
  config.pipeline_schedule = a.schedule;
  a.change(config);
  config.num_microbatches = 4;
  return config;
}

void PrintTo(const RecomputeCase& one, std::ostream* out) { *out << one.name; }

class RecomputedRuns : public testing::TestWithParam<RecomputeCase> {};

TEST_P(RecomputedRuns, KeepsEveryBitInLessMemory) {
  install_booking_allocator();
  const TrainConfig config = recompute_config(GetParam());
  const PipelineRecord plain = train_pipeline(config);
  ASSERT_EQ(plain.steps.size(), 2u);
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(choice.name);
    const RunPlan plan = resolve(config);
    const int64_t layers = *std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
    if (choice.num_layers > layers) continue;
    const PipelineRecord again = train_pipeline(recomputing(config, choice));
    expect_same_steps(again.steps, plain.steps);
    expect_same_tensors(again.grads, plain.grads);
    expect_same_tensors(again.weights, plain.weights);
    EXPECT_EQ(again.faults, std::vector<std::string>{});
    // Where W comes later the last ranks' peak is what waits for it: the same, and a layer that is computed again.
    const bool splits = plain.schedule.name.starts_with("zb");
    for (const auto& [rank, bytes] : plain.peak_activation_bytes)
      EXPECT_LT(static_cast<double>(again.peak_activation_bytes.at(rank)),
                (splits ? 1.1 : 1.0) * static_cast<double>(bytes))
          << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RecomputedRuns, testing::ValuesIn(kRecomputeCases),
                         [](const auto& one) { return std::string(one.param.name); });

struct ExpertCase {
  const char* name;
  ParallelDims dims;
  void (*change)(TrainConfig&);
};

void balanced(TrainConfig& c) {
  c.model.moe.score = RouterScore::kSigmoid;
  c.model.moe.balancing = LoadBalancing::kSeqAuxLoss;
  c.model.moe.aux_loss_coeff = 0.05;
  c.model.moe.z_loss_coeff = 0.01;
  c.model.moe.expert_bias = true;
  c.model.moe.bias_update_rate = 0.02;
}
const ExpertCase kExpertCases[] = {
    {"ep2_balanced", {.world = 2, .tp = 1, .pp = 1, .ep = 2}, balanced},
    {"ep4_tp2_capacity",
     {.world = 8, .tp = 2, .pp = 1, .ep = 4},
     [](TrainConfig& c) {
       balanced(c);
       c.model.moe.capacity_factor = 0.8;
       c.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
     }},
    {"ep2_tp2_qwen",
     {.world = 4, .tp = 2, .pp = 1, .ep = 2},
     [](TrainConfig& c) {
       balanced(c);
       small_qwen(c);
       c.model.moe.shared_gate = true;
     }},
    {"ep2_etp2", {.world = 4, .tp = 2, .pp = 1, .ep = 2, .etp = 2}, balanced},
    {"ep2_zb_h1_fp32",
     {.world = 4, .tp = 1, .pp = 2, .ep = 2},
     [](TrainConfig& c) {
       balanced(c);
       c.params_dtype = "fp32";
       c.pipeline_schedule = "zb-h1";
     }},
    {"ep2_mtp_dropout_adamw", {.world = 2, .tp = 1, .pp = 1, .ep = 2}, [](TrainConfig& c) {
       balanced(c);
       latent(c);
       c.model.tie_embeddings = false;
       c.model.dropout = 0.1;
       c.optimizer = OptimizerKind::kAdamW;
     }}};

void PrintTo(const ExpertCase& one, std::ostream* out) { *out << one.name; }

class RecomputeExperts : public testing::TestWithParam<ExpertCase> {};

TEST_P(RecomputeExperts, KeepEveryBitAndAreBookedOnce) {
  TrainConfig config = expert_config();
  config.parallel = GetParam().dims;
  GetParam().change(config);
  config.num_microbatches = 2;
  const ExpertRecord plain = train_experts(config);
  ASSERT_FALSE(plain.load.empty());
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(choice.name);
    if (choice.num_layers > 1 && config.parallel.pp > 1) continue;
    const ExpertRecord again = train_experts(recomputing(config, choice));
    expect_same_steps(again.steps, plain.steps);
    expect_same_tensors(again.grads, plain.grads);
    expect_same_tensors(again.weights, plain.weights);
    EXPECT_EQ(again.load, plain.load);
    EXPECT_EQ(again.bias, plain.bias);
    EXPECT_EQ(again.faults, std::vector<std::string>{});
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RecomputeExperts, testing::ValuesIn(kExpertCases),
                         [](const auto& one) { return std::string(one.param.name); });

// Of a model whose layers are nearly all of its work.
TEST(RecomputeCost, IsOneMoreForwardWhichIsNotTheModelsWork) {
  TrainConfig config = pipeline_config();
  config.model.hidden_size = 256;
  config.model.ffn_hidden_size = 1024;
  config.model.seq_length = 64;
  config.model.init_std = 0.02;
  config.params_dtype = "fp32";
  config.num_microbatches = 1;
  const PipelineRecord plain = train_pipeline(config);
  const PipelineRecord full = train_pipeline(recomputing(config, {"full", "full"}));
  const PipelineRecord one = train_pipeline(recomputing(config, {"one", "full", "block", 1}));
  const auto model_flops = [](const StepMetrics& m) { return m.mfu * m.virtual_step_ms; };  // in some unit
  EXPECT_NEAR(model_flops(full.steps[1]) / model_flops(plain.steps[1]), 1.0, 1e-12);
  const double longer = full.steps[1].virtual_step_ms - plain.steps[1].virtual_step_ms;
  EXPECT_GT(longer, 0.1 * plain.steps[1].virtual_step_ms);
  EXPECT_NEAR(one.steps[1].virtual_step_ms - plain.steps[1].virtual_step_ms, longer / 4, 0.02 * longer);
}

TEST(RecomputeChoice, RefusesWhatDoesNotGoTogether) {
  const auto refused = [](auto change, const std::string& words) {
    TrainConfig config = expert_config();
    change(config);
    try {
      resolve(config);
      ADD_FAILURE() << "accepted; should say: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused([](TrainConfig& c) { c.recompute_num_layers = 1; }, "as a whole");
  refused([](TrainConfig& c) { c.recompute_granularity = "full", c.recompute_num_layers = -1; },
          "--recompute-num-layers is out of range");
  refused([](TrainConfig& c) { c.recompute_granularity = "full", c.recompute_num_layers = 4; }, "at most 3");
  refused(
      [](TrainConfig& c) {
        c.recompute_granularity = "full";
        c.num_microbatches = 4;
        c.overlap_moe = true;
      },
      "cannot take turns");
}

}  // namespace
}  // namespace ranklab
