// Collections of published measurements become rows of measured_runs.h, each in its own format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/plan/measured_rows.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

constexpr const char* kGolden = R"({"cases": [
  {"case": "gpt/a", "realistic_time": false, "config": {"layers": 12, "hidden": 512, "heads": 8, "kv_heads": 8,
    "seq": 1024, "mbs": 4, "gbs": 32, "tp": 2, "pp": 2, "cp": 1, "ep": 1, "sp": true, "dist_opt": true, "dtype": "bf16",
    "norm": "LayerNorm", "pos": "learned_absolute", "tied": true, "impl": "transformer_engine",
    "optimizer": "muon"},
   "other_flags": {"attention-backend": "unfused", "hidden-dropout": 0.0, "disable-bias-linear": true},
   "rows": [{"platform": "dgx_a100", "env": "dev", "part": 1, "gpu": "A100-80GB", "gpus": 8, "mem_alloc_bytes": 7e8,
             "mem_max_bytes": 2e9, "iter_s": 0.5},
            {"platform": "dgx_a100", "env": "dev", "part": 2, "gpu": "A100-80GB", "gpus": null, "mem_alloc_bytes": 7e8}]},
  {"case": "bert/b", "realistic_time": true, "config": {}, "other_flags": {}, "rows": [{"gpu": "A100-80GB"}]}]})";

TEST(MeasuredFormats, MegatronsGoldenValuesAreOfTheLastStage) {
  const std::vector<MeasuredRun> runs = rows_of(kGolden);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].id, "gpt/a@dgx_a100-dev-1");
  const RunPlan plan = plan_of(runs[0]);
  const TrainConfig& c = plan.config;
  EXPECT_EQ(c.model.vocab_size, 50432) << "50257, padded to a multiple of 128 x tp";
  EXPECT_EQ(c.model.ffn_hidden_size, 2048);
  EXPECT_FALSE(c.model.add_bias);
  EXPECT_EQ(c.model.attention_dropout, 0.1) << "unless a case says otherwise";
  EXPECT_EQ(c.model.dropout, 0) << "as its flags say";
  EXPECT_EQ(c.optimizer, OptimizerKind::kMuon);
  EXPECT_EQ(c.attention_backend, "unfused");
  EXPECT_EQ(c.software, "transformer_engine");
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.zero_stage, 1);
  EXPECT_EQ(plan.stage_layers, (std::vector<int64_t>{6, 6})) << "even, whatever the head costs";
  EXPECT_EQ(*runs[0].measured.static_bytes, 7e8);
  EXPECT_EQ(*runs[0].measured.last_stage_peak_bytes, 2e9);
  EXPECT_FALSE(runs[0].measured.step_s) << "a tiny model in deterministic mode";
  EXPECT_THAT(runs[1].left_out, HasSubstr("no gpus"));
  EXPECT_THAT(runs[2].left_out, HasSubstr("bert"));
}

std::string golden_with(const std::string& what, const std::string& instead, std::string text = kGolden) {
  EXPECT_NE(text.find(what), std::string::npos) << what;
  return text.replace(text.find(what), what.size(), instead);
}

TEST(MeasuredFormats, ActivationAndPositionsOfAGoldenCase) {
  const std::string other =
      golden_with(R"("hidden-dropout")", R"("squared-relu": true, "no-rope-freq": "[0]*3+[1]", "hidden-dropout")");
  const ModelConfig turned = plan_of(rows_of(golden_with("learned_absolute", "rope", other)).at(0)).config.model;
  EXPECT_EQ(turned.activation, ActivationKind::kSquaredRelu);
  EXPECT_EQ(turned.rope_layers, (LayerPattern{.pattern = {true, true, true, false}}));
  const std::string number = golden_with(R"("[0]*3+[1]")", "4", golden_with("learned_absolute", "rope", other));
  EXPECT_EQ(plan_of(rows_of(number).at(0)).config.model.rope_layers, LayerPattern{.skip_freq = 4});
  EXPECT_EQ(plan_of(rows_of(golden_with("learned_absolute", "none")).at(0)).config.model.position, PositionKind::kNone);
}

