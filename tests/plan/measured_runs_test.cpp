// Rows of published runs become settings, and say why where they cannot.
#include "core/plan/measured/measured_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/plan/measured_rows.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

constexpr const char* kGpt = R"([{"id": "gpt", "source": "a paper", "config": {"model": "GPT 1.7B", "layers": 24,
  "hidden": 2304, "heads": 24, "vocab": 51200, "seq": 2048, "tp": 2, "pp": 4, "vpp": 1, "dp": 4, "micro_batch": 2,
  "global_batch": 64, "gpus": 32, "gpu_type": "A100-80GB", "precision": "fp16 mixed", "recompute": "full"},
  "measured": {"step_time_s": 1.5, "peak_memory_GB": 30}}])";

TEST(MeasuredRuns, AGptOfThatTimeHasItsModelAndLayout) {
  const MeasuredRun run = rows_of(kGpt).at(0);
  const RunPlan plan = plan_of(run);
  const TrainConfig& c = plan.config;
  EXPECT_EQ(c.model.num_layers, 24);
  EXPECT_EQ(c.model.ffn_hidden_size, 4 * 2304) << "the usual width";
  EXPECT_EQ(c.model.activation, ActivationKind::kGelu);
  EXPECT_TRUE(c.model.tie_embeddings);
  EXPECT_EQ(plan.dp(), 4);
  EXPECT_EQ(plan.num_microbatches, 8);
  EXPECT_EQ(c.recompute_granularity, "full");
  EXPECT_EQ(c.attention_backend, "unfused");
  EXPECT_EQ(c.efficiency, Efficiency::kMeasured);
  EXPECT_FALSE(plan.sequence_parallel) << "it came later";
  EXPECT_EQ(run.gpu, "a100-80");
  EXPECT_DOUBLE_EQ(*run.measured.step_s, 1.5);
  EXPECT_DOUBLE_EQ(*run.measured.peak_bytes, 30e9);
}

TEST(MeasuredRuns, RatesBecomeStepTimes) {
  const MeasuredRun run = rows_of(R"({"rows": [{"config": {"model": "Llama 3.1 8B", "layers": 32, "hidden": 4096,
    "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq": 8192, "gpus": 8, "zero": 3, "local_batch": 2,
    "gpu_type": "H100-96GB HBM2e", "precision": "bf16", "techniques": "FSDP+compile"},
    "measured": {"tokens_per_s_per_gpu": 4096}}]})")
                              .at(0);
  EXPECT_DOUBLE_EQ(*run.measured.step_s, 2 * 8192.0 / 4096);
  const RunPlan plan = plan_of(run);
  EXPECT_EQ(plan.config.global_batch_size, 16);
  EXPECT_EQ(plan.config.zero_stage, 3);
  EXPECT_EQ(plan.config.software, "compiled");
  EXPECT_EQ(plan.profile.name, "h100-96");
}

constexpr const char* kExpertsInContainer =
    R"([{"id": "moe", "source": "Megatron-Bridge", "config": {"model": "MoE", "layers": 8,
  "hidden": 1024, "heads": 8, "kv_heads": 8, "experts": 16, "topk": 2, "moe_ffn": 512, "vocab": 51200, "seq": 2048, "tp": 1,
  "pp": 2, "ep": EP, "micro_batch": 1, "global_batch": 64, "gpus": 32, "gpu_type": "DGX-B200", "precision": "bf16",
  "schedule": "SCHEDULE", "container": "VERSION"}, "measured": {"step_time_s": 1}}])";

std::string experts_with(const std::string& ep, const std::string& schedule, const std::string& version) {
  std::string text = kExpertsInContainer;
  for (const auto& [key, value] : {std::pair{"EP", ep}, {"SCHEDULE", schedule}, {"VERSION", version}})
    text.replace(text.find(key), std::string(key).size(), value);
  return text;
}

TEST(MeasuredRuns, PipelinesCutALocalBatchAlone) {
  const auto run_with = [](const std::string& batch) {
    return rows_of(R"([{"config": {"model": "GPT", "layers": 4, "hidden": 512, "heads": 8, "seq": 1024, "gpus": 8,
      "pp": 2, "global_batch": 48, "gpu_type": "A100-80GB", "precision": "bf16", )" +
                   batch + R"(}, "measured": {"step_time_s": 1}}])")
        .at(0);
  };
  EXPECT_EQ(plan_of(run_with(R"("local_batch": 4)")).micro_batch_size, 2);
  EXPECT_EQ(plan_of(run_with(R"("local_batch": 12, "micro_batch": 3)")).micro_batch_size, 3);
  EXPECT_THAT(run_with(R"("local_batch": 3)").left_out, testing::HasSubstr("local batch"));
}

