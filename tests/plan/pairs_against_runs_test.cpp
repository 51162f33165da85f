// Steps whose passes take turns to hide their exchanges of tokens, recorded on shapes from a few of their microbatches,
// against the same steps on real tensors.
#include <gtest/gtest.h>

#include "tests/plan/against_runs.h"

namespace ranklab {
namespace {

// Experts over two ranks in two stages, with more microbatches than a plan runs.
TrainConfig paired_config(const char* schedule) {
  TrainConfig c = tiny_config(4, 1);
  in_two_stages<2>(c);
  c.pipeline_schedule = schedule;
  if (c.pipeline_schedule == "interleaved-1f1b") c.virtual_stages = 2;
  c.micro_batch_size = 1;
  c.global_batch_size = 32;
  c.overlap_moe = true;
  return c;
}

TEST(Pairs, AreRecordedAsTheyRun) {
  for (const char* schedule : {"1f1b", "interleaved-1f1b", "dualpipe", "dualpipe-v"}) {
    SCOPED_TRACE(schedule);
    const TrainConfig c = paired_config(schedule);
    expect_recorded(c, schedule);
    expect_peaks(c, c.pipeline_schedule);
  }
}

TEST(Pairs, WithOtherExchangesInside) {
  const auto check = [](const char* what, void (*change)(TrainConfig&)) {
    SCOPED_TRACE(what);
    TrainConfig c = paired_config("1f1b");
    change(c);
    expect_recorded(c, what);
    expect_peaks(c, c.pipeline_schedule);
  };
  check("ZeRO 3, reductions of each microbatch", [](TrainConfig& c) {
    c.zero_stage = 3;
    c.grad_sync = GradSync::kMicrobatch;
  });
  check("shared experts beside exchanges", [](TrainConfig& c) {
    c.model.moe.shared_ffn_hidden_size = 32;
    c.overlap_shared_experts = true;
  });
  check("delayed weight gradients", [](TrainConfig& c) { c.delay_weight_grads = true; });
  check("recomputation", [](TrainConfig& c) { c.recompute_granularity = "full"; });
  check("allgather", [](TrainConfig& c) { c.moe_dispatcher = "allgather"; });
  check("few bits", [](TrainConfig& c) {
    c.precision.recipe = "deepseek_v3";
    c.precision.block_size = 4;
  });
}

TEST(Pairs, WithTensorParallelism) {
  TrainConfig c = tiny_config(8, 2);
  in_two_stages<2>(c);
  c.micro_batch_size = 1;
  c.global_batch_size = 32;
  c.overlap_moe = true;
  expect_recorded(c, "tp 2");
  expect_peaks(c, c.pipeline_schedule);
}

// Pairs of a plan are also in the trace that is drawn of it.
TEST(Pairs, AreDrawnAsTheyAreCounted) {
  const RunPlan plan = resolve(paired_config("1f1b"));
  const StepRecord counted = record_step(plan, make_meta_world);
  const StepRecord drawn = record_step(plan, make_meta_world, RepeatedCalls::kTraced);
  EXPECT_EQ(counted.step_ns, drawn.step_ns);
  for (size_t i = 0; i < drawn.ranks.size(); ++i) {
    int64_t calls = 0, exposed_ns = 0;
    for (const Event& event : drawn.traces[i].events) {
      if (event.kind != EventKind::kCollective || event.axis != Axis::kEp) continue;
      ++calls;
      exposed_ns += event.virtual_exposed_ns;
    }
    EXPECT_EQ(exposed_ns, counted.ranks[i].time.exposed_ns[static_cast<size_t>(Axis::kEp)]);
    for (const auto& [key, count] : counted.ranks[i].traffic.calls)
      if (key.first == Axis::kEp) calls -= count.calls;
    EXPECT_EQ(calls, 0);
  }
}

}  // namespace
}  // namespace ranklab
