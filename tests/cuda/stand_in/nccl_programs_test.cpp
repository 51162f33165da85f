// The checker of message programs and the stand-in for NCCL are two readings of the same rules: what the one accepts
// runs on the other to its end, what it rejects does not.
#include <gmock/gmock.h>

#include "tests/cuda/stand_in/program_run.h"
#include "tests/pipeline/all_schedules.h"
#include "tests/pipeline/message_programs.h"

namespace ranklab::stand_in {
namespace {

using testing::HasSubstr;

constexpr int kPatient = 60'000, kImpatient = 100;

std::string shape(const Schedule& s) {
  return s.name + " pp " + std::to_string(s.num_ranks()) + " m " + std::to_string(s.num_microbatches);
}

void expect_runs(const Schedule& schedule, const MessageProgram& program) {
  EXPECT_EQ(program_problem(schedule, program), "") << shape(schedule);
  EXPECT_EQ(run_program(schedule, program, kPatient), "") << shape(schedule);
}

// A cause that a rank meets is waited for; only that nothing happens is found by patience.
void expect_fails(const Schedule& schedule, const MessageProgram& program, const std::string& what,
                  const std::string& cause) {
  EXPECT_NE(program_problem(schedule, program), "") << shape(schedule) << " " << what;
  const int patience = cause == kNoProgress ? kImpatient : kPatient;
  EXPECT_THAT(run_program(schedule, program, patience), HasSubstr(cause)) << shape(schedule) << " " << what;
}

TEST(NcclPrograms, WhatTheBackendDoesRunsForEverySchedule) {
  const std::vector<Schedule> schedules = all_schedules({2, 4}, {8});
  EXPECT_GE(schedules.size(), 2 * schedule_kinds().size());
  for (const Schedule& schedule : schedules) expect_runs(schedule, lane_program(schedule, 2));
}

TEST(NcclPrograms, SendsThatStartWithTheNextReceiveDoNot) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "v-min"}) {
    for (const int ranks : {2, 4}) {
      const Schedule schedule = make_schedule(name, {ranks, 4, 1});
      expect_fails(schedule, grouped_program(schedule), "grouped", "Message truncated");
    }
  }
}

TEST(NcclPrograms, MutantsDoNot) {
  const Schedule schedule = make_schedule("1f1b", {2, 4, 1});
  const MessageProgram good = lane_program(schedule, 0);
  MessageProgram swapped = good;
  const std::vector<size_t> sends = launches_of(swapped.ranks[0], 0, true);
  ASSERT_GE(sends.size(), 2u);
  std::swap(swapped.ranks[0][sends[0]].transfers, swapped.ranks[0][sends[1]].transfers);
  expect_fails(schedule, swapped, "two sends of a lane swapped", "rank 1 got another message than");

  MessageProgram missing = good;
  missing.ranks[1].erase(missing.ranks[1].begin() +
                         static_cast<std::ptrdiff_t>(launches_of(missing.ranks[1], 0, false).back()));
  expect_fails(schedule, missing, "a receive is missing", "rank 1 never receives what an action needs");

  Schedule ahead = schedule;
  ahead.ranks[0] = make_schedule("gpipe", {2, 4, 1}).ranks[0];
  expect_fails(ahead, on_one_channel(lane_program(ahead, 0)), "one queue for both directions", kNoProgress);

  Schedule cross = make_schedule("dualpipe", {2, 4, 1});
  MessageProgram lazy = lane_program(cross, 0);
  lazy.connected = false;
  expect_fails(cross, lazy, "lanes that connect at their first message", kNoProgress);
}

}  // namespace
}  // namespace ranklab::stand_in
