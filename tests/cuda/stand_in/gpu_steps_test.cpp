// Steps of training on the stand-in's GPUs, whose memory the host cannot reach: every kind of model computes what it
// does on the host, and how often a step makes the host wait for the GPU is what stands here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "core/base/text.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"
#include "tests/cuda/stand_in/gpu_config.h"
#include "tests/cuda/stand_in/host_waits.h"
#include "tests/support/expect_training.h"

namespace ranklab::stand_in {
namespace {

std::string shown(const WaitCounts& counts) {
  std::string text;
  for (const auto& [what, count] : counts) {
    if (count > 0) text += strprintf("%s%s %d", text.empty() ? "" : ", ", what.c_str(), count);
  }
  return text;
}

// What the tests below rest on.
TEST(HostTensors, AreAGpus) {
  ThreadsOverNccl(1, {}).run([](Endpoint& endpoint) {
    const at::Tensor x = at::ones({4}, at::TensorOptions(at::kFloat).device(endpoint.device()));
    EXPECT_THROW(x.add(at::ones({4})), c10::Error) << "one of the host's";
    EXPECT_EQ(x.add(at::scalar_tensor(1)).sum().item<float>(), 8) << "a single number";
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], x.const_data_ptr(), x.nbytes()), -1) << "the host reads the GPU's memory";
    EXPECT_EQ(errno, EFAULT);
    for (const int end : ends) ::close(end);
    const HostWaits waits;
    const at::Tensor y = x.mul(2).cumsum(0);
    EXPECT_EQ(shown(waits.counts()), "");
    EXPECT_EQ(y.index({y.gt(2)}).numel(), 3);
    EXPECT_EQ(y.max().item<float>(), 8);
    y.cpu();
    EXPECT_EQ(shown(waits.counts()), "aten::index 1, aten::nonzero 1, copy to the host 1, item() 1");
  });
}

WaitCounts waits_of_run(TrainConfig config, int64_t steps) {
  config.train_iters = steps;
  const HostWaits waits;
  record_training(config, on_gpus());
  return waits.counts();
}

// Of a step that nobody looks into, on all ranks, which no moment between two steps parts.
std::string waits_of_step(const TrainConfig& config) {
  const WaitCounts without = waits_of_run(config, 2);
  WaitCounts with = waits_of_run(config, 3);
  for (const auto& [what, count] : without) with[what] -= count;
  return shown(with);
}

// But for what a row changes: one microbatch in bf16. Whatever is more stops a GPU's queue once more.
struct WaitRow {
  const char* name;
  void (*change)(TrainConfig&);
  // Of the batch's tokens and targets and of this rank's metrics to the GPU, of all ranks' back, and of the loss and
  // the gradient's norm, but where a row says more.
  const char* waits = "copy to the GPU 3, copy to the host 1, item() 2";
};

