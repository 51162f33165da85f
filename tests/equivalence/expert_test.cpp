// Models with experts in every layout against one rank (fp64, relative 1e-12 of the largest element of a tensor):
// routing exactly, losses, every gradient, the weights after each step, SGD and AdamW. Gradients are compared because
// AdamW hides a wrong factor: an expert gradient ep times too large was a real bug in three frameworks.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/trace/trace_validate.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/one_rank.h"
#include "tests/support/small_config.h"

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

// Three layers of which two have 8 experts, SGD, 3 steps of 16 sequences.
TrainConfig expert_config(const std::string& variant) {
  TrainConfig c = small_config();
  c.model.num_layers = 3;
  variant_named(variant).change(c.model);
  c.optimizer = OptimizerKind::kSgd;
  c.sgd_momentum = 0.9;
  c.weight_decay = 0;
  c.lr = 3e-2;
  c.global_batch_size = 16;
  c.train_iters = 3;
  if (variant == "deepseek_experts") c.train_iters = 5;  // its bias moves
  if (variant == "aux_z") {
    c.optimizer = OptimizerKind::kAdamW;
    c.train_iters = 10;
  }
  return c;
}

TrainConfig layout_config(const ExpertLayout& layout, const std::string& variant) {
  TrainConfig config = expert_config(variant);
  config.parallel = layout.dims;
  config.num_microbatches = 2;
  return config;
}

// Layouts of as many microbatches share references.
const TrainingRecord& one_rank_of(const TrainConfig& config, const std::string& variant) {
  static OneRankRuns runs(nullptr);
  return runs.of(config, variant);
}

// The different numbers of bytes that ranks send for this purpose in one call.
std::set<int64_t> sizes_of(const TrainingRecord& record, Purpose purpose) {
  std::set<int64_t> sizes;
  for (const RankTrace& trace : record.traces)
    for (const Event& event : trace.events)
      if (event.kind == EventKind::kCollective && event.purpose == purpose) sizes.insert(event.logical_bytes);
  return sizes;
}

struct ExpertFeature {
  const char* name;
  void (*change)(TrainConfig&);
};
// What else changes when and where experts compute.
const std::vector<ExpertFeature> kAroundExperts = {
    {"shared experts beside", [](TrainConfig& c) { c.overlap_shared_experts = true; }},
    {"microbatches beside", [](TrainConfig& c) { c.overlap_moe = true; }},
    {"dualpipe-v", [](TrainConfig& c) { c.parallel.pp = 2, c.pipeline_schedule = "dualpipe-v", c.overlap_moe = true; }},
    {"zb-h1", [](TrainConfig& c) { c.parallel.pp = 2, c.pipeline_schedule = "zb-h1"; }},
    {"recompute", [](TrainConfig& c) { c.recompute_granularity = "full"; }},
    {"ZeRO 3", [](TrainConfig& c) { c.parallel.ep = 2, c.zero_stage = 3; }},
};

// On four ranks, each feature with what is turned on against the feature alone.
void expect_same_among(const std::vector<ExpertFeature>& features, void (*prepare)(TrainConfig&),
                       void (*turn_on)(TrainConfig&), const Tolerance& tolerance) {
  for (const ExpertFeature& feature : features) {
    SCOPED_TRACE(feature.name);
    TrainConfig config = expert_config("deepseek_experts");
    config.model.num_layers = 4;
    config.parallel = {.world = 4, .ep = 4};
    config.num_microbatches = 4;
    prepare(config);
    feature.change(config);
    config.parallel.ep /= config.parallel.pp;
    const TrainingRecord plain = record_training(config);
    turn_on(config);
    expect_same_training(record_training(config), plain, tolerance);
  }
}

class Experts : public ::testing::TestWithParam<std::tuple<const ExpertLayout*, std::string>> {};

TEST_P(Experts, EqualOneRank) {
  const auto& [layout, variant] = GetParam();
  const TrainConfig config = layout_config(*layout, variant);
  expect_same_training(record_training(config), one_rank_of(config, variant), kRounding);
}

std::vector<const ExpertLayout*> expert_layouts() {
  std::vector<const ExpertLayout*> rows;
  for (const ExpertLayout& row : kExpertLayouts) rows.push_back(&row);
  return rows;
}

std::vector<std::string> expert_names() {
  std::vector<std::string> names;
  for (const ModelVariant& row : expert_variants()) names.emplace_back(row.name);
  return names;
}

