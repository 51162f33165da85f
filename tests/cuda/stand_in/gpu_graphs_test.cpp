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
    {"pp 2, traced",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .pp = 2};
       c.trace = true, c.trace_level = "action";
     }},
    {"pp 2, tp 2, dp 2, interleaved, overlapped",
     [](TrainConfig& c) {
       c.parallel = {.world = 8, .tp = 2, .pp = 2};
       c.pipeline_schedule = "interleaved-1f1b", c.virtual_stages = 2;
       c.sequence_parallel = c.tp_comm_overlap = true;
       c.num_microbatches = 4, c.zero_stage = 2, c.overlap_grad_reduce = true;
     }},
    {"pp 2, divided backwards, bf16, dropout, recomputation",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .pp = 2};
       c.pipeline_schedule = "zb-h1", c.num_microbatches = 4;
       c.params_dtype = "fp32", c.bf16 = true;
       c.model.dropout = 0.2;
       c.recompute_granularity = "full";
     }},
    {"pp 2, two copies, tied",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .pp = 2};
       c.pipeline_schedule = "dualpipe", c.num_microbatches = 4;
       c.model.tie_embeddings = true;
     }},
    {"pp 2, a V of stages, fp16, cp 2",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .cp = 2, .pp = 2};
       c.context_split.exchange = ContextExchange::kAllGather;
       c.pipeline_schedule = "zb-v", c.num_microbatches = 4;
       c.params_dtype = "fp32", c.precision.fp16 = true;
     }},
    {"pp 2, prediction modules with experts, divided backwards",
     [](TrainConfig& c) {
       variant(c, "deepseek");
       c.model.moe.capacity_factor = 1.25;
       c.parallel = {.world = 4, .pp = 2, .ep = 2};
       c.pad_experts = true;
       c.pipeline_schedule = "zb-h1", c.num_microbatches = 4;
     }},
    {"pp 2, experts, two losses, biases",
     [](TrainConfig& c) {
       variant(c, "deepseek_experts");
       c.model.moe.capacity_factor = 1;
       c.model.moe.z_loss_coeff = 0.01;
       c.parallel = {.world = 4, .pp = 2, .ep = 2};
       c.pad_experts = c.delay_weight_grads = true;
     }},
    // The head's matrix is also the embedding of the prediction modules: it has a part of its gradient in B and one in
    // W.
    {"pp 2, one microbatch, prediction modules, tied, divided backwards",
     [](TrainConfig& c) {
       variant(c, "latent_mtp");
       c.model.tie_embeddings = true;
       c.parallel = {.world = 2, .pp = 2};
       c.pipeline_schedule = "zb-h1", c.num_microbatches = 1, c.train_iters = 6;
     }},
    {"pp 2, clipped heads",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .pp = 2};
       c.params_dtype = "fp32", c.bf16 = true;
       c.qk_clip = true, c.qk_clip_threshold = 0.5;
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

// The scales of past steps are read, and the amaxes of this one kept, in the same place by every graph.
TEST(GpuGraphs, QuantizedPassesToo) {
  for (const char* recipe : {"fp8_delayed", "deepseek_v3", "nvfp4", "mxfp4"}) {
    for (const int pp : {1, 2}) {
      SCOPED_TRACE(std::string(recipe) + ", pp " + std::to_string(pp));
      TrainConfig config = gpu_config();
      config.model.hidden_size = 128;
      config.model.ffn_hidden_size = 512;
      config.params_dtype = "fp32";
      config.precision.recipe = recipe;
      config.precision.stats_interval = 0;
      config.parallel = {.world = 2, .pp = pp};
      config.pipeline_schedule = pp == 1 ? "1f1b" : "zb-h1";
      config.num_microbatches = 2;
      config.train_iters = 4;
      const TrainingRecord want = record_training(config, on_gpus());
      config.cuda_graph = true;
      expect_same_training(record_training(config, on_gpus()), want, kSameBits);
    }
  }
}

}  // namespace
}  // namespace ranklab::stand_in