const WaitRow kWaits[] = {
    {"dense", [](TrainConfig&) {}},
    {"fp64", [](TrainConfig& c) { c.params_dtype = "fp64", c.bf16 = false; }},
    {"dropout", [](TrainConfig& c) { c.model.dropout = c.model.attention_dropout = 0.1; }},
    {"dropout, each of two ranks with half of the positions",
     [](TrainConfig& c) {
       c.model.dropout = c.model.attention_dropout = 0.1;
       c.parallel = {.world = 2, .cp = 2};
     },
     "copy to the GPU 6, copy to the host 2, item() 4"},
    {"recomputation", [](TrainConfig& c) { c.recompute_granularity = "full"; }},
    {"clipped gradients", [](TrainConfig& c) { c.clip_grad = 1; }},
    {"clipped heads",
     [](TrainConfig& c) {
       c.qk_clip = true;
       c.qk_clip_threshold = 0.5;
     },
     "copy to the GPU 3, copy to the host 2, item() 2"},
    {"clipped heads, states in the host's memory",
     [](TrainConfig& c) {
       c.qk_clip = true;
       c.qk_clip_threshold = 0.5;
       c.optimizer_cpu_offload = true;
     },
     "copy to the GPU 34, copy to the host 30, item() 2"},
    {"latent attention, prediction modules", [](TrainConfig& c) { variant(c, "latent_mtp"); },
     "copy to the GPU 3, copy to the host 1, item() 3"},
    {"windows, bounded logits", [](TrainConfig& c) { variant(c, "gemma2"); }},
    {"chunks", [](TrainConfig& c) { variant(c, "chunks"); }},
    {"linear attention", [](TrainConfig& c) { variant(c, "delta_net"); }},
    {"linear attention, recomputation",
     [](TrainConfig& c) {
       variant(c, "delta_net");
       c.recompute_granularity = "full";
     }},
    {"gated outputs", [](TrainConfig& c) { variant(c, "output_gate"); }},
    {"two microbatches, each reduced, on each of two ranks",
     [](TrainConfig& c) {
       c.parallel.world = c.num_microbatches = 2;
       c.zero_stage = 2;
       c.grad_sync = GradSync::kMicrobatch;
     },
     "copy to the GPU 10, copy to the host 2, item() 6"},
    {"fp16, loss scale", [](TrainConfig& c) { c.bf16 = false, c.precision.fp16 = true; },
     "copy to the GPU 3, copy to the host 1, item() 3"},
    {"documents", [](TrainConfig& c) { c.documents.reset_attention_mask = c.documents.reset_position_ids = true; },
     "copy to the GPU 5, copy to the host 2, item() 2"},
    // One more at the step's end, and one a layer, in each forward, for the rows that experts get.
    {"experts", [](TrainConfig& c) { variant(c, "gpt_oss"); }, "copy to the GPU 3, copy to the host 6, item() 2"},
    {"experts, balanced", [](TrainConfig& c) { variant(c, "deepseek_experts"); },
     "copy to the GPU 3, copy to the host 5, item() 2"},
    {"experts, two losses", [](TrainConfig& c) { variant(c, "aux_z"); },
     "copy to the GPU 3, copy to the host 5, item() 2"},
    {"experts, balanced, recomputation",
     [](TrainConfig& c) {
       variant(c, "deepseek_experts");
       c.recompute_granularity = "full";
     },
     "copy to the GPU 3, copy to the host 8, item() 2"},
    {"experts of two ranks",
     [](TrainConfig& c) {
       variant(c, "deepseek_experts");
       c.parallel = {.world = 2, .ep = 2};
     },
     "copy to the GPU 6, copy to the host 10, item() 4"},
    {"experts of two ranks, capacity",
     [](TrainConfig& c) {
       variant(c, "capacity");
       c.parallel = {.world = 2, .ep = 2};
     },
     "copy to the GPU 6, copy to the host 10, item() 4"},
    // Experts that are padded to their capacity need no counts.
    {"experts of two ranks, padded",
     [](TrainConfig& c) {
       variant(c, "capacity");
       c.parallel = {.world = 2, .ep = 2};
       c.pad_experts = true;
     },
     "copy to the GPU 6, copy to the host 4, item() 4"},
    {"split experts, padded",
     [](TrainConfig& c) {
       variant(c, "capacity");
       c.parallel = {.world = 2, .tp = 2, .etp = 2}, c.sequence_parallel = true;
       c.pad_experts = true;
     },
     "copy to the GPU 6, copy to the host 4, item() 4"},
    // Their counts go around once more.
    {"split experts",
     [](TrainConfig& c) {
       variant(c, "deepseek_experts");
       c.parallel = {.world = 2, .tp = 2, .etp = 2}, c.sequence_parallel = true;
     },
     "copy to the GPU 6, copy to the host 16, item() 4"},
    {"experts, capacity", [](TrainConfig& c) { variant(c, "capacity"); },
     "copy to the GPU 3, copy to the host 5, item() 2"},
    {"experts, linear attention", [](TrainConfig& c) { variant(c, "qwen3_next"); },
     "copy to the GPU 3, copy to the host 6, item() 2"},
    {"Muon", [](TrainConfig& c) { c.optimizer = OptimizerKind::kMuon; }},
};

TEST(GpuSteps, TheHostWaitsWhereItPrints) {
  for (const WaitRow& row : kWaits) {
    SCOPED_TRACE(row.name);
    TrainConfig config = gpu_config();
    config.params_dtype = "fp32";
    config.bf16 = true;
    row.change(config);
    EXPECT_EQ(waits_of_step(config), row.waits);
  }
}

