// The virtual clock of ranks whose tensors take the path of a GPU's, with the GPU's kernels as loops on the host,
// against the path of the host: the same kernels of the simulated machine, one by one, and the same messages, at the
// same times.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/nn/attention/softmax_attention.h"
#include "core/sim/op_cost.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/cuda/host_kernels.h"
#include "tests/cuda/host_rounding.h"
#include "tests/equivalence/precision_run.h"
#include "tests/support/model_variants.h"

namespace ranklab {
namespace {

// 8 ranks: dp 2, tp 2, pp 2.
TrainConfig small_layout() {
  TrainConfig c = small_run(8, 2);
  c.parallel.pp = 2;
  c.num_microbatches = 2;
  c.train_iters = 2;
  c.clip_grad = 1e-3;                    // scales gradients in any case
  c.efficiency = Efficiency::kMeasured;  // times that depend on the kind and the shape of a kernel
  c.trace = true;
  c.trace_level = "kernel";
  return c;
}

TrainConfig one_rank() {
  TrainConfig c = small_layout();
  c.parallel = {.world = 1, .tp = 1, .pp = 1};
  return c;
}

TrainConfig with_experts() {
  TrainConfig c = small_layout();
  c.parallel = {.world = 4, .tp = 1, .pp = 1};
  c.parallel.ep = 2;
  c.model.moe = {
      .num_experts = 8, .topk = 2, .ffn_hidden_size = 16, .shared_ffn_hidden_size = 16, .first_dense_layers = 1};
  c.model.moe.force_balance = true;  // so that rounding does not send a token elsewhere
  return c;
}

TrainConfig of_variant(const char* name) {
  TrainConfig c = small_layout();
  variant_named(name).change(c.model);
  return c;
}

TrainConfig in_recipe(const char* recipe) {
  TrainConfig c = small_layout();
  c.precision.recipe = recipe;
  c.model.hidden_size = 64;
  c.model.ffn_hidden_size = 64;
  if (!std::string_view(recipe).starts_with("fp8_")) c.precision.block_size = 16;
  return c;
}

TrainConfig with_context() {
  TrainConfig c = small_layout();
  c.parallel = {.world = 4, .tp = 2, .pp = 1};
  c.parallel.cp = 2;
  return c;
}

std::string one_line(const RankTrace& trace, const Event& event) {
  return strprintf(
      "%s, type %d, %lld bytes, %.0f FLOPs, at %lld to %lld ns, verb %d over axis %d, posted %lld",
      trace.names.at(event.name).c_str(), static_cast<int>(event.dtype), static_cast<long long>(event.logical_bytes),
      event.value, static_cast<long long>(event.virtual_begin_ns), static_cast<long long>(event.virtual_end_ns),
      static_cast<int>(event.verb), static_cast<int>(event.axis), static_cast<long long>(event.virtual_posted_ns));
}

std::vector<std::string> timeline(const RankTrace& trace) {
  std::vector<std::string> lines;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kKernel || event.kind == EventKind::kCollective)
      lines.push_back(one_line(trace, event));
  }
  return lines;
}

void expect_same_timeline(const RankTrace& device, const RankTrace& host) {
  const std::vector<std::string> got = timeline(device), want = timeline(host);
  ASSERT_FALSE(want.empty());
  const auto differs = std::ranges::mismatch(got, want);
  if (differs.in1 == got.end() && differs.in2 == want.end()) return;
  ADD_FAILURE() << "rank " << host.global_rank << ": event " << (differs.in1 - got.begin()) << " of " << got.size()
                << " on the device, " << want.size()
                << " on the host\n  device: " << (differs.in1 == got.end() ? "none" : *differs.in1)
                << "\n  host:   " << (differs.in2 == want.end() ? "none" : *differs.in2);
}