std::string expert_name(const ::testing::TestParamInfo<Experts::ParamType>& info) {
  return std::string(std::get<0>(info.param)->name) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, Experts,
                         ::testing::Combine(::testing::ValuesIn(expert_layouts()), ::testing::ValuesIn(expert_names())),
                         expert_name);

// Balanced over the microbatches of all data-parallel ranks: one rank sees the same tokens in as many microbatches.
TEST(ExpertLosses, GlobalAuxLossCountsAllReplicas) {
  TrainConfig config = expert_config("in_turn");
  config.model.moe.force_balance = false;
  config.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
  config.model.moe.aux_loss_coeff = 0.1;
  config.parallel = {.world = 8, .tp = 2, .ep = 4};
  config.num_microbatches = 1;
  TrainConfig one = on_one_rank(config);
  one.num_microbatches = 1;
  expect_same_training(record_training(config), record_training(one), kRounding);
}

TEST(ExpertLosses, TheBiasLeavesExpertsIdle) {
  int64_t idle = 0;  // after the first step the bias forbids every expert that got more than the mean
  for (const auto& [key, load] : record_training(expert_config("idle_experts")).load)
    idle += key.first > 0 ? std::count(load.begin(), load.end(), 0.0) : 0;
  EXPECT_GE(idle, 4);
}

TEST(ExpertDispatchers, EqualOneRank) {
  for (const std::string& name : dispatcher_names()) {
    if (name == "rdep" && test_device() == TestDevice::kCuda) continue;  // writes into the host's memory
    for (const ParallelDims& dims : {ParallelDims{.world = 4, .ep = 4}, ParallelDims{.world = 8, .tp = 2, .ep = 8},
                                     ParallelDims{.world = 8, .tp = 2, .ep = 2, .etp = 2}}) {
      SCOPED_TRACE(name + ", world " + std::to_string(dims.world));
      TrainConfig config = expert_config("capacity");
      config.gpus_per_node = 2;
      config.parallel = dims;
      config.moe_dispatcher = name;
      config.num_microbatches = 2;
      TrainingRecord record = record_training(config);
      expect_same_training(record, one_rank_of(config, "capacity"), kRounding);
      TraceFile file;
      file.clock = TraceClock::kVirtual;
      file.world_size = dims.world;
      file.ranks = std::move(record.traces);
      EXPECT_EQ(validate_calls(file), std::vector<std::string>{});
    }
  }
}

// Experts padded to their capacity: the same numbers, and messages whose sizes do not depend on the routing.
TEST(PaddedExperts, SameNumbersAndEvenMessages) {
  for (const ParallelDims& dims :
       {ParallelDims{.world = 1}, ParallelDims{.world = 4, .ep = 4}, ParallelDims{.world = 4, .tp = 2, .ep = 2},
        ParallelDims{.world = 4, .cp = 2, .ep = 4}, ParallelDims{.world = 8, .tp = 2, .ep = 2, .etp = 2}}) {
    SCOPED_TRACE(testing::Message() << "world " << dims.world << ", tp " << dims.tp << ", cp " << dims.cp);
    TrainConfig config = expert_config("capacity");
    config.parallel = dims;
    config.num_microbatches = 2;
    const TrainingRecord plain = record_training(config);
    config.pad_experts = true;
    const TrainingRecord padded = record_training(config);
    expect_same_training(padded, plain, kRounding);
    if (dims.ep == 1 || dims.etp > 1) continue;  // nothing is sent, or etp also gathers what arrived
    EXPECT_EQ(sizes_of(padded, Purpose::kDispatch).size(), 1);
    EXPECT_EQ(sizes_of(padded, Purpose::kCombineGrad), sizes_of(padded, Purpose::kDispatch));
    EXPECT_GT(sizes_of(plain, Purpose::kDispatch).size(), 1);
  }
}

TEST(PaddedExperts, ComposeWithWhatElseChangesExperts) {
  const auto with_capacity = [](TrainConfig& c) { c.model.moe.capacity_factor = 1.25; };
  const auto turn_on = [](TrainConfig& c) { c.pad_experts = true; };
  expect_same_among(kAroundExperts, with_capacity, turn_on, kRounding);
  expect_same_among({{"weight gradients beside", [](TrainConfig& c) { c.delay_weight_grads = true; }},
                     {"biases of experts", [](TrainConfig& c) { c.model.add_bias = true; }},
                     {"weighed inputs", [](TrainConfig& c) { c.model.moe.topk = 1, c.model.moe.weigh_inputs = true; }},
                     {"narrower experts", [](TrainConfig& c) { c.model.moe.latent_size = 8; }}},
                    with_capacity, turn_on, kRounding);
}