TEST(MeasuredFormats, AGoldenCasesWorkspaces) {
  const RunPlan plain = plan_of(rows_of(kGolden).at(0));
  EXPECT_EQ(plain.profile.software.memory.cublas_mib, std::nullopt) << "PyTorch's default";
  EXPECT_EQ(plain.profile.software.memory.grouped_workspaces, 0) << "a product for each expert";
  const std::string text = golden_with(R"("realistic_time": false)", R"("realistic_time": false, "env":
    {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})");
  const RunPlan plan = plan_of(rows_of(golden_with(R"("dtype")", R"("grouped_gemm": true, "dtype")", text)).at(0));
  EXPECT_EQ(plan.profile.software.memory.cublas_mib, 32);
  EXPECT_EQ(plan.profile.software.memory.grouped_workspaces, 4);
  EXPECT_EQ(plan_of(rows_of(golden_with(":4096:8", ":4096:2:16:8", text)).at(0)).profile.software.memory.cublas_mib,
            8.125);
  for (const char* wrong : {":4096", ":-4096:8", ":4096:0", ":99999999999:8", "4096:8", ":4096:8:"})
    EXPECT_THAT(rows_of(golden_with(":4096:8", wrong, text)).at(0).left_out, HasSubstr("CUBLAS_WORKSPACE")) << wrong;
}

TEST(MeasuredFormats, ExpertsAloneAreTheEnginesInLocalCases) {
  const std::string local =
      golden_with(R"("impl": "transformer_engine")", R"("impl": "local")", golden_with("gpt/a", "gpt/a_te_b"));
  EXPECT_EQ(plan_of(rows_of(local).at(0)).config.software, "megatron");
  const std::string experts = golden_with(R"("dtype")", R"("experts": 4, "moe_ffn": 512, "dtype")", local);
  EXPECT_EQ(plan_of(rows_of(experts).at(0)).config.software, "transformer_engine");
}

TEST(MeasuredFormats, GoldenValuesThatAreNotOfTheirCommandAreLeftOut) {
  const std::string other =
      golden_with(R"("gpus": null, "mem_alloc_bytes": 7e8)", R"("gpus": 8, "mem_alloc_bytes": 8e8)");
  for (const size_t leg : {0, 1}) EXPECT_THAT(rows_of(other).at(leg).left_out, HasSubstr("two legs")) << leg;
  const std::string near = golden_with("8e8", "7.1e8", other);
  for (const size_t leg : {0, 1}) EXPECT_EQ(rows_of(near).at(leg).left_out, "") << leg;
  EXPECT_THAT(rows_of(golden_with(R"("dtype")", R"("cuda_graph": "attn", "dtype")")).at(0).left_out,
              HasSubstr("CUDA graphs"));
  for (const char* off : {"false", "null", "\"none\""})
    EXPECT_EQ(rows_of(golden_with(R"("dtype")", std::string(R"("cuda_graph": )") + off + R"(, "dtype")", near))
                  .at(0)
                  .left_out,
              "")
        << off;
}

TEST(MeasuredFormats, AStepThatWaitedForSomethingElseIsNoMeasurement) {
  const std::string timed = golden_with(R"("realistic_time": false)", R"("realistic_time": true)");
  EXPECT_EQ(rows_of(timed).at(0).measured.step_s, 0.5);
  const std::string steady = golden_with(R"("iter_s": 0.5)", R"("iter_s": 0.5, "iter_s_min": 0.3)", timed);
  EXPECT_EQ(rows_of(steady).at(0).measured.step_s, 0.5);
  const MeasuredRun waited = rows_of(golden_with("0.3", "0.2", steady)).at(0);
  EXPECT_FALSE(waited.measured.step_s) << "its median is 2.5 times its fastest step";
  EXPECT_EQ(waited.left_out, "") << "its memory is as good as any";
}