void expect_times_of_the_host(const char* what, const TrainConfig& config, int capability = 0) {
  SCOPED_TRACE(what);
  const OnTestDevice on_host(TestDevice::kHost);
  const TrainingRecord host = record_training(config);
  const KernelsOfAGpu kernels;
  const StepsOfAGpu rounding(capability);
  const TrainingRecord device = record_training(config);
  ASSERT_EQ(device.traces.size(), host.traces.size());
  ASSERT_FALSE(host.traces.empty());
  for (size_t rank = 0; rank < host.traces.size(); ++rank) {
    expect_same_timeline(device.traces[rank], host.traces[rank]);
    if (testing::Test::HasFailure()) return;
  }
  for (size_t i = 0; i < host.steps.size(); ++i)
    EXPECT_EQ(device.steps[i].virtual_step_ms, host.steps[i].virtual_step_ms) << "step " << i;
}

TrainConfig changed(TrainConfig config, void (*change)(TrainConfig&)) {
  change(config);
  return config;
}

TEST(DeviceTimes, AreTheHostsInEveryType) {
  expect_times_of_the_host("fp32", small_layout());
  expect_times_of_the_host("fp32, one rank", one_rank());
  expect_times_of_the_host("fp64", changed(small_layout(), [](TrainConfig& c) { c.params_dtype = "fp64"; }));
  expect_times_of_the_host("bf16", changed(small_layout(), [](TrainConfig& c) { c.bf16 = true; }));
  expect_times_of_the_host("bf16, one rank", changed(one_rank(), [](TrainConfig& c) { c.bf16 = true; }));
  expect_times_of_the_host("fp16", changed(small_layout(), [](TrainConfig& c) {
                             c.precision.fp16 = true;
                             c.precision.main_grads_dtype = "fp32";
                           }));
}

TEST(DeviceTimes, AreTheHostsWhateverIsRecomputedOrDeferred) {
  expect_times_of_the_host("full", changed(small_layout(), [](TrainConfig& c) { c.recompute_granularity = "full"; }));
  expect_times_of_the_host("selective",
                           changed(small_layout(), [](TrainConfig& c) { c.recompute_granularity = "selective"; }));
  expect_times_of_the_host("selective, window", changed(small_layout(), [](TrainConfig& c) {
                             c.recompute_granularity = "selective";
                             c.model.window_size = 5;
                           }));
  expect_times_of_the_host("zb-h1", changed(small_layout(), [](TrainConfig& c) { c.pipeline_schedule = "zb-h1"; }));
  expect_times_of_the_host("ZeRO 3", changed(with_experts(), [](TrainConfig& c) { c.zero_stage = 3; }));
  expect_times_of_the_host("ZeRO 2", changed(small_layout(), [](TrainConfig& c) { c.zero_stage = 2; }));
}

TEST(DeviceTimes, AreTheHostsWithExperts) {
  expect_times_of_the_host("fp32", with_experts());
  expect_times_of_the_host("bf16", changed(with_experts(), [](TrainConfig& c) { c.bf16 = true; }));
  expect_times_of_the_host("allgather",
                           changed(with_experts(), [](TrainConfig& c) { c.moe_dispatcher = "allgather"; }));
  expect_times_of_the_host("dedup", changed(with_experts(), [](TrainConfig& c) { c.moe_dispatcher = "dedup"; }));
  expect_times_of_the_host("deepseek_v3", changed(with_experts(), [](TrainConfig& c) {
                             c.precision.recipe = "deepseek_v3";
                             c.precision.block_size = 16;
                           }));
  expect_times_of_the_host("zb-h1", changed(with_experts(), [](TrainConfig& c) {
                             c.parallel.pp = 2;
                             c.pipeline_schedule = "zb-h1";
                           }));
  expect_times_of_the_host("cheap outputs are kept",
                           changed(with_experts(), [](TrainConfig& c) { c.keep_cheap_outputs = true; }));
}

TEST(DeviceTimes, AreTheHostsInModelsOfEveryKind) {
  for (const ModelVariant& variant : dense_variants()) expect_times_of_the_host(variant.name, of_variant(variant.name));
  for (const ModelVariant& variant : expert_variants()) {
    TrainConfig config = of_variant(variant.name);
    config.model.moe.force_balance = true;
    expect_times_of_the_host(variant.name, config);
  }
}

