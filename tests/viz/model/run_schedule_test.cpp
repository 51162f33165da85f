#include "viz/model/store/run_schedule.h"

#include <gtest/gtest.h>

#include "core/pipeline/schedules.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/store/schedule_store.h"

namespace ranklab::viz {
namespace {

TEST(RunSchedule, IsWhatTheTraceRan) {
  const ScheduleCosts costs{.f = 2, .b = 3, .w = 1, .c = 0.5};
  for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b"}) {
    SCOPED_TRACE(name);
    const int chunks = std::string(name) == "interleaved-1f1b" ? 2 : 1;
    const Schedule schedule = make_schedule(name, {.num_ranks = 4, .num_microbatches = 8, .num_chunks = chunks}, costs);
    const TraceStore store = schedule_store(schedule, costs);
    const std::optional<RunSchedule> run = run_schedule(store);
    ASSERT_TRUE(run.has_value());
    EXPECT_EQ(run->request.num_ranks, 4);
    EXPECT_EQ(run->request.num_microbatches, 8);
    EXPECT_EQ(run->request.num_chunks, chunks);
    EXPECT_NEAR(static_cast<double>(run->forward_ns), 2.0 * kScheduleUnitNs, 1);
    EXPECT_DOUBLE_EQ(run->costs.f, 1);
    // BW is one action: half of it counts for each.
    const bool split = std::string(name) == "zb-h1";
    EXPECT_NEAR(run->costs.b, split ? 1.5 : 1, 1e-9);
    EXPECT_NEAR(run->costs.w, split ? 0.5 : 1, 1e-9);
  }
}

TEST(RunSchedule, KnowsTheGroupsOfInterleavedStages) {
  for (const int group : {0, 5, 10}) {
    const ScheduleRequest request{.num_ranks = 4, .num_microbatches = 10, .num_chunks = 3, .group_size = group};
    const auto run = run_schedule(schedule_store(make_schedule("interleaved-1f1b", request), ScheduleCosts{}));
    ASSERT_TRUE(run.has_value());
    EXPECT_EQ(run->request.group_size, group == 0 ? 5 : group);
  }
  for (const char* name : {"1f1b", "zb-v", "dualpipe", "dualpipe-v"}) {
    const auto run = run_schedule(schedule_store(make_schedule(name, {4, 10}), ScheduleCosts{}));
    ASSERT_TRUE(run.has_value());
    EXPECT_EQ(run->request.group_size, 0) << name;
  }
}

TEST(RunSchedule, OfARunWithoutAPipelineIsOneRank) {
  Tracer tracer(0, "");
  for (const int microbatch : {0, 1}) {
    tracer.record(samples::compute(tracer, "F", 60 * microbatch, 60 * microbatch + 20, 0, microbatch));
    tracer.record(samples::compute(tracer, "BW", 60 * microbatch + 20, 60 * microbatch + 60, 0, microbatch));
  }
  const auto run = run_schedule(TraceStore(samples::file_of({tracer.take()})));
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->request.num_ranks, 1);
  EXPECT_EQ(run->request.num_microbatches, 2);
  EXPECT_EQ(run->forward_ns, 20);
  EXPECT_DOUBLE_EQ(run->costs.b + run->costs.w, 2);
}

// In the middle of its second step: what of it is recorded would make all actions look shorter.
TEST(RunSchedule, OfALiveRunIsThatOfItsWholeSteps) {
  Tracer tracer(0, "");
  for (const int step : {0, 1}) {
    for (const int microbatch : {0, 1}) {
      if (step == 1 && microbatch == 1) break;
      const int64_t begin = 120 * step + 60 * microbatch;
      tracer.record(samples::compute(tracer, "F", begin, begin + 20, step, microbatch));
      tracer.record(samples::compute(tracer, "BW", begin + 20, begin + 60, step, microbatch));
    }
  }
  TraceStore store(samples::file_of({tracer.take()}));
  store.set_live(true);
  const auto run = run_schedule(store);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->request.num_microbatches, 2);
  EXPECT_EQ(run->forward_ns, 20);
}

TEST(RunSchedule, NeedsActionsOfMicrobatches) {
  Tracer tracer(0, "");
  tracer.record(samples::compute(tracer, "F", 0, 10));
  TraceFile file;
  file.ranks.push_back(tracer.take());
  EXPECT_FALSE(run_schedule(TraceStore(std::move(file))).has_value());
}

}  // namespace
}  // namespace ranklab::viz