TEST(ExpertPipelines, SplitBackwardAndBothCopiesOfDualPipe) {
  for (const auto& [schedule, variant] :
       {std::pair{"zb-h1", "deepseek_experts"}, std::pair{"zb-v", "deepseek_experts"},
        std::pair{"dualpipe", "deepseek_experts"}, std::pair{"interleaved-1f1b", "deepseek_experts"},
        std::pair{"zb-h1", "qwen_experts"}, std::pair{"dualpipe", "qwen_experts"}}) {
    SCOPED_TRACE(std::string(schedule) + ", " + variant);
    TrainConfig config = expert_config(variant);
    config.model.num_layers = 4;
    config.parallel = {.world = 4, .pp = 2, .ep = 2};
    config.pipeline_schedule = schedule;
    if (std::string(schedule) == "interleaved-1f1b") config.virtual_stages = 2;
    config.num_microbatches = 4;
    expect_same_training(record_training(config), one_rank_of(config, variant), kRounding);
  }
}

// Less than `limit` of the plain run's share of exposed communication, and a shorter step.
void expect_less_exposed(const TrainingRecord& hidden, const TrainingRecord& plain, double limit = 1) {
  EXPECT_LT(hidden.steps[1].exposed_comm_fraction, limit * plain.steps[1].exposed_comm_fraction);
  EXPECT_LT(hidden.steps[1].virtual_step_ms, plain.steps[1].virtual_step_ms);
}

// The share of the transfers' time that no compute hides.
double share_exposed(const TrainingRecord& record, Purpose purpose) {
  double length = 0, exposed = 0;
  for (const RankTrace& trace : record.traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCollective || event.purpose != purpose) continue;
      length += static_cast<double>(event.virtual_end_ns - event.virtual_begin_ns);
      exposed += static_cast<double>(event.virtual_exposed_ns);
    }
  }
  return exposed / length;
}

// Shared experts while tokens are sent to the others: both in forward and in backward.
TEST(SharedExpertOverlap, SameNumbersLessExposed) {
  for (const char* dispatcher : {"alltoall", "allgather", "dedup"}) {
    for (const int tp : {1, 2}) {
      SCOPED_TRACE(testing::Message() << dispatcher << ", tp " << tp);
      TrainConfig config = expert_config("deepseek_experts");
      config.moe_dispatcher = dispatcher;
      config.parallel = {.world = 4, .tp = tp, .ep = 4};
      const TrainingRecord plain = record_training(config);
      config.overlap_shared_experts = true;
      const TrainingRecord hidden = record_training(config);
      expect_same_training(hidden, plain, kRounding);
      expect_less_exposed(hidden, plain);
    }
  }
}

TEST(SharedExpertOverlap, HidesTransfersOfBothDirections) {
  TrainConfig config = expert_config("deepseek_experts");
  config.parallel = {.world = 4, .ep = 4};
  config.overlap_shared_experts = true;
  const TrainingRecord record = record_training(config);
  EXPECT_LT(share_exposed(record, Purpose::kDispatch), 0.9);
  EXPECT_LT(share_exposed(record, Purpose::kDispatchGrad), 0.9);
  EXPECT_GT(share_exposed(record, Purpose::kCombine), 0.99) << "which nothing hides";
}

// Weight gradients of experts while the gradients of their tokens are sent back.
TEST(DelayedWeightGrads, SameBitsLessExposed) {
  for (const char* variant : {"deepseek_experts", "qwen_experts", "gpt_oss"}) {
    for (const char* dispatcher : {"alltoall", "allgather", "dedup"}) {
      for (const int tp : {1, 2}) {
        SCOPED_TRACE(testing::Message() << variant << ", " << dispatcher << ", tp " << tp);
        TrainConfig config = expert_config(variant);
        config.moe_dispatcher = dispatcher;
        config.parallel = {.world = 4, .tp = tp, .ep = 4};
        const TrainingRecord plain = record_training(config);
        config.delay_weight_grads = true;
        const TrainingRecord delayed = record_training(config);
        expect_same_training(delayed, plain, {});
        expect_less_exposed(delayed, plain);
        EXPECT_LT(share_exposed(delayed, Purpose::kDispatchGrad), 0.95 * share_exposed(plain, Purpose::kDispatchGrad));
        EXPECT_GT(share_exposed(delayed, Purpose::kDispatch), 0.99) << "which is forward";
      }
    }
  }
}