TEST(MeasuredFormats, DeterministicAttentionTakesTwiceAsLong) {
  const auto attention = [](const std::string& text) {
    return plan_of(rows_of(text).at(0)).profile.software.kernels.at(static_cast<size_t>(KernelShape::Kind::kAttention));
  };
  EXPECT_DOUBLE_EQ(attention(golden_with(R"("dtype")", R"("deterministic": true, "dtype")")), 2 * attention(kGolden));
}

// With an attention backend that nobody names, deterministic runs of the older cluster computed scores.
TEST(MeasuredFormats, WhichAttentionAnOlderTransformerEngineChose) {
  std::string text = golden_with(R"("attention-backend": "unfused", )", "");
  text = golden_with(R"("realistic_time": false)",
                     R"("realistic_time": false, "env": {"NVTE_ALLOW_NONDETERMINISTIC_ALGO": 0})", text);
  EXPECT_NE(plan_of(rows_of(text).at(0)).config.attention_backend, "unfused");
  text = golden_with(R"("platform": "dgx_a100")", R"("platform": "dgxa100_dracooci")", text);
  EXPECT_EQ(plan_of(rows_of(text).at(0)).config.attention_backend, "unfused");
  text = golden_with(R"(_ALGO": 0)", R"(_ALGO": 1)", text);
  EXPECT_NE(plan_of(rows_of(text).at(0)).config.attention_backend, "unfused");
}

// Without a layout of its own Megatron's layer-wise optimizer shards nothing within a parameter, be it the embedding.
TEST(MeasuredFormats, AnOptimizerOfWholeParametersIsNotThatOfWholeMatrices) {
  const std::string whole =
      golden_with(R"("hidden-dropout": 0.0)", R"("hidden-dropout": 0.0, "no-use-layer-wise-param-layout": true)");
  EXPECT_THAT(rows_of(whole).at(0).left_out, HasSubstr("layer-wise optimizer"));
}

