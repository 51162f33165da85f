// Models with experts in every layout against one rank (fp64, relative 1e-12 of the largest element of a tensor):
// routing exactly, losses, every gradient, the weights after each step, SGD and AdamW. Gradients are compared because
// AdamW hides a wrong factor: an expert gradient ep times too large was a real bug in three frameworks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/sim/aten.h"
#include "core/trace/trace_validate.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/equivalence/expert_run.h"
#include "tests/equivalence/relative_error.h"

namespace ranklab {
namespace {

struct ExpertLayout {
  const char* name;
  ParallelDims dims;
};
const ExpertLayout kExpertLayouts[] = {
    {"ep2", {.world = 2, .ep = 2}},
    {"dp4_ep2", {.world = 4, .ep = 2}},
    {"ep4", {.world = 4, .ep = 4}},
    {"ep8", {.world = 8, .ep = 8}},
    {"tp2_ep4", {.world = 8, .tp = 2, .ep = 4}},
    {"tp2_ep8", {.world = 8, .tp = 2, .ep = 8}},
    {"tp4_ep2", {.world = 8, .tp = 4, .ep = 2}},
    {"tp2_only", {.world = 2, .tp = 2}},
    {"etp2_ep2", {.world = 4, .tp = 2, .ep = 2, .etp = 2}},
    {"etp2_dp2", {.world = 2, .etp = 2}},
    {"tp2_ep2_etp2_edp2", {.world = 8, .tp = 2, .ep = 2, .etp = 2}},
    {"pp2_ep2", {.world = 4, .pp = 2, .ep = 2}},
    {"pp2_tp2_dp2_ep4", {.world = 8, .tp = 2, .pp = 2, .ep = 4}},
};

struct ExpertVariant {
  const char* name;
  void (*change)(TrainConfig&);
};
extern const ExpertVariant kExpertVariants[9];
const ExpertVariant kExpertVariants[9] = {
    {"deepseek",
     [](TrainConfig& c) {
       c.model.moe.score = RouterScore::kSigmoid;
       c.model.moe.num_groups = 4;
       c.model.moe.group_topk = 2;
       c.model.moe.scaling_factor = 2.5;
       c.model.moe.balancing = LoadBalancing::kSeqAuxLoss;
       c.model.moe.aux_loss_coeff = 0.05;
       c.model.moe.expert_bias = true;
       c.model.moe.bias_update_rate = 0.02;
       c.train_iters = 10;
     }},
    {"aux_z_adamw",
     [](TrainConfig& c) {
       c.optimizer = OptimizerKind::kAdamW;
       c.train_iters = 10;
       c.model.moe.balancing = LoadBalancing::kAuxLoss;
       c.model.moe.aux_loss_coeff = 0.1;
       c.model.moe.z_loss_coeff = 0.01;
       c.model.moe.normalize_topk = false;
     }},
    {"capacity",
     [](TrainConfig& c) {
       c.model.moe.capacity_factor = 0.8;
       c.model.moe.topk = 3;
     }},
    {"idle_experts",  // k = 1, and experts without any token
     [](TrainConfig& c) {
       c.model.moe.topk = 1;
       c.model.moe.expert_bias = true;
       c.model.moe.bias_update_rate = 100;
     }},
    {"every_expert", [](TrainConfig& c) { c.model.moe.topk = 8; }},
    {"latent_attention_and_mtp",
     [](TrainConfig& c) {
       kExpertVariants[0].change(c);
       c.train_iters = 3;
       c.model.mla = {
           .q_lora_rank = 16, .kv_lora_rank = 8, .qk_head_dim = 8, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
       c.model.yarn = {.scaling_factor = 2, .original_seq_length = 8};
       c.model.mtp_num_layers = 1;
       c.model.mtp_loss_weight = 0.3;
     }},
    {"in_turn", [](TrainConfig& c) { c.model.moe.force_balance = true; }},
    {"qwen",
     [](TrainConfig& c) {
       c.model.num_query_groups = 4;
       c.model.num_attention_heads = 8;
       c.model.kv_channels = 6;
       c.model.add_qkv_bias = true;
       c.model.qk_norm = true;
       c.model.moe.first_dense_layers = 0;
       c.model.moe.shared_gate = true;
       c.model.moe.balancing = LoadBalancing::kAuxLoss;
       c.model.moe.aux_loss_coeff = 0.1;
     }},
    {"weights_of_one_and_yarn",  // only the auxiliary loss trains the router
     [](TrainConfig& c) {
       c.model.moe.topk = 1;
       c.model.moe.normalize_top1 = true;
       c.model.moe.balancing = LoadBalancing::kAuxLoss;
       c.model.moe.aux_loss_coeff = 0.1;
       c.model.add_attention_bias = true;
       c.model.window_size = 5;
       c.model.yarn = {.scaling_factor = 2, .original_seq_length = 8, .mscale_all_dim = 0};
     }},
};

void expect_close(const std::map<StepTensor, at::Tensor>& got, const std::map<StepTensor, at::Tensor>& want,
                  const char* what, double first = 1e-12, double later = 1e-12) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (const auto& [key, tensor] : want) {
    const auto it = got.find(key);
    ASSERT_NE(it, got.end()) << what << " of " << key.second;
    EXPECT_LT(relative_error(it->second, tensor), key.first == 0 ? first : later)
        << what << " of " << key.second << " at step " << key.first;
  }
}

void expect_same_training(const ExpertRecord& got, const ExpertRecord& want) {
  EXPECT_EQ(got.faults, std::vector<std::string>{});
  EXPECT_EQ(got.parameters, want.parameters);
  EXPECT_EQ(got.load, want.load);
  EXPECT_EQ(got.bias, want.bias);
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (size_t i = 0; i < want.steps.size(); ++i) {
    const StepMetrics &mine = got.steps[i], &other = want.steps[i];
    EXPECT_NEAR(mine.loss, other.loss, 1e-12 * other.loss) << "step " << i;
    EXPECT_NEAR(mine.grad_norm, other.grad_norm, 1e-12 * other.grad_norm) << "step " << i;
    EXPECT_NEAR(mine.mtp_loss, other.mtp_loss, 1e-12 * std::max(1.0, other.mtp_loss)) << "step " << i;
    EXPECT_NEAR(mine.moe_aux_loss, other.moe_aux_loss, 1e-12) << "step " << i;
    EXPECT_NEAR(mine.moe_z_loss, other.moe_z_loss, 1e-12) << "step " << i;
    EXPECT_DOUBLE_EQ(mine.moe_max_over_mean, other.moe_max_over_mean) << "step " << i;
    EXPECT_DOUBLE_EQ(mine.moe_dropped_fraction, other.moe_dropped_fraction) << "step " << i;
  }
  expect_close(got.grads, want.grads, "gradient");
  expect_close(got.weights, want.weights, "weight");
}

TrainConfig layout_config(const ExpertLayout& layout, const ExpertVariant& variant) {
  TrainConfig config = expert_config();
  variant.change(config);
  config.parallel = layout.dims;
  config.num_microbatches = 2;
  return config;
}

// The data-parallel sizes of the layouts share references.
const ExpertRecord& one_rank_of(const TrainConfig& config, const std::string& variant) {
  static std::map<std::string, ExpertRecord> records;
  const TrainConfig one = on_one_rank(config);
  const std::string key = variant + std::to_string(one.num_microbatches);
  const auto it = records.find(key);
  return it != records.end() ? it->second : records[key] = train_experts(one);
}

class Experts : public ::testing::TestWithParam<std::tuple<const ExpertLayout*, const ExpertVariant*>> {};

TEST_P(Experts, EqualOneRank) {
  const auto [layout, variant] = GetParam();
  const TrainConfig config = layout_config(*layout, *variant);
  expect_same_training(train_experts(config), one_rank_of(config, variant->name));
}

template <typename Row, size_t kCount>
std::vector<const Row*> pointers(const Row (&rows)[kCount]) {
  std::vector<const Row*> out;
  for (const Row& row : rows) out.push_back(&row);
  return out;
}

std::string expert_name(const ::testing::TestParamInfo<Experts::ParamType>& info) {
  return std::string(std::get<0>(info.param)->name) + "_" + std::get<1>(info.param)->name;
}

INSTANTIATE_TEST_SUITE_P(All, Experts,
                         ::testing::Combine(::testing::ValuesIn(pointers(kExpertLayouts)),
                                            ::testing::ValuesIn(pointers(kExpertVariants))),
                         expert_name);

// Balanced over the microbatches of all data-parallel ranks: one rank sees the same tokens in as many microbatches.
TEST(ExpertLosses, GlobalAuxLossCountsAllReplicas) {
  TrainConfig config = expert_config();
  config.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
  config.model.moe.aux_loss_coeff = 0.1;
  config.parallel = {.world = 8, .tp = 2, .ep = 4};
  config.num_microbatches = 1;
  TrainConfig one = on_one_rank(config);
  one.num_microbatches = 1;
  expect_same_training(train_experts(config), train_experts(one));
}

TEST(ExpertLosses, TheBiasLeavesExpertsIdle) {
  TrainConfig config = expert_config();
  kExpertVariants[3].change(config);
  int64_t idle = 0;  // after the first step the bias forbids every expert that got more than the mean
  for (const auto& [key, load] : train_experts(config).load)
    idle += key.first > 0 ? std::count(load.begin(), load.end(), 0.0) : 0;
  EXPECT_GE(idle, 4);
}

TEST(ExpertDispatchers, EqualOneRank) {
  for (const std::string& name : dispatcher_names()) {
    if (name == "rdep" && test_device() == TestDevice::kCuda) continue;  // writes into the host's memory
    for (const ParallelDims& dims : {ParallelDims{.world = 4, .ep = 4}, ParallelDims{.world = 8, .tp = 2, .ep = 8},
                                     ParallelDims{.world = 8, .tp = 2, .ep = 2, .etp = 2}}) {
      SCOPED_TRACE(name + ", world " + std::to_string(dims.world));
      TrainConfig config = expert_config();
      kExpertVariants[2].change(config);
      config.gpus_per_node = 2;
      config.parallel = dims;
      config.moe_dispatcher = name;
      config.num_microbatches = 2;
      ExpertRecord record = train_experts(config);
      expect_same_training(record, one_rank_of(config, kExpertVariants[2].name));
      TraceFile file;
      file.clock = TraceClock::kVirtual;
      file.world_size = dims.world;
      file.ranks = std::move(record.traces);
      EXPECT_EQ(validate_calls(file), std::vector<std::string>{});
    }
  }
}

TEST(ExpertPipelines, SplitBackwardAndBothCopiesOfDualPipe) {
  for (const auto& [schedule, variant] :
       {std::pair{"zb-h1", 0}, std::pair{"zb-v", 0}, std::pair{"dualpipe", 0}, std::pair{"interleaved-1f1b", 0},
        std::pair{"zb-h1", 7}, std::pair{"dualpipe", 7}}) {
    SCOPED_TRACE(std::string(schedule) + ", " + kExpertVariants[variant].name);
    TrainConfig config = expert_config();
    kExpertVariants[variant].change(config);
    config.model.num_layers = 4;
    config.parallel = {.world = 4, .pp = 2, .ep = 2};
    config.pipeline_schedule = schedule;
    if (std::string(schedule) == "interleaved-1f1b") config.virtual_stages = 2;
    config.num_microbatches = 4;
    expect_same_training(train_experts(config), train_experts(on_one_rank(config)));
  }
}

// Dispatch and combine behind the compute of another microbatch: the same bits, less exposed communication.
TEST(ExpertOverlap, SameBitsLessExposed) {
  for (const auto& [pp, schedule] : {std::pair{1, "1f1b"}, std::pair{2, "1f1b"}, std::pair{2, "dualpipe-v"}}) {
    SCOPED_TRACE(std::string(schedule) + ", pp " + std::to_string(pp));
    TrainConfig config = expert_config();
    kExpertVariants[0].change(config);
    config.model.num_layers = 4;
    config.parallel = {.world = 4 * pp, .pp = pp, .ep = 4};
    config.pipeline_schedule = schedule;
    config.num_microbatches = 4;
    const ExpertRecord plain = train_experts(config);
    config.overlap_moe = true;
    const ExpertRecord hidden = train_experts(config);
    expect_same_training(hidden, plain);
    for (const auto& [key, tensor] : plain.weights)
      EXPECT_TRUE(at::equal(hidden.weights.at(key), tensor)) << key.second;
    const double limit = pp == 1 ? 0.7 : 1.0;  // a pipeline has fewer pairs
    EXPECT_LT(hidden.steps[1].exposed_comm_fraction, limit * plain.steps[1].exposed_comm_fraction);
    EXPECT_LT(hidden.steps[1].virtual_step_ms, plain.steps[1].virtual_step_ms);
  }
}

// fp32: 3e-6 after one step (a token is a sum over more products here), 1e-5 after ten of AdamW.
TEST(ExpertsInFp32, TenStepsOfAdamW) {
  for (const size_t layout : {size_t{3}, size_t{4}, size_t{10}, size_t{12}}) {
    SCOPED_TRACE(kExpertLayouts[layout].name);
    TrainConfig config = layout_config(kExpertLayouts[layout], kExpertVariants[5]);
    config.params_dtype = "fp32";
    config.optimizer = OptimizerKind::kAdamW;
    config.train_iters = 10;
    config.lr = 3e-4;
    const ExpertRecord got = train_experts(config), want = train_experts(on_one_rank(config));
    EXPECT_EQ(got.faults, std::vector<std::string>{});
    EXPECT_EQ(got.load, want.load);
    expect_close(got.grads, want.grads, "gradient", 3e-6, 1e-5);
    expect_close(got.weights, want.weights, "weight", 3e-6, 1e-5);
  }
}

TEST(ExpertOverlap, NeedsTwoMicrobatches) {
  TrainConfig config = expert_config();
  config.overlap_moe = true;
  EXPECT_THROW(resolve(config), Error);
}

}  // namespace
}  // namespace ranklab