TEST(MeasuredRuns, AContainersVersionAndItsTokensToOtherNodes) {
  const RunPlan inside = plan_of(rows_of(experts_with("8", "1F1B", "26.04 NeMo Container")).at(0));
  EXPECT_EQ(inside.config.software, "transformer_engine");
  EXPECT_EQ(inside.config.moe_dispatcher, "alltoall");
  const RunPlan across = plan_of(rows_of(experts_with("16", "1F1B", "26.06.01 NeMo Container")).at(0));
  EXPECT_EQ(across.config.software, "megatron_core_26_06");
  EXPECT_EQ(across.config.moe_dispatcher, "dedup");
}

// NeMo's recipes of two releases, on nodes of 8 GPUs: each part of a layer is launched on its own.
TEST(MeasuredRuns, ExchangesBesideAnotherMicrobatchTakeTheHostLonger) {
  const auto launch_us = [](const char* schedule, const char* version) {
    return plan_of(rows_of(experts_with("8", schedule, version)).at(0)).profile.software.terms.launch_us;
  };
  const double usual = launch_us("Interleaved 1F1B", "25.09");
  EXPECT_GT(launch_us("Interleaved 1F1B", "25.11 NeMo Container"), usual);
  EXPECT_GT(launch_us("Interleaved 1F1B", "26.02 NeMo Container"), usual);
  EXPECT_EQ(launch_us("Interleaved 1F1B", "26.02.01 NeMo Container"), usual);
  EXPECT_EQ(launch_us("1F1B", "26.02 NeMo Container"), usual);
}

TEST(MeasuredRuns, InterleavedStagesAreTwoARankUnlessARowCountsThem) {
  const auto stages = [](const char* schedule) {
    return plan_of(rows_of(experts_with("8", schedule, "26.04")).at(0)).schedule.num_stages();
  };
  EXPECT_EQ(stages("Interleaved 1F1B"), 4);
  EXPECT_EQ(stages("interleaved-1F1B assumed for pp>1"), 2) << "the source says nothing of it";
  EXPECT_EQ(stages("non-interleaved 1F1B"), 2);
}

TEST(MeasuredRuns, EndsThatAreALayerShorterHaveTheEmbeddingOrTheHeadAlone) {
  std::string text = experts_with("8", "interleaved-1F1B; one layer removed from first and last stage", "26.04");
  text.replace(text.find(R"("layers": 8)"), 11, R"("layers": 6)");
  const std::vector<int64_t> four_each = {0, 1, 1, 1, 1, 1, 1, 0};
  EXPECT_EQ(plan_of(rows_of(text).at(0)).stage_layers, four_each);
  text.replace(text.find(R"("layers": 6)"), 11, R"("layers": 8)");
  EXPECT_EQ(plan_of(rows_of(text).at(0)).stage_layers, (std::vector<int64_t>{0, 1, 1, 1, 1, 1, 1, 1, 1, 0}));
  // Two more stages than layers: no other split leaves each stage something to do.
  text = experts_with("8", "1F1B", "26.04");
  text.replace(text.find(R"("layers": 8)"), 11, R"("layers": 6, "vpp": 4)");
  EXPECT_EQ(plan_of(rows_of(text).at(0)).stage_layers, four_each);
}

TEST(MeasuredRuns, TorchtitansExchangesAndScales) {
  const auto plan = [](const std::string& precision, const std::string& techniques) {
    return plan_of(rows_of(R"([{"config": {"model": "Llama 3.1 8B", "layers": 32, "hidden": 4096, "heads": 32,
      "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq": 8192, "gpus": 64, "tp": 8, "zero": 3, "local_batch": 2,
      "gpu_type": "H100-96GB HBM2e", "precision": ")" +
                           precision + R"(", "techniques": ")" + techniques + R"("},
      "measured": {"tokens_per_s_per_gpu": 4096}, "source": "torchtitan"}])")
                       .at(0));
  };
  const RunPlan vanilla = plan("fp8 rowwise", "vanilla TP"), async = plan("fp8 tensorwise", "async TP");
  EXPECT_EQ(vanilla.config.software, "compiled");
  EXPECT_EQ(vanilla.config.precision.recipe, "fp8_rowwise");
  EXPECT_EQ(async.config.software, "compiled_async_tp");
  EXPECT_EQ(async.config.precision.recipe, "fp8_current");
  EXPECT_GT(vanilla.profile.software.terms.tensor_collectives, 1) << "nothing hides them";
  EXPECT_LT(async.profile.software.terms.tensor_collectives, 0.75 * vanilla.profile.software.terms.tensor_collectives)
      << "hidden, and half as many bytes";
}

