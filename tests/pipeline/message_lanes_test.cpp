// The messages of every schedule in lanes without tags, held against NCCL's rules.
#include "core/pipeline/message_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/all_cases.h"
#include "tests/pipeline/all_schedules.h"
#include "tests/pipeline/message_programs.h"

namespace ranklab {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string shape(const Schedule& s) {
  return s.name + " pp " + std::to_string(s.num_ranks()) + " m " + std::to_string(s.num_microbatches);
}

TEST(MessageLanes, LanesOfATwoRankPipeline) {
  const Schedule schedule = make_schedule("1f1b", {2, 2, 1});
  const std::vector<LaneOrder> lanes = message_lanes(schedule);
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0].lane, (PipelineLane{0, 1, true}));
  EXPECT_EQ(lanes[0].messages, (std::vector<PipelineMessage>{{true, 0, 0}, {true, 0, 1}}));
  EXPECT_EQ(lanes[1].lane, (PipelineLane{1, 0, false}));
  EXPECT_THAT(message_lanes(make_schedule("zb-v", {1, 4, 1})), IsEmpty()) << "one rank sends nothing";
  // A V has outputs on their way back to rank 0, too.
  EXPECT_EQ(message_lanes(make_schedule("zb-v", {2, 4, 1})).size(), 4u);
}

TEST(MessageLanes, ReceivesArePostedInTheSendersOrder) {
  using Posts = std::vector<std::vector<PipelineMessage>>;
  const PipelineMessage first{true, 0, 0}, second{true, 0, 1};
  EXPECT_EQ(receives_before(crossed_schedule(), 1, 0, ReceiveOrder::kAsNeeded), (Posts{{second}, {first}, {}, {}}));
  EXPECT_EQ(receives_before(crossed_schedule(), 1, 0, ReceiveOrder::kAsSent), (Posts{{first, second}, {}, {}, {}}));
  EXPECT_EQ(program_problem(crossed_schedule(), lane_program(crossed_schedule(), 0)), "");
}

TEST(MessageLanes, EachReceiveIsPostedOnceAndAheadAsTold) {
  const Schedule schedule = make_schedule("gpipe", {2, 4, 1});
  const PipelineMessage first{true, 0, 0}, second{true, 0, 1}, third{true, 0, 2}, fourth{true, 0, 3};
  const auto posts = receives_before(schedule, 1, 2, ReceiveOrder::kAsSent);
  EXPECT_EQ(posts[0], (std::vector{first, second, third}));
  EXPECT_EQ(posts[1], (std::vector{fourth}));
  for (size_t i = 2; i < posts.size(); ++i) EXPECT_THAT(posts[i], IsEmpty());
}

TEST(MessageProgram, EveryScheduleOfTheListRunsOverLanes) {
  std::vector<int> ranks = {2, 3, 4, 5, 8, 11, 16}, microbatches = {1, 2, 4, 7, 8, 16, 24, 32, 64};
  if (all_cases()) {
    ranks.resize(15);
    std::iota(ranks.begin(), ranks.end(), 2);
    microbatches.resize(64);
    std::iota(microbatches.begin(), microbatches.end(), 1);
  }
  const std::vector<Schedule> schedules = all_schedules(ranks, microbatches);
  EXPECT_GT(schedules.size(), 500u);
  for (const Schedule& schedule : schedules) {
    for (const int prefetch : {0, 2}) {
      ASSERT_EQ(program_problem(schedule, lane_program(schedule, prefetch)), "")
          << shape(schedule) << " prefetch " << prefetch;
    }
  }
}

TEST(MessageProgram, SendsThatStartWithTheNextReceiveAreRejected) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "v-min"}) {
    for (const int p : {2, 4, 8}) {
      for (const int m : {4, 8, 16}) {
        const Schedule schedule = make_schedule(name, {p, m, 1});
        EXPECT_THAT(program_problem(schedule, grouped_program(schedule)),
                    AnyOf(HasSubstr("not the same directions"), HasSubstr("no rank can continue")))
            << shape(schedule);
      }
    }
  }
}

TEST(MessageProgram, LanesThatConnectAtTheirFirstMessageAreJudgedByWhoWaits) {
  // A pipeline's first messages flow one way, rank by rank, so there it happens to end; two ranks that both send first
  // do not.
  Schedule cross = make_schedule("dualpipe", {2, 4, 1});
  MessageProgram program = lane_program(cross, 0);
  program.connected = false;
  EXPECT_THAT(program_problem(cross, program), HasSubstr("no rank can continue: rank 0 waits inside a launch"));
}

