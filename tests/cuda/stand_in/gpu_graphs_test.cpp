// Passes that are recorded once and replayed on the stand-in's GPUs: every kind of pass that a CUDA graph may hold.
#include <gtest/gtest.h>

#include "tests/cuda/stand_in/gpu_config.h"
#include "tests/support/expect_training.h"

namespace ranklab::stand_in {
namespace {

// Passes that are recorded and replayed, but for what a row changes in fp64: three steps of two microbatches.
struct GraphRow {
  const char* name;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

const GraphRow kGraphs[] = {
    {"dense"},
    {"attention recomputed", [](TrainConfig& c) { c.recompute_granularity = "selective"; }},
    {"bf16, recomputation",
     [](TrainConfig& c) {
       c.params_dtype = "fp32", c.bf16 = true;
       c.recompute_granularity = "full";
     }},
    {"fp16, dropout",
     [](TrainConfig& c) {
       c.params_dtype = "fp32", c.precision.fp16 = true;
       c.model.dropout = c.model.attention_dropout = 0.2;
     }},
    {"tp 2, dp 2", [](TrainConfig& c) { c.parallel = {.world = 4, .tp = 2}, c.sequence_parallel = true; }},
    {"tp 2, overlapped",
     [](TrainConfig& c) { c.parallel = {.world = 2, .tp = 2}, c.sequence_parallel = c.tp_comm_overlap = true; }},
    {"cp 2, keys gathered",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 2, .cp = 2};
       c.context_split.exchange = ContextExchange::kAllGather;
     }},
    {"cp 2, heads exchanged, linear attention",
     [](TrainConfig& c) {
       variant(c, "delta_net");
       c.parallel = {.world = 2, .cp = 2};
       c.context_split.exchange = ContextExchange::kAllToAll;
     }},
    {"cp 2, keys gathered, linear attention",
     [](TrainConfig& c) {
       variant(c, "delta_net");
       c.parallel = {.world = 2, .cp = 2};
       c.context_split.exchange = ContextExchange::kAllGather;
     }},
    {"cp 2, heads exchanged, Mamba-2",
     [](TrainConfig& c) {
       variant(c, "mamba");
       c.parallel = {.world = 2, .cp = 2};
       c.context_split.exchange = ContextExchange::kAllToAll;
     }},
    {"cp 4, each exchange in a layer, prediction modules",
     [](TrainConfig& c) {
       variant(c, "latent_mtp");
       c.parallel = {.world = 4, .cp = 4};
       c.context_split.by_layer = {ContextExchange::kAllGather, ContextExchange::kAllToAll, ContextExchange::kAllGather,
                                   ContextExchange::kAllToAll};
     }},
    {"clipped heads",
     [](TrainConfig& c) {
       c.params_dtype = "fp32", c.bf16 = true;
       c.qk_clip = true, c.qk_clip_threshold = 0.5;
     }},
    {"linear attention",
     [](TrainConfig& c) {
       c.params_dtype = "fp32", c.bf16 = true;
       variant(c, "delta_net");
     }},
    {"gated outputs", [](TrainConfig& c) { variant(c, "output_gate"); }},
    {"windows, bounded logits", [](TrainConfig& c) { variant(c, "gemma2"); }},
    {"chunks", [](TrainConfig& c) { variant(c, "chunks"); }},
    {"latent attention, sinks",
     [](TrainConfig& c) {
       variant(c, "latent_with_all");
       c.model.norm = NormKind::kRmsNorm;  // the host's layer norm adds in an order that depends on its threads
       c.model.add_bias = false;
     }},
    {"prediction modules", [](TrainConfig& c) { variant(c, "latent_mtp"); }},
    {"prediction modules with experts",
     [](TrainConfig& c) {
       variant(c, "deepseek");
       c.model.moe.capacity_factor = 1.25;
       c.parallel = {.world = 2, .ep = 2};
       c.pad_experts = true;
     }},
    {"experts, two losses, biases",
     [](TrainConfig& c) {
       variant(c, "deepseek_experts");
       c.model.moe.capacity_factor = 1;
       c.model.moe.z_loss_coeff = 0.01;
       c.parallel = {.world = 2, .ep = 2};
       c.pad_experts = true;
     }},
    {"experts beside other work",
     [](TrainConfig& c) {
       variant(c, "deepseek_experts");
       c.model.moe.capacity_factor = 1.25;
       c.parallel = {.world = 4, .tp = 2, .ep = 4};
       c.sequence_parallel = c.tp_comm_overlap = true;
       c.pad_experts = c.overlap_shared_experts = c.delay_weight_grads = true;
       c.zero_stage = 2;
     }},
    {"split experts, fp16",
     [](TrainConfig& c) {
       variant(c, "capacity");
       c.params_dtype = "fp32", c.precision.fp16 = true;
       c.parallel = {.world = 4, .tp = 2, .ep = 2, .etp = 2}, c.sequence_parallel = true;
       c.pad_experts = true;
     }},
    {"each microbatch reduced",
     [](TrainConfig& c) {
       c.parallel.world = c.zero_stage = 2;
       c.grad_sync = GradSync::kMicrobatch;
     }},
};

TEST(GpuGraphs, RecordedPassesHaveTheBitsOfOthers) {
  for (const GraphRow& row : kGraphs) {
    SCOPED_TRACE(row.name);
    TrainConfig config = gpu_config();
    config.num_microbatches = 2;
    config.train_iters = 3;
    row.change(config);
    const TrainingRecord want = record_training(config, on_gpus());
    config.cuda_graph = true;
    expect_same_training(record_training(config, on_gpus()), want, kSameBits);
  }
}

}  // namespace
}  // namespace ranklab::stand_in
