#include "viz/model/trace_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/viz/model/make_trace.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {
namespace {

using ::testing::ElementsAre;

// `steps` steps, one every 100, each with one F of `f` and one all-reduce of 10.
TraceStore store_of_steps(int steps, int64_t f, int first_step = 0, double memory = 100, int64_t every = 100) {
  Tracer tracer(0, "");
  tracer.set_group(Axis::kDp, {0});
  for (int s = 0; s < steps; ++s) {
    const int64_t at = every * s;
    tracer.record(samples::compute(tracer, "F", at, at + f, first_step + s));
    tracer.record(samples::call(
        tracer, {.sequence = s, .posted = at + f, .begin = at + f, .end = at + f + 10, .step = first_step + s}));
    tracer.record(samples::counter(tracer, "memory/parameters", at, memory, first_step + s));
  }
  return TraceStore(samples::file_of({tracer.take()}));
}

TEST(TraceDiff, TheSameTraceIsZeroEverywhere) {
  const TraceStore store(generated_trace(10'000));
  const TraceDiff diff = diff_traces(store, store);
  EXPECT_TRUE(diff.same());
  EXPECT_EQ(diff.worst_share(), 0);
  EXPECT_GT(diff.steps, 1);
  EXPECT_GT(diff.ops.size(), 3U);
  for (const OpDiff& op : diff.ops) {
    EXPECT_EQ(op.delta_ns(), 0);
    EXPECT_GT(op.a.count, 0);
  }
}

TEST(TraceDiff, SortedByTheSizeOfTheDelta) {
  const TraceDiff diff = diff_traces(store_of_steps(2, 40), store_of_steps(2, 50));
  EXPECT_FALSE(diff.same());
  ASSERT_EQ(diff.ops.size(), 2U);
  EXPECT_EQ(diff.ops[0].name, "F");
  EXPECT_EQ(diff.ops[0].delta_ns(), 20);
  EXPECT_DOUBLE_EQ(diff.ops[0].delta_share(), 0.25);
  EXPECT_DOUBLE_EQ(diff.ops[0].b.mean_ns(), 50);
  EXPECT_EQ(diff.ops[1].name, "all_reduce dp");
  EXPECT_EQ(diff.ops[1].delta_ns(), 0);
  EXPECT_DOUBLE_EQ(diff.step_ns[0].delta(), 10);
  EXPECT_DOUBLE_EQ(diff.makespan.a, 150);
  EXPECT_DOUBLE_EQ(diff.worst_share(), 0.2);  // a step: 50 -> 60
}

TEST(TraceDiff, ALongerRunIsNotSlower) {
  TraceStore longer = store_of_steps(5, 40, 10);
  Tracer tracer(0, "");
  tracer.record(samples::counter(tracer, "memory/parameters", 450, 1000, 14));  // in a step that is not compared
  longer.append(tracer.take());
  const TraceDiff diff = diff_traces(store_of_steps(2, 40), longer);
  EXPECT_EQ(diff.steps, 2);
  EXPECT_EQ(diff.step_ns[1].name, "step 1 and 11");
  EXPECT_EQ(diff.ops[0].delta_ns(), 0);
  EXPECT_EQ(diff.worst_share(), 0);
  EXPECT_THAT(diff.notes, ElementsAre("steps: 2 and 5: the first 2 of each are compared"));
}

// A plan's trace has one step, which is not the first of a run.
TEST(TraceDiff, StepsOfTheSameNumberAreCompared) {
  const TraceDiff diff = diff_traces(store_of_steps(3, 40), store_of_steps(1, 40, 1));
  ASSERT_EQ(diff.step_ns.size(), 1U);
  EXPECT_EQ(diff.step_ns[0].name, "step 1");
  EXPECT_EQ(diff.worst_share(), 0);
  EXPECT_THAT(diff.notes, ElementsAre("steps: 3 and 1: the one that both have is compared"));
}

// Two ranks that do what one does, 10 longer.
TEST(TraceDiff, MoreRanksAreNotSlower) {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "");
    for (int step = 0; step < 2; ++step) {
      tracer.record(samples::compute(tracer, "F", 100 * step, 100 * step + 50, step));
      tracer.record(samples::counter(tracer, "memory/parameters", 100 * step, rank == 0 ? 100 : 300, step));
    }
    ranks.push_back(tracer.take());
  }
  const TraceDiff diff = diff_traces(store_of_steps(2, 40), TraceStore(samples::file_of(std::move(ranks))));
  EXPECT_TRUE(diff.of_a_rank);
  EXPECT_THAT(diff.notes, ElementsAre(testing::StartsWith("ranks: 1 and 2: counts and times are those of a rank")));
  const auto f = std::ranges::find(diff.ops, "F", &OpDiff::name);
  ASSERT_NE(f, diff.ops.end());
  EXPECT_DOUBLE_EQ(f->a.count, 2);
  EXPECT_DOUBLE_EQ(f->b.count, 2);
  EXPECT_DOUBLE_EQ(f->delta_share(), 0.25);
  ASSERT_EQ(diff.memory.size(), 1U);
  EXPECT_EQ(diff.memory[0].name, "peak memory of the fullest rank");
  EXPECT_DOUBLE_EQ(diff.memory[0].delta_share(), 2);
}

// Four steps beside two that take longer.
TEST(TraceDiff, AStepIsShownBesideItsPair) {
  const TraceStore a = store_of_steps(4, 40), b = store_of_steps(2, 40, 7, 100, 150);
  EXPECT_EQ(time_between(a, b, {95, 205}), 50) << "by position: step 1 beside step 8";
  EXPECT_EQ(time_between(a, b, {0, 400}), 0) << "the beginning is seen";
  EXPECT_EQ(time_between(a, b, {295, 405}), 0) << "step 3 has no pair";
}

TEST(TraceDiff, MemoryPeaksAndNewOperations) {
  const TraceStore a = store_of_steps(1, 40, 0, 100);
  Tracer tracer(0, "");
  tracer.record(samples::compute(tracer, "W", 0, 7, 0));
  tracer.record(samples::counter(tracer, "memory/parameters", 0, 150, 0));
  const TraceDiff diff = diff_traces(a, TraceStore(samples::file_of({tracer.take()})));
  ASSERT_EQ(diff.memory.size(), 1U);
  EXPECT_EQ(diff.memory[0].name, "peak memory r0");
  EXPECT_DOUBLE_EQ(diff.memory[0].delta_share(), 0.5);
  const auto w = std::find_if(diff.ops.begin(), diff.ops.end(), [](const OpDiff& op) { return op.name == "W"; });
  ASSERT_NE(w, diff.ops.end());
  EXPECT_TRUE(std::isinf(w->delta_share()));
}

TEST(OpTable, LongNamesAreCutBetweenCharacters) {
  EXPECT_EQ(short_name("all_reduce tp"), "all_reduce tp");
  EXPECT_EQ(short_name(std::string(32, 'k')), std::string(32, 'k'));
  EXPECT_EQ(short_name(std::string(33, 'k')), std::string(14, 'k') + "..." + std::string(15, 'k'));
  EXPECT_EQ(short_name(std::string(13, 'k') + "\xc3\xa4 and more that ends in \xc3\xa4 and 12 kkkkkk"),
            std::string(13, 'k') + "... and 12 kkkkkk");
  // What PyTorch's names begin with is common to many of them.
  EXPECT_NE(short_name("autograd::engine::evaluate_function: MmBackward0"),
            short_name("autograd::engine::evaluate_function: AddBackward0"));
}

}  // namespace
}  // namespace ranklab::viz