TEST(DelayedWeightGrads, ComposeWithWhatElseChangesBackward) {
  const auto as_it_is = [](TrainConfig&) {};
  const auto turn_on = [](TrainConfig& c) { c.delay_weight_grads = true; };
  expect_same_among(kAroundExperts, as_it_is, turn_on, {});
  expect_same_among(
      {{"repeated MTP modules",
        [](TrainConfig& c) { c.model.mtp_num_layers = 2, c.model.mtp_use_repeated_layer = true; }},
       {"bf16", [](TrainConfig& c) { c.params_dtype = "fp32", c.bf16 = true; }},
       {"expert tensor parallel", [](TrainConfig& c) { c.parallel = {.world = 4, .tp = 2, .ep = 2, .etp = 2}; }}},
      as_it_is, turn_on, {});
}

// Dispatch and combine behind the compute of another microbatch: the same bits, less exposed communication.
TEST(ExpertOverlap, SameBitsLessExposed) {
  for (const auto& [pp, schedule] : {std::pair{1, "1f1b"}, std::pair{2, "1f1b"}, std::pair{2, "dualpipe-v"}}) {
    SCOPED_TRACE(std::string(schedule) + ", pp " + std::to_string(pp));
    TrainConfig config = expert_config("deepseek_experts");
    config.model.num_layers = 4;
    config.parallel = {.world = 4 * pp, .pp = pp, .ep = 4};
    config.pipeline_schedule = schedule;
    config.num_microbatches = 4;
    const TrainingRecord plain = record_training(config);
    config.overlap_moe = true;
    const TrainingRecord hidden = record_training(config);
    expect_same_training(hidden, plain, kSameBits);
    const double limit = pp == 1 ? 0.7 : 1.0;  // a pipeline has fewer pairs
    expect_less_exposed(hidden, plain, limit);
  }
}

// A backward that recomputes its layers takes turns, too: tokens also travel behind the other microbatch while it
// repeats a forward.
TEST(ExpertOverlap, SameBitsWithRecomputation) {
  for (const auto& [granularity, pp] : {std::pair{"full", 1}, std::pair{"full", 2}, std::pair{"selective", 1}}) {
    SCOPED_TRACE(std::string(granularity) + ", pp " + std::to_string(pp));
    TrainConfig config = expert_config("deepseek_experts");
    config.train_iters = 3;
    config.model.num_layers = 4;
    config.parallel = {.world = 4 * pp, .pp = pp, .ep = 4};
    config.pipeline_schedule = pp == 1 ? "1f1b" : "dualpipe-v";
    config.num_microbatches = 4;
    const TrainingRecord kept = record_training(config);
    config.recompute_granularity = granularity;
    if (config.recompute_granularity == "selective") config.recompute_modules = {.mlp = true, .moe = true};
    const TrainingRecord plain = record_training(config);
    config.overlap_moe = true;
    const TrainingRecord hidden = record_training(config);
    expect_same_training(hidden, kept, kSameBits);
    expect_less_exposed(hidden, plain);
  }
}

// fp32: gradients to 3e-6 in the first step (a token is a sum over more products here), 1e-5 in ten of AdamW. Its first
// update already divides gradients that nearly cancel by their own size, whose rounding depends on the CPU's kernels.
TEST(ExpertsInFp32, TenStepsOfAdamW) {
  for (const size_t layout : {size_t{3}, size_t{4}, size_t{10}, size_t{12}}) {
    SCOPED_TRACE(kExpertLayouts[layout].name);
    TrainConfig config = layout_config(kExpertLayouts[layout], "deepseek");
    config.params_dtype = "fp32";
    config.optimizer = OptimizerKind::kAdamW;
    config.train_iters = 10;
    config.lr = 3e-4;
    const TrainingRecord got = record_training(config);
    const TrainingRecord& want = one_rank_of(config, "deepseek");
    EXPECT_EQ(got.faults, std::vector<std::string>{});
    EXPECT_EQ(got.load, want.load);
    expect_tensors_near(got.grads, want.grads, {.first = 3e-6, .later = 1e-5}, "gradient");
    expect_tensors_near(got.weights, want.weights, {.first = 1e-5}, "weight");
  }
}

TEST(ExpertOverlap, NeedsTwoMicrobatches) {
  TrainConfig config = expert_config("capacity");
  config.overlap_moe = true;
  EXPECT_THROW(resolve(config), Error);
}

}  // namespace
}  // namespace ranklab