TEST(GpuSteps, EveryModelComputesWhatItDoesOnTheHost) {
  for (const auto& variants : {dense_variants(), expert_variants()}) {
    for (const ModelVariant& variant : variants) {
      SCOPED_TRACE(variant.name);
      TrainConfig config = gpu_config();
      variant.change(config.model);
      const TrainingRecord got = record_training(config, on_gpus());
      config.backend = "cpu_sim";
      expect_same_training(got, record_training(config), kRoundingOfAdamW);
    }
  }
}

// Of the statistics of experts, those of a step that is traced are read as they are made.
TEST(GpuSteps, ExpertsAreCountedAsOnTheHost) {
  for (const char* name : {"deepseek_experts", "idle_experts", "aux_z", "capacity"}) {
    for (const bool traced : {false, true}) {
      SCOPED_TRACE(testing::Message() << name << (traced ? ", traced" : ""));
      TrainConfig config = gpu_config();
      variant(config, name);
      config.parallel = {.world = 2, .ep = 2};
      config.num_microbatches = 2;
      config.trace = traced;
      const TrainingRecord got = record_training(config, on_gpus());
      config.backend = "cpu_sim";
      const TrainingRecord want = record_training(config);
      EXPECT_EQ(want.load.empty(), !traced);
      expect_same_training(got, want, kRoundingOfAdamW);
    }
  }
}

TEST(GpuSteps, InterleavedMicrobatchesHaveTheBitsOfOthers) {
  for (const char* schedule : {"1f1b", "dualpipe-v"}) {
    SCOPED_TRACE(schedule);
    TrainConfig config = gpu_config();
    variant(config, "deepseek_experts");
    config.model.num_layers = 4;
    config.params_dtype = "fp32", config.bf16 = true;
    config.parallel = {.world = 4, .pp = 2, .ep = 2};
    config.pipeline_schedule = schedule;
    config.num_microbatches = 4;
    const TrainingRecord want = record_training(config, on_gpus());
    config.overlap_moe = true;
    expect_same_training(record_training(config, on_gpus()), want, kSameBits);
  }
}

// With the attention kernels of GPUs: the memory-efficient one in fp32, flash attention and cuDNN's in 16 bits.
TEST(GpuSteps, EveryAttentionKernelComputesWhatTheHostDoes) {
  for (const char* name : {"llama_gqa", "some_windows", "gemma2", "latent", "latent_with_all", "chunks", "delta_net",
                           "gpt_oss", "deepseek", "gpt2_dropout"}) {
    for (const char* kernel : {"auto", "flash", "fused"}) {
      SCOPED_TRACE(testing::Message() << name << ", " << kernel);
      const bool bf16 = kernel != std::string("auto");
      TrainConfig config = gpu_config();
      variant(config, name);
      config.params_dtype = "fp32";
      config.bf16 = bf16;
      config.attention_backend = kernel;
      config.qk_clip = true;
      config.qk_clip_threshold = 1;
      const TrainingRecord got = record_training(config, on_gpus());
      config.backend = "cpu_sim";
      expect_curves_near(got, record_training(config), bf16 ? 5e-3 : 1e-5, bf16 ? 5e-2 : 1e-4);
    }
  }
}

// Operands quantized by the GPU's steps, and products of their codes. A number that rounds to its other neighbour
// changes a step's loss by as much as its format is coarse.
TEST(GpuSteps, EveryRecipeComputesWhatTheHostDoes) {
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    SCOPED_TRACE(recipe.name);
    TrainConfig config = gpu_config();
    config.model.hidden_size = 128;
    config.model.ffn_hidden_size = 512;
    config.params_dtype = "fp32";
    config.precision.recipe = recipe.name;
    config.train_iters = 1;
    const TrainingRecord got = record_training(config, on_gpus());
    config.backend = "cpu_sim";
    const bool fp4 = recipe.name.ends_with("fp4");
    expect_curves_near(got, record_training(config), fp4 ? 2e-2 : 3e-3, fp4 ? 1e-1 : 3e-2);
  }
}