// torchtitan of 2024 left its loss uncompiled: the same run took 66.6 GB where a year later it took 51.5.
TEST(MeasuredRuns, TorchtitanCompilesItsLossFrom2025On) {
  const auto loss = [](const std::string& when) {
    const RunPlan plan = plan_of(rows_of(R"([{"config": {"model": "Llama 3.1 8B", "layers": 32, "hidden": 4096,
      "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq": 8192, "gpus": 64, "zero": 3, "local_batch": 2,
      "gpu_type": "H200", "precision": "bf16", "techniques": "compile"},
      "measured": {"tokens_per_s_per_gpu": 4096}, "source": "torchtitan, )" +
                                         when + R"("}])")
                                     .at(0));
    return 4 + plan.profile.software.memory.logit_bytes;
  };
  EXPECT_EQ(loss("Dec 2024"), 12) << "fp32 logits, log_softmax, its gradient";
  EXPECT_EQ(loss("arXiv 2025.06511"), 12) << "a paper's number is no year";
  EXPECT_EQ(loss("2026-02"), 4);
  EXPECT_EQ(loss("Jun 2025"), 4) << "logits and their gradient in 16 bits";
}

TEST(MeasuredRuns, NanotronWritesTheMemoryOfItsFirstRank) {
  const auto first = [](const std::string& source) {
    return rows_of(R"([{"config": {}, "measured": {"peak_memory_GB": 8}, "source": ")" + source + R"("}])")
        .at(0)
        .measured.first_stage;
  };
  EXPECT_TRUE(first("Nanotron / Ultra-Scale Playbook"));
  EXPECT_FALSE(first("torchtitan benchmarks"));
}

// A local batch of 32 in a pipeline of 8 ranks is 8 microbatches of 4: published 1F1B took 1.28 times as long as
// interleaved stages, whose bubbles would be 1.875 and 1.44 times the work, and 1.22 and 1.11 with 32 microbatches.
TEST(MeasuredRuns, TorchtitansPipelinesHaveAsManyMicrobatchesAsRanks) {
  const auto plan = [](const char* schedule) {
    return plan_of(rows_of(R"([{"config": {"model": "Llama 3.1 405B", "layers": 126, "hidden": 16384, "heads": 128,
      "kv_heads": 8, "ffn": 53248, "vocab": 128256, "seq": 8192, "gpus": 512, "dp": 8, "tp": 8, "pp": 8, "zero": 3,
      "local_batch": 32, "global_batch": 256, "gpu_type": "H100-96GB HBM2e", "precision": "fp8 linear",
      "recompute": "full AC", "techniques": "compile", "schedule": ")" +
                           std::string(schedule) + R"("}, "measured": {"tokens_per_s_per_gpu": 100},
      "source": "torchtitan"}])")
                       .at(0));
  };
  const RunPlan plain = plan("1F1B"), interleaved = plan("Interleaved 1F1B");
  EXPECT_EQ(plain.micro_batch_size, 4);
  EXPECT_EQ(plain.num_microbatches, 8);
  EXPECT_EQ(plain.schedule.num_stages(), 8);
  EXPECT_EQ(interleaved.num_microbatches, 8);
  ASSERT_EQ(interleaved.stage_layers.size(), 16u) << "embedding and head stand for a layer each";
  EXPECT_EQ(interleaved.stage_layers.front(), 7);
  EXPECT_EQ(interleaved.stage_layers[7], 8);
  EXPECT_EQ(interleaved.stage_layers.back(), 7);
}

MeasuredRun run_of(const std::string& framework, const std::string& gpu, const std::string& more = "") {
  return rows_of(R"([{"config": {"model": "Llama 3.1 8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8,
    "ffn": 14336, "vocab": 128256, "seq": 8192, "gpus": 64, "zero": 3, "local_batch": 2, "precision": "bf16",
    "framework": ")" +
                 framework + R"(", "gpu_type": ")" + gpu + R"(")" + more +
                 R"(}, "measured": {"step_time_s": 4}, "source": "a cluster"}])")
      .at(0);
}

// Regression: a framework that no rule knew was silently planned as PyTorch without a compiler.
TEST(MeasuredRuns, AFrameworkIsNamedAsItsUsersNameIt) {
  const auto software = [](const std::string& framework, const std::string& more = "") {
    return plan_of(run_of(framework, "H100", more)).config.software;
  };
  EXPECT_EQ(software("NeMo"), "transformer_engine");
  EXPECT_EQ(software("Megatron-Bridge", R"(, "container": "26.06 NeMo Container")"), "megatron_core_26_06");
  EXPECT_EQ(software("compiled_loss"), "compiled_loss") << "a name of --software";
  EXPECT_EQ(software("PyTorch FSDP", R"(, "compile": true)"), "compiled");
  EXPECT_EQ(software("PyTorch FSDP"), "eager");
  const RunPlan titan = plan_of(run_of("torchtitan", "H100"));
  EXPECT_EQ(titan.config.recompute_granularity,
            plan_of(run_of("compiled", "H100", R"(, "recompute": "selective")")).config.recompute_granularity)
      << "its default, as in rows of its own tables";
  EXPECT_THAT(run_of("MaxText", "H100").left_out, HasSubstr("framework MaxText"));
  EXPECT_THAT(run_of("nanotorn", "H100").left_out, HasSubstr("nearest is nanotron"));
}

