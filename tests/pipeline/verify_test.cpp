// The verifier finds what an independent oracle finds, and names it.
#include "core/pipeline/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "core/pipeline/simulate.h"
#include "tests/pipeline/all_schedules.h"
#include "tests/pipeline/oracle.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

TEST(Verify, EveryScheduleOfTheListIsSound) {
  const std::vector<Schedule> schedules =
      all_schedules({1, 2, 3, 4, 5, 6, 7, 8, 16}, {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 32, 33});
  EXPECT_GT(schedules.size(), 1000u);
  for (const Schedule& schedule : schedules) {
    const ScheduleProof proof = verify_schedule(schedule);
    EXPECT_THAT(proof.problems, testing::IsEmpty())
        << schedule.name << " p " << schedule.num_ranks() << " m " << schedule.num_microbatches;
    EXPECT_TRUE(ScheduleOracle(schedule).legal()) << schedule.name;
    const PipelineTimeline line = simulate(schedule, ScheduleCosts{});
    EXPECT_GE(line.makespan, line.ideal - 1e-9);
  }
}

TEST(Verify, SearchedSchedulesAreSoundUnderAnyCosts) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> cost(0.1, 3);
  for (int i = 0; i < 20; ++i) {
    const ScheduleCosts costs = {
        .f = cost(random), .b = cost(random), .w = cost(random), .c = cost(random) / 4, .weight_grad_memory = 0.4};
    for (const char* name : {"zb-2p", "zb-v", "v-half", "v-min"}) {
      for (const int p : {1, 2, 5}) {
        const Schedule schedule = make_schedule(name, {p, 11, 1}, costs);
        EXPECT_THAT(verify_schedule(schedule).problems, testing::IsEmpty()) << name << p;
        EXPECT_EQ(make_schedule(name, {p, 11, 1}, costs).ranks, schedule.ranks) << "the same again";
      }
    }
  }
}

enum class Change { kDrop, kSwap, kDuplicate };

struct Mutant {
  Schedule schedule;
  int rank = 0;
  Action action;
};

Mutant mutate(const Schedule& original, Change change, std::mt19937& random) {
  const auto below = [&](size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random); };
  Mutant mutant{original, static_cast<int>(below(original.ranks.size())), {}};
  std::vector<Action>& actions = mutant.schedule.ranks[static_cast<size_t>(mutant.rank)];
  const size_t at = below(actions.size());
  mutant.action = actions[at];
  if (change == Change::kDrop) {
    actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (change == Change::kSwap) {
    const bool neighbours = below(2) == 0 && at + 1 < actions.size();
    std::swap(actions[at], actions[neighbours ? at + 1 : below(actions.size())]);
  } else {
    mutant.rank = below(2) == 0 ? mutant.rank : static_cast<int>(below(original.ranks.size()));
    std::vector<Action>& target = mutant.schedule.ranks[static_cast<size_t>(mutant.rank)];
    target.insert(target.begin() + static_cast<std::ptrdiff_t>(below(target.size() + 1)), mutant.action);
  }
  return mutant;
}

bool names(const std::string& problem, const Mutant& mutant) {
  const std::regex rank("rank " + std::to_string(mutant.rank) + "\\b");
  return std::regex_search(problem, rank) || problem.find(to_text(mutant.action)) != std::string::npos;
}

TEST(Verify, TenThousandMutantsAreJudgedAsTheOracleDoes) {
  const std::vector<Schedule> originals = all_schedules({1, 2, 3, 4}, {1, 3, 4, 8});
  std::mt19937 random(20240110);
  int legal = 0, illegal = 0;
  std::map<Change, int> illegal_by_change;
  for (int i = 0; i < 10000; ++i) {
    const Schedule& original = originals[static_cast<size_t>(i) % originals.size()];
    const Change change = static_cast<Change>(i % 3);
    const Mutant mutant = mutate(original, change, random);
    const bool is_legal = ScheduleOracle(mutant.schedule).legal();
    const ScheduleProof proof = verify_schedule(mutant.schedule);
    ASSERT_EQ(proof.problems.empty(), is_legal)
        << original.name << ", rank " << mutant.rank << ", " << to_text(mutant.action)
        << (proof.problems.empty() ? "" : ": " + proof.problems.front());
    ++(is_legal ? legal : illegal);
    if (is_legal) continue;
    ++illegal_by_change[change];
    ASSERT_TRUE(names(proof.problems.front(), mutant)) << original.name << ", rank " << mutant.rank << ", "
                                                       << to_text(mutant.action) << ": " << proof.problems.front();
  }
  EXPECT_GT(legal, 500);
  EXPECT_GT(illegal, 7000);
  EXPECT_GT(illegal_by_change[Change::kSwap], 1000);
}

TEST(Verify, APairCannotFeedItself) {
  Schedule schedule = make_schedule("gpipe", {1, 1, 1});
  schedule.ranks = {{pair(0, 0, 0, 0)}};
  EXPECT_FALSE(ScheduleOracle(schedule).legal());
  EXPECT_THAT(verify_schedule(schedule).problems, testing::ElementsAre(HasSubstr("rank 0 runs 0F0&0BW0")));
}