TEST(DeviceTimes, AreTheHostsWithOtherSettings) {
  expect_times_of_the_host("SGD", changed(small_layout(), [](TrainConfig& c) { c.optimizer = OptimizerKind::kSgd; }));
  expect_times_of_the_host("Muon", changed(small_layout(), [](TrainConfig& c) { c.optimizer = OptimizerKind::kMuon; }));
  expect_times_of_the_host("dropout", changed(small_layout(), [](TrainConfig& c) { c.model.attention_dropout = 0.1; }));
  expect_times_of_the_host("moments in 16 bits", changed(small_layout(), [](TrainConfig& c) {
                             c.bf16 = true;
                             c.precision.exp_avg_dtype = c.precision.exp_avg_sq_dtype = "bf16";
                           }));
  expect_times_of_the_host("cheap outputs are kept",
                           changed(small_layout(), [](TrainConfig& c) { c.keep_cheap_outputs = true; }));
  use_gpu_attention(GpuAttention::kUnfused);
  expect_times_of_the_host("unfused attention", small_layout());
  use_gpu_attention(GpuAttention::kAuto);
}

TEST(DeviceTimes, AreTheHostsOverPartsOfASequence) {
  for (const bool bf16 : {false, true}) {
    for (const ContextExchange exchange : {ContextExchange::kP2p, ContextExchange::kAllGather}) {
      TrainConfig config = with_context();
      config.context_split.exchange = exchange;
      config.bf16 = bf16;
      expect_times_of_the_host(bf16 ? "bf16" : "fp32", config);
      config.model.window_size = 5;
      expect_times_of_the_host(bf16 ? "window, bf16" : "window, fp32", config);
    }
  }
  expect_times_of_the_host("documents", changed(small_layout(), [](TrainConfig& c) {
                             c.documents = {.reset_attention_mask = true, .reset_position_ids = true, .eod_token = 32};
                           }));
}

TEST(DeviceTimes, AreTheHostsInEveryRecipe) {
  for (const char* recipe : {"fp8_delayed", "fp8_current", "fp8_rowwise", "deepseek_v3", "mxfp8", "nvfp4", "mxfp4"})
    expect_times_of_the_host(recipe, in_recipe(recipe));
  // With codes, whose scales are kept.
  for (const char* recipe : {"fp8_delayed", "fp8_current"})
    expect_times_of_the_host(recipe, in_recipe(recipe), kHopperCapability);
}

TEST(DeviceTimes, CopiesBetweenHostAndDeviceAreNone) {
  constexpr c10::DeviceType kHost = at::kCPU, kGpu = at::kCUDA;
  const auto charge = [](c10::DeviceType to, c10::DeviceType from, at::ScalarType type = at::kFloat) {
    return copy_charge({to, at::kFloat}, {from, type});
  };
  EXPECT_EQ(charge(kGpu, kHost), CopyCharge::kFree);
  EXPECT_EQ(charge(kHost, kGpu), CopyCharge::kFree);
  EXPECT_EQ(charge(kGpu, kHost, at::kBFloat16), CopyCharge::kConversion);
  EXPECT_EQ(charge(kHost, kGpu, at::kBFloat16), CopyCharge::kConversion);
  EXPECT_EQ(charge(kGpu, kGpu), CopyCharge::kAsOperators);
  EXPECT_EQ(charge(kHost, kHost, at::kBFloat16), CopyCharge::kAsOperators);
  EXPECT_EQ(charge(at::kMeta, at::kMeta, at::kBFloat16), CopyCharge::kAsOperators);
  EXPECT_EQ(charge(at::kMeta, kHost), CopyCharge::kFree) << "a plan counts what ranks with tensors on the host do";
  EXPECT_EQ(charge(at::kMeta, kHost, at::kBFloat16), CopyCharge::kConversion);
}

}  // namespace
}  // namespace ranklab
