// A training run that is stopped, stepped and broken into is the same run, bit for bit; and it stops at the same place,
// in the same state, every time.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "core/base/text.h"
#include "tests/cpu_sim/stepped_training.h"

namespace ranklab::cpu_sim_test {
namespace {

using testing::HasSubstr;

class StepperTrainingTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Schedules, StepperTrainingTest, testing::Values("1f1b", "zb-h1"),
                         [](const auto& schedule) { return schedule.param == std::string("1f1b") ? "f1b" : "zb"; });

TEST_P(StepperTrainingTest, SteppedEqualsUnstepped) {
  const TrainConfig config = stepped_config(GetParam());
  const TrainingRecord plain = train(config);
  ASSERT_EQ(plain.losses.size(), 3U);
  ASSERT_EQ(plain.weights.size(), 8U);

  SteppedRun run(config);
  Stepper& stepper = run.stepper();
  for (int i = 0; i < 60; ++i) stepper.step_events(1), run.wait();
  for (int rank : {3, 7, 0, 5}) stepper.step_rank(rank, 4), run.wait();
  for (int i = 0; i < 3; ++i) stepper.step_microbatch(), run.wait();
  stepper.add_breakpoint(parse_breakpoint("all_reduce axis=dp"));
  for (int i = 0; i < 6; ++i) stepper.resume(), run.wait();
  stepper.step_events(25), run.wait();
  stepper.remove_breakpoint(1);
  stepper.step_training(1), run.wait();
  EXPECT_EQ(current_step(run.state()), 1);
  stepper.add_breakpoint(parse_breakpoint("optimizer rank=6 step=2"));
  stepper.resume(), run.wait();
  ASSERT_EQ(run.state().hits.size(), 1U);
  stepper.resume(), run.wait();
  EXPECT_TRUE(run.ended());

  const TrainingRecord stepped = run.finish();
  EXPECT_FALSE(stepped.error);
  EXPECT_EQ(stepped.losses, plain.losses);
  EXPECT_EQ(stepped.grad_norms, plain.grad_norms);
  EXPECT_EQ(stepped.virtual_ms, plain.virtual_ms);
  EXPECT_EQ(stepped.weights, plain.weights);
  EXPECT_EQ(stepped.virtual_times, plain.virtual_times);
}

// A running world in which nobody stops is the same, too.
TEST_P(StepperTrainingTest, AnIdleStepperChangesNothing) {
  const TrainConfig config = stepped_config(GetParam());
  EXPECT_EQ(train(config, std::make_shared<Stepper>(8)), train(config));
}

// Where each event of the first step goes, one at a time: rank and boundary.
std::vector<std::string> single_steps(const TrainConfig& config, int count) {
  SteppedRun run(config);
  std::vector<std::string> order;
  for (int i = 0; i < count && !run.ended(); ++i) {
    const StepperState before = run.state();
    const int next = next_rank(before);
    run.stepper().step_events(1);
    run.wait();
    const StepperState after = run.state();
    const RankState& moved = after.ranks[static_cast<size_t>(next)];
    order.push_back("r" + std::to_string(next) + " " + std::string(name(moved.activity)) + " " + to_text(moved.at) +
                    " " + std::to_string(after.hash));
    // Only the one that was let go, and those it woke, have moved.
    for (const RankState& rank : after.ranks) {
      const RankState& was = before.ranks[static_cast<size_t>(rank.global_rank)];
      if (rank.global_rank == next || was.activity != RankActivity::kParked) continue;
      EXPECT_EQ(rank, was);
    }
  }
  return order;
}

TEST(StepperTest, SingleStepsComeInOneOrder) {
  const TrainConfig config = stepped_config();
  const std::vector<std::string> first = single_steps(config, 150);
  EXPECT_EQ(first.size(), 150U);
  EXPECT_EQ(first, single_steps(config, 150));
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), first.size()) << "every hash is another";
  EXPECT_THAT(first[0], HasSubstr("r0 parked recv from 4 on pp [0 4]"));
}

TEST(StepperTest, EveryRankIsParkedOrWaitsForOne) {
  SteppedRun run(stepped_config());
  for (int i = 0; i < 120; ++i) {
    const StepperState state = run.state();
    ASSERT_EQ(state.mode, StepperMode::kPaused);
    int parked = 0;
    for (const RankState& rank : state.ranks) {
      if (rank.activity == RankActivity::kParked) ++parked;
      if (rank.activity != RankActivity::kBlocked) continue;
      EXPECT_FALSE(rank.waits_for.empty());
      EXPECT_THAT(rank.inside, HasSubstr(" at "));
      for (const int peer : rank.waits_for)
        EXPECT_NE(state.ranks[static_cast<size_t>(peer)].activity, RankActivity::kRunning);
    }
    ASSERT_GE(parked, 1);
    run.stepper().step_events(1);
    run.wait();
  }
}