TEST(Verify, AMistypedMicrobatchIsToldAndNotAllThatItLacks) {
  Schedule schedule = make_schedule("1f1b", {4, 8, 1});
  auto& actions = schedule.ranks[2];
  std::ranges::find(actions, forward(2, 7))->microbatch = 11;
  schedule.num_microbatches = 12;
  EXPECT_THAT(verify_schedule(schedule).problems,
              testing::ElementsAre(HasSubstr("rank 2 runs 2F11 (position 13), the only action of microbatch 11"),
                                   "rank 2 never runs 2F7"));
}

TEST(Verify, OfMuchThatNeverRunsAFewLinesAreTold) {
  Schedule schedule = make_schedule("1f1b", {2, 8, 1});
  schedule.ranks[1].clear();  // 8 forwards, input and weight gradients
  EXPECT_THAT(verify_schedule(schedule).problems,
              testing::ElementsAre("rank 1 never runs 1F0", "rank 1 never runs 1B0", "rank 1 never runs 1W0",
                                   "rank 1 never runs 1F1", "rank 1 never runs 1B1", "... and 19 more never run"));
}

TEST(Verify, DeadlockIsToldAsItsCycle) {
  Schedule schedule = make_schedule("1f1b", {2, 2, 1});
  // Rank 0 wants the gradient of microbatch 1 first, rank 1 makes it after that of microbatch 0, which needs 0F1.
  schedule.ranks = {{forward(0, 0), backward(0, 0), forward(0, 1), backward(0, 1)},
                    {forward(1, 0), forward(1, 1), backward(1, 0), backward(1, 1)}};
  const ScheduleProof proof = verify_schedule(schedule);
  ASSERT_EQ(proof.problems.size(), 1u);
  EXPECT_EQ(proof.problems[0],
            "deadlock: rank 0 waits at 0BW0 for 1BW0, which rank 1 runs after 1F1; "
            "rank 1 waits at 1F1 for 0F1, which rank 0 runs after 0BW0");
}

TEST(Verify, BlockingMessagesAreJudgedApart) {
  EXPECT_TRUE(verify_schedule(make_schedule("gpipe", {4, 8, 1})).blocking_safe);
  EXPECT_TRUE(verify_schedule(make_schedule("1f1b", {4, 8, 1})).blocking_safe);
  // Rank 0 runs ahead before it takes a gradient: its third output and rank 1's first gradient wait for each other.
  Schedule ahead = make_schedule("1f1b", {2, 4, 1});
  ahead.ranks[0] = make_schedule("gpipe", {2, 4, 1}).ranks[0];
  const ScheduleProof proof = verify_schedule(ahead);
  EXPECT_THAT(proof.problems, testing::IsEmpty());
  EXPECT_FALSE(proof.blocking_safe);
  EXPECT_THAT(proof.blocking_cycle, HasSubstr("rank 0 waits to reach rank 1 with the output of 0F2"));
  EXPECT_THAT(proof.blocking_cycle, HasSubstr("rank 1 waits to reach rank 0 with the gradient of 1B0"));
}

TEST(Verify, MessagesAndWeightsAreCounted) {
  const ScheduleProof flat = verify_schedule(make_schedule("1f1b", {4, 6, 1}));
  EXPECT_EQ(flat.messages, 2 * 3 * 6);
  EXPECT_EQ(flat.memory[0].messages_sent, 6) << "forward only";
  EXPECT_EQ(flat.memory[1].messages_sent, 12);
  const ScheduleProof looped = verify_schedule(make_schedule("interleaved-1f1b", {4, 8, 2}));
  EXPECT_EQ(looped.messages, 2 * 7 * 8);
  EXPECT_EQ(looped.memory[0].stages, 2);
  const ScheduleProof vee = verify_schedule(make_schedule("zb-v", {4, 8, 1}));
  EXPECT_EQ(vee.messages, 2 * 6 * 8) << "the turn of the V stays on its rank";
  const ScheduleProof dual = verify_schedule(make_schedule("dualpipe", {4, 8, 1}));
  EXPECT_EQ(dual.messages, 2 * 3 * 8) << "each microbatch walks one of the two chains";
}

TEST(Verify, WhatIsLeftBetweenBAndWCountsAsTold) {
  Schedule schedule = make_schedule("gpipe", {1, 2, 1});
  schedule.ranks = {
      {forward(0, 0), input_grad(0, 0), forward(0, 1), input_grad(0, 1), weight_grad(0, 0), weight_grad(0, 1)}};
  const StageMemory memory = verify_schedule(schedule, 0.25).memory[0];
  EXPECT_EQ(memory.peak_activations, 2);
  EXPECT_EQ(memory.peak_memory, 1.25);
  EXPECT_EQ(verify_schedule(schedule).memory[0].peak_memory, 2);
}

TEST(Verify, HugeNumbersAreRefusedWithoutTables) {
  Schedule schedule{"huge", 65536, std::vector<int>(65536, 0), 65536, {{forward(0, 0), backward(65535, 65535)}}};
  EXPECT_THAT(verify_schedule(schedule).problems, testing::ElementsAre(HasSubstr("need 4294967296 forwards")));
  EXPECT_THROW(require_sound(schedule), Error);
}

}  // namespace
}  // namespace ranklab