TEST(MeasuredFormats, ModulesThatMegatronRecomputes) {
  const auto recomputed = [](const char* modules) {
    const TrainConfig c =
        plan_of(rows_of(golden_with(R"("dtype")", std::string(R"("recompute": "selective", "recompute_modules": )") +
                                                      modules + R"(, "dtype")"))
                    .at(0))
            .config;
    return c.recompute_granularity + (c.recompute_modules.core_attn ? " core_attn" : "") +
           (c.recompute_modules.mlp ? " mlp" : "");
  };
  EXPECT_EQ(recomputed(R"("[core_attn mlp]")"), "selective core_attn mlp");
  EXPECT_EQ(recomputed(R"("[layernorm mlp]")"), "selective mlp");
  EXPECT_EQ(recomputed(R"(["core_attn", "mlp"])"), "selective core_attn mlp");
  for (const char* own : {R"("[layernorm]")", R"("[moe_act]")", R"(["moe_act"])"})
    EXPECT_THAT(recomputed(own), testing::StartsWith("none")) << own << " is recomputed here in any case";
  const auto left_out = [](const char* granularity, const char* modules) {
    const std::string text = std::string(R"("recompute": ")") + granularity + R"(", "recompute_modules": )" + modules;
    return rows_of(golden_with(R"("dtype")", text + R"(, "dtype")")).at(0).left_out;
  };
  EXPECT_THAT(left_out("selective", R"(["mlp", "router"])"), HasSubstr("module router"));
  // Neither is kept nor recomputed alone here: a plan would be of other tensors than the run.
  EXPECT_THAT(left_out("selective", R"(["mla_up_proj", "mlp"])"), HasSubstr("mla_up_proj"));
  EXPECT_THAT(left_out("selective", R"("[core_attn shared_experts]")"), HasSubstr("shared experts"));
  EXPECT_EQ(left_out("selective", R"("[moe shared_experts]")"), "") << "a part of that";
  EXPECT_EQ(left_out("full", R"(["mla_up_proj"])"), "") << "whole layers are recomputed";
}

TEST(MeasuredFormats, AGoldenCasesGroupsOfShardsAndItsFewLayersAtTheEnds) {
  std::string text = kGolden;
  const auto put = [&](const std::string& what, const std::string& instead) {
    ASSERT_NE(text.find(what), std::string::npos) << what;
    text.replace(text.find(what), what.size(), instead);
  };
  put(R"("pp": 2)", R"("pp": 4)");
  put(R"("optimizer": "muon")", R"("optimizer": "adam")");
  put(R"("tp": 2)", R"("tp": 1)");
  put(R"("hidden-dropout": 0.0)", R"("hidden-dropout": 0.0, "num-distributed-optimizer-instances": 2,
    "decoder-first-pipeline-num-layers": 2, "decoder-last-pipeline-num-layers": 4)");
  put(R"("gpus": 8)", R"("gpus": 16)");
  const RunPlan plan = plan_of(rows_of(text).at(0));
  EXPECT_EQ(plan.stage_layers, (std::vector<int64_t>{2, 3, 3, 4}));
  EXPECT_EQ(plan.config.parallel.replicas, 2);
  put(R"("decoder-last-pipeline-num-layers": 4)", R"("decoder-last-pipeline-num-layers": 0)");
  put(R"("decoder-first-pipeline-num-layers": 2)", R"("decoder-first-pipeline-num-layers": 3)");
  EXPECT_EQ(plan_of(rows_of(text).at(0)).stage_layers, (std::vector<int64_t>{3, 3, 3, 3}));
  put(R"("decoder-first-pipeline-num-layers": 3)", R"("decoder-first-pipeline-num-layers": 2)");
  EXPECT_THAT(rows_of(text).at(0).left_out, HasSubstr("layers of its stages")) << "ten for three";
  put(R"("pp": 4)", R"("pp": 2)");
  EXPECT_EQ(plan_of(rows_of(text).at(0)).stage_layers, (std::vector<int64_t>{2, 10}));
}

// A case of a hybrid model: its pattern has its layers and its stages.
std::string hybrid_with(const std::string& pattern, const std::string& flags = "") {
  const std::string text = golden_with(R"("hidden-dropout")", R"("hybrid-layer-pattern": ")" + pattern +
                                                                  R"(", "spec": "[a.module hybrid_stack_spec]", )" +
                                                                  flags + R"("hidden-dropout")");
  return golden_with(R"("layers": 12, )", "", golden_with(R"("optimizer": "muon")", R"("optimizer": "adam")", text));
}

TEST(MeasuredFormats, AHybridGoldenCaseHasThePatternsLayers) {
  const RunPlan plan = plan_of(rows_of(hybrid_with("M-M*-|M-")).at(0));
  const ModelConfig& m = plan.config.model;
  EXPECT_EQ(m.num_layers, 7) << "which the case does not say otherwise";
  EXPECT_EQ(m.hybrid_pattern, "M-M*-M-");
  EXPECT_EQ(plan.stage_layers, (std::vector<int64_t>{5, 2})) << "as the pattern splits them, whatever they cost";
  EXPECT_EQ(m.mamba, MambaConfig{}) << "Megatron-LM's sizes are this project's";
  EXPECT_EQ(plan.config.virtual_stages, 1);
  const RunPlan interleaved = plan_of(rows_of(hybrid_with("M-|M*|-M|--")).at(0));
  EXPECT_EQ(interleaved.config.virtual_stages, 2) << "four stages for two ranks";
  EXPECT_EQ(interleaved.config.pipeline_schedule, "interleaved-1f1b");
  EXPECT_EQ(interleaved.stage_layers, (std::vector<int64_t>{2, 2, 2, 2}));
  const std::string sizes = R"("mamba-num-heads": 12, "mamba-head-dim": 32, "mamba-state-dim": 16,
    "mamba-num-groups": 4, )";
  EXPECT_EQ(plan_of(rows_of(hybrid_with("M*", sizes)).at(0)).config.model.mamba,
            (MambaConfig{.num_heads = 12, .head_dim = 32, .state_dim = 16, .num_groups = 4}));
  EXPECT_EQ(plan_of(rows_of(hybrid_with("M*/*-")).at(0)).config.model.mtp_num_layers, 1);
  EXPECT_FALSE(plan_of(rows_of(hybrid_with("M*/*-/*-")).at(0)).config.model.repeats_mtp());
  const std::string one_module = R"("mtp-use-repeated-layer": true, )";
  EXPECT_TRUE(plan_of(rows_of(hybrid_with("M*/*-/*-", one_module)).at(0)).config.model.repeats_mtp());
}

