#include "core/pipeline/trace_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace ranklab {
namespace {

Event action(uint32_t name, int stage, int64_t begin_us, int64_t duration_us) {
  Event event;
  event.kind = EventKind::kCompute;
  event.name = name;
  event.stage = stage;
  event.virtual_begin_ns = begin_us * 1000;
  event.virtual_end_ns = (begin_us + duration_us) * 1000;
  return event;
}

TraceFile two_ranks() {
  TraceFile file;
  const std::vector<std::string> names = {"F", "B", "W", "BW", "send"};
  Event send;
  send.kind = EventKind::kCollective;
  send.verb = Verb::kSend;
  send.axis = Axis::kPp;
  send.name = 4;
  send.virtual_end_ns = 3000;
  file.ranks.push_back(
      {.global_rank = 0,
       .label = "pp0",
       .names = names,
       .groups = {},
       .arrays = {},
       .events = {action(0, 0, 0, 4), action(0, 0, 4, 6), action(1, 0, 20, 7), action(2, 0, 30, 3), send}});
  file.ranks.push_back({.global_rank = 1,
                        .label = "pp1",
                        .names = names,
                        .groups = {},
                        .arrays = {},
                        .events = {action(0, 1, 5, 9), action(1, 1, 14, 5), action(2, 1, 25, 1)}});
  return file;
}

TEST(TraceCosts, AreMeansOfEachStage) {
  const PipelineCosts costs = costs_of_trace(two_ranks());
  ASSERT_EQ(costs.stages.size(), 2u);
  EXPECT_DOUBLE_EQ(costs.stages[0].f, 5);
  EXPECT_DOUBLE_EQ(costs.stages[0].b, 7);
  EXPECT_DOUBLE_EQ(costs.stages[0].w, 3);
  EXPECT_DOUBLE_EQ(costs.stages[1].f, 9);
  EXPECT_DOUBLE_EQ(costs.c, 3);
  EXPECT_TRUE(costs.split);
  EXPECT_DOUBLE_EQ(costs.mean.f, 7);
  EXPECT_DOUBLE_EQ(costs.mean.b, 6);
  EXPECT_DOUBLE_EQ(costs.mean.c, 3);
}

// DualPipe: microbatch 0 passes through stages 0 and 1, microbatch 1 through their copies, 2 (on rank 1) and 3.
TEST(TraceCosts, CopiesOfAStageAreOne) {
  TraceFile file = two_ranks();
  const auto pass = [](int stage, int microbatch, int64_t us) {
    std::vector<Event> events = {action(0, stage, 0, us), action(3, stage, 50, 2 * us)};
    for (Event& event : events) event.microbatch = microbatch;
    return events;
  };
  const auto give = [&](size_t rank, std::vector<Event> own, const std::vector<Event>& copy) {
    own.insert(own.end(), copy.begin(), copy.end());
    file.ranks[rank].events = std::move(own);
  };
  give(0, pass(0, 0, 4), pass(3, 1, 8));
  give(1, pass(1, 0, 6), pass(2, 1, 6));
  PipelineCosts costs = costs_of_trace(file);
  ASSERT_EQ(costs.stages.size(), 2u);
  EXPECT_DOUBLE_EQ(costs.stages[0].f, 5) << "of stage 0 and its copy";
  EXPECT_DOUBLE_EQ(costs.stages[1].f, 7);
  EXPECT_DOUBLE_EQ(costs.mean.f, 6) << "of a microbatch, which passes through one copy";
  give(1, pass(1, 0, 6), pass(2, 0, 6));
  give(0, pass(0, 0, 4), pass(3, 0, 8));
  costs = costs_of_trace(file);
  EXPECT_EQ(costs.stages.size(), 4u) << "a V, whose microbatches pass through all";
  EXPECT_DOUBLE_EQ(costs.mean.f, 12);
}

TEST(TraceCosts, AFullBackwardCountsHalfForEach) {
  TraceFile file = two_ranks();
  file.ranks[1].events = {action(0, 1, 5, 9), action(3, 1, 14, 8)};
  const PipelineCosts costs = costs_of_trace(file);
  EXPECT_DOUBLE_EQ(costs.stages[1].b, 4);
  EXPECT_DOUBLE_EQ(costs.stages[1].w, 4);
  EXPECT_FALSE(costs.split);
}

TEST(TraceCosts, AMissingStageIsNamed) {
  TraceFile file = two_ranks();
  file.ranks[1].events = {action(0, 1, 5, 9)};
  try {
    costs_of_trace(file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
    EXPECT_THAT(error.what(), testing::HasSubstr("stage 1"));
  }
  EXPECT_THROW(costs_of_trace({}), Error);
}

}  // namespace
}  // namespace ranklab