TEST(MeasuredRuns, AGpuIsNamedInAnyCaseAndItsSlowerFormIsAnother) {
  EXPECT_EQ(run_of("NeMo", "h100").gpu, "h100-sxm");
  EXPECT_EQ(run_of("NeMo", "NVIDIA H100 SXM, NVLink").gpu, "h100-sxm");
  EXPECT_EQ(plan_of(run_of("NeMo", "gb200 nvl72")).config.gpus_per_node, 64);
  EXPECT_EQ(run_of("NeMo", "A100-80GB").gpu, "a100-80");
  for (const char* smaller : {"A100-40GB", "NVIDIA A100-SXM4 40 GB", "a100_40gb"})
    EXPECT_EQ(run_of("NeMo", smaller).gpu, "a100-40");
  for (const char* slower : {"A100-PCIe 40GB", "H100 PCIe", "H100 NVL"})
    EXPECT_THAT(run_of("NeMo", slower).left_out, HasSubstr(slower)) << "a quarter to a third slower";
}

TEST(MeasuredRuns, ANodesNetworkIsSharedByItsGpus) {
  const auto nic = [](const std::string& network) {
    return plan_of(run_of("NeMo", "A100", R"(, "network": ")" + network + R"(")")).config.what_if;
  };
  EXPECT_EQ(nic("400 Gb/s per node"), "nic=6.25");
  EXPECT_EQ(nic("4x100Gb/s"), "nic=6.25");
}

TEST(MeasuredRuns, ASizeThatIsNoNumberIsNamedAndDigitsAreOne) {
  const auto read_row = [](const std::string& more) {
    return rows_of(R"([{"config": {"layers": 48, "hidden": 8192, "heads": 64, "gpus": 64, "gpu_type": "A100-80GB", )" +
                   more + R"(}, "measured": {"step_time_s": 1}}])")
        .at(0);
  };
  EXPECT_EQ(read_row(R"("seq": "long")").left_out, "its seq is not a number: \"long\"");
  EXPECT_EQ(read_row(R"("seq": 2048, "tp": [8])").left_out, "its tp is not a number: [8]");
  EXPECT_EQ(read_row(R"("seq": 2048, "kv_heads": true)").left_out, "its kv_heads is not a number: true");
  const RunPlan digits = plan_of(read_row(R"("seq": "2048", "tp": "8")"));
  EXPECT_EQ(digits.config.model.seq_length, 2048);
  EXPECT_EQ(digits.mesh.size(Axis::kTp), 8);
}

TEST(MeasuredRuns, NoTimeIsNoMeasurement) {
  for (const char* none : {"0", "-3"}) {
    const auto rows = rows_of(
        R"([{"config": {"layers": 4, "hidden": 64, "heads": 4, "seq": 64, "gpus": 8, "gpu_type": "A100-80GB"},
             "measured": {"step_time_s": )" +
        std::string(none) + "}}]");
    EXPECT_EQ(rows.at(0).left_out, "nothing that a plan predicts was measured") << none;
  }
}

TEST(MeasuredRuns, WhatCannotBePlannedSaysWhy) {
  const auto rows = rows_of(R"([{"id": "a", "config": {"layers": 2}, "measured": {}}, {"id": "b"},
    {"id": "c", "config": {"layers": 2, "hidden": 64, "heads": 2, "seq": 64, "gpus": 8, "gpu_type": "V100"},
     "measured": {"step_time_s": 1}},
    {"id": "d", "config": {"layers": 2, "hidden": 64, "heads": 2, "seq": 64, "gpus": 8, "gpu_type": "H100",
     "phase": "LoRA Performance"}, "measured": {"step_time_s": 1}}])");
  EXPECT_THAT(rows.at(0).left_out, HasSubstr("no hidden"));
  EXPECT_THAT(rows.at(1).left_out, HasSubstr("no config"));
  EXPECT_THAT(rows.at(2).left_out, HasSubstr("V100"));
  EXPECT_THAT(rows.at(3).left_out, HasSubstr("LoRA"));
  EXPECT_THROW(rows_of("{}"), Error);
  EXPECT_THROW(rows_of("not JSON"), Error);
}

}  // namespace
}  // namespace ranklab