TEST(StepperTest, OneRankGoesOnAndOthersOnlyForItsSake) {
  SteppedRun run(stepped_config());
  for (const int rank : {2, 2, 6, 0}) {
    const StepperState before = run.state();
    run.stepper().step_rank(rank, 3);
    run.wait();
    const StepperState after = run.state();
    const auto index = static_cast<size_t>(rank);
    EXPECT_EQ(after.ranks[index].events, before.ranks[index].events + 3);
  }
  // Alone at first: its step begins, F, and the messages and collectives before which it is held.
  SteppedRun fresh(stepped_config());
  fresh.stepper().step_rank(1, 1);
  fresh.wait();
  for (const RankState& rank : fresh.state().ranks) EXPECT_EQ(rank.events, rank.global_rank == 1 ? 2 : 1);
}

TEST(StepperTest, AMicrobatchAndAStep) {
  SteppedRun run(stepped_config());
  run.stepper().step_microbatch();
  run.wait();
  for (const RankState& rank : run.state().ranks) {
    if (rank.activity != RankActivity::kParked) continue;
    EXPECT_EQ(to_text(rank.at).substr(0, 7), "F mb 0 ") << rank.global_rank;
  }
  run.stepper().step_microbatch();
  run.wait();
  int further = 0;
  for (const RankState& rank : run.state().ranks) further += rank.at.microbatch == 1 ? 1 : 0;
  EXPECT_GE(further, 4) << "both replicas of the first stage";
  run.stepper().step_training(1);
  run.wait();
  for (const RankState& rank : run.state().ranks) {
    EXPECT_EQ(rank.activity, RankActivity::kParked);
    EXPECT_EQ(to_text(rank.at), "step 1 begins");
  }
  run.stepper().step_training(5);
  run.wait();
  EXPECT_TRUE(run.ended());
}

struct BreakCase {
  const char* text;
  const char* where;  // to_text of the first hit's boundary begins with this
  int rank = -1;      // of the first hit; -1: any
  int step = 0;
};
class BreakpointTest : public testing::TestWithParam<BreakCase> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, BreakpointTest,
    testing::Values(BreakCase{"F mb=3 rank=2", "F mb 3 stage 0", 2}, BreakCase{"F mb=2 rank=5", "F mb 2 stage 1", 5},
                    BreakCase{"W stage=1", "W mb 0 stage 1"},
                    BreakCase{"B mb=1 stage=0 step=1", "B mb 1 stage 0", -1, 1},
                    BreakCase{"all_reduce", "all_reduce on "}, BreakCase{"send rank=0", "send to 4 on pp [0 4]", 0},
                    BreakCase{"axis=dp", "all_reduce on dp"},
                    BreakCase{"axis=tp rank=3", "reduce_scatter on tp [2 3]", 3},
                    BreakCase{"recv axis=pp step=2", "recv from ", -1, 2}, BreakCase{"step=2", "step 2 begins", 0, 2},
                    BreakCase{"rank=3 step=1", "step 1 begins", 3, 1}, BreakCase{"optimizer rank=6", "optimizer", 6},
                    BreakCase{"loss > 0.1", "loss = 5."}, BreakCase{"grad_norm > 0 step=1", "grad_norm = ", -1, 1},
                    BreakCase{"activations_held > 1", "activations held = 2"}, BreakCase{"wait > 1ns", "wait = "},
                    BreakCase{"wait > 100s", "nothing"}, BreakCase{"memory/activations > 1KB", ""},
                    BreakCase{"memory/optimizer > 1KB step=1", "", -1, 1}, BreakCase{"memory < 1B", "nothing"}),
    [](const auto& each) {
      std::string text = each.param.text;
      for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return text;
    });

// Stops once, and returns where.
StepperState first_stop(const std::string& breakpoint) {
  install_booking_allocator();
  SteppedRun run(stepped_config("zb-h1"));
  run.stepper().add_breakpoint(parse_breakpoint(breakpoint));
  run.stepper().resume();
  run.wait();
  return run.state();
}