int64_t bytes_of(const TrainingRecord& record, Verb verb, Purpose purpose) {
  int64_t bytes = 0;
  for (const RankTrace& trace : record.traces)
    for (const auto& event : trace.events)
      if (event.kind == EventKind::kCollective && event.verb == verb && event.purpose == purpose)
        bytes += event.logical_bytes;
  return bytes;
}

// Something that is sent in few bits if `sent` says so: packed and unpacked by the GPU, whose host waits for nothing
// more, to as many bytes as on the host.
void expect_packed_on_the_gpu(TrainConfig config, std::optional<bool> PrecisionConfig::*sent, Verb verb,
                              Purpose purpose) {
  config.params_dtype = "fp32", config.bf16 = true;
  config.precision.sums = "fp32";
  config.precision.*sent = false;
  const std::string waits = waits_of_step(config);
  config.precision.*sent = true;
  EXPECT_EQ(waits_of_step(config), waits);
  config.train_iters = 1;
  config.trace = true;
  const TrainingRecord got = record_training(config, on_gpus());
  config.backend = "cpu_sim";
  const TrainingRecord want = record_training(config);
  expect_curves_near(got, want, 3e-3, 3e-2);
  EXPECT_EQ(bytes_of(got, verb, purpose), bytes_of(want, verb, purpose));
}

TEST(GpuSteps, TokensTravelInFewBits) {
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    if (!recipe.dispatch.quantized()) continue;
    SCOPED_TRACE(recipe.name);
    TrainConfig config = gpu_config();
    variant(config, "deepseek_experts");
    config.parallel = {.world = 2, .ep = 2};
    config.precision.recipe = recipe.name;
    expect_packed_on_the_gpu(config, &PrecisionConfig::dispatch, Verb::kAllToAll, Purpose::kDispatch);
  }
}

TEST(GpuSteps, WeightsAreGatheredInFewBits) {
  for (const char* recipe : {"deepseek_v3", "fp8_current", "fp8_rowwise", "mxfp8"}) {
    SCOPED_TRACE(recipe);
    TrainConfig config = gpu_config();
    config.parallel.world = 2;
    config.zero_stage = 3;
    config.precision.recipe = recipe;
    expect_packed_on_the_gpu(config, &PrecisionConfig::param_gather, Verb::kAllGather, Purpose::kOther);
  }
}

// Simulated ranks that share a GPU: the clock is of the simulated machine, whatever runs a step here.
TEST(GpuSteps, RankThreadsTakeTheTimesOfTheHost) {
  for (const char* name : {"llama_gqa", "delta_net", "output_gate", "gemma2", "latent_with_all", "chunks",
                           "gpt2_dropout", "gpt_oss", "deepseek", "capacity", "qwen3_next"}) {
    for (const bool bf16 : {false, true}) {
      SCOPED_TRACE(testing::Message() << name << (bf16 ? ", bf16" : ", fp64"));
      TrainConfig config = small_config();
      variant(config, name);
      if (bf16) config.params_dtype = "fp32", config.bf16 = true;
      config.parallel = {.world = 4, .tp = 2, .ep = config.model.moe.num_experts > 0 ? 2 : 1};
      config.qk_clip = true;
      config.qk_clip_threshold = 0.5;
      config.device = "cuda";
      const HostWaits waits;
      const TrainingRecord got = record_training(config, {.make_world = make_ranks_on_a_gpu});
      EXPECT_GT(waits.counts()["item()"], 0) << "was on no GPU";
      config.device = "cpu";
      const TrainingRecord want = record_training(config);
      if (bf16)
        expect_curves_near(got, want, 5e-3, 5e-2);
      else
        expect_same_training(got, want, kRoundingOfAdamW);
      // Rounding to 16 bits may send a token to another expert.
      const double apart = bf16 && config.model.moe.num_experts > 0 ? 1e-4 : 0;
      for (size_t i = 0; i < want.steps.size(); ++i)
        EXPECT_NEAR(got.steps[i].virtual_step_ms, want.steps[i].virtual_step_ms, apart) << "step " << i;
    }
  }
}

}  // namespace
}  // namespace ranklab::stand_in
