// The planned fullest moment of a step against the measured one, on every rank: the sum within kPeakTolerance, states
// that are numbers of parameters to the byte; bytes a parameter of mixed precision.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu_sim/thread_world.h"
#include "core/model/presets.h"
#include "core/plan/peak_memory.h"
#include "core/runtime/memory_measure.h"
#include "core/sim/memory_scope.h"
#include "tests/plan/run_layouts.h"

namespace ranklab {
namespace {

struct PeakRun {
  const char* name;
  int world, tp;
  int64_t micro_batch_size = 0;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};
void PrintTo(const PeakRun& run, std::ostream* out) { *out << run.name; }

void bf16(TrainConfig& c) { c.bf16 = true; }
void tiny_deepseek(TrainConfig& c) {
  c.model = model_preset("deepseek_v3_tiny");
  c.model.moe.force_balance = true;
}
void wide(TrainConfig& c) {
  c.model.num_layers = 4;
  c.model.hidden_size = 256;
  c.model.ffn_hidden_size = 704;
  c.model.vocab_size = 1024;
}

const PeakRun kPeakRuns[] = {
    {"one_rank", 1, 1},
    {"one_rank_accumulation", 1, 1, 2},
    {"dp4", 4, 1},
    {"tp2", 2, 2},
    {"dp2_tp2_bf16", 4, 2, 0, bf16},
    {"default_layout", 8, 2, 0, two_stages},
    {"selective", 1, 1, 2, recompute_selectively},
    {"full", 1, 1, 2, recompute_all},
    {"full_dp2_tp2_bf16", 4, 2, 0, both<bf16, recompute_all>},
    {"full_default_layout", 8, 2, 0, both<two_stages, recompute_all>},
    {"full_two_at_a_time", 2, 1, 2, recompute_together<2>},
    {"wide", 2, 1, 1, wide},
    {"wide_full", 2, 1, 1, both<wide, recompute_all>},
    {"zero1_dp4", 4, 1, 0, zero<1>},
    {"zero1_bf16", 4, 1, 2, zero_of<1, bf16>},
    {"zero2_dp4", 4, 1, 0, zero<2>},
    {"zero2_bf16", 4, 1, 2, zero_of<2, bf16>},
    {"zero3_dp4", 4, 1, 0, zero<3>},
    {"zero3_bf16", 4, 1, 2, zero_of<3, bf16>},
    {"zero3_wide_full", 4, 1, 1, zero_of<3, both<wide, recompute_all>>},
    {"dp2_tp2_fp16", 4, 2, 0, fp16},
    {"one_rank_wide_grads", 1, 1, 0, wide_grads},
    {"dp4_wide_grads", 4, 1, 2, wide_grads},
    {"zero1_narrow_moments", 4, 1, 2, zero_of<1, narrow_moments>},
    {"zero2_narrow_moments", 4, 1, 0, zero_of<2, narrow_moments>},
    {"zero3_wide_grads", 4, 1, 2, zero_of<3, wide_grads>},
    {"dp2_tp2_no_masters", 4, 2, 0, no_masters},
    {"gpt2_like", 4, 2, 0, gpt2_like},
    {"pp4", 4, 1, 0, [](TrainConfig& c) { c.parallel.pp = 4; }},
    {"pp4_zb_h1", 4, 1, 0, zb_h1<4>},
    {"pp2_interleaved", 4, 2, 0, interleaved},
    {"qwen", 2, 2, 2, qwen},
    {"llama3", 2, 2, 2, llama3},
    {"dynamic_positions", 2, 2, 2, dynamic_positions},
    {"window", 2, 2, 2, window},
    {"window_selective", 1, 1, 2, both<window, recompute_selectively>},
    {"qwen_selective", 1, 1, 2, both<qwen, recompute_selectively>},
    {"qwen_full", 1, 1, 2, both<qwen, recompute_all>},
    {"qwen_wide_bf16", 2, 1, 1, both<wide, both<qwen, bf16>>},
    {"grouped_zb_h1", 4, 1, 0, [](TrainConfig& c) { zb_h1<4>(c), c.model.num_query_groups = 4; }},
    {"one_key_head_tp4", 4, 4, 2, [](TrainConfig& c) { c.model.num_query_groups = 1; }},
    {"one_key_head_tp4_selective", 4, 4, 2,
     [](TrainConfig& c) { recompute_selectively(c), c.model.num_query_groups = 1; }},
    {"qwen_zb_h1", 4, 1, 0, both<qwen, zb_h1<4>>},
    {"qwen_experts_ep4_tp2", 8, 2, 0, qwen_experts<4>},
    {"qwen_experts_zero3", 4, 1, 0, zero_of<3, qwen_experts<2>>},
    {"deepseek_ep4", 4, 1, 0, [](TrainConfig& c) { tiny_deepseek(c), c.parallel.ep = 4; }},
    {"deepseek_full", 4, 1, 0, [](TrainConfig& c) { tiny_deepseek(c), recompute_all(c), c.parallel.ep = 4; }},
};

class Peaks : public testing::TestWithParam<PeakRun> {};

TEST_P(Peaks, AreWithinTheirTolerance) {
  const PeakRun& run = GetParam();
  TrainConfig c;
  c.parallel = {.world = run.world, .tp = run.tp};
  c.global_batch_size = 16;
  c.micro_batch_size = run.micro_batch_size;
  c.lr_warmup_iters = 0;
  c.mock_data = true;
  run.change(c);
  const RunPlan plan = resolve(c);
  const std::vector<MeasuredMemory> ranks =
      measure_memory(default_components(make_thread_world({.size = plan.mesh.world_size()}), plan), plan);
  ASSERT_EQ(ranks.size(), static_cast<size_t>(run.world));
  for (const MeasuredMemory& rank : ranks) {
    const PeakMemory planned = peak_memory(plan, plan.mesh.coordinate(Axis::kPp, rank.global_rank));
    const double ratio = static_cast<double>(together(planned.at_peak)) / static_cast<double>(rank.peak_bytes);
    EXPECT_NEAR(ratio, 1.0, kPeakTolerance) << "rank " << rank.global_rank;
    if (std::getenv("RANKLAB_SHOW_ESTIMATES") == nullptr) continue;
    std::printf("%-24s r%d %.3f:", run.name, rank.global_rank, ratio);
    for (size_t i = 0; i < rank.at_peak.size(); ++i)
      std::printf(" %ld/%ld", static_cast<long>(planned.at_peak[i] / 1000), static_cast<long>(rank.at_peak[i] / 1000));
    std::printf("\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Peaks, testing::ValuesIn(kPeakRuns),
                         [](const auto& run) { return std::string(run.param.name); });

}  // namespace
}  // namespace ranklab