TEST(MessageProgram, TwoMessagesOfALaneSwappedOnOneSideAreRejected) {
  std::mt19937 random(20240110);
  int mutants = 0;
  for (const Schedule& schedule : all_schedules({2, 3, 4}, {4, 8})) {
    const MessageProgram good = lane_program(schedule, 2);
    for (int i = 0; i < 12; ++i) {
      MessageProgram mutant = good;
      auto& steps = mutant.ranks[random() % mutant.ranks.size()];
      const bool send = random() % 2 == 0;
      const int channel = static_cast<int>(random() % static_cast<unsigned>(good.num_channels));
      const std::vector<size_t> launches = launches_of(steps, channel, send);
      if (launches.size() < 2) continue;
      const size_t at = random() % (launches.size() - 1);
      std::swap(steps[launches[at]], steps[launches[at + 1]]);
      EXPECT_NE(program_problem(schedule, mutant), "") << shape(schedule) << " channel " << channel;
      ++mutants;
    }
  }
  EXPECT_GT(mutants, 200);
}

TEST(MessageProgram, WhatIsLostOrTooLateIsNamed) {
  const Schedule schedule = make_schedule("1f1b", {2, 2, 1});
  const auto changed = [&](const auto& change) {
    MessageProgram program = lane_program(schedule, 0);
    change(program);
    return program_problem(schedule, program);
  };
  const auto launch_of = [](std::vector<ProgramStep>& steps) {
    return std::find_if(steps.begin(), steps.end(), [](const ProgramStep& step) { return step.channel >= 0; });
  };
  EXPECT_EQ(changed([&](MessageProgram& p) { p.ranks[0].erase(launch_of(p.ranks[0])); }),
            "rank 0 never sends the output of 0F0");
  EXPECT_EQ(changed([&](MessageProgram& p) { p.ranks[1].erase(launch_of(p.ranks[1])); }),
            "rank 1 runs 1F0 before it receives the output of 0F0");
  EXPECT_EQ(changed([&](MessageProgram& p) { launch_of(p.ranks[1])->channel = 1; }),
            "channel 0, from rank 0 to rank 1: message 0 is the output of 0F0 for the sender and the output of 0F1 for "
            "the receiver");
}

TEST(MessageProgram, AMessageThatIsLostOrDoubledIsRejectedInEverySchedule) {
  std::mt19937 random(22);
  for (const Schedule& schedule : all_schedules({2, 4}, {8})) {
    const MessageProgram good = lane_program(schedule, 2);
    for (const bool doubled : {false, true}) {
      for (const bool send : {false, true}) {
        MessageProgram mutant = good;
        const int channel = static_cast<int>(random() % static_cast<unsigned>(good.num_channels));
        for (auto& steps : mutant.ranks) {
          const std::vector<size_t> launches = launches_of(steps, channel, send);
          if (launches.empty()) continue;
          const auto at = steps.begin() + static_cast<std::ptrdiff_t>(launches[random() % launches.size()]);
          const ProgramStep step = *at;
          if (doubled) steps.insert(at, step);
          if (!doubled) steps.erase(at);
        }
        EXPECT_NE(program_problem(schedule, mutant), "")
            << shape(schedule) << " channel " << channel << (send ? " send" : " receive") << (doubled ? " twice" : "");
      }
    }
  }
}

// Messages of two lanes on one channel: what one rank then receives, and in which order, is no longer what is sent, or
// kernels of both directions wait for each other in one queue.
TEST(MessageProgram, OneQueueForBothDirectionsWaitsForItself) {
  int rejected = 0, all = 0;
  for (const Schedule& schedule : all_schedules({2, 4}, {8})) {
    ++all;
    rejected += program_problem(schedule, on_one_channel(lane_program(schedule, 2))).empty() ? 0 : 1;
  }
  EXPECT_GT(rejected, all / 2) << "of " << all;
  const Schedule schedule = make_schedule("gpipe", {2, 4, 1});
  EXPECT_EQ(program_problem(schedule, lane_program(schedule, 0)), "");
  Schedule ahead = make_schedule("1f1b", {2, 4, 1});
  ahead.ranks[0] = schedule.ranks[0];
  EXPECT_THAT(program_problem(ahead, on_one_channel(lane_program(ahead, 0))),
              HasSubstr("no rank can continue: rank 0 waits for what 0BW0 needs"));
}

}  // namespace
}  // namespace ranklab