TEST_P(BreakpointTest, StopsWhereItShouldAndAgainOnTheNextRun) {
  const BreakCase& c = GetParam();
  const StepperState state = first_stop(c.text);
  if (c.where == std::string("nothing")) {
    EXPECT_EQ(state.mode, StepperMode::kEnded);
    return;
  }
  ASSERT_EQ(state.mode, StepperMode::kPaused);
  ASSERT_FALSE(state.hits.empty());
  const BreakpointHit& hit = state.hits[0];
  EXPECT_THAT(to_text(hit.at), testing::StartsWith(c.where));
  EXPECT_EQ(hit.at.step, c.step);
  EXPECT_EQ(hit.breakpoint, 1);
  EXPECT_EQ(state.breakpoints[0].hits, static_cast<int64_t>(state.hits.size()));
  EXPECT_TRUE(c.rank < 0 || c.rank == hit.global_rank) << hit.global_rank;
  const RankState& rank = state.ranks[static_cast<size_t>(hit.global_rank)];
  EXPECT_EQ(rank.activity, RankActivity::kParked) << "held at the place itself";
  EXPECT_EQ(rank.at.name, hit.at.name);

  const StepperState again = first_stop(c.text);
  EXPECT_EQ(again.hash, state.hash);
  EXPECT_EQ(again.hits, state.hits);
  EXPECT_EQ(again.ranks, state.ranks);
}

TEST(StepperTest, NanStopsBeforeTheRunFails) {
  TrainConfig config = stepped_config();
  config.lr = 1e38;
  config.lr_warmup_iters = 0;
  config.clip_grad = 0;
  SteppedRun run(config);
  run.stepper().add_breakpoint(parse_breakpoint("loss is nan"));
  run.stepper().resume();
  run.wait();
  const StepperState state = run.state();
  ASSERT_EQ(state.mode, StepperMode::kPaused);
  ASSERT_FALSE(state.hits.empty());
  EXPECT_EQ(to_text(state.hits[0].at), "loss = nan");
  EXPECT_EQ(state.hits[0].at.step, 1);
  // On a rank of the last stage, where its tensors can be looked at.
  const auto probe = run.stepper().probe(state.hits[0].global_rank);
  ASSERT_NE(probe, nullptr);
  EXPECT_GT(probe->tensor(probe->tensor_names()[0]).not_finite, 0);
  const TrainingRecord record = run.finish();
  ASSERT_TRUE(record.error);
  EXPECT_EQ(record.error->kind(), ErrorKind::kNumeric);
}

TEST(StepperTest, PauseWhileItRuns) {
  const TrainConfig config = [] {
    TrainConfig c = stepped_config();
    c.train_iters = 12;
    return c;
  }();
  const auto stepper = std::make_shared<Stepper>(8);
  TrainingRecord record;
  std::atomic<bool> asked{false};
  std::thread thread([&] {
    record = train(config, stepper, [&](int64_t step) {
      if (step == 3) stepper->pause(), asked = true;
    });
  });
  ASSERT_TRUE(stepper->wait_paused(std::chrono::seconds(60)));
  EXPECT_TRUE(asked);
  const StepperState state = stepper->state();
  EXPECT_EQ(state.mode, StepperMode::kPaused);
  EXPECT_TRUE(state.hits.empty());
  for (const RankState& rank : state.ranks) EXPECT_NE(rank.activity, RankActivity::kRunning);
  EXPECT_GE(current_step(state), 3);
  EXPECT_LE(current_step(state), 5);
  EXPECT_EQ(stepper->state(), state) << "nothing moves while it is paused";
  stepper->resume();
  thread.join();
  EXPECT_EQ(stepper->state().mode, StepperMode::kEnded);
  EXPECT_EQ(record, train(config));
}

TEST(StepperTest, TensorsOfAPausedRank) {
  SteppedRun run(stepped_config());
  run.stepper().add_breakpoint(parse_breakpoint("optimizer rank=0"));
  run.stepper().resume();
  run.wait();
  const auto probe = run.stepper().probe(0);
  ASSERT_NE(probe, nullptr);
  const std::vector<std::string> names = probe->tensor_names();
  ASSERT_FALSE(names.empty());
  const TensorSummary weight = probe->tensor(names[0]);
  EXPECT_TRUE(weight.defined);
  EXPECT_EQ(weight.dtype, "fp32");
  EXPECT_EQ(weight.first.size(), 8U);
  EXPECT_LE(weight.min, weight.mean);
  EXPECT_GE(weight.max, weight.mean);
  EXPECT_GT(weight.norm, 0);
  EXPECT_TRUE(probe->tensor(names[0] + ".grad").defined);
  try {
    probe->tensor(names[0] + "x");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean " + quote(names[0])));
  }
  const auto recent = run.stepper().last_events(0);
  ASSERT_FALSE(recent.empty());
  EXPECT_EQ(recent.back().event.step, 0);
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