TEST(MeasuredFormats, AGoldenCasesGroupsOfMicrobatchesAndLatentExperts) {
  const RunPlan fewest = plan_of(rows_of(hybrid_with("M-|M*|-M|--")).at(0));
  EXPECT_EQ(fewest.config.microbatch_group, 0);
  const std::string all = std::to_string(fewest.num_microbatches);
  const RunPlan plan = plan_of(
      rows_of(hybrid_with("M-|M*|-M|--", R"("microbatch-group-size-per-virtual-pipeline-stage": )" + all + ", "))
          .at(0));
  EXPECT_EQ(plan.config.microbatch_group, fewest.num_microbatches);
  const std::string experts = golden_with(R"("dtype")", R"("experts": 4, "moe_ffn": 512, "dtype")");
  const std::string latent = golden_with(R"("hidden-dropout")", R"("moe-latent-size": 128, "hidden-dropout")", experts);
  EXPECT_EQ(plan_of(rows_of(experts).at(0)).config.model.moe.latent_size, 0);
  EXPECT_EQ(plan_of(rows_of(latent).at(0)).config.model.moe.latent_size, 128);
}

TEST(MeasuredFormats, AHybridGoldenCaseThatCannotBePlannedSaysWhy) {
  const auto why = [](const std::string& pattern, const std::string& flags = "") {
    return rows_of(hybrid_with(pattern, flags)).at(0).left_out;
  };
  EXPECT_THAT(why("M-|M*|--"), HasSubstr("layers of its stages")) << "three stages for two ranks";
  EXPECT_THAT(why("M-G-"), HasSubstr("gated delta nets"));
  EXPECT_THAT(why("M*/MM"), HasSubstr("MTP modules have other layers than those here (MM)"));
  EXPECT_THAT(why(""), HasSubstr("no --spec")) << "without a pattern nobody knows its layers";
  const std::string old = golden_with("hybrid-layer-pattern", "hybrid-override-pattern", hybrid_with("M*M-"));
  EXPECT_EQ(plan_of(rows_of(old).at(0)).config.model.hybrid_pattern, "M*M-") << "the flag's older name";
}

TEST(MeasuredFormats, BloomsSweepIsMeasuredByTheDevice) {
  const std::vector<MeasuredRun> runs = rows_of(R"({"rows": [
    {"size": "104B", "hidden": 11600, "layers": 64, "heads": 80, "gpus": 512, "dp": 16, "tp": 8, "pp": 4, "mbs": 1,
     "gbs": 2048, "zero": 1, "mem_gb": 60, "sec_per_iter": 200.0, "grads": "as compute type", "tflops_formula": "new"},
    {"size": "104B", "hidden": 11600, "layers": 64, "heads": 80, "gpus": 512, "dp": 16, "tp": 8, "pp": 4, "mbs": 8,
     "gbs": 2048, "zero": 1, "oom": true, "tflops_formula": "new"},
    {"size": "20B", "hidden": 14336, "layers": 6, "heads": 64, "gpus": 8, "dp": 1, "tp": 8, "pp": 1, "mbs": 1,
     "gbs": 512, "zero": 1, "sec_per_iter": 120.0, "tflops_formula": "new"}]})");
  EXPECT_FALSE(plan_of(runs.at(2)).profile.software.terms.launch_blocking);
  const RunPlan plan = plan_of(runs.at(0));
  EXPECT_EQ(plan.config.recompute_granularity, "full");
  EXPECT_EQ(plan.config.software, "megatron_deepspeed_bf16");
  EXPECT_DOUBLE_EQ(plan.profile.inter_node.bandwidth_bytes_per_ns, 4 * 12.5 / 8) << "four links of 100 Gb/s a node";
  EXPECT_EQ(plan.dp(), 16);
  EXPECT_NE(plan.config.precision.main_grads_dtype, "fp32") << "as its row says";
  EXPECT_TRUE(plan.profile.software.terms.launch_blocking) << "without it so many GPUs hung";
  EXPECT_TRUE(runs[0].measured.on_device);
  EXPECT_EQ(*runs[0].measured.peak_bytes, 60.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(*runs[0].measured.step_s, 200);
  EXPECT_THAT(runs.at(1).left_out, HasSubstr("out of memory"));
}

TEST(MeasuredFormats, TablesOfThroughput) {
  const std::vector<MeasuredRun> intern = rows_of(R"({"rows": [{"model": "InternLM-7B", "layers": 32, "hidden": 4096,
    "heads": 32, "gpu": "A100-SXM4-80GB", "seq": 2048, "precision": "bf16", "gpus": 8, "tp": 1, "zero1": -1, "mbs": 2,
    "microbatches": 4, "act_ckpt": false, "tgs": 4096}]})");
  EXPECT_EQ(plan_of(intern.at(0)).config.global_batch_size, 64);
  EXPECT_DOUBLE_EQ(*intern[0].measured.step_s, 64 * 2048.0 / (4096 * 8));
  EXPECT_EQ(plan_of(intern.at(0)).config.software, "internevo");
  EXPECT_GT(plan_of(intern.at(0)).profile.software.terms.piece_us, 0);
  const std::vector<MeasuredRun> nodes = rows_of(R"({"rows": [{"model": "InternLM-7B", "layers": 32, "hidden": 4096,
    "heads": 32, "gpu": "A100-SXM4-80GB", "seq": 2048, "precision": "bf16", "gpus": 64, "tp": 2, "zero1": 4, "mbs": 2,
    "microbatches": 4, "act_ckpt": false, "tgs": 4096}]})");
  EXPECT_EQ(plan_of(nodes.at(0)).profile.software.terms.piece_us, 0) << "no further than four ranks";
  const std::vector<MeasuredRun> mpt = rows_of(R"({"rows": [{"model": "mpt-7b", "gpu": "h100_80gb", "gpus": 64,
    "seq": 2048, "mbs": 8, "gbs": 512, "precision": "amp_bf16", "sharding": "FULL_SHARD", "act_ckpt": true,
    "act_offload": false, "layers": 32, "hidden": 4096, "heads": 32, "ffn": 16384, "vocab": 50368, "step_s": 3.5}]})");
  const RunPlan plan = plan_of(mpt.at(0));
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.profile.name, "h100-sxm");
  EXPECT_FALSE(plan.config.model.add_bias);
  EXPECT_EQ(plan.config.recompute_granularity, "full");
}

TEST(MeasuredFormats, ACollectionOfAnotherShapeIsABadFile) {
  for (const char* text :
       {R"({"cases": [{}]})", R"({"cases": [{"case": 1, "config": {}, "other_flags": {}, "rows": []}]})",
        R"({"rows": [{"tflops_formula": "new", "size": 7}]})", R"([{"config": {}, "measured": {}, "left_out": 3}])"}) {
    try {
      rows_of(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << text;
    }
  }
}

}  // namespace
}  // namespace ranklab
